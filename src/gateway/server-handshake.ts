import type { ServerHandshake } from '../downstream/port.js';
import type { ServerLists } from './catalog/server-lists.js';
import { toolsInView, type ViewFilter } from './catalog/view-filter.js';
import type { InstructingServer } from './instructions.js';
import type { Backend } from './registry/backend.js';

/** A client of one server alone waits at least this long for its start, as a client that starts the server itself does. */
const START_WAIT_MS = 30_000;

interface ViewingClient {
  /** Another one after a change of the configuration. */
  readonly view: { readonly backends: ReadonlyMap<unknown, Backend> };
}

/**
 * The initialize result of the process of the only backend that a client sees, as soon as the process has sent it; or why
 * there is none within `waitMs` milliseconds, but at least 30 s. If a change of the configuration replaces the backend
 * meanwhile, that of the next one. `undefined` if the client sees none.
 */
export function onlyHandshake(client: ViewingClient, waitMs: number): Promise<ServerHandshake> | undefined {
  const [only] = client.view.backends.values();
  return only && serverHandshake(only, client, waitMs);
}

async function serverHandshake(backend: Backend, client: ViewingClient, waitMs: number): Promise<ServerHandshake> {
  const reason = await backend.untilOpen(Math.max(waitMs, START_WAIT_MS));
  const { openConnection: connection } = backend;
  if (connection !== undefined) {
    const { initializeResult: result, revision, requestedRevision } = connection;
    return { kind: 'initialized', result, revision, requestedRevision };
  }
  const [now] = client.view.backends.values();
  if (now !== undefined && now !== backend) return serverHandshake(now, client, waitMs);
  const failure = backend.dispatcher.failureOf(reason ?? 'restarting', false);
  return { kind: 'failed', failure };
}

/** The handshake of the first of these backends that has a process, or what the first one knows from the cache. */
export function handshakeOf([own, ...others]: readonly [Backend, ...Backend[]]): Backend['handshake'] {
  return ([own, ...others].find(({ dispatcher }) => dispatcher.connection !== undefined) ?? own).handshake;
}

/** What the instructions need of a backend and of a handshake of its server; nothing without a handshake. */
export function instructingServer(
  backend: Backend,
  handshake: Backend['handshake'],
  view: ViewFilter | undefined,
): InstructingServer[] {
  if (handshake === undefined) return [];
  const { key, prefix } = backend;
  const { instructions, serverInfo } = handshake;
  const lists = backend.listsAs('exposed');
  const listed = ({ entries }: ServerLists['tools']) => entries.filter(({ entry }) => entry !== undefined);
  return [
    {
      ...serverInfo,
      key,
      prefix,
      tools: listed(toolsInView(key, lists.tools, view)).map(
        ({ original }) => lists.tools.renamed?.get(original) ?? original,
      ),
      prompts: listed(lists.prompts).length,
      resources: listed(lists.resources).length,
      instructions,
    },
  ];
}
