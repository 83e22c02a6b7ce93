import { isObject, readText } from '../../json/json-text.js';
import { RPC_CODES, RpcError } from '../../jsonrpc/rpc-error.js';
import type { RequestEnvelope } from '../../mcp/envelope.js';
import { LISTS } from '../../mcp/lists.js';

/** What a client wants to be notified of. See the page basic/patterns/subscriptions of revision 2026-07-28. */
export interface ListenFilter {
  /** The methods of the list changes. */
  readonly changes: ReadonlySet<string>;
  /** The URIs of the resources whose updates the client wants. */
  readonly uris: ReadonlySet<string>;
}

/** Limit of resources in one filter. Each may need a subscription at a server. */
const MAX_URIS = 1_024;

const CHANGES = {
  toolsListChanged: LISTS.tools.changed,
  promptsListChanged: LISTS.prompts.changed,
  resourcesListChanged: LISTS.resources.changed,
} as const;

/** Reads the filter of a `subscriptions/listen` request; an error if it is malformed. Ignores unknown members. */
export function readFilter({ bytes, tokens: { notifications } }: RequestEnvelope): ListenFilter | RpcError {
  if (notifications === undefined || !isObject(bytes, notifications)) return malformed('', 'must be an object');
  const filter = JSON.parse(readText(bytes, notifications)) as Readonly<Record<string, unknown>>;
  const changes = new Set<string>();
  for (const [member, method] of Object.entries(CHANGES)) {
    const wanted = filter[member];
    if (wanted !== undefined && typeof wanted !== 'boolean') return malformed(`.${member}`, 'must be a boolean');
    if (wanted === true) changes.add(method);
  }
  const { resourceSubscriptions = [] } = filter;
  if (!Array.isArray(resourceSubscriptions) || !resourceSubscriptions.every((uri) => typeof uri === 'string')) {
    return malformed('.resourceSubscriptions', 'must be an array of strings');
  }
  const uris = new Set<string>(resourceSubscriptions);
  if (uris.size <= MAX_URIS) return { changes, uris };
  const problem = `names ${uris.size} resources, and one subscription takes ${MAX_URIS}: open several subscriptions`;
  return malformed('.resourceSubscriptions', problem);
}

/** The filter as the acknowledgment shows it. */
export function shownFilter({ changes, uris }: ListenFilter): Readonly<Record<string, unknown>> {
  const members = Object.entries(CHANGES).flatMap(([member, method]) => (changes.has(method) ? [[member, true]] : []));
  return { ...Object.fromEntries(members), ...(uris.size > 0 && { resourceSubscriptions: [...uris] }) };
}

function malformed(member: string, problem: string): RpcError {
  return new RpcError(RPC_CODES.invalidParams, `params.notifications${member} ${problem}`);
}
