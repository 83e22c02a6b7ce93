import type { IncomingMessage } from 'node:http';
import { errorMessage } from '../../errors/error-text.js';
import { RequestError } from '../../http/send-request.js';
import { copyInto } from '../../io/byte-reader.js';
import { readText } from '../../json/json-text.js';
import type { Envelope, ResponseEnvelope } from '../../mcp/envelope.js';
import { METHODS } from '../../mcp/methods.js';
import { MODERN_CODES } from '../../mcp/revisions.js';
import type { EndedBecause, RequestFailure } from '../port.js';
import { BlockedError } from './access.js';
import { EVENT_STREAM, type HttpSession, mediaTypeOf, PausedError, readEvents } from './session.js';
import { SESSION_GONE } from './standing-stream.js';

const ACCEPT = `application/json, ${EVENT_STREAM}`;
/** An answer with an error status is read up to this size, in bytes. */
const MAX_ERROR_BYTES = 1024 * 1024;
/** Times that a message is sent again because the server wants a pause first. */
const MAX_REPEATS = 3;
/** Longest pause for which a message waits, in milliseconds. */
const MAX_WAIT_MS = 10_000;
/** Pause before a stream is resumed, unless the server names one, in milliseconds. */
const RESUME_MS = 1_000;
/** Times in a row that a resumed stream may bring nothing. */
const MAX_EMPTY_STREAMS = 5;

/** One message on its way to the server, until what the server answers is read. */
export class Post {
  /** The id of the request; `undefined` for notifications and responses. */
  readonly id: number | undefined;
  readonly #session: HttpSession;
  readonly #message: Envelope;
  readonly #body: Uint8Array;
  readonly #abort = new AbortController();
  #isSent = false;
  /** Whether the server has taken the message. A later failure concerns the stream of the answer only. */
  #isTaken = false;
  /** Whether the message was sent again with other headers. */
  #isCorrected = false;

  constructor(session: HttpSession, message: Envelope, body: Uint8Array) {
    this.#session = session;
    this.#message = message;
    this.#body = body;
    this.id = message.kind === 'request' ? Number(readText(body, message.id)) : undefined;
  }

  /** Whether the server may have seen the message. */
  get isSent(): boolean {
    return this.#isSent;
  }

  /** Whether the message names its revision, as those without a handshake do. */
  get isModern(): boolean {
    return this.#message.kind !== 'response' && this.#message.tokens.eraVersion !== undefined;
  }

  /** Sends the message. Resolves when nothing more comes for it, and never rejects. */
  async run(): Promise<void> {
    try {
      if (this.#session.isOver) this.#fail('exited', false);
      else await this.#exchange();
    } catch (error) {
      this.#report(error);
    }
  }

  /** Stops sending and reading. With a reason, fails the request. */
  end(reason?: RequestFailure, because?: EndedBecause): void {
    if (reason !== undefined) this.#fail(reason, this.#isSent, because);
    this.#abort.abort();
  }

  get #method(): string | undefined {
    return this.#message.kind === 'request' ? this.#message.method : undefined;
  }

  get #isInitialize(): boolean {
    return this.#method === METHODS.initialize;
  }

  get #isPending(): boolean {
    return this.id !== undefined && this.#session.options.incoming.isPending(this.id);
  }

  #fail(reason: RequestFailure, sent: boolean, because?: string): void {
    if (this.id !== undefined && this.#isPending) this.#session.options.incoming.fail(this.id, reason, sent, because);
  }

  #report(error: unknown): void {
    if (this.#abort.signal.aborted) return;
    if (error instanceof BlockedError) {
      this.#fail(error.blocked === 'refused' ? 'refused' : 'login_required', this.#isTaken, error.message);
    } else if (error instanceof PausedError) {
      this.#fail('unavailable', this.#isTaken, error.message);
    } else if (error instanceof RequestError && !error.sent) {
      this.#fail('unreachable', this.#isTaken, error.message);
      this.#session.lose('unreachable', error.message);
    } else {
      this.#fail('connection_lost', true, errorMessage(error));
    }
  }

  async #exchange(): Promise<void> {
    if (this.#isInitialize && this.#session.options.transport === 'sse' && !(await this.#session.openOneStream())) {
      this.#fail('refused', false, 'it offers no event stream with an `endpoint` event');
      return;
    }
    for (let repeats = 0; ; repeats += 1) {
      const response = await this.#post();
      const waitMs = await this.#pauseWanted(response, repeats);
      if (waitMs === undefined) {
        await this.#read(response);
        return;
      }
      // The server has refused it.
      this.#isSent = false;
      await this.#session.sleep(waitMs, this.#abort.signal);
      if (this.#abort.signal.aborted) return;
    }
  }

  async #post(): Promise<IncomingMessage> {
    const message = this.#message.kind === 'response' ? undefined : this.#message;
    return await this.#session.request({
      method: 'POST',
      accept: ACCEPT,
      signal: this.#abort.signal,
      body: this.#body,
      message,
      onSent: () => {
        this.#isSent = true;
      },
    });
  }

  /**
   * The pause that an overloaded server wants before the message is sent again, in milliseconds. `undefined` if the server has
   * taken the message, or wants a pause that is too long. The request fails then.
   */
  async #pauseWanted(response: IncomingMessage, repeats: number): Promise<number | undefined> {
    const { statusCode, headers } = response;
    if (statusCode !== 429 && statusCode !== 503) return undefined;
    const waitMs = retryAfterMs(headers['retry-after']);
    if (waitMs === undefined) return undefined;
    this.#session.pauseFor(waitMs);
    if (waitMs > MAX_WAIT_MS || repeats >= MAX_REPEATS) return undefined;
    response.resume();
    return waitMs;
  }

  async #read(response: IncomingMessage): Promise<void> {
    const { statusCode = 0 } = response;
    if (statusCode < 200 || statusCode > 299) {
      await this.#readRefusal(response);
      return;
    }
    if (this.#isInitialize) this.#session.takeSession(response);
    const type = mediaTypeOf(response);
    if (type === EVENT_STREAM) {
      await this.#readStream(response);
    } else if (this.id === undefined || (this.#session.hasOneStream && type !== 'application/json')) {
      response.resume();
      if (this.#message.kind !== 'notification' || this.#message.method !== METHODS.initialized) return;
      await this.#session.listen();
    } else if (type === 'application/json') {
      await this.#readJson(response);
    } else {
      response.resume();
      this.#fail(
        'refused',
        true,
        `it answered with ${type === '' ? 'no' : `the`} content type${type === '' ? '' : ` ${type}`} instead of JSON or an event stream`,
      );
    }
  }

  async #readJson(response: IncomingMessage): Promise<void> {
    const { incoming } = this.#session.options;
    const messages = incoming.open(this.id);
    const isComplete = await incoming.follow(response, messages, (chunk) => copyInto(messages, onOneLine(chunk)));
    if (isComplete) copyInto(messages, NEWLINE);
    incoming.close(messages);
    if (isComplete) this.#fail('response_malformed', true);
    else this.#fail('connection_lost', true, 'the connection broke during the answer');
  }

  /** Reads an event stream until the answer, and resumes it where the server allows that. */
  async #readStream(first: IncomingMessage): Promise<void> {
    const { signal } = this.#abort;
    this.#isTaken = true;
    let response = first;
    let lastEventId: string | undefined;
    for (let empty = 0; empty < MAX_EMPTY_STREAMS; empty += 1) {
      const events = await readEvents(this.#session, response, { request: this.id });
      if (!this.#isPending || signal.aborted) return;
      if (events.lastEventId !== undefined) empty = 0;
      lastEventId = events.lastEventId ?? lastEventId;
      if (lastEventId === undefined || this.isModern) break;
      await this.#session.sleep(events.retryMs ?? RESUME_MS, signal);
      if (!this.#isPending || signal.aborted) return;
      response = await this.#session.request({ method: 'GET', accept: EVENT_STREAM, signal, lastEventId });
      if (response.statusCode !== 200 || mediaTypeOf(response) !== EVENT_STREAM) {
        response.resume();
        break;
      }
    }
    this.#fail('connection_lost', true, 'the stream ended before the answer');
  }

  /** An error status. A JSON-RPC error in the body is the answer. */
  async #readRefusal(response: IncomingMessage): Promise<void> {
    const { statusCode: status = 0, statusMessage = '' } = response;
    const text = statusMessage === '' ? `HTTP ${status}` : `HTTP ${status} (${statusMessage})`;
    const body = await this.#readBody(response);
    if (this.#isOfLostSession(status, body)) {
      this.#fail('exited', false);
      this.#session.lose('lapsed', SESSION_GONE);
      return;
    }
    const scanned = body.length === 0 ? undefined : this.#session.options.scan(onOneLine(body));
    const answer = scanned?.kind === 'response' ? scanned : undefined;
    if (this.#mayBeOlder(status, answer) && (await this.#session.openOneStream())) {
      await this.#post().then((accepted) => this.#read(accepted));
      return;
    }
    if (this.isModern && this.#method !== METHODS.discover && codeOf(answer) === MODERN_CODES.headerMismatch) {
      await this.#correctHeaders(text);
      return;
    }
    if (answer !== undefined && this.id !== undefined) {
      const { incoming } = this.#session.options;
      const messages = incoming.open(this.id);
      copyInto(messages, body);
      copyInto(messages, NEWLINE);
      incoming.close(messages);
    }
    const wasProcessed = status >= 500 && status !== 503;
    this.#fail(status === 429 || status >= 500 ? 'unavailable' : 'refused', wasProcessed, `it answered ${text}`);
  }

  /**
   * The server wants other headers, so its tools may have changed. Reads them, and sends a call once more. Its client gets no
   * such error, because it does not know the headers.
   */
  async #correctHeaders(status: string): Promise<void> {
    if (!this.#isCorrected && this.#method === METHODS.callTool) {
      this.#isCorrected = true;
      await this.#session.options.rereadTools();
      if (this.#isPending && !this.#abort.signal.aborted) await this.#exchange();
      return;
    }
    this.#fail('refused', false, `it answered ${status} and says that the headers do not match the message`);
  }

  /**
   * Whether the server does not know the session anymore. The answer should be 404, but servers made after the example of the
   * official SDK answer 400 with an error about the session.
   */
  #isOfLostSession(status: number, body: Uint8Array): boolean {
    if (!this.#session.hasSession || this.isModern) return false;
    return status === 404 || (status === 400 && /\bsession\b/i.test(Buffer.from(body).toString()));
  }

  /** Whether the answer to `initialize` is that of a server of revision 2024-11-05, which takes no POST at its URL. */
  #mayBeOlder(status: number, answer: ResponseEnvelope | undefined): boolean {
    if (!this.#isInitialize || this.#session.options.transport !== 'auto' || this.#session.hasOneStream) return false;
    if (status !== 400 && status !== 404 && status !== 405) return false;
    const code = codeOf(answer);
    return code === undefined || !MODERN.has(code);
  }

  async #readBody(response: IncomingMessage): Promise<Uint8Array> {
    const chunks: Uint8Array[] = [];
    let length = 0;
    try {
      for await (const chunk of response as AsyncIterable<Uint8Array>) {
        length += chunk.length;
        if (length > MAX_ERROR_BYTES) break;
        chunks.push(chunk);
      }
    } catch {
      // The beginning of the body may still show the error.
    }
    return Buffer.concat(chunks);
  }
}

const MODERN: ReadonlySet<number> = new Set(Object.values(MODERN_CODES));

function codeOf(answer: ResponseEnvelope | undefined): number | undefined {
  const code = answer?.tokens.errorCode;
  return answer === undefined || code === undefined ? undefined : Number(readText(answer.bytes, code));
}

const NEWLINE = Uint8Array.of(0x0a);

/** JSON over several lines, in place. A newline inside a JSON string is always escaped, so only white space changes. */
function onOneLine(bytes: Uint8Array): Uint8Array {
  for (const end of [0x0a, 0x0d]) {
    for (let at = bytes.indexOf(end); at >= 0; at = bytes.indexOf(end, at + 1)) bytes[at] = 0x20;
  }
  return bytes;
}

/** Milliseconds of a `Retry-After` header: seconds, or a date. */
function retryAfterMs(header: string | undefined): number | undefined {
  if (header === undefined) return undefined;
  const ms = /^\d+$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}
