import { errorMessage } from '../../host/errors/error-text.js';
import { type HttpAnswer, unknownCoding } from '../../host/http/decode.js';
import { RequestError } from '../../host/http/send-request.js';
import { copyInto } from '../../wire/io/byte-reader.js';
import { readText } from '../../wire/json/json-text.js';
import type { Envelope, ResponseEnvelope } from '../../wire/mcp/envelope.js';
import { METHODS } from '../../wire/mcp/methods.js';
import type { EndedBecause, RequestFailure } from '../../wire/mcp/outcome.js';
import { BlockedError } from './access.js';
import {
  EVENT_STREAM,
  type HttpSession,
  mediaTypeOf,
  PausedError,
  readAnswerBody,
  readEvents,
  SESSION_GONE,
} from './http-session.js';
import { clauseOf, mayHaveRun, meaningOf, type ServerRefusal } from './refusal.js';

const JSON_TYPE = 'application/json';
const ACCEPT = `${JSON_TYPE}, ${EVENT_STREAM}`;
/** Limit of the repetitions of one message after pauses that the server wants. */
const MAX_REPEATS = 3;
/** Longest pause for which a message waits, in milliseconds. */
const MAX_WAIT_MS = 10_000;
/** Pause before a stream is resumed, unless the server names one, in milliseconds. */
const RESUME_MS = 1_000;
/** Times in a row that a resumed stream may bring nothing. */
const MAX_EMPTY_STREAMS = 5;
/** New sessions for one message, if the server forgets one after the other. */
const MAX_SESSIONS = 5;

/** One message on its way to the server, until the answer of the server is read. */
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
  /** The session in which the message was sent, and the number of sessions that were opened for it. */
  #sessionId: string | undefined;
  #sessions = 0;
  /** Pends while another request shows whether an error means that the session is gone. */
  #doubt: Promise<void> | undefined;

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

  /** Whether the message names its revision in `_meta`, as requests of revisions without a handshake do. */
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

  get #passed(): Readonly<Record<string, string>> | undefined {
    return this.id === undefined ? undefined : this.#session.options.incoming.passedHeaders(this.id);
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
      this.#sessionId = this.#session.sessionId;
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

  async #post(): Promise<HttpAnswer> {
    const message = this.#message.kind === 'response' ? undefined : this.#message;
    return await this.#session.request({
      method: 'POST',
      accept: ACCEPT,
      signal: this.#abort.signal,
      body: this.#body,
      message,
      passed: this.#passed,
      onSent: () => {
        this.#isSent = true;
      },
    });
  }

  /**
   * The pause that an overloaded server wants before the message is sent again, in milliseconds. Returns `undefined` if the
   * message must not be sent again, because the answer names no pause, a pause that is too long, or one too many.
   */
  async #pauseWanted(response: HttpAnswer, repeats: number): Promise<number | undefined> {
    const { statusCode, headers } = response;
    if (statusCode !== 429 && statusCode !== 503) return undefined;
    const waitMs = retryAfterMs(headers['retry-after']);
    if (waitMs === undefined) return undefined;
    this.#session.pauseFor(waitMs);
    if (waitMs > MAX_WAIT_MS || repeats >= MAX_REPEATS) return undefined;
    response.resume();
    return waitMs;
  }

  async #read(response: HttpAnswer): Promise<void> {
    const { statusCode = 0 } = response;
    if (statusCode < 200 || statusCode > 299) {
      await this.#readRefusal(response);
      return;
    }
    if (this.#isInitialize) this.#session.takeSession(response, this.#body);
    const type = mediaTypeOf(response);
    if (type === EVENT_STREAM) {
      await this.#readStream(response);
    } else if (this.id === undefined || (this.#session.hasOneStream && type !== JSON_TYPE)) {
      response.resume();
    } else if (statusCode === 202 && type !== JSON_TYPE && this.#session.isListening) {
      // The answer comes on the stream for all messages.
      response.resume();
    } else if (type === '' || /\bjson\b|^text\/plain$/.test(type)) {
      await this.#readJson(response, type === JSON_TYPE ? undefined : wrongType(statusCode, type));
    } else {
      response.resume();
      this.#fail('refused', true, wrongType(statusCode, type));
    }
  }

  /** Reads JSON. `doubt` is a clause that tells why the body may not be JSON. */
  async #readJson(response: HttpAnswer, doubt?: string): Promise<void> {
    const { incoming, maxFrameBytes } = this.#session.options;
    const messages = incoming.open(this.id);
    let length = 0;
    const isComplete = await incoming.follow(response, messages, (chunk) => {
      length += chunk.length;
      // Few compressed bytes may decode to many. Bytes beyond the limit are not needed.
      if (length > maxFrameBytes) response.destroy();
      else copyInto(messages, onOneLine(chunk));
    });
    if (length > maxFrameBytes) this.#fail('response_too_large', true);
    else if (isComplete) copyInto(messages, NEWLINE);
    incoming.close(messages);
    if (this.#doubt !== undefined) await this.#doubt;
    const coding = unknownCoding(response);
    if (coding !== undefined)
      this.#fail('response_malformed', true, `its answer has the content coding \`${coding}\`, which is unknown here`);
    else if (isComplete) this.#fail(doubt === undefined ? 'response_malformed' : 'refused', true, doubt);
    else this.#fail('connection_lost', true, 'the connection broke during the answer');
  }

  /** Reads an event stream until the answer, and resumes it where the server allows that. */
  async #readStream(first: HttpAnswer): Promise<void> {
    const { signal } = this.#abort;
    this.#isTaken = true;
    let response = first;
    let lastEventId: string | undefined;
    for (let empty = 0; empty < MAX_EMPTY_STREAMS; empty += 1) {
      const events = await readEvents(this.#session, response, { request: this.id });
      if (this.#doubt !== undefined) await this.#doubt;
      if (!this.#isPending || signal.aborted) return;
      if (events.lastEventId !== undefined) empty = 0;
      lastEventId = events.lastEventId ?? lastEventId;
      if (lastEventId === undefined || this.isModern) break;
      await this.#session.sleep(events.retryMs ?? RESUME_MS, signal);
      if (!this.#isPending || signal.aborted) return;
      const passed = this.#passed;
      response = await this.#session.request({ method: 'GET', accept: EVENT_STREAM, signal, passed, lastEventId });
      if (response.statusCode !== 200 || mediaTypeOf(response) !== EVENT_STREAM) {
        response.resume();
        break;
      }
    }
    this.#fail('connection_lost', true, 'the stream ended before the answer');
  }

  /** Reads a refusal. A JSON-RPC error in the body is the answer, unless the refusal is about more than this message. */
  async #readRefusal(response: HttpAnswer): Promise<void> {
    const { statusCode: status = 0, statusMessage } = response;
    const bytes = await readAnswerBody(response);
    const scanned = bytes.length === 0 ? undefined : this.#session.options.scan(onOneLine(bytes));
    const answer = scanned?.kind === 'response' ? scanned : undefined;
    const refusal = {
      ...this.#facts,
      status,
      statusMessage,
      body: Buffer.from(bytes).toString(),
      code: codeOf(answer),
    };
    if (await this.#moveOn(refusal)) return;
    if (answer !== undefined && this.id !== undefined) this.#deliver(bytes);
    const reason = status === 429 || status >= 500 ? 'unavailable' : 'refused';
    this.#fail(reason, mayHaveRun(refusal), clauseOf(refusal));
  }

  get #facts() {
    const isInSession = this.#sessionId !== undefined || this.#session.hasOneStream;
    return { isInSession, isInitialize: this.#isInitialize, isModern: this.isModern };
  }

  /** Acts on the meaning of a refusal. Returns whether this settles the message. */
  async #moveOn(refusal: ServerRefusal): Promise<boolean> {
    const meaning = meaningOf(refusal);
    switch (meaning) {
      case 'older':
        return await this.#repeatWithOneStream(refusal.status);
      case 'other headers':
        return this.#method !== METHODS.discover && (await this.#correctHeaders(clauseOf(refusal)));
      case 'in doubt':
        return (await this.#isSessionGone()) && (await this.#repeatInNewSession(refusal, 1));
      case 'new session':
        // A second refusal is about this message, if the server serves the new session.
        if (this.#sessions > 0 && (await this.#session.answersPing())) return false;
        return await this.#repeatInNewSession(refusal, MAX_SESSIONS);
      case 'final':
        return false;
    }
  }

  async #isSessionGone(): Promise<boolean> {
    if (this.id === undefined || this.#sessions > 0 || this.#session.hasOneStream) return false;
    return this.#sessionId !== this.#session.sessionId || !(await this.#session.answersPing());
  }

  /**
   * Sends the message in a new session, unless the server may have run it. If the server has certainly forgotten the session,
   * and no other one can be opened, ends the connection, because the server would refuse all other messages, too.
   */
  async #repeatInNewSession(refusal: ServerRefusal, maxSessions: number): Promise<boolean> {
    if (this.id === undefined || this.#sessions >= maxSessions) {
      const isForgetful = this.#sessions > 1;
      if (isForgetful) this.#fail('refused', false, `${clauseOf(refusal)}; ${FORGETFUL}`);
      return isForgetful;
    }
    this.#sessions += 1;
    const isCertain = maxSessions > 1;
    if (this.#session.hasOneStream || !(await this.#session.renew(this.#sessionId))) {
      if (!isCertain) return false;
      this.#fail('exited', false);
      this.#session.lose('lapsed', SESSION_GONE);
      return true;
    }
    // A message that may have run is not sent again. The new session serves the next messages.
    if (!isCertain && mayHaveRun(refusal)) {
      // The error is the answer.
      if (refusal.status === 200) return false;
      this.#fail('connection_lost', true, `${clauseOf(refusal)}, and so it does to other requests of this session`);
      return true;
    }
    this.#isSent = false;
    if (this.#isPending && !this.#abort.signal.aborted) await this.#exchange();
    return true;
  }

  async #repeatWithOneStream(status: number): Promise<boolean> {
    const { options, hasOneStream } = this.#session;
    const isFound = hasOneStream
      ? status !== 400 && this.#session.tryPrefixedEndpoint()
      : options.transport === 'auto' && (await this.#session.openOneStream());
    if (isFound) await this.#post().then((accepted) => this.#read(accepted));
    return isFound;
  }

  /**
   * Takes an error of the server in an answer with status 200. Returns whether it is held back, because it may mean that the
   * session is gone.
   */
  doubts(error: ResponseEnvelope): boolean {
    if (this.#doubt !== undefined || !this.#isPending) return false;
    const bytes = error.bytes.slice(error.span.start, error.span.end);
    const refusal = { ...this.#facts, status: 200, body: Buffer.from(bytes).toString(), code: codeOf(error) };
    if (meaningOf(refusal) !== 'in doubt') return false;
    this.#doubt = this.#moveOn(refusal)
      .then((isSettled) => {
        if (!isSettled) this.#deliver(bytes);
      })
      .catch((fault: unknown) => this.#report(fault));
    return true;
  }

  #deliver(answer: Uint8Array): void {
    const { incoming } = this.#session.options;
    this.#doubt ??= Promise.resolve();
    const messages = incoming.open(this.id);
    copyInto(messages, answer);
    copyInto(messages, NEWLINE);
    incoming.close(messages);
  }

  /**
   * Reads the tools again, because they may have changed if the server wants other headers. Sends a call once more. Any other
   * request, and a call that is refused again, fails. The client does not get the JSON-RPC error of the server, because the
   * client does not know the headers.
   */
  async #correctHeaders(clause: string): Promise<boolean> {
    if (!this.#isCorrected && this.#method === METHODS.callTool) {
      this.#isCorrected = true;
      await this.#session.options.rereadTools();
      if (this.#isPending && !this.#abort.signal.aborted) await this.#exchange();
    } else this.#fail('refused', false, `${clause}; the headers do not match the message`);
    return true;
  }
}

const FORGETFUL =
  'it does not know the sessions that it has opened a moment before, as behind a balancer that sends each request to another machine';

function codeOf(answer: ResponseEnvelope | undefined): number | undefined {
  const code = answer?.tokens.errorCode;
  return answer === undefined || code === undefined ? undefined : Number(readText(answer.bytes, code));
}

function wrongType(statusCode: number, type: string): string {
  const status = statusCode === 200 ? '' : `HTTP ${statusCode} and `;
  const given = type === '' ? 'no content type' : `the content type ${type}`;
  return `it answered with ${status}${given} instead of JSON or an event stream`;
}

const NEWLINE = Uint8Array.of(0x0a);

/** Puts JSON on one line, in place. A newline inside a JSON string is always escaped, so only white space changes. */
function onOneLine(bytes: Uint8Array): Uint8Array {
  for (let at = bytes.indexOf(0x0a); at >= 0; at = bytes.indexOf(0x0a, at + 1)) bytes[at] = 0x20;
  return bytes;
}

/** Milliseconds of a `Retry-After` header: seconds, or a date. */
function retryAfterMs(header: string | undefined): number | undefined {
  if (header === undefined) return undefined;
  const ms = /^\d+$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}
