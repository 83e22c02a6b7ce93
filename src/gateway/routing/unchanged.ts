import { isString, readString, toBytes } from '../../json/json-text.js';
import { RPC_CODES, type RpcError } from '../../jsonrpc/rpc-error.js';
import { requestedList } from '../../mcp/lists.js';
import { METHODS } from '../../mcp/methods.js';
import type { RelayedRequest } from '../../mcp/relayed-request.js';
import { hasHandshake } from '../../mcp/revisions.js';
import { editToolPage } from '../catalog/relayed-page.js';
import type { EditAnswer } from '../dispatch/handling.js';
import type { Backend } from '../registry/backend.js';
import { NotListed, shaped, type Target } from './target.js';
import { plainUnknownName } from './unknown-name.js';

/**
 * The target of a request of a client that sees this server unchanged: the server gets every request as it is, listed or
 * not, and answers itself what is wrong with it. Only tools that the configuration denies do not exist.
 */
export function unchanged(request: RelayedRequest, backend: Backend, revision: string | undefined): Target | RpcError {
  const { method, bytes, tokens } = request;
  if (requestedList(method) === 'tools') {
    const editAnswer: EditAnswer = (page, connection) => {
      const isTranslated = hasHandshake(revision) && !hasHandshake(connection.revision);
      return editToolPage(page, backend.rules, toolsOf(backend), isTranslated);
    };
    return { backend, edits: [], editAnswer };
  }
  const { name } = tokens;
  if (method !== METHODS.callTool || name === undefined || !isString(bytes, name)) return { backend, edits: [] };
  const shown = readString(bytes, name);
  const { shaping, policy } = backend.rules;
  const tool = shaping === undefined ? shown : shaping.originalOf(shown, toolsOf(backend).renamed);
  if (!policy(tool)) return new NotListed(RPC_CODES.invalidParams, plainUnknownName('tool', shown));
  const edits = tool === shown ? [] : [{ span: name, text: toBytes(JSON.stringify(tool)) }];
  return shaped({ backend, edits, tool }, request);
}

/** The tools of a server as far as they were read, under original names. */
function toolsOf(backend: Backend) {
  return backend.knownListsAs('original').tools;
}
