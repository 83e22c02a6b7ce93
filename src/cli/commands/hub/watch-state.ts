import type { ServerReport, StatusReport } from '../../../gateway/status/status-report.js';
import type { ClientDescription, HubDescription } from '../../../hub/hub-answers.js';

/** What the hub tells at one moment. */
export interface WatchFacts {
  readonly hub: HubDescription;
  readonly report: StatusReport;
  /** Milliseconds on a monotonic clock. */
  readonly at: number;
}

export interface WatchedServer {
  readonly key: string;
  readonly state: ServerReport['state'];
  /** Calls of all its instances since their start. */
  readonly calls: number;
  /** Null before the second look. */
  readonly callsPerSecond: number | null;
  readonly p50Ms: number | null;
  readonly memoryBytes: number | null;
  /** The line of its output that names the cause, or what is wrong, or why it failed last. */
  readonly lastError: string;
  readonly needsApproval: boolean;
}

/** Everything that the screen shows. */
export interface WatchState {
  readonly hub: Pick<HubDescription, 'pid' | 'version' | 'uptimeSeconds' | 'configFile' | 'isDraining'>;
  readonly at: number;
  readonly servers: readonly WatchedServer[];
  readonly clients: readonly ClientDescription[];
  /** The key of the chosen server. */
  readonly chosen: string | undefined;
  /** The last output of a server, if it is shown. */
  readonly log: { readonly server: string; readonly lines: readonly string[] } | undefined;
  /** One line about what a key did. */
  readonly note: string;
}

/** The state with new facts. Rates need the facts of the look before. */
export function withFacts(earlier: WatchState | undefined, { hub, report, at }: WatchFacts): WatchState {
  const seconds = earlier === undefined ? 0 : (at - earlier.at) / 1_000;
  const servers = report.servers.map((server): WatchedServer => {
    const instances = hub.servers.filter((each) => each.server === server.server);
    const calls = instances.reduce((sum, each) => sum + each.calls, 0);
    const before = earlier?.servers.find(({ key }) => key === server.server);
    const known = instances.flatMap(({ memoryBytes }) => memoryBytes ?? []);
    return {
      key: server.server,
      state: server.state,
      calls,
      // The calls of an instance that has ended are not counted any more.
      callsPerSecond: before === undefined || seconds <= 0 ? null : Math.max(0, calls - before.calls) / seconds,
      p50Ms: server.latencyMs?.p50 ?? null,
      memoryBytes: known.length === 0 ? null : known.reduce((sum, bytes) => sum + bytes, 0),
      lastError: server.cause[0] ?? (server.problem || (server.lastFailure ?? '')),
      needsApproval: server.approval !== null,
    };
  });
  const isThere = servers.some(({ key }) => key === earlier?.chosen);
  return {
    hub,
    at,
    servers,
    clients: hub.clients,
    chosen: isThere ? earlier?.chosen : servers[0]?.key,
    log: earlier?.log,
    note: earlier?.note ?? '',
  };
}

/** What a key asks for, besides another state. */
export type WatchEffect = { readonly kind: 'quit' } | { readonly kind: 'restart'; readonly server: string };

/** What follows from a key, by its name in `node:readline`. */
export function withKey(state: WatchState, key: string): { readonly state: WatchState; readonly effect?: WatchEffect } {
  const { servers, chosen: server } = state;
  switch (key) {
    case 'q':
      return { state, effect: { kind: 'quit' } };
    case 'up':
    case 'k':
      return { state: moved(state, -1) };
    case 'down':
    case 'j':
      return { state: moved(state, 1) };
  }
  if (server === undefined) return { state };
  switch (key) {
    case 'r':
      return { state: { ...state, note: `Restarting ${server}…` }, effect: { kind: 'restart', server } };
    case 'l':
      return { state: { ...state, log: state.log?.server === server ? undefined : { server, lines: [] } } };
    case 'a': {
      const needsApproval = servers.some((each) => each.key === server && each.needsApproval);
      const note = needsApproval
        ? `To review the tools of ${server} that wait, run in another terminal: trunkline approve ${server}`
        : `The tools of ${server} need no approval: its entry has no \`approval: required\`.`;
      return { state: { ...state, note } };
    }
    default:
      return { state };
  }
}

/** Chooses another server, whose log is shown if one is shown. */
function moved(state: WatchState, by: number): WatchState {
  const { servers, chosen, log } = state;
  const at = servers.findIndex(({ key }) => key === chosen);
  const next = servers[Math.min(Math.max(at + by, 0), servers.length - 1)]?.key;
  if (next === undefined || next === chosen) return state;
  return { ...state, chosen: next, note: '', log: log === undefined ? undefined : { server: next, lines: [] } };
}
