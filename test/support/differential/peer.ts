// The client of the differential tests: it sends and receives text, and changes none of it.
import { tokenAt } from '../../fixtures/servers/odd/raw-json.mjs';
import type { Message } from '../gateway-process.js';
import { PATIENCE_MS } from '../processes.js';
import { entriesOf, Numbering, type Transcript, underOwnName } from './transcript.js';
import type { Channel, OnMessage, Wire } from './wire.js';

const LISTED_AS = {
  'tools/list': 'tools',
  'prompts/list': 'prompts',
  'resources/list': 'resources',
  'resources/templates/list': 'resourceTemplates',
} as const;

export type ListMethod = keyof typeof LISTED_AS;

interface Arrival {
  readonly text: string;
  readonly message: Message;
  /** As it goes into the transcript. */
  readonly shown: string;
  readonly isAsked: boolean;
  isTaken: boolean;
}

/**
 * A client that sends and receives texts, and keeps what it received. It repairs nothing, and answers nothing by itself
 * but a ping, since pings are between neighbours.
 */
export class Peer {
  /** Prefix of the server's names here. */
  readonly prefix: string;
  readonly #wire: Wire;
  /** Ids, as tokens, of what was not answered yet. */
  readonly #inFlight = new Set<string>();
  #arrivals: Arrival[] = [];
  #listed: string[] = [];
  #numbering = new Numbering();
  #wake = new Set<() => void>();

  constructor(prefix: string, open: (onMessage: OnMessage) => Wire) {
    this.prefix = prefix;
    this.#wire = open((text, channel) => this.#receive(text, channel));
  }

  /** The name of something that the server calls `original`. */
  name(original: string): string {
    return `${this.prefix}${original}`;
  }

  /** Shakes hands in these words; resolves with the answer. */
  async initialize(initialize: string): Promise<string> {
    const answer = await this.ask(initialize);
    await this.tell('{"jsonrpc":"2.0","method":"notifications/initialized"}');
    await this.#wire.listen();
    return answer;
  }

  /** Sends a notification, an answer, or a request whose answer is seen to later, or will not come. */
  async tell(text: string): Promise<void> {
    const message = JSON.parse(text) as Message;
    const sent = this.#wire.send(text);
    if (message.method === 'notifications/cancelled') {
      this.#inFlight.delete(tokenAt(text, ['params', 'requestId']) ?? '');
    }
    if (message.method === undefined || message.id === undefined) return await sent;
    this.#inFlight.add(tokenAt(text, ['id']) ?? '');
    // The response ends with the answer, which is waited for elsewhere; a refusal is shown among what came instead.
    sent.catch((error: unknown) => this.#receive(`{"refused":${JSON.stringify(String(error))}}`, 'response'));
  }

  /** Sends a request; resolves with the answer. */
  async ask(text: string): Promise<string> {
    await this.tell(text);
    const id = tokenAt(text, ['id']) ?? '';
    return await this.#take(`the answer to ${id}`, (arrival) => isAnswerTo(arrival, id));
  }

  /** Resolves with the answer to a request that was sent by `tell`. */
  async answerTo(id: string): Promise<string> {
    return await this.#take(`the answer to ${id}`, (arrival) => isAnswerTo(arrival, id));
  }

  /** The next request or notification of this method, each once. */
  async next(method: string): Promise<string> {
    return await this.#take(method, ({ message }) => message.method === method);
  }

  /** Waits for the server's next request of this method and answers it; see `reply`. */
  async answer(method: string, text: string): Promise<void> {
    await this.reply(await this.next(method), text);
  }

  /** Sends a message about a server request, in which `@id@` and `@token@` stand for those of the request. */
  async reply(input: string, text: string): Promise<void> {
    const id = tokenAt(input, ['id']) ?? '';
    const token = tokenAt(input, ['params', '_meta', 'progressToken']) ?? '';
    await this.tell(text.replaceAll('@id@', id).replaceAll('@token@', token));
  }

  /** Reads a list to its last page; its entries get into the transcript, under the server's own names. */
  async list(method: ListMethod): Promise<void> {
    for (const entry of await this.read(method)) this.#listed.push(underOwnName(entry, this.prefix));
  }

  /** Reads a list to its last page, for a script that needs to know what is in it. */
  async read(method: ListMethod): Promise<string[]> {
    const entries: string[] = [];
    let cursor: string | undefined;
    do {
      const params = cursor === undefined ? '' : `,"params":{"cursor":${cursor}}`;
      const answer = await this.ask(`{"jsonrpc":"2.0","id":"list","method":"${method}"${params}}`);
      entries.push(...entriesOf(answer, LISTED_AS[method]));
      cursor = tokenAt(answer, ['result', 'nextCursor']);
    } while (cursor !== undefined);
    return entries;
  }

  /** All that has come since the last time, once nothing more can come of what was sent. */
  async finish(): Promise<Omit<Transcript, 'server'>> {
    await this.ask('{"jsonrpc":"2.0","id":"end","method":"odd/end"}');
    await this.next('notifications/odd/end');
    const arrivals = this.#arrivals.filter(({ message }) => !isHousekeeping(message));
    const shown = (some: Arrival[]) => some.map((arrival) => arrival.shown);
    const listed = this.#listed;
    this.#arrivals = [];
    this.#listed = [];
    this.#numbering = new Numbering();
    this.#inFlight.clear();
    return {
      asked: shown(arrivals.filter(({ isAsked }) => isAsked)),
      unasked: shown(arrivals.filter(({ isAsked }) => !isAsked)),
      inOrder: shown(arrivals.filter(({ message }) => !isAnnouncement(message))),
      listed,
    };
  }

  async close(): Promise<void> {
    await this.#wire.close();
  }

  #receive(text: string, channel: Channel): void {
    const message = JSON.parse(text) as Message;
    if (message.method === 'ping') {
      void this.tell(`{"jsonrpc":"2.0","id":${tokenAt(text, ['id'])},"result":{}}`);
      return;
    }
    const isAnswer = message.method === undefined;
    // On a pipe, a message that comes while a request is in flight counts as caused by it.
    const isCaused = this.#inFlight.size > 0 && !isAnnouncement(message) && !isUpdate(message);
    const isAsked = channel === 'pipe' ? isAnswer || isCaused : channel === 'response';
    if (isAnswer) this.#inFlight.delete(tokenAt(text, ['id']) ?? '');
    this.#arrivals.push({ text, message, shown: this.#numbering.of(text), isAsked, isTaken: false });
    for (const wake of this.#wake) wake();
  }

  async #take(what: string, isIt: (arrival: Arrival) => boolean): Promise<string> {
    for (const deadline = performance.now() + PATIENCE_MS; ; ) {
      const arrival = this.#arrivals.find((candidate) => !candidate.isTaken && isIt(candidate));
      if (arrival !== undefined) {
        arrival.isTaken = true;
        return arrival.text;
      }
      if (performance.now() > deadline) {
        const texts = this.#arrivals.map(({ text }) => text.slice(0, 500));
        throw new Error(`Waited in vain for ${what}. What came:\n${texts.join('\n')}`);
      }
      await this.#arrival(deadline);
    }
  }

  async #arrival(deadline: number): Promise<void> {
    let wake = () => {};
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      wake = resolve;
      timer = setTimeout(resolve, deadline - performance.now() + 1);
      this.#wake.add(wake);
    });
    clearTimeout(timer);
    this.#wake.delete(wake);
  }
}

function isAnswerTo({ text, message }: Arrival, id: string): boolean {
  return message.method === undefined && tokenAt(text, ['id']) === id;
}

/** Lists are compared by their entries: a gateway answers for all servers, in pages of its own. */
function isHousekeeping({ id, method }: Message): boolean {
  return id === 'list' || id === 'end' || method === 'notifications/odd/end';
}

function isAnnouncement({ method }: Message): boolean {
  return typeof method === 'string' && method.endsWith('/list_changed');
}

function isUpdate({ method }: Message): boolean {
  return method === 'notifications/resources/updated';
}
