// A session over HTTP for tests with many sessions at once.
import { once } from 'node:events';
import * as http from 'node:http';
import { EventReader, type ReadEvent } from '../downstream/http/event-reader.js';
import type { Message } from './gateway-process.js';
import { INITIALIZE, type Place, type Running } from './http-place.js';

/** The test that drives a client and checks what the client receives. */
export interface LoadObserver {
  /** Called with the text of every message that comes on a POST. */
  text(text: string): void;
  /** Called with a server request; returns the result to answer with. */
  asked(input: Message): object;
}

/** A session among many: few connections, and every byte that comes is looked at. */
export class LoadClient {
  readonly #place: Place;
  readonly #running: Running;
  readonly #calls = new http.Agent({ keepAlive: true, maxSockets: 4 });
  /** Apart from the calls, so that what a call waits for never waits for a call. */
  readonly #others = new http.Agent({ keepAlive: true, maxSockets: 2 });
  readonly #observer: LoadObserver;
  #session: Record<string, string> = {};
  #stream: EventReader | undefined;

  constructor(place: Place, running: Running, observer: LoadObserver) {
    this.#place = place;
    this.#running = running;
    this.#observer = observer;
  }

  /** Begins the session, and listens to what no request asks for. */
  async open(capabilities: object): Promise<void> {
    const hello = { ...INITIALIZE, params: { ...INITIALIZE.params, capabilities } };
    const response = await this.#send('POST', this.#others, hello);
    const id = response.headers['mcp-session-id'];
    if (typeof id !== 'string') throw new Error(`No session: ${response.statusCode}`);
    this.#session = { 'mcp-session-id': id };
    response.resume();
    await once(response, 'end');
    await this.tell({ jsonrpc: '2.0', method: 'notifications/initialized' });
    // On a connection of its own, for as long as the session lasts.
    const listening = await this.#send('GET', new http.Agent({ keepAlive: false }));
    if (listening.statusCode !== 200) throw new Error(`Cannot listen: ${listening.statusCode}`);
    this.#stream = new EventReader(listening);
  }

  /**
   * Sends a request; resolves with every message but server requests, in order, the answer last if there was one.
   * `onMessage` is called with each as it comes.
   */
  async request(message: Message, onMessage: (message: Message) => void = () => {}): Promise<readonly Message[]> {
    const response = await this.#send('POST', this.#calls, message);
    const isStream = response.headers['content-type']?.startsWith('text/event-stream');
    const messages: Message[] = [];
    const answers: Promise<void>[] = [];
    const take = (text: string) => {
      this.#observer.text(text);
      const taken = JSON.parse(text) as Message;
      if (taken.method !== undefined && taken.id !== undefined) {
        answers.push(this.tell({ jsonrpc: '2.0', id: taken.id, result: this.#observer.asked(taken) }));
        return;
      }
      messages.push(taken);
      onMessage(taken);
    };
    if (isStream) {
      const reader = new EventReader(response);
      for (let event = await reader.next(); event !== undefined; event = await reader.next()) {
        if (event.data) take(event.data);
      }
    } else {
      const chunks: Buffer[] = [];
      for await (const chunk of response) chunks.push(chunk as Buffer);
      const text = Buffer.concat(chunks).toString();
      if (text !== '') take(text);
    }
    await Promise.all(answers);
    return messages;
  }

  /** Sends a message without an answer: a notification, or the answer to a server request. */
  async tell(message: Message): Promise<void> {
    const response = await this.#send('POST', this.#others, message);
    response.resume();
    await once(response, 'end');
    if (response.statusCode !== 202) throw new Error(`Not accepted: ${response.statusCode}`);
  }

  /** Ends the session; resolves with the messages on the GET stream. */
  async end(): Promise<readonly ReadEvent[]> {
    const response = await this.#send('DELETE', this.#others);
    response.resume();
    const events = (await this.#stream?.rest()) ?? [];
    for (const agent of [this.#calls, this.#others]) agent.destroy();
    if (response.statusCode !== 204) throw new Error(`Not ended: ${response.statusCode}`);
    return events.filter(({ data }) => data);
  }

  async #send(method: string, agent: http.Agent, message?: Message): Promise<http.IncomingMessage> {
    const { port } = this.#running;
    const accept = method === 'GET' ? { accept: 'text/event-stream' } : {};
    const headers = this.#place.headers({ ...this.#session, ...accept });
    const request = http.request({ host: '127.0.0.1', port, path: '/mcp', method, agent, headers });
    request.end(message === undefined ? undefined : JSON.stringify(message));
    const [response] = (await once(request, 'response')) as [http.IncomingMessage];
    return response;
  }
}
