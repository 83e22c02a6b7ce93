import { createHash, randomBytes } from 'node:crypto';
import {
  type CallEnd,
  type CallFeed,
  type CallingClient,
  type CallObservation,
  type CallObserver,
  type ObservedCall,
  serverOf,
} from '../../gateway/call-feed.js';
import { withFile } from '../../host/errors/file-error.js';
import type { Redact } from '../../host/observe/redact.js';
import { callLogFile } from '../../state/user-files.js';
import { readText, type Span, valuesAt } from '../../wire/json/json-text.js';
import { RpcError } from '../../wire/jsonrpc/message.js';
import { type LineOutput, LineQueue } from './line-queue.js';
import { RotatedFile } from './rotated-file.js';

/** Limits of the call log: bytes of one file, and number of files, including the current one. */
const MAX_FILE_BYTES = 10 * 1024 * 1024;
export const MAX_CALL_FILES = 5;
const MAX_WAITING_BYTES = 4 * 1024 * 1024;
/** Milliseconds that a line may wait, because a write for each call would cost more than the call. */
const DELAY_MS = 250;
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

export interface EndedCall {
  readonly instance: string | undefined;
  readonly generation: number | undefined;
  readonly method: string;
  readonly name: string | undefined;
  readonly requestId: string;
  readonly outcome: ObservedCall['outcome'];
  readonly reason: ObservedCall['reason'];
  readonly rule: ObservedCall['rule'];
  readonly remarks: ObservedCall['remarks'];
  readonly durationMs: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  readonly client: CallingClient;
  /** The arguments, or all parameters of a request without arguments, as JSON. `undefined` unless wanted. Not redacted. */
  readonly params: Excerpt | undefined;
  /** The result as JSON. `undefined` unless wanted. Not redacted. */
  readonly result: Excerpt | undefined;
}

export interface Excerpt {
  readonly text: string;
  readonly isCut: boolean;
}

export interface LoggedCall {
  readonly time: string;
  /** The user, or the machine with a token of its own. Both are absent if the gateway does not know the users of its clients. */
  readonly user?: string;
  readonly machine?: string;
  readonly client: string;
  /** Hash of the session, the same for all its calls. */
  readonly session: string;
  /** Absent for Trunkline's own tools, and for names that no server has. */
  readonly server?: string;
  readonly method: string;
  /** Name of the tool or prompt, as the client used it. */
  readonly tool?: string;
  readonly outcome: EndedCall['outcome'];
  readonly reason?: string;
  /** The place of the rule in the configuration that denied the call, or the interceptor that refused it. */
  readonly rule?: string;
  /** The findings of interceptors that did not stop the call. */
  readonly findings?: readonly string[];
  readonly ms: number;
  /** Bytes of the parameters. */
  readonly in: number;
  /** Bytes of the answer. */
  readonly out: number;
  /** Id of the request, as JSON. */
  readonly id: string;
  readonly gen?: number;
  /** The configuration file of the gateway, because all gateways of the user share the log. */
  readonly config: string;
  readonly arguments?: string;
  readonly result?: string;
}

export interface CallLogOptions {
  readonly sink: LineOutput;
  /** Path of the configuration file. */
  readonly config: string;
  /** Whether the log has arguments and results too. */
  readonly wantsContent: boolean;
  readonly redact: Redact;
  readonly onFault: (error: unknown) => void;
}

/**
 * The file of the call log, which all gateways of this user share. Opened for the first line, because no client should wait for it,
 * and for the next one if that failed.
 */
export class CallFile implements LineOutput {
  readonly #file: string;
  #opened: RotatedFile | undefined;

  constructor(file: string) {
    this.#file = file;
  }

  async write(text: string): Promise<void> {
    const limits = { maxFileBytes: MAX_FILE_BYTES, maxFiles: MAX_CALL_FILES };
    this.#opened ??= await RotatedFile.open({ file: this.#file, ...limits, isShared: true });
    await this.#opened.write(text);
  }

  async close(): Promise<void> {
    await this.#opened?.close();
  }
}

export interface LoggedGateway {
  readonly composition: {
    readonly calls: CallFeed;
    readonly config: { readonly file: string };
    readonly secrets: { readonly redact: Redact };
  };
  readonly logger: { warn(facts: object, text: string): void };
}

/** Writes the call log until the returned function is called. */
export function logCalls(wantsContent: boolean, { composition, logger }: LoggedGateway): () => Promise<void> {
  const { calls, config, secrets } = composition;
  const file = callLogFile();
  const log = new CallLog({
    sink: new CallFile(file),
    config: config.file,
    wantsContent,
    redact: secrets.redact,
    onFault: (err) =>
      logger.warn({ err: withFile(err, file), file }, 'the call log cannot be written; calls are missing in it'),
  });
  const stop = calls.observe(log);
  return async () => {
    stop();
    await log.close();
  };
}

/** Writes a `LoggedCall` for each call that has ended, as a line of JSON, in the background. */
export class CallLog implements CallObserver {
  readonly #options: CallLogOptions;
  readonly #queue: LineQueue;
  readonly #salt = randomBytes(8);
  /** Texts without secrets, for the lines that are made together. A secret that becomes known later is not in them. */
  #cleaned: Map<string, string> | undefined;
  readonly #sessions = new WeakMap<CallingClient, string>();

  constructor(options: CallLogOptions) {
    this.#options = options;
    const { sink, onFault } = options;
    const describeGap = (dropped: number) => JSON.stringify({ time: new Date().toISOString(), dropped });
    this.#queue = new LineQueue({ sink, maxBytes: MAX_WAITING_BYTES, delayMs: DELAY_MS, describeGap, onFault });
  }

  /** Reads the request now, because its memory is used again after the request was written to the server. */
  begin(call: ObservedCall): CallObservation {
    const { requestId } = call;
    const params = this.#options.wantsContent ? paramsOf(call) : undefined;
    return { ended: (_, end) => this.ended(endedCall(call, end, requestId, params, this.#resultOf(end))) };
  }

  ended(call: EndedCall): void {
    const { client, name = '', requestId, reason = '', params, result } = call;
    const names = client.name.length + client.version.length + (client.user?.name.length ?? 0) + name.length;
    const contents = requestId.length + reason.length + (params?.text.length ?? 0) + (result?.text.length ?? 0);
    this.#queue.offer(LINE_BYTES + names + contents, () => {
      const at = Date.now();
      return () => this.#line(call, at);
    });
  }

  async close(): Promise<void> {
    await this.#queue.close();
  }

  #resultOf({ response, result }: CallEnd): Excerpt | undefined {
    if (!this.#options.wantsContent) return undefined;
    if (response !== undefined) return excerpt(response.bytes, response.result ?? response.error);
    return result && excerpt(result, { start: 0, end: result.length });
  }

  /** The line as JSON. A value of `undefined` is left out. */
  #line(call: EndedCall, at: number): string {
    const { client, instance, generation, method, name, outcome, reason, rule, durationMs, params, result } = call;
    const { remarks } = call;
    const { user } = client;
    const userName = user && this.#short(user.name);
    const line: { [Member in keyof LoggedCall]-?: LoggedCall[Member] | undefined } = {
      time: new Date(at).toISOString(),
      user: user?.kind === 'user' ? userName : undefined,
      machine: user?.kind === 'machine' ? userName : undefined,
      client: this.#short(`${client.name}/${client.version}`),
      session: this.#sessionOf(client),
      server: instance && serverOf(instance),
      method,
      tool: name && this.#short(name),
      outcome,
      reason: reason && this.#short(reason),
      rule,
      findings: remarks.length === 0 ? undefined : remarks.map((remark) => this.#short(remark)),
      ms: Math.round(durationMs * 10) / 10,
      in: call.bytesIn,
      out: call.bytesOut,
      id: this.#short(call.requestId),
      gen: generation,
      config: this.#options.config,
      arguments: params && this.#clean(params),
      result: result && this.#clean(result),
    };
    return JSON.stringify(line);
  }

  #short(text: string): string {
    if (NUMBER.test(text)) return text;
    if (this.#cleaned === undefined) {
      this.#cleaned = new Map();
      queueMicrotask(() => {
        this.#cleaned = undefined;
      });
    }
    const known = this.#cleaned.get(text);
    if (known !== undefined) return known;
    const short = this.#shortened(text);
    this.#cleaned.set(text, short);
    return short;
  }

  #shortened(text: string): string {
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

  #sessionOf(client: CallingClient): string {
    const known = this.#sessions.get(client);
    if (known !== undefined) return known;
    const hash = createHash('sha256').update(this.#salt).update(String(client.session)).digest('hex').slice(0, 8);
    this.#sessions.set(client, hash);
    return hash;
  }
}

/** An id that is a small number, as most clients use, is no secret. */
const NUMBER = /^\d{1,6}$/;

function paramsOf({ exchange }: ObservedCall): Excerpt | undefined {
  const { bytes, params: span } = exchange.request;
  return excerpt(bytes, span && (valuesAt(bytes, span, ['arguments'])[0] ?? span));
}

function excerpt(bytes: Uint8Array, span: Span | undefined): Excerpt | undefined {
  if (span === undefined) return undefined;
  const end = Math.min(span.end, span.start + MAX_READ_BYTES);
  return { text: readText(bytes, { start: span.start, end }), isCut: end < span.end };
}

function endedCall(
  call: ObservedCall,
  { failure }: CallEnd,
  requestId: string,
  params: Excerpt | undefined,
  result: Excerpt | undefined,
): EndedCall {
  const { client, instance, method, name, outcome, reason, rule, remarks, durationMs, bytesIn, bytesOut } = call;
  // A call that was refused was sent over no connection.
  const ofFailure = failure instanceof RpcError ? undefined : failure?.generation;
  const generation = ofFailure ?? call.generation;
  const sizes = { durationMs, bytesIn, bytesOut, params, result };
  return { client, instance, generation, method, name, outcome, reason, rule, remarks, requestId, ...sizes };
}
