import { editMembers } from '../json/edit-members.js';
import { isObject, toBytes, valuesAt } from '../json/json-text.js';
import { type Edit, splice } from '../json/splice.js';
import { join } from '../jsonrpc/message.js';
import type { ScanEnvelope } from '../mcp/envelope.js';
import { METHODS } from '../mcp/methods.js';
import type { InputRequest } from './port.js';

/** The server requests that a result can carry. */
const LIFTABLE: ReadonlySet<string> = new Set([METHODS.createMessage, METHODS.elicit, METHODS.listRoots]);

export function isLiftable(method: string): boolean {
  return LIFTABLE.has(method);
}

/** What revisions with a handshake put into requests, and 2026-07-28 does not. */
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
