// A `Wire` over Streamable HTTP.
import { once } from 'node:events';
import * as http from 'node:http';
import { EventReader } from '../../downstream/http/event-reader.js';
import type { Channel, OnMessage, Wire } from './wire.js';

/** A session over Streamable HTTP: a POST for each message, and a GET stream for messages without a request. */
export class HttpWire implements Wire {
  readonly #url: URL;
  readonly #onMessage: OnMessage;
  readonly #authorization: http.OutgoingHttpHeaders;
  readonly #agent = new http.Agent({ keepAlive: true });
  #session: string | undefined;

  constructor(url: string, onMessage: OnMessage, token?: string) {
    this.#url = new URL(url);
    this.#authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };
    this.#onMessage = onMessage;
  }

  /** Resolves when the response has ended; a notification or an answer has been taken then. */
  async send(text: string): Promise<void> {
    const response = await this.#request('POST', text);
    this.#session ??= response.headers['mcp-session-id'] as string | undefined;
    if (response.statusCode === 429) {
      await this.#waitAsTold(response);
      await this.send(text);
    } else if (response.statusCode === 202) {
      response.resume();
    } else if (response.headers['content-type'] === 'text/event-stream') {
      await this.#read(response, 'response');
    } else {
      const body = Buffer.concat(await response.toArray()).toString();
      if (response.statusCode !== 200) throw new Error(`Refused with ${response.statusCode}: ${body}`);
      this.#onMessage(body, 'response');
    }
  }

  async listen(): Promise<void> {
    const response = await this.#request('GET');
    if (response.statusCode !== 200) throw new Error(`GET was refused with ${response.statusCode}`);
    void this.#read(response, 'stream');
  }

  async close(): Promise<void> {
    if (this.#session !== undefined) (await this.#request('DELETE')).resume();
    this.#agent.destroy();
  }

  async #request(method: string, body?: string): Promise<http.IncomingMessage> {
    const request = http.request(this.#url, {
      method,
      agent: this.#agent,
      headers: {
        accept: method === 'GET' ? 'text/event-stream' : 'application/json, text/event-stream',
        ...this.#authorization,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(this.#session === undefined ? {} : { 'mcp-session-id': this.#session }),
      },
    });
    // An error after the response has begun ends the reading of the response, too.
    request.on('error', () => {});
    request.end(body);
    const [response] = (await once(request, 'response')) as [http.IncomingMessage];
    return response;
  }

  async #read(response: http.IncomingMessage, channel: Channel): Promise<void> {
    const reader = new EventReader(response);
    for (let event = await reader.next(); event !== undefined; event = await reader.next()) {
      // An event without data is there to be resumed from.
      if (event.data) this.#onMessage(event.data, channel);
    }
  }

  /** Scripts follow each other faster than any client's requests. */
  async #waitAsTold(response: http.IncomingMessage): Promise<void> {
    response.resume();
    const seconds = Number(response.headers['retry-after']);
    await new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
  }
}
