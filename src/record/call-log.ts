import { createHash, randomBytes } from 'node:crypto';
import type { CallObserver, EndedCall, Excerpt } from '../gateway/call-feed.js';
import type { Redact } from '../observe/redact.js';
import { serverOf } from './format.js';
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
/** Characters of a text that are searched for secrets. The log shows fewer, so that a secret at the cut is recognized. */
const MAX_READ_CHARACTERS = 16 * 1024;
/** Characters that a cut text loses at its end, because half a secret may be there, which no pattern recognizes. */
const DROPPED_CHARACTERS = 4 * 1024;

/** One line of the call log. */
export interface LoggedCall {
  readonly time: string;
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
  /** Returns the generation of a running server. */
  readonly generationOf: (instance: string) => number | undefined;
  readonly onFault: (error: unknown) => void;
}

/** Opens the file of the call log, which all gateways of this user share. */
export async function openCallFile(file: string): Promise<LineSink> {
  return await RotatedFile.open({ file, maxFileBytes: MAX_FILE_BYTES, maxFiles: MAX_CALL_FILES, isShared: true });
}

export class CallLog implements CallObserver {
  readonly wantsContent: boolean;
  readonly #options: CallLogOptions;
  readonly #queue: LineQueue;
  readonly #salt = randomBytes(8);

  constructor(options: CallLogOptions) {
    this.#options = options;
    this.wantsContent = options.wantsContent;
    const { sink, onFault } = options;
    const describeGap = (dropped: number) => JSON.stringify({ time: new Date().toISOString(), dropped });
    this.#queue = new LineQueue({ sink, maxBytes: MAX_WAITING_BYTES, describeGap, onFault });
  }

  ended(call: EndedCall): void {
    const { client, name, requestId, reason, params, result, instance, generation } = call;
    const texts = [client.name, client.version, name, requestId, reason, params?.text, result?.text];
    this.#queue.offer(LINE_BYTES + texts.reduce((sum, text) => sum + (text?.length ?? 0), 0), () => {
      const time = new Date().toISOString();
      const gen = generation ?? (instance === undefined ? undefined : this.#options.generationOf(instance));
      return () => JSON.stringify(this.#line(call, time, gen));
    });
  }

  async close(): Promise<void> {
    await this.#queue.close();
  }

  #line(call: EndedCall, time: string, gen: number | undefined): LoggedCall {
    const { client, instance, method, name, outcome, reason, durationMs, bytesIn, bytesOut, params, result } = call;
    return {
      ...{ time, client: this.#short(`${client.name}/${client.version}`), session: this.#sessionOf(client.session) },
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
