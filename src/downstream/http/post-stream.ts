import type { ServerResponse } from 'node:http';
import { type SplicedMessage, splicedLength, visitPieces } from '../../wire/json/splice.js';
import { type Answer, batchMessage, unedited } from '../../wire/jsonrpc/message.js';
import { fateOfMessage } from '../../wire/mcp/lost-request.js';
import type { Clock } from '../../wire/timing/clock.js';
import type { Deadlines } from '../../wire/timing/deadlines.js';
import type { HttpFacts } from '../port.js';
import type { ReplyChannel } from '../transport.js';
import { type HttpRefusal, INSTANCE_LOST, MOVED, refusalBody, SHUTTING_DOWN } from './http-refusal.js';
import { clientOf } from './listener.js';
import type { EventStream, Timed } from './sse-stream.js';

export interface PostForm {
  readonly openStream: () => EventStream;
  /** Returns the HTTP status of an answer that is sent as JSON. Without this function, every answer has 200. */
  readonly statusOf?: (answer: Answer) => number;
  /**
   * Whether the client cancels its requests by closing the response. Otherwise a closed response cancels nothing,
   * because the requests may have effects, and the client can cancel them or resume the stream.
   */
  readonly isAbandonedByClosing?: boolean;
  /** Called once, after all answers were sent or withdrawn. */
  readonly onOver: () => void;
}

export interface PostStreamOptions extends PostForm {
  readonly response: ServerResponse;
  readonly body: Uint8Array;
  /** Number of expected answers. Each of them may be withdrawn. */
  readonly answers: number;
  readonly isBatch: boolean;
  readonly clock: Clock;
  readonly timers: Deadlines<Timed>;
  /** Time without an answer until an event stream begins, in milliseconds. An event stream can be kept alive. */
  readonly streamAfterMs: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Whether the request is a subscription, which stays open. */
  readonly staysOpen?: boolean;
  readonly passing: (message: SplicedMessage) => void;
}

type State =
  /** Nothing was sent yet. The answers are collected until the last one, because they may become plain JSON. */
  | { readonly kind: 'waiting'; readonly collected: Answer[] }
  | { readonly kind: 'streaming'; readonly stream: EventStream }
  /** The client left, and has no stream to resume, so nothing can be sent. */
  | { readonly kind: 'disconnected' }
  | { readonly kind: 'over' };

/** Limit of the collected answers of a batch, in bytes. Beyond it, an event stream begins. */
const MAX_COLLECTED_BYTES = 1024 * 1024;

/** Answers one POST: with one JSON text if no other message precedes the answers, otherwise with an event stream. */
export class PostStream implements ReplyChannel, Timed {
  /** False, because unrelated POSTs of one session may have the same request id. */
  readonly isShared = false;
  dueAt: number;
  readonly #options: PostStreamOptions;
  #state: State = { kind: 'disconnected' };
  #left: number;
  #onAbandoned: () => void = () => {};

  constructor(options: PostStreamOptions) {
    this.#options = options;
    this.#left = options.answers;
    this.dueAt = options.clock.now() + options.streamAfterMs;
    if (!options.response.destroyed) this.#enter({ kind: 'waiting', collected: [] });
    options.response.once('close', () => this.closed());
  }

  get unwrittenBytes(): number {
    return this.#state.kind === 'streaming' ? this.#state.stream.unwrittenBytes : 0;
  }

  get isDisconnected(): boolean {
    return this.#state.kind === 'disconnected' || this.#state.kind === 'over';
  }

  get http(): HttpFacts {
    const { req: request } = this.#options.response;
    return { ...clientOf(request), header: (name) => request.headers[name]?.toString() };
  }

  send(message: SplicedMessage): void {
    this.#options.passing(message);
    if (!this.isDisconnected) this.#stream().send(message);
  }

  answer(message: Answer): void {
    this.#options.passing(message);
    if (this.#state.kind === 'waiting') this.#state.collected.push(message);
    else if (this.#state.kind === 'streaming') this.#state.stream.send(message);
    this.#settleOne();
  }

  withdraw(): void {
    this.#settleOne();
  }

  get staysOpen(): boolean {
    return this.#options.staysOpen === true;
  }

  /** Whether an event stream has begun and is not over. */
  get isStreaming(): boolean {
    return this.#state.kind === 'streaming';
  }

  onAbandoned(listener: () => void): void {
    this.#onAbandoned = listener;
  }

  closed(): void {
    const { kind } = this.#state;
    const { isAbandonedByClosing = false } = this.#options;
    if (kind === 'waiting' || (kind === 'streaming' && isAbandonedByClosing)) this.#enter({ kind: 'disconnected' });
    if (isAbandonedByClosing && this.#state.kind === 'disconnected') this.#onAbandoned();
  }

  /** Ends the response early, because the session has ended. */
  endEarly(refusal: HttpRefusal): void {
    const { kind } = this.#state;
    if (kind === 'over') return;
    const lost = refusal === MOVED || refusal === SHUTTING_DOWN ? this.#lostAnswer() : undefined;
    if (lost !== undefined) this.#options.passing(lost);
    if (kind === 'streaming') {
      if (lost !== undefined && !this.#options.isBatch) this.#state.stream.send(lost);
      this.#state.stream.end();
    }
    if (kind === 'waiting' && lost !== undefined) respond(this.#options.response, 200, this.#options.headers, lost);
    else if (kind === 'waiting') refuse(this.#options.response, refusal, this.#options.headers);
    this.#over();
  }

  onDue(): void {
    if (this.#state.kind === 'waiting') this.#stream();
  }

  /** The answer to a call whose outcome is unknown; `undefined` if the POST may be sent again. */
  #lostAnswer(): SplicedMessage | undefined {
    const fate = fateOfMessage(this.#options.body, INSTANCE_LOST);
    return fate.kind === 'answered' ? unedited(Buffer.from(fate.answer)) : undefined;
  }

  #settleOne(): void {
    const { kind } = this.#state;
    if (kind === 'over') return;
    this.#left -= 1;
    if (kind === 'waiting') this.#settle(this.#state.collected);
    else if (this.#left <= 0) {
      if (kind === 'streaming') this.#state.stream.end();
      this.#over();
    }
  }

  /** Sends the answers if all of them are there. */
  #settle(collected: readonly Answer[]): void {
    if (this.#left > 0) {
      if (collected.reduce((bytes, message) => bytes + splicedLength(message), 0) > MAX_COLLECTED_BYTES) this.#stream();
      return;
    }
    const [first] = collected;
    if (first === undefined) this.#respond(202);
    else if (this.#options.isBatch) this.#respond(200, batchMessage(collected));
    else this.#respond(this.#options.statusOf?.(first) ?? 200, first);
  }

  #stream(): EventStream {
    if (this.#state.kind === 'streaming') return this.#state.stream;
    const collected = this.#state.kind === 'waiting' ? this.#state.collected : [];
    const stream = this.#options.openStream();
    this.#enter({ kind: 'streaming', stream });
    for (const message of collected) stream.send(message);
    return stream;
  }

  #respond(status: number, message?: SplicedMessage): void {
    respond(this.#options.response, status, this.#options.headers, message);
    this.#over();
  }

  #over(): void {
    this.#enter({ kind: 'over' });
    this.#options.onOver();
  }

  #enter(state: State): void {
    this.#state = state;
    if (state.kind === 'waiting') this.#options.timers.watch(this);
    else this.#options.timers.unwatch(this);
  }
}

/** Writes the whole response: a message, or only the status. */
export function respond(response: ServerResponse, status: number, headers: Headers, message?: SplicedMessage): void {
  if (message === undefined) {
    response.writeHead(status, { ...headers, 'content-length': 0 }).end();
    return;
  }
  response.writeHead(status, { ...headers, ...JSON_HEADERS, 'content-length': splicedLength(message) });
  response.cork();
  const { lease } = message;
  visitPieces(message, (piece) => response.write(piece));
  response.end(lease && (() => lease.release()));
  response.uncork();
}

/** Answers with a refusal, unless a response has begun. */
export function refuse(response: ServerResponse, refusal: HttpRefusal, headers: Headers): void {
  if (response.headersSent) return;
  respond(response, refusal.status, { ...headers, ...refusal.headers }, unedited(refusalBody(refusal)));
}

type Headers = Readonly<Record<string, string>>;

const JSON_HEADERS = { 'content-type': 'application/json', 'cache-control': 'no-store, no-transform' };
