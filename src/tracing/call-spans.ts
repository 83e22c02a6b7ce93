import { describeFailure } from '../downstream/failure.js';
import type { CallEnd, SendingConnection } from '../downstream/port.js';
import type { CallObservation, CallObserver, ObservedCall } from '../gateway/call-feed.js';
import { FAILURE_REASONS } from '../gateway/dispatch/call.js';
import { type Span as Range, readText, stringAt, valuesAt } from '../json/json-text.js';
import type { Edit, SplicedMessage } from '../json/splice.js';
import { RpcError } from '../jsonrpc/message.js';
import { isErrorResponse, type ResponseEnvelope, type ScanEnvelope } from '../mcp/envelope.js';
import { METHODS } from '../mcp/methods.js';
import { isModernRevision } from '../mcp/revisions.js';
import type { Outcome } from '../upstream/port.js';
import { ATTRIBUTES, CANCELLED, EXECUTE_TOOL, FAULTS_OF_REQUEST, PIPE, TCP, TOOL_ERROR } from './names.js';
import {
  contextIn,
  parseTraceparent,
  replacing,
  SAMPLED,
  type TraceContext,
  withTraceparent,
} from './trace-context.js';
import type { TraceSettings } from './trace-settings.js';

/** A span that has ended. */
export interface CallSpan {
  readonly name: string;
  /** The SERVER span of a call at the front, or the CLIENT span of an attempt. */
  readonly kind: 'server' | 'client';
  readonly context: TraceContext;
  readonly parent: TraceContext | undefined;
  readonly link: TraceContext | undefined;
  /** Milliseconds since 1970. */
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Attributes;
  /** Message of the error. `undefined` without an error; '' for an error without a message. */
  readonly error: string | undefined;
}

type Attributes = Record<string, string | number>;

export interface CallSpansOptions {
  readonly settings: Pick<TraceSettings, 'sampler' | 'insertsContext' | 'hasContent'>;
  readonly ids: { generateTraceId(): string; generateSpanId(): string };
  /** Returns a number from 0 to 1, excluding 1. */
  readonly random: () => number;
  /** Whether the sampler traces calls of this trace, if it does not follow the client. */
  readonly isSampledId: (traceId: string) => boolean;
  /** Takes the room for the spans of one more call. Returns `false` if too many spans wait, or come too fast. */
  readonly admit: () => boolean;
  /** Counts a span that is not made, because there is no room for it. */
  readonly dropped: () => void;
  readonly ended: (span: CallSpan) => void;
  /** Difference between milliseconds since 1970 and milliseconds on the clock. */
  readonly epoch: () => number;
  readonly now: () => number;
  readonly scan: ScanEnvelope;
  readonly redact: (text: string) => string;
  /** Host and port of a server behind a URL. */
  readonly addressOf: (server: string) => { readonly host: string; readonly port: number } | undefined;
}

/** Limits in characters: of names and messages, of contents, and of the text in which secrets of a content are searched. */
const MAX_TEXT = 200;
const MAX_CONTENT = 4 * 1024;
const MAX_READ = 16 * 1024;

/** Makes the spans of calls: one at the front, and one for each attempt. */
export class CallSpans implements CallObserver {
  readonly takesAll = true;
  readonly #options: CallSpansOptions;
  readonly #dropping: CallObservation;

  constructor(options: CallSpansOptions) {
    this.#options = options;
    this.#dropping = {
      sending: () => {
        options.dropped();
        return undefined;
      },
    };
  }

  begin(call: ObservedCall, isCall: boolean): CallObservation | undefined {
    const { exchange } = call;
    const sent = contextIn(exchange.request);
    const header = parseTraceparent(exchange.http?.traceparent);
    const parent = sent ?? header;
    if (isCall ? !this.#isSampled(parent) : parent === undefined || (parent.flags & SAMPLED) === 0) return undefined;
    if (!this.#options.admit()) {
      this.#options.dropped();
      return this.#dropping;
    }
    return new TracedCall(call, this.#options, { parent, link: header, value: sent?.value });
  }

  #isSampled(parent: TraceContext | undefined): boolean {
    const { settings, isSampledId, random } = this.#options;
    const { ratio, followsParent } = settings.sampler;
    if (parent !== undefined && followsParent) return (parent.flags & SAMPLED) !== 0;
    if (ratio === 1 || ratio === 0) return ratio === 1;
    return parent === undefined ? random() < ratio : isSampledId(parent.traceId);
  }
}

interface Origin {
  readonly parent: TraceContext | undefined;
  readonly link: TraceContext | undefined;
  /** The value of `traceparent` in the request. */
  readonly value: Range | undefined;
}

/** The attempt that has not ended. */
interface Attempt {
  readonly spanId: string;
  readonly startedAt: number;
  readonly attributes: Attributes;
  readonly target: string;
}

/** The spans of one call. */
class TracedCall implements CallObservation {
  readonly #options: CallSpansOptions;
  readonly #context: TraceContext;
  readonly #origin: Origin;
  readonly #epoch: number;
  readonly #attributes: Attributes;
  #attempt: Attempt | undefined;
  #attempts = 0;

  constructor(call: ObservedCall, options: CallSpansOptions, origin: Origin) {
    const { exchange, client } = call;
    const { ids, settings, scan } = options;
    const { parent } = origin;
    this.#options = options;
    this.#context = {
      traceId: parent?.traceId ?? ids.generateTraceId(),
      spanId: ids.generateSpanId(),
      flags: (parent?.flags ?? 0) | SAMPLED,
    };
    this.#epoch = options.epoch();
    const { request, http } = exchange;
    const { revision } = exchange.client;
    this.#attributes = {
      ...attributesOf(call.method, short(call.name ?? '')),
      [ATTRIBUTES.requestId]: short(idText(exchange.requestId)),
      [ATTRIBUTES.client]: short(client.name),
      ...(revision !== undefined && {
        [ATTRIBUTES.revision]: revision,
        [ATTRIBUTES.eraOfClient]: eraOf(revision),
      }),
      ...(http === undefined
        ? { [ATTRIBUTES.transport]: PIPE }
        : {
            [ATTRIBUTES.transport]: TCP,
            [ATTRIBUTES.protocol]: 'http',
            [ATTRIBUTES.clientAddress]: http.address,
            [ATTRIBUTES.clientPort]: http.port,
          }),
    };
    if (settings.hasContent) this.#addParams(call);
    const { received } = exchange;
    // Only a message that no era has changed can be written anew.
    const canInsert = settings.insertsContext && origin.value === undefined && request.bytes === received.bytes;
    const extended = canInsert ? withTraceparent(request, received.span, this.#context, scan) : undefined;
    if (extended !== undefined) exchange.request = extended;
    this.#origin = extended === undefined ? origin : { ...origin, value: contextIn(extended)?.value };
  }

  sending(call: ObservedCall, { generation, revision }: SendingConnection, edits: readonly Edit[]) {
    const { ids, now, addressOf } = this.#options;
    const { bytes, tokens } = call.exchange.request;
    const { server = '' } = call;
    const spanId = ids.generateSpanId();
    const name = tokens.name && originalName(bytes, tokens.name, edits);
    const address = addressOf(server);
    this.#attempts += 1;
    this.#attempt = {
      spanId,
      startedAt: now(),
      target: name ?? '',
      attributes: {
        ...attributesOf(call.method, name ?? ''),
        [ATTRIBUTES.revision]: revision,
        [ATTRIBUTES.eraOfServer]: eraOf(revision),
        [ATTRIBUTES.server]: server,
        [ATTRIBUTES.generation]: generation,
        ...(this.#attempts > 1 && { [ATTRIBUTES.attempt]: this.#attempts }),
        ...(address === undefined
          ? { [ATTRIBUTES.transport]: PIPE }
          : {
              [ATTRIBUTES.transport]: TCP,
              [ATTRIBUTES.protocol]: 'http',
              [ATTRIBUTES.serverAddress]: address.host,
              [ATTRIBUTES.serverPort]: address.port,
            }),
      },
    };
    const { value } = this.#origin;
    return value && [replacing(value, { ...this.#context, spanId })];
  }

  sent(_call: ObservedCall, { edits: [first] }: SplicedMessage): void {
    if (this.#attempt === undefined || first === undefined) return;
    // The first edit of a request is its id toward the server.
    const { text, part = { start: 0, end: text.length } } = first;
    this.#attempt.attributes[ATTRIBUTES.requestId] = readText(text, part);
  }

  attemptEnded(_call: ObservedCall, outcome: Outcome): void {
    const isAnswered = outcome.kind === 'answered';
    const at = isAnswered ? outcome.at : this.#options.now();
    const reason = isAnswered || outcome.reason === CANCELLED ? CANCELLED : FAILURE_REASONS[outcome.reason];
    this.#endAttempt(at, isAnswered ? faultIn(outcome.response, NONE) : { type: reason });
  }

  ended(call: ObservedCall, end: CallEnd): void {
    const { settings } = this.#options;
    const at = call.endedAt ?? this.#options.now();
    // The call ended before its attempt, because the client has left it.
    this.#endAttempt(at, { type: CANCELLED });
    const isUnknown = call.server === undefined && call.errorCode !== undefined;
    const attributes = this.#attributes;
    attributes[ATTRIBUTES.outcome] = call.effect;
    attributes[ATTRIBUTES.wait] = Math.round(call.waitedMs * 1000) / 1000;
    if (call.server !== undefined) attributes[ATTRIBUTES.server] = call.server;
    const { response, result } = end;
    if (settings.hasContent && call.method === METHODS.callTool) {
      if (response !== undefined) this.#addContent(ATTRIBUTES.result, response.bytes, response.result);
      if (result !== undefined) this.#addContent(ATTRIBUTES.result, result, { start: 0, end: result.length });
    }
    this.#end({
      // Names that no server has are left out, because they are arbitrary.
      name: nameOf(call.method, isUnknown ? '' : short(call.name ?? '')),
      kind: 'server',
      context: this.#context,
      parent: this.#origin.parent,
      link: this.#origin.link,
      startedAt: call.startedAt,
      at,
      attributes,
      fault: faultOf(call, end),
    });
  }

  #endAttempt(at: number, fault: Fault | undefined): void {
    const attempt = this.#attempt;
    if (attempt === undefined) return;
    this.#attempt = undefined;
    this.#end({
      name: nameOf(String(attempt.attributes[ATTRIBUTES.method]), attempt.target),
      kind: 'client',
      context: { ...this.#context, spanId: attempt.spanId },
      parent: this.#context,
      link: undefined,
      startedAt: attempt.startedAt,
      at,
      attributes: attempt.attributes,
      fault,
    });
  }

  #end({ startedAt, at, fault, attributes, ...span }: Ending): void {
    const { ended, redact } = this.#options;
    if (fault?.type !== undefined) attributes[ATTRIBUTES.errorType] = fault.type;
    if (fault?.code !== undefined) attributes[ATTRIBUTES.errorCode] = fault.code;
    const message = fault?.message === undefined ? '' : redact(fault.message.slice(0, MAX_READ)).slice(0, MAX_TEXT);
    const times = { startMs: this.#epoch + startedAt, endMs: this.#epoch + at };
    ended({ ...span, ...times, attributes, error: fault?.type === undefined ? undefined : message });
  }

  #addParams({ method, exchange: { request } }: ObservedCall): void {
    const { bytes, params, tokens } = request;
    if (tokens.uri !== undefined) this.#addContent(ATTRIBUTES.resource, bytes, tokens.uri, stringAt(bytes, tokens.uri));
    if (params === undefined || method !== METHODS.callTool) return;
    this.#addContent(ATTRIBUTES.arguments, bytes, valuesAt(bytes, params, ['arguments'])[0]);
  }

  /** Adds a content without known secrets. Its end is dropped if it is cut, because half a secret may be there. */
  #addContent(name: string, bytes: Uint8Array, span: Range | undefined, text?: string): void {
    if (span === undefined) return;
    const read = text ?? readText(bytes, { start: span.start, end: Math.min(span.end, span.start + MAX_READ) });
    const clean = this.#options.redact(read.slice(0, MAX_READ));
    const certain = span.end - span.start > MAX_READ ? clean.slice(0, -MAX_CONTENT) : clean;
    this.#attributes[name] = certain.slice(0, MAX_CONTENT);
  }
}

interface Ending extends Omit<CallSpan, 'startMs' | 'endMs' | 'error'> {
  /** Milliseconds on the clock. */
  readonly startedAt: number;
  readonly at: number;
  readonly fault: Fault | undefined;
}

/** Error of a span. Without a type, the span has no error, but may have a code. */
interface Fault {
  readonly type: string | undefined;
  readonly code?: string;
  readonly message?: string;
}

/** Error of the front: the same JSON-RPC code may be a fault of the request there. */
function faultOf(call: ObservedCall, { response, failure }: CallEnd): Fault | undefined {
  if (failure instanceof RpcError) return codeFault(failure.code, failure.message, FAULTS_OF_REQUEST);
  if (failure !== undefined) return { type: failure.reason, message: describeFailure(failure) };
  if (response !== undefined) return faultIn(response, FAULTS_OF_REQUEST);
  const { outcome } = call;
  return outcome === 'ok' ? undefined : { type: outcome === 'tool_error' ? TOOL_ERROR : CANCELLED };
}

/** Error in a server's response. `harmless` are the codes that are no errors on this leg. */
function faultIn(response: ResponseEnvelope, harmless: ReadonlySet<number>): Fault | undefined {
  const { bytes, error, tokens } = response;
  if (error === undefined) return isErrorResponse(response) ? { type: TOOL_ERROR } : undefined;
  const code = Number(readText(bytes, tokens.errorCode ?? { start: 0, end: 0 }));
  return codeFault(code, stringAt(bytes, valuesAt(bytes, error, ['message'])[0]) ?? '', harmless);
}

function codeFault(code: number, message: string, harmless: ReadonlySet<number>): Fault {
  const text = String(code);
  return { type: harmless.has(code) ? undefined : text, code: text, message };
}

const NONE: ReadonlySet<number> = new Set();

function attributesOf(method: string, name: string): Attributes {
  const attributes: Attributes = { [ATTRIBUTES.method]: method };
  if (method === METHODS.callTool) {
    attributes[ATTRIBUTES.operation] = EXECUTE_TOOL;
    if (name !== '') attributes[ATTRIBUTES.tool] = name;
  } else if (method === METHODS.getPrompt && name !== '') attributes[ATTRIBUTES.prompt] = name;
  return attributes;
}

/** Name of a span: the method and the tool or the prompt. */
function nameOf(method: string, target: string): string {
  return target === '' ? method : `${method} ${target}`;
}

/** The name that the server gets: an edit replaces the exposed name, unless both are the same. */
function originalName(bytes: Uint8Array, name: Range, edits: readonly Edit[]): string | undefined {
  const edit = edits.find(({ span }) => span.start === name.start && span.end === name.end);
  if (edit === undefined) return stringAt(bytes, name);
  const { text, part = { start: 0, end: text.length } } = edit;
  return stringAt(text, part);
}

/** Id of a request without the quotes of a string. */
function idText(json: string): string {
  return json.startsWith('"') ? json.slice(1, -1) : json;
}

function short(text: string): string {
  return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text;
}

function eraOf(revision: string): string {
  return isModernRevision(revision) ? 'modern' : 'legacy';
}
