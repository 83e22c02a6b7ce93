import { createHash, randomBytes } from 'node:crypto';
import {
  type CallEnd,
  type CallingClient,
  type CallObservation,
  type CallObserver,
  type ObservedCall,
  serverOf,
} from '../gateway/call-feed.js';
import { readText, type Span, valuesAt } from '../json/json-text.js';
import { RpcError } from '../jsonrpc/message.js';
import type { Redact } from '../observe/redact.js';
import { LineQueue, type LineSink } from './line-queue.js';
import { RotatedFile } from './rotated-file.js';

/** Limits of the call log: bytes of one file, and number of files, including the current one. */
const MAX_FILE_BYTES = 10 * 1024 * 1024;
export const MAX_CALL_FILES = 5;
const MAX_WAITING_BYTES = 4 * 1024 * 1024;
/** Estimated bytes of a line besides arguments and result. */
const LINE_BYTES = 400;
const MAX_CONTENT_CHARACTERS = 4 * 1024;
/** Limit of a name, an id or a reason, each of which can be as long as a message. */
const MAX_NAME_CHARACTERS = 500;
/** Length of an excerpt in bytes. The log shows less, so that the redaction recognizes a secret at the cut. */
const MAX_READ_BYTES = 16 * 1024;
/** Characters of a text that are searched for secrets. The log shows fewer, so that a secret at the cut is recognized. */
const MAX_READ_CHARACTERS = 16 * 1024;
/** Characters that a cut text loses at its end, because half a secret may be there, which no pattern recognizes. */
const DROPPED_CHARACTERS = 4 * 1024;

/** A call that has ended. */
export interface EndedCall
  extends Pick<ObservedCall, 'instance' | 'generation' | 'method' | 'name' | 'requestId' | 'outcome' | 'reason'>,
    Pick<ObservedCall, 'durationMs' | 'bytesIn' | 'bytesOut'> {
  readonly client: CallingClient;
  /** The arguments, or all parameters of a request without arguments, as JSON. `undefined` unless wanted. Not redacted. */
  readonly params: Excerpt | undefined;
  /** The result as JSON. `undefined` unless wanted. Not redacted. */
  readonly result: Excerpt | undefined;
}

/** The beginning of a text. */
export interface Excerpt {
  readonly text: string;
  readonly isCut: boolean;
}

/** One line of the call log. */
export interface LoggedCall {
  readonly time: string;
  /** The user, or the machine with a token of its own. Both are absent if clients need not say who their user is. */
  readonly user?: string;
  readonly machine?: string;
  readonly client: string;
  /** Id of the session, the same for all its calls. */
  readonly session: string;
  /** Absent for Trunkline's own tools, and for names that no server has. */
  readonly server?: string;
  readonly method: string;
  /** Name of the tool or prompt, as the client used it. */
  readonly tool?: string;
  readonly outcome: EndedCall['outcome'];
  readonly reason?: string;
  readonly ms: number;
  /** Bytes of the parameters. */
  readonly in: number;
  /** Bytes of the answer. */
  readonly out: number;
  /** Id of the request, as JSON. */
  readonly id: string;
  readonly gen?: number;
  readonly arguments?: string;
  readonly result?: string;
}

export interface CallLogOptions {
  readonly sink: LineSink;
  /** Whether the log has arguments and results too. */
  readonly wantsContent: boolean;
  readonly redact: Redact;
  readonly onFault: (error: unknown) => void;
}

/** Opens the file of the call log, which all gateways of this user share. */
export async function openCallFile(file: string): Promise<LineSink> {
  return await RotatedFile.open({ file, maxFileBytes: MAX_FILE_BYTES, maxFiles: MAX_CALL_FILES, isShared: true });
}

export class CallLog implements CallObserver {
  readonly #options: CallLogOptions;
  readonly #queue: LineQueue;
  readonly #salt = randomBytes(8);

  constructor(options: CallLogOptions) {
    this.#options = options;
    const { sink, onFault } = options;
    const describeGap = (dropped: number) => JSON.stringify({ time: new Date().toISOString(), dropped });
    this.#queue = new LineQueue({ sink, maxBytes: MAX_WAITING_BYTES, describeGap, onFault });
  }

  /** Reads the request now, because its memory is used again after the request was written to the server. */
  begin(call: ObservedCall): CallObservation {
    const { bytes, params: span } = call.exchange.request;
    const params = this.#excerpt(bytes, span && (valuesAt(bytes, span, ['arguments'])[0] ?? span));
    const read = { requestId: call.requestId, params };
    return { ended: (_, end) => this.ended({ ...factsOf(call, end), ...read, result: this.#resultOf(end) }) };
  }

  ended(call: EndedCall): void {
    const { client, name, requestId, reason, params, result } = call;
    const texts = [client.name, client.version, client.user?.name, name, requestId, reason, params?.text, result?.text];
    this.#queue.offer(LINE_BYTES + texts.reduce((sum, text) => sum + (text?.length ?? 0), 0), () => {
      const time = new Date().toISOString();
      return () => JSON.stringify(this.#line(call, time));
    });
  }

  async close(): Promise<void> {
    await this.#queue.close();
  }

  #resultOf({ response, result }: CallEnd): Excerpt | undefined {
    if (response !== undefined) return this.#excerpt(response.bytes, response.result ?? response.error);
    return result && this.#excerpt(result, { start: 0, end: result.length });
  }

  #excerpt(bytes: Uint8Array, span: Span | undefined): Excerpt | undefined {
    if (span === undefined || !this.#options.wantsContent) return undefined;
    const end = Math.min(span.end, span.start + MAX_READ_BYTES);
    return { text: readText(bytes, { start: span.start, end }), isCut: end < span.end };
  }

  #line(call: EndedCall, time: string): LoggedCall {
    const {
      client,
      instance,
      generation: gen,
      method,
      name,
      outcome,
      reason,
      durationMs,
      bytesIn,
      bytesOut,
      params,
      result,
    } = call;
    const { user } = client;
    return {
      time,
      ...(user && { [user.kind]: this.#short(user.name) }),
      ...{ client: this.#short(`${client.name}/${client.version}`), session: this.#sessionOf(client.session) },
      ...(instance !== undefined && { server: serverOf(instance) }),
      method,
      ...(name !== undefined && { tool: this.#short(name) }),
      outcome,
      ...(reason !== undefined && { reason: this.#short(reason) }),
      ...{ ms: Math.round(durationMs * 10) / 10, in: bytesIn, out: bytesOut, id: this.#short(call.requestId) },
      ...(gen !== undefined && { gen }),
      ...(params !== undefined && { arguments: this.#clean(params) }),
      ...(result !== undefined && { result: this.#clean(result) }),
    };
  }

  #short(text: string): string {
    const isCut = text.length > MAX_READ_CHARACTERS;
    const clean = this.#clean({ text: text.slice(0, MAX_READ_CHARACTERS), isCut });
    return clean.length > MAX_NAME_CHARACTERS ? `${clean.slice(0, MAX_NAME_CHARACTERS)}… [cut]` : clean;
  }

  #clean({ text, isCut }: Excerpt): string {
    const redacted = this.#options.redact(text);
    const certain = isCut ? redacted.slice(0, -DROPPED_CHARACTERS) : redacted;
    return certain.length > MAX_CONTENT_CHARACTERS || isCut
      ? `${certain.slice(0, MAX_CONTENT_CHARACTERS)}… [cut]`
      : certain;
  }

  #sessionOf(session: number): string {
    return createHash('sha256').update(this.#salt).update(String(session)).digest('hex').slice(0, 8);
  }
}

function factsOf(call: ObservedCall, { failure }: CallEnd): Omit<EndedCall, 'requestId' | 'params' | 'result'> {
  const { client, instance, method, name, outcome, reason, durationMs, bytesIn, bytesOut } = call;
  // A call that was refused was sent over no connection.
  const ofFailure = failure instanceof RpcError ? undefined : failure?.generation;
  const generation = ofFailure ?? call.generation;
  return { client, instance, generation, method, name, outcome, reason, durationMs, bytesIn, bytesOut };
}
