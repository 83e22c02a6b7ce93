import { editMembers, REMOVED, rewriteObject } from '../wire/json/edit-members.js';
import { elementsOf, isObject, membersOf, type Span, stringAt, toBytes, valuesAt } from '../wire/json/json-text.js';
import { isRecord } from '../wire/json/json-value.js';
import { type Edit, splice } from '../wire/json/splice.js';
import { join, jsonObject, RPC_CODES, RpcError, resultMessage } from '../wire/jsonrpc/message.js';
import { type RequestEnvelope, type ResponseEnvelope, scanOwn } from '../wire/mcp/envelope.js';
import { declaresTasks, TASKS_EXTENSION } from '../wire/mcp/extensions.js';
import { INPUT_METHODS, METHODS } from '../wire/mcp/methods.js';
import type { RelayedRequest, RequestTokens } from '../wire/mcp/relayed-request.js';
import { MODERN_CODES } from '../wire/mcp/revisions.js';
import type { InputRequest, WithdrawInput } from './port.js';

/* Requests that servers send to a client: which of them the client can answer, and the errors for the others. */

type Capabilities = Readonly<Record<string, unknown>>;

/**
 * Returns the error for a server request that a client with these capabilities cannot answer; `undefined` if the client
 * can, or perhaps can. A client without known capabilities gets every request.
 */
export function refusedInput(
  { method, bytes, tokens }: RelayedRequest,
  capabilities: Capabilities | undefined,
): RpcError | undefined {
  const path = CAPABILITY_OF.get(method);
  // The client may know methods that the gateway does not know. If it does not, it answers with an error itself.
  if (path === undefined || capabilities === undefined) return undefined;
  const declared = declaredAt(path, capabilities);
  if (declared === undefined) return new RpcError(RPC_CODES.methodNotFound, `The client does not support ${method}`);
  if (method !== METHODS.elicit) return undefined;
  const mode = elicitationMode({ bytes, tokens });
  return canElicit(mode, capabilities)
    ? undefined
    : new RpcError(RPC_CODES.invalidParams, `The client does not support mode ${mode}`);
}

/** Whether a client with these capabilities takes elicitations of this mode. */
export function canElicit(mode: string, capabilities: Capabilities): boolean {
  const declared = declaredAt(['elicitation'], capabilities);
  if (declared === undefined) return false;
  // Before revisions had modes, there were only forms, and clients declared an empty object.
  const modes = Object.keys(declared);
  return modes.includes(mode) || (mode === 'form' && !modes.includes('url'));
}

/** Returns the capabilities that a client must declare to get a server request, in the form of its declaration. */
export function requiredCapabilities({ method, bytes, tokens }: RelayedRequest): Capabilities {
  const path = [...(CAPABILITY_OF.get(method) ?? [])];
  if (method === METHODS.elicit) path.push(elicitationMode({ bytes, tokens }));
  return path.reduceRight<Capabilities>((inner, name) => ({ [name]: inner }), {});
}

function elicitationMode({ bytes, tokens: { mode } }: RequestTokens): string {
  return stringAt(bytes, mode) ?? 'form';
}

function declaredAt(path: readonly string[], capabilities: Capabilities): object | undefined {
  let value: unknown = capabilities;
  for (const name of path) value = isRecord(value) ? value[name] : undefined;
  // A capability should be an object. Other values count as declared, except for `false` and `null`.
  return value === undefined || value === null || value === false ? undefined : Object(value);
}

const CAPABILITY_OF = new Map<string, readonly string[]>([
  [METHODS.createMessage, ['sampling']],
  [METHODS.elicit, ['elicitation']],
  [METHODS.listRoots, ['roots']],
  [METHODS.getTask, ['tasks']],
  [METHODS.taskResult, ['tasks']],
  [METHODS.cancelTask, ['tasks', 'cancel']],
  [METHODS.listTasks, ['tasks', 'list']],
]);

/** Limit of the server requests that wait for one client. No user answers more. */
export const MAX_UNANSWERED = 256;

export const TOO_MANY_UNANSWERED = new RpcError(
  RPC_CODES.internalError,
  'The client has too many unanswered requests already',
);

/** Server requests that a client gets in a result, and answers by their keys. */
export class PendingInputs {
  readonly #pending = new Map<string, { readonly input: InputRequest; readonly entry: Uint8Array }>();
  #asked = 0;

  get size(): number {
    return this.#pending.size;
  }

  /** Adds a request. Refuses it, and returns `undefined`, if the client cannot answer it or has to answer too many. */
  add(input: InputRequest, capabilities?: Capabilities): WithdrawInput | undefined {
    const { method } = input.request;
    const isFull = this.#pending.size >= MAX_UNANSWERED;
    const refusal = INPUT_METHODS.has(method)
      ? (refusedInput(input.request, capabilities) ?? (isFull ? TOO_MANY_UNANSWERED : undefined))
      : new RpcError(RPC_CODES.methodNotFound, `${method} cannot reach a client of this revision`);
    if (refusal !== undefined) {
      input.fail(refusal);
      return undefined;
    }
    this.#asked += 1;
    const key = `input-${this.#asked}`;
    this.#pending.set(key, { input, entry: inputRequestEntry(input) });
    return () => void this.#pending.delete(key);
  }

  /** The requests as the JSON of `inputRequests`. */
  get requests(): Uint8Array {
    return jsonObject([...this.#pending].map(([key, { entry }]) => [key, entry]));
  }

  /** Passes the client's answers on. Ignores answers to other requests. */
  answer(bytes: Uint8Array, inputResponses: Span | undefined): void {
    const answers = new Map(membersOf(bytes, inputResponses).map(([key, value]) => [key, value]));
    for (const [key, { input }] of [...this.#pending]) {
      const value = answers.get(key);
      if (value === undefined || !isObject(bytes, value)) continue;
      this.#pending.delete(key);
      answered(input, bytes.slice(value.start, value.end));
    }
  }

  /** Fails all requests, because the client will not answer. An elicitation counts as canceled by the user. */
  refuseAll(message: string): void {
    for (const { input } of this.#pending.values()) {
      if (input.request.method === METHODS.elicit) answered(input, CANCELED);
      else input.fail(new RpcError(RPC_CODES.internalError, message));
    }
    this.#pending.clear();
  }
}

function answered(input: InputRequest, result: Uint8Array): void {
  const response = scanOwn(splice(resultMessage(ANY_ID, result)));
  if (response.kind === 'response') input.answer(response, () => () => {});
  else input.fail(new RpcError(RPC_CODES.internalError, 'The answer of the client cannot be read'));
}

const CANCELED = toBytes('{"action":"cancel"}');
/** Placeholder for an id. The server request that gets the response has its own id. */
const ANY_ID = toBytes('0');

/** Members of requests in revisions with a handshake that 2026-07-28 does not have. */
const OLD_PARAMS: ReadonlySet<string> = new Set(['task', 'elicitationId']);

const OLD_META: ReadonlySet<string> = new Set(['progressToken', 'io.modelcontextprotocol/related-task']);

/** Returns a server request as an entry of `inputRequests`. Copies it. */
export function inputRequestEntry({
  request,
  edits,
}: {
  readonly request: RelayedRequest;
  readonly edits: readonly Edit[];
}): Uint8Array {
  const bytes = splice(request.message({ text: ANY_ID, part: { start: 0, end: ANY_ID.length } }, edits));
  const message = scanOwn(bytes);
  const method = toBytes(JSON.stringify(request.method));
  const params = message.kind === 'request' ? message.params : undefined;
  if (params === undefined || !isObject(bytes, params)) return jsonObject([['method', method]]);
  const changes: Edit[] = editMembers(bytes, params, { removes: (name) => OLD_PARAMS.has(name) });
  for (const meta of valuesAt(bytes, params, ['_meta']))
    changes.push(...editMembers(bytes, meta, { removes: (name) => OLD_META.has(name) }));
  return jsonObject([
    ['method', method],
    ['params', splice({ bytes, span: params, edits: changes })],
  ]);
}

/** Error code of a request that needs a capability which the client did not declare. */
const { missingCapability: MISSING_CAPABILITY } = MODERN_CODES;

/** Limit of the contents of a result that are searched for a text. */
const MAX_TEXTS = 100;
/** Longest text of the server that is quoted in the message, in characters. */
const MAX_QUOTED = 500;

const TASKS: Capabilities = { extensions: { [TASKS_EXTENSION]: {} } };

/** Refuses a request about tasks of the extension; `undefined` if its client declares the extension. */
export function refusedTasks(request: RequestEnvelope): RpcError | undefined {
  if (declaresTasks(request)) return undefined;
  const message = 'Tasks need the extension io.modelcontextprotocol/tasks, which the client does not declare';
  return new RpcError(MISSING_CAPABILITY, message, { requiredCapabilities: TASKS });
}

/** The requests that only a client of the tasks extension may send. */
export function needsTasks(method: string): boolean {
  return method === METHODS.getTask || method === METHODS.updateTask || method === METHODS.cancelTask;
}

/** The capabilities that a client lacks, and a sentence about them. */
export interface Lack {
  readonly required: Capabilities;
  readonly because: string;
}

/** Merges two declarations of capabilities, member by member. At a conflict, `other` counts. */
export function withCapabilities(one: Capabilities, other: Capabilities): Capabilities {
  const merged: Record<string, unknown> = { ...one };
  for (const [name, value] of Object.entries(other)) {
    const earlier = merged[name];
    merged[name] = isRecord(earlier) && isRecord(value) ? withCapabilities(earlier, value) : value;
  }
  return merged;
}

/**
 * Makes the error that revision 2026-07-28 wants in place of a server's own failure. Its data names the capabilities. It also has the data
 * of the server's error or, as `result`, the server's result. Both stay byte for byte, and are left out if they are nested too deep.
 */
export function lackingCapability(
  { bytes, result, error }: ResponseEnvelope,
  edits: readonly Edit[],
  { required, because }: Lack,
): ResponseEnvelope {
  const said = error === undefined ? textOf(bytes, result) : messageOf(bytes, error);
  const message = said === undefined ? because : `${because}. The server said: ${said}`;
  const capabilities = toBytes(`"requiredCapabilities":${JSON.stringify(required)}`);
  const head = toBytes(
    `{"jsonrpc":"2.0","id":0,"error":{"code":${MISSING_CAPABILITY},"message":${JSON.stringify(message)},"data":`,
  );
  const whole = error === undefined ? dataWith(capabilities, bytes, result, edits) : dataOf(capabilities, bytes, error);
  // Tries without the server's part too, because the data adds a level, which may be too deep for a message.
  for (const data of [whole, join([OPEN, capabilities, CLOSE])]) {
    const response = scanOwn(join([head, data, CLOSE_TWICE]));
    if (response.kind === 'response') return response;
  }
  throw new Error('The error that was made is none');
}

function dataOf(capabilities: Uint8Array, bytes: Uint8Array, error: Span): Uint8Array {
  const [data] = valuesAt(bytes, error, ['data']);
  if (data === undefined) return join([OPEN, capabilities, CLOSE]);
  if (!isObject(bytes, data)) return join([OPEN, capabilities, DATA, bytes.subarray(data.start, data.end), CLOSE]);
  return rewriteObject(bytes, data, {
    change: (name) => (name === 'requiredCapabilities' ? REMOVED : undefined),
    insert: () => [capabilities],
  });
}

function dataWith(
  capabilities: Uint8Array,
  bytes: Uint8Array,
  result: Span | undefined,
  edits: readonly Edit[],
): Uint8Array {
  if (result === undefined) return join([OPEN, capabilities, CLOSE]);
  const own = edits.filter(({ span }) => span.start >= result.start && span.end <= result.end);
  return join([OPEN, capabilities, RESULT, splice({ bytes, span: result, edits: own }), CLOSE]);
}

function messageOf(bytes: Uint8Array, error: Span): string | undefined {
  return quoted(stringAt(bytes, valuesAt(bytes, error, ['message'])[0]));
}

/** Returns the first text among the contents of a tool result. */
function textOf(bytes: Uint8Array, result: Span | undefined): string | undefined {
  const [content] = result === undefined ? [] : valuesAt(bytes, result, ['content']);
  const texts = elementsOf(bytes, content, MAX_TEXTS).map((element) =>
    stringAt(bytes, valuesAt(bytes, element, ['text'])[0]),
  );
  return quoted(texts.find((text) => text !== undefined));
}

function quoted(text: string | undefined): string | undefined {
  return text === undefined || text === '' || text.length > MAX_QUOTED ? undefined : text;
}

const OPEN = toBytes('{');
const CLOSE = toBytes('}');
const CLOSE_TWICE = toBytes('}}');
const DATA = toBytes(',"data":');
const RESULT = toBytes(',"result":');
