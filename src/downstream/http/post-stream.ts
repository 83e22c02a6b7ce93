import type { ServerResponse } from 'node:http';
import { type SplicedMessage, splicedLength, visitPieces } from '../../json/splice.js';
import { type Answer, batchMessage, whole } from '../../jsonrpc/message.js';
import type { Clock } from '../../timing/clock.js';
import type { Deadlines } from '../../timing/deadlines.js';
import type { ReplyChannel } from '../transport.js';
import type { EventStream, Timed } from './event-stream.js';
import { type HttpRefusal, refusalBody } from './refusal.js';

export interface PostStreamOptions {
  readonly response: ServerResponse;
  /** Number of answers, each of which may be withdrawn. */
  readonly answers: number;
  readonly isBatch: boolean;
  readonly clock: Clock;
  readonly timers: Deadlines<Timed>;
  /** Milliseconds without an answer after which an event stream begins, which can be kept alive. */
  readonly streamAfterMs: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly openStream: () => EventStream;
  /** The HTTP status of an answer that is sent as JSON. Without it, every answer has 200. */
  readonly statusOf?: (answer: Answer) => number;
  /**
   * Whether the client gives its requests up by closing the response. Otherwise a closed response cancels nothing: the
   * requests may have effects, and the client can cancel them, or resume the stream.
   */
  readonly isAbandonedByClosing?: boolean;
  readonly passing: (message: SplicedMessage) => void;
  /** All answers were sent or withdrawn. Called once. */
  readonly onOver: () => void;
}

type State =
  /** Nothing was sent yet, so the answers may still be sent as plain JSON. They are collected until the last one. */
  | { readonly kind: 'waiting'; readonly collected: Answer[] }
  | { readonly kind: 'streaming'; readonly stream: EventStream }
  /** The client left, and there is no stream that it could resume. Nothing can be sent. */
  | { readonly kind: 'unheard' }
  | { readonly kind: 'over' };

/** Limit of the collected answers of a batch. Beyond it, an event stream begins. */
const MAX_COLLECTED_BYTES = 1024 * 1024;

/** Answers one POST: with one JSON text if nothing precedes the answers, with an event stream otherwise. */
export class PostStream implements ReplyChannel, Timed {
  /** Unrelated POSTs of one session may have the same request id. */
  readonly isShared = false;
  dueAt: number;
  readonly #options: PostStreamOptions;
  #state: State = { kind: 'unheard' };
  #left: number;
  #onAbandoned: () => void = () => {};

  constructor(options: PostStreamOptions) {
    this.#options = options;
    this.#left = options.answers;
    this.dueAt = options.clock.now() + options.streamAfterMs;
    if (!options.response.destroyed) this.#become({ kind: 'waiting', collected: [] });
    options.response.once('close', () => this.closed());
  }

  get unwrittenBytes(): number {
    return this.#state.kind === 'streaming' ? this.#state.stream.unwrittenBytes : 0;
  }

  get isUnheard(): boolean {
    return this.#state.kind === 'unheard' || this.#state.kind === 'over';
  }

  send(message: SplicedMessage): void {
    this.#options.passing(message);
    if (!this.isUnheard) this.#stream().send(message);
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

  /** Whether an event stream has begun, and is not over. */
  get isStreaming(): boolean {
    return this.#state.kind === 'streaming';
  }

  onAbandoned(listener: () => void): void {
    this.#onAbandoned = listener;
  }

  closed(): void {
    const { kind } = this.#state;
    const { isAbandonedByClosing = false } = this.#options;
    if (kind === 'waiting' || (kind === 'streaming' && isAbandonedByClosing)) this.#become({ kind: 'unheard' });
    if (isAbandonedByClosing && this.#state.kind === 'unheard') this.#onAbandoned();
  }

  /** The session has ended, and its requests with it. */
  endEarly(refusal: HttpRefusal): void {
    const { kind } = this.#state;
    if (kind === 'over') return;
    if (kind === 'streaming') this.#state.stream.end();
    if (kind === 'waiting') refuse(this.#options.response, refusal, this.#options.headers);
    this.#over();
  }

  onDue(): void {
    if (this.#state.kind === 'waiting') this.#stream();
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

  /** Sends the answers if none is missing. */
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
    this.#become({ kind: 'streaming', stream });
    for (const message of collected) stream.send(message);
    return stream;
  }

  #respond(status: number, message?: SplicedMessage): void {
    respond(this.#options.response, status, this.#options.headers, message);
    this.#over();
  }

  #over(): void {
    this.#become({ kind: 'over' });
    this.#options.onOver();
  }

  #become(state: State): void {
    this.#state = state;
    if (state.kind === 'waiting') this.#options.timers.watch(this);
    else this.#options.timers.unwatch(this);
  }
}

/** Writes the whole response: a message, or nothing but the status. */
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

export function refuse(response: ServerResponse, refusal: HttpRefusal, headers: Headers): void {
  if (response.headersSent) return;
  respond(response, refusal.status, { ...headers, ...refusal.headers }, whole(refusalBody(refusal)));
}

type Headers = Readonly<Record<string, string>>;

const JSON_HEADERS = { 'content-type': 'application/json', 'cache-control': 'no-store, no-transform' };
