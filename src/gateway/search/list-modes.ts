import type { DownstreamClient } from '../../downstream/port.js';
import {
  LIMITED_CLIENTS,
  type LimitedClient,
  type ListDecision,
  type ListMode,
  MAX_LIST_TOKENS,
} from '../../spec/list-modes.js';
import { asText } from '../../wire/json/json-value.js';
import { listTokens } from '../../wire/mcp/entry-check.js';
import type { Catalog } from '../catalog/catalog.js';
import { createToolPolicy } from '../catalog/tool-policy.js';

interface Session {
  readonly mode: ListMode;
  readonly limited: LimitedClient | undefined;
  decision?: ListDecision;
}

/** How each client sees the tools. The decision is made when it is first needed, and then holds for the session. */
export class ListModes {
  readonly #sessions = new WeakMap<DownstreamClient, Session>();

  /** Call this when a session opens. `name` is the name that the client tells, unchecked. */
  open(client: DownstreamClient, mode: ListMode, name: unknown): void {
    const { mode: own, limited } = rulesFor(mode, name);
    if (own !== 'direct') this.#sessions.set(client, { mode: own, limited });
  }

  /**
   * Whether the client may use the tools of the search. This is also true for a client whose list is short enough at present,
   * because a client without a session may have read a longer list before.
   */
  maySearch(client: DownstreamClient): boolean {
    return this.#sessions.has(client);
  }

  /** Whether the client is in search mode. False as long as that is not decided. */
  isSearching(client: DownstreamClient): boolean {
    const session = this.#sessions.get(client);
    return session !== undefined && (session.decision?.mode ?? session.mode) === 'search';
  }

  /** How the client sees these tools. */
  of(client: DownstreamClient, tools: () => Catalog): ListDecision {
    const session = this.#sessions.get(client);
    if (session === undefined) return DIRECT;
    session.decision ??= decide(session, tools());
    return session.decision;
  }
}

/** Whether a client of this name may get a list that does not have all tools. */
export function mayGetSearch(mode: ListMode, name: unknown): boolean {
  return rulesFor(mode, name).mode !== 'direct';
}

function rulesFor(mode: ListMode, name: unknown): Session {
  if (mode === 'direct') return { mode, limited: undefined };
  const limited = LIMITED_CLIENTS.find(({ names }) => createToolPolicy({ allow: names, deny: [] })(asText(name)));
  return mode === 'auto' && limited === undefined ? { mode: 'direct', limited } : { mode, limited };
}

const DIRECT: ListDecision = { mode: 'direct', because: '' };

function decide({ mode, limited }: Session, { entries }: Catalog): ListDecision {
  if (mode === 'search' || limited === undefined) return { mode: 'search', because: 'the configuration says so' };
  const tokens = listTokens(entries);
  const { title, tools } = limited;
  if (entries.length > tools)
    return { mode: 'search', because: `${title} shows ${tools} tools, and there are ${entries.length}` };
  if (tokens > MAX_LIST_TOKENS) return { mode: 'search', because: `the list of all tools has about ${tokens} tokens` };
  return { mode: 'direct', because: `${title} shows ${tools} tools, and there are only ${entries.length}` };
}
