import { describeFailure, reasonFor } from '../../downstream/failure.js';
import type { CallEnd, Exchange, SendingConnection } from '../../downstream/port.js';
import type { CallObservation, CallObserver, ObservedCall } from '../../gateway/call-feed.js';
import { type Span as Range, readText, stringAt, valuesAt } from '../../wire/json/json-text.js';
import type { Edit, SplicedMessage } from '../../wire/json/splice.js';
import { RpcError } from '../../wire/jsonrpc/message.js';
import { isErrorResponse, type ResponseEnvelope, type ScanEnvelope } from '../../wire/mcp/envelope.js';
import { METHODS } from '../../wire/mcp/methods.js';
import type { Outcome } from '../../wire/mcp/outcome.js';
import { isModernRevision } from '../../wire/mcp/revisions.js';
import {
  contextIn,
  parseTraceparent,
  replacing,
  SAMPLED,
  type TraceContext,
  withTraceparent,
} from './trace-context.js';
import type { SpanSettings } from './trace-settings.js';

/**
 * Attributes of spans; `docs/metrics.md` says which span has which. Names of the semantic conventions for MCP, which are in development and
 * may still change (docs/gen-ai/mcp.md of open-telemetry/semantic-conventions-genai), and names of Trunkline's own.
 */
const ATTRIBUTES = {
  method: 'mcp.method.name',
  revision: 'mcp.protocol.version',
  resource: 'mcp.resource.uri',
  requestId: 'jsonrpc.request.id',
  tool: 'gen_ai.tool.name',
  prompt: 'gen_ai.prompt.name',
  operation: 'gen_ai.operation.name',
  arguments: 'gen_ai.tool.call.arguments',
  result: 'gen_ai.tool.call.result',
  errorType: 'error.type',
  errorCode: 'rpc.response.status_code',
  transport: 'network.transport',
  protocol: 'network.protocol.name',
  clientAddress: 'client.address',
  clientPort: 'client.port',
  serverAddress: 'server.address',
  serverPort: 'server.port',
  client: 'trunkline.client.name',
  server: 'trunkline.server.key',
  generation: 'trunkline.generation',
  attempt: 'trunkline.attempt',
  outcome: 'trunkline.outcome',
  wait: 'trunkline.queue.wait_ms',
  eraOfClient: 'trunkline.era.front',
  eraOfServer: 'trunkline.era.child',
} as const;

/**
 * JSON-RPC codes that are faults of the request, and therefore no errors of the side that answers. On the side that has sent
 * the request, every code is an error.
 */
const FAULTS_OF_REQUEST: ReadonlySet<number> = new Set([-32700, -32600, -32601, -32602, -32002]);

/** A span. Its name, its end and its error are final when it ends. */
export interface CallSpan {
  name: string;
  /** The SERVER span of a call at the front, or the CLIENT span of an attempt. */
  readonly kind: 'server' | 'client';
  readonly context: TraceContext;
  readonly parent: TraceContext | undefined;
  readonly link: TraceContext | undefined;
  /** Milliseconds since 1970. */
  readonly startMs: number;
  endMs: number;
  readonly attributes: Attributes;
  /** Message of the error. `undefined` without an error; '' for an error without a message. */
  error: string | undefined;
}

type Attributes = Record<string, string | number>;

export interface ServerAddress {
  readonly address: string;
  readonly port: number;
}

/** The parts of the gateway that spans are made with. */
export interface SpanSources {
  readonly now: () => number;
  readonly scan: ScanEnvelope;
  readonly redact: (text: string) => string;
  readonly addressOf: (server: string) => ServerAddress | undefined;
}

export interface CallSpansOptions extends SpanSources {
  readonly settings: SpanSettings;
  readonly ids: { generateTraceId(): string; generateSpanId(): string };
  /** Returns a number from 0 to 1, excluding 1. */
  readonly random: () => number;
  /** Whether the sampler traces calls of this trace, if it does not follow the client. */
  readonly isSampledId: (traceId: string) => boolean;
  /** Takes the room for the spans of one more call. Returns `false` if too many spans wait, or come too fast. */
  readonly admit: () => boolean;
  /** Counts a span that is not made, because `admit` has returned `false`. */
  readonly dropped: () => void;
  readonly ended: (span: CallSpan) => void;
  /** Difference between milliseconds since 1970 and milliseconds on the clock. */
  readonly epoch: () => number;
}

/** Limits of names and messages, of contents, and of the text of a content that is searched for secrets, in characters. */
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
    const header = parseTraceparent(exchange.http?.header('traceparent'));
    const parent = sent ?? header;
    if (isCall ? !this.#isSampled(parent) : parent === undefined || (parent.traceFlags & SAMPLED) === 0)
      return undefined;
    if (!this.#options.admit()) {
      this.#options.dropped();
      return this.#dropping;
    }
    return new TracedCall(call, this.#options, { parent, link: header, value: sent?.value });
  }

  #isSampled(parent: TraceContext | undefined): boolean {
    const { settings, isSampledId, random } = this.#options;
    const { ratio, followsParent } = settings.sampler;
    if (parent !== undefined && followsParent) return (parent.traceFlags & SAMPLED) !== 0;
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

class TracedCall implements CallObservation {
  readonly #options: CallSpansOptions;
  /** The value of `traceparent` in the request. */
  #value: Range | undefined;
  readonly #epoch: number;
  readonly #front: CallSpan;
  #attempt: CallSpan | undefined;
  #attempts = 0;

  constructor(call: ObservedCall, options: CallSpansOptions, { parent, link, value }: Origin) {
    const { exchange, method, name = '', client } = call;
    const { ids, settings } = options;
    this.#options = options;
    this.#value = value;
    this.#epoch = options.epoch();
    const traceId = parent?.traceId ?? ids.generateTraceId();
    const context = { traceId, spanId: ids.generateSpanId(), traceFlags: (parent?.traceFlags ?? 0) | SAMPLED };
    const attributes = attributesOf(method, short(name), exchange.client.revision, exchange.http, OF_FRONT);
    attributes[ATTRIBUTES.requestId] = short(idText(exchange.requestId));
    attributes[ATTRIBUTES.client] = short(client.name);
    const startMs = this.#epoch + call.startedAt;
    this.#front = { kind: 'server', context, parent, link, startMs, attributes, name: '', endMs: 0, error: undefined };
    if (settings.hasContent) this.#addParams(call);
    if (settings.insertsContext && value === undefined) this.#insert(exchange);
  }

  sending(call: ObservedCall, { generation, revision }: SendingConnection, edits: readonly Edit[]) {
    const { ids, now, addressOf } = this.#options;
    const { method, server = '' } = call;
    const { bytes, tokens } = call.exchange.request;
    const name = (tokens.name && originalName(bytes, tokens.name, edits)) ?? '';
    const { traceId, traceFlags } = this.#front.context;
    const context = { traceId, spanId: ids.generateSpanId(), traceFlags };
    const attributes = attributesOf(method, name, revision, addressOf(server), OF_ATTEMPT);
    attributes[ATTRIBUTES.server] = server;
    attributes[ATTRIBUTES.generation] = generation;
    this.#attempts += 1;
    if (this.#attempts > 1) attributes[ATTRIBUTES.attempt] = this.#attempts;
    const startMs = this.#epoch + now();
    const parent = this.#front.context;
    const open = { name: nameOf(method, name), link: undefined, endMs: 0, error: undefined };
    this.#attempt = { kind: 'client', context, parent, startMs, attributes, ...open };
    return this.#value && [replacing(this.#value, context)];
  }

  sent(_call: ObservedCall, { edits: [first] }: SplicedMessage): void {
    if (this.#attempt === undefined || first === undefined) return;
    // The first edit of a request is its id toward the server.
    const { text, part = { start: 0, end: text.length } } = first;
    this.#attempt.attributes[ATTRIBUTES.requestId] = readText(text, part);
  }

  attemptEnded(_call: ObservedCall, outcome: Outcome): void {
    if (outcome.kind === 'answered') this.#end(this.#attempt, outcome.at, faultIn(outcome.response, NONE));
    else {
      const { reason } = outcome;
      this.#end(this.#attempt, this.#options.now(), {
        type: reason === 'cancelled' ? reason : reasonFor(reason),
      });
    }
    this.#attempt = undefined;
  }

  ended(call: ObservedCall, end: CallEnd): void {
    const { method, name = '', server, endedAt = this.#options.now() } = call;
    // The call ended before its attempt, because the client has left it.
    this.#end(this.#attempt, endedAt, { type: 'cancelled' });
    const { attributes } = this.#front;
    attributes[ATTRIBUTES.outcome] = call.effect;
    attributes[ATTRIBUTES.wait] = Math.round(call.waitedMs * 1000) / 1000;
    if (server !== undefined) attributes[ATTRIBUTES.server] = server;
    const { response, result } = end;
    if (this.#options.settings.hasContent && method === METHODS.callTool) {
      if (response !== undefined) this.#addContent(ATTRIBUTES.result, response.bytes, response.result);
      if (result !== undefined) this.#addContent(ATTRIBUTES.result, result, { start: 0, end: result.length });
    }
    // Names that no server has are left out, because they are arbitrary.
    const isKnown = server !== undefined || call.errorCode === undefined;
    this.#front.name = nameOf(method, isKnown ? short(name) : '');
    this.#end(this.#front, endedAt, faultOf(call, end));
  }

  #end(span: CallSpan | undefined, at: number, fault: Fault | undefined): void {
    if (span === undefined) return;
    span.endMs = this.#epoch + at;
    if (fault !== undefined) {
      const { type, code, message = '' } = fault;
      if (code !== undefined) span.attributes[ATTRIBUTES.errorCode] = code;
      if (type !== undefined) {
        span.attributes[ATTRIBUTES.errorType] = type;
        span.error = this.#options.redact(message.slice(0, MAX_READ)).slice(0, MAX_TEXT);
      }
    }
    this.#options.ended(span);
  }

  /** Adds `traceparent` to the request, unless its era has changed the message, because then the message is not there as a whole. */
  #insert(exchange: Exchange): void {
    const { request } = exchange;
    if (request.whole === undefined) return;
    const extended = withTraceparent(request, request.whole, this.#front.context, this.#options.scan);
    if (extended === undefined) return;
    exchange.request = extended;
    this.#value = contextIn(extended)?.value;
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
    this.#front.attributes[name] = certain.slice(0, MAX_CONTENT);
  }
}

/** Error of a span. Without a type, the span has no error, but may have a code. */
interface Fault {
  readonly type: string | undefined;
  readonly code?: string;
  readonly message?: string;
}

/** Returns the error of the span at the front, where some JSON-RPC codes are faults of the request and no errors. */
function faultOf(call: ObservedCall, { response, failure }: CallEnd): Fault | undefined {
  if (failure instanceof RpcError) return codeFault(failure.code, failure.message, FAULTS_OF_REQUEST);
  if (failure !== undefined) return { type: failure.reason, message: describeFailure(failure) };
  if (response !== undefined) return faultIn(response, FAULTS_OF_REQUEST);
  const { outcome } = call;
  return outcome === 'ok' ? undefined : { type: outcome === 'tool_error' ? 'tool_error' : 'cancelled' };
}

/** Error in a server's response. `harmless` are the codes that are no errors on this leg. */
function faultIn(response: ResponseEnvelope, harmless: ReadonlySet<number>): Fault | undefined {
  const { bytes, error, tokens } = response;
  if (error === undefined) return isErrorResponse(response) ? { type: 'tool_error' } : undefined;
  const code = Number(readText(bytes, tokens.errorCode ?? { start: 0, end: 0 }));
  return codeFault(code, stringAt(bytes, valuesAt(bytes, error, ['message'])[0]) ?? '', harmless);
}

function codeFault(code: number, message: string, harmless: ReadonlySet<number>): Fault {
  const text = String(code);
  return { type: harmless.has(code) ? undefined : text, code: text, message };
}

const NONE: ReadonlySet<number> = new Set();

/** Names of the attributes that differ by leg. */
const OF_FRONT = { era: ATTRIBUTES.eraOfClient, address: ATTRIBUTES.clientAddress, port: ATTRIBUTES.clientPort };
const OF_ATTEMPT = { era: ATTRIBUTES.eraOfServer, address: ATTRIBUTES.serverAddress, port: ATTRIBUTES.serverPort };

function attributesOf(
  method: string,
  name: string,
  revision: string | undefined,
  other: ServerAddress | undefined,
  names: typeof OF_FRONT | typeof OF_ATTEMPT,
): Attributes {
  const attributes: Attributes = { [ATTRIBUTES.method]: method };
  if (method === METHODS.callTool) attributes[ATTRIBUTES.operation] = 'execute_tool';
  if (name !== '' && method === METHODS.callTool) attributes[ATTRIBUTES.tool] = name;
  if (name !== '' && method === METHODS.getPrompt) attributes[ATTRIBUTES.prompt] = name;
  if (revision !== undefined) {
    attributes[ATTRIBUTES.revision] = revision;
    attributes[names.era] = isModernRevision(revision) ? 'modern' : 'legacy';
  }
  attributes[ATTRIBUTES.transport] = other === undefined ? 'pipe' : 'tcp';
  if (other !== undefined) {
    attributes[ATTRIBUTES.protocol] = 'http';
    attributes[names.address] = other.address;
    attributes[names.port] = other.port;
  }
  return attributes;
}

/** Name of a span: the method and the tool or the prompt. */
function nameOf(method: string, target: string): string {
  return target === '' ? method : `${method} ${target}`;
}

/** Returns the name that the server gets, from the edit that replaces the exposed name. Without such an edit, both are the same. */
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
