import { isObject, readText } from '../../../json/json-text.js';
import { RPC_CODES, RpcError } from '../../../jsonrpc/rpc-error.js';
import type { RequestEnvelope } from '../../../mcp/envelope.js';
import { LISTS } from '../../../mcp/lists.js';
import { refusedTasks } from '../input/missing-capability.js';

/** What a client wants to be notified of. See the page basic/patterns/subscriptions of revision 2026-07-28. */
export interface ListenFilter {
  /** The methods of the list changes. */
  readonly changes: ReadonlySet<string>;
  /** The URIs of the resources whose updates the client wants. */
  readonly uris: ReadonlySet<string>;
  /** The tasks of the extension whose state the client wants, by the names that it knows. */
  readonly tasks: ReadonlySet<string>;
}

/** Limit of resources in one filter, and of tasks. Each may need a subscription at a server. */
const MAX_SUBJECTS = 1_024;

const CHANGES = {
  toolsListChanged: LISTS.tools.changed,
  promptsListChanged: LISTS.prompts.changed,
  resourcesListChanged: LISTS.resources.changed,
} as const;

/** Reads the filter of a `subscriptions/listen` request; an error if it is malformed. Ignores unknown members. */
export function readFilter(request: RequestEnvelope): ListenFilter | RpcError {
  const { bytes } = request;
  const { notifications } = request.tokens;
  if (notifications === undefined || !isObject(bytes, notifications)) return malformed('', 'must be an object');
  const filter = JSON.parse(readText(bytes, notifications)) as Readonly<Record<string, unknown>>;
  const changes = new Set<string>();
  for (const [member, method] of Object.entries(CHANGES)) {
    const wanted = filter[member];
    if (wanted !== undefined && typeof wanted !== 'boolean') return malformed(`.${member}`, 'must be a boolean');
    if (wanted === true) changes.add(method);
  }
  const uris = subjects(filter, 'resourceSubscriptions', 'resources');
  const tasks = subjects(filter, 'taskIds', 'tasks');
  if (uris instanceof RpcError) return uris;
  if (tasks instanceof RpcError) return tasks;
  const refusal = tasks.size > 0 ? refusedTasks(request) : undefined;
  return refusal ?? { changes, uris, tasks };
}

function subjects(
  filter: Readonly<Record<string, unknown>>,
  member: string,
  kind: string,
): ReadonlySet<string> | RpcError {
  const named = filter[member] ?? [];
  if (!Array.isArray(named) || !named.every((subject) => typeof subject === 'string')) {
    return malformed(`.${member}`, 'must be an array of strings');
  }
  const unique = new Set<string>(named);
  if (unique.size <= MAX_SUBJECTS) return unique;
  const problem = `names ${unique.size} ${kind}, and one subscription takes ${MAX_SUBJECTS}: open several subscriptions`;
  return malformed(`.${member}`, problem);
}

/** The filter as the acknowledgment shows it. */
export function shownFilter({ changes, uris, tasks }: ListenFilter): Readonly<Record<string, unknown>> {
  const members = Object.entries(CHANGES).flatMap(([member, method]) => (changes.has(method) ? [[member, true]] : []));
  return {
    ...Object.fromEntries(members),
    ...(uris.size > 0 && { resourceSubscriptions: [...uris] }),
    ...(tasks.size > 0 && { taskIds: [...tasks] }),
  };
}

function malformed(member: string, problem: string): RpcError {
  return new RpcError(RPC_CODES.invalidParams, `params.notifications${member} ${problem}`);
}
