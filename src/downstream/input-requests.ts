import { editMembers } from '../json/edit-members.js';
import { isObject, isString, readString, toBytes, valuesAt } from '../json/json-text.js';
import { isRecord } from '../json/json-value.js';
import { type Edit, splice } from '../json/splice.js';
import { join } from '../jsonrpc/message.js';
import { RPC_CODES, RpcError } from '../jsonrpc/rpc-error.js';
import type { ScanEnvelope } from '../mcp/envelope.js';
import { METHODS } from '../mcp/methods.js';
import type { RelayedRequest } from '../mcp/relayed-request.js';
import type { InputRequest } from './port.js';

type Capabilities = Readonly<Record<string, unknown>>;

/**
 * Returns the error for a server request that a client with these capabilities cannot answer; `undefined` if the client can
 * or may. A client without known capabilities gets every request.
 */
export function refusedInput(
  { method, bytes, tokens }: RelayedRequest,
  capabilities: Capabilities | undefined,
): RpcError | undefined {
  const path = CAPABILITY_OF.get(method);
  // The client may know methods that the gateway does not. If not, the client answers with an error itself.
  if (path === undefined || capabilities === undefined) return undefined;
  const declared = declaredAt(path, capabilities);
  if (declared === undefined) return new RpcError(RPC_CODES.methodNotFound, `The client does not support ${method}`);
  if (method !== METHODS.elicit) return undefined;
  const mode = elicitationMode({ bytes, tokens });
  // Revisions before the modes had forms only, and clients declared an empty object.
  const modes = Object.keys(declared);
  const isSupported = modes.includes(mode) || (mode === 'form' && !modes.includes('url'));
  return isSupported ? undefined : new RpcError(RPC_CODES.invalidParams, `The client does not support mode ${mode}`);
}

/** The capabilities that a client must have declared to get a server request, as it would declare them. */
export function requiredCapabilities({ method, bytes, tokens }: RelayedRequest): Capabilities {
  const path = [...(CAPABILITY_OF.get(method) ?? [])];
  if (method === METHODS.elicit) path.push(elicitationMode({ bytes, tokens }));
  return path.reduceRight<Capabilities>((inner, name) => ({ [name]: inner }), {});
}

function elicitationMode({ bytes, tokens: { mode } }: Pick<RelayedRequest, 'bytes' | 'tokens'>): string {
  return mode !== undefined && isString(bytes, mode) ? readString(bytes, mode) : 'form';
}

/** The capability at this path, as the client declared it. */
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

/** Most server requests that wait for one client. No person answers more. */
export const MAX_UNANSWERED = 256;

export const TOO_MANY_UNANSWERED = new RpcError(
  RPC_CODES.internalError,
  'The client has too many unanswered requests already',
);

/** The server requests that a result can carry. */
const LIFTABLE: ReadonlySet<string> = new Set([METHODS.createMessage, METHODS.elicit, METHODS.listRoots]);

export function isLiftable(method: string): boolean {
  return LIFTABLE.has(method);
}

/** Members that revisions with a handshake put into requests, and 2026-07-28 does not. */
const OLD_PARAMS: ReadonlySet<string> = new Set(['task', 'elicitationId']);

const OLD_META: ReadonlySet<string> = new Set(['progressToken', 'io.modelcontextprotocol/related-task']);

/** The method and the params of a server request, as the members of an entry of `inputRequests`. Copies them. */
export function inputRequestMembers(
  { request, edits }: Pick<InputRequest, 'request' | 'edits'>,
  scan: ScanEnvelope,
): Uint8Array {
  const text = toBytes('0');
  const bytes = splice(request.message({ text, part: { start: 0, end: text.length } }, edits));
  const message = scan(bytes);
  const method = `"method":${JSON.stringify(request.method)}`;
  const params = message.kind === 'request' ? message.params : undefined;
  if (params === undefined || !isObject(bytes, params)) return toBytes(method);
  const changes: Edit[] = editMembers(bytes, params, { removes: (name) => OLD_PARAMS.has(name) });
  for (const meta of valuesAt(bytes, params, ['_meta'])) {
    if (isObject(bytes, meta)) changes.push(...editMembers(bytes, meta, { removes: (name) => OLD_META.has(name) }));
  }
  return join([toBytes(`${method},"params":`), splice({ bytes, span: params, edits: changes })]);
}
