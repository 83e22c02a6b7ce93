import { batch, computed, signal } from '@preact/signals';
import type { ServerReport } from '../gateway/status/status.js';
import type { CallRow, Frame, HubState, Need, OutputLine, RecordingState, UsagePoint } from '../web/contract.js';
import { appendCalls } from './calls-list.js';
import type { Point } from './text.js';

/** Facts of which every part of the page shows some. They are `undefined` until they are known, which is not zero. */

export const hello = signal<Extract<Frame, { kind: 'hello' }> | undefined>(undefined);
export const hub = signal<HubState | undefined>(undefined);
export const needs = signal<readonly Need[] | undefined>(undefined);
/** Time of the latest frame. */
export const heardAt = signal(0);
export const recording = signal<RecordingState | null | undefined>(undefined);

export const report = computed(() => (hub.value?.kind === 'running' ? hub.value.report : undefined));
export const description = computed(() => (hub.value?.kind === 'none' ? undefined : hub.value?.hub));

export const calls = signal<readonly CallRow[]>([]);
/** Calls that the list has no more, and those for which the stream had no room. */
export const callsLeft = signal(0);
/** Beginning of the watch, and numbers of the calls with which a later one began. */
export const callsWatched = signal<{ readonly since: number; readonly gaps: ReadonlySet<number> } | undefined>(
  undefined,
);
let isResuming = true;

/** Line with its number, by which the page knows it again. */
type NumberedLine = OutputLine & { readonly number: number };

export const output = signal<{
  readonly server: string;
  readonly lines: readonly NumberedLine[];
  readonly left: number;
}>({
  server: '',
  lines: [],
  left: 0,
});
const MAX_LINES = 2_000;

export interface Usage {
  readonly memory: readonly Point[];
  readonly cpu: readonly Point[];
  readonly callsPerMinute: number;
}
export const HISTORY_MS = 15 * 60_000;
/** By server, and by instance. Both begin when the page is opened. */
export const usage = signal<{
  readonly at: number;
  readonly servers: ReadonlyMap<string, Usage>;
  readonly instances: ReadonlyMap<string, UsagePoint>;
}>({
  at: 0,
  servers: new Map(),
  instances: new Map(),
});

export function receive(frames: readonly Frame[]): void {
  batch(() => {
    for (const frame of frames) take(frame);
    heardAt.value = Date.now();
  });
}

function take(frame: Frame): void {
  switch (frame.kind) {
    case 'hello':
      hello.value = frame;
      // A running one is reported after this.
      recording.value = null;
      isResuming = true;
      break;
    case 'state':
      hub.value = frame.hub;
      needs.value = frame.needs;
      break;
    case 'usage':
      takeUsage(frame.at, frame.servers);
      break;
    case 'calls':
      takeCalls(frame.calls, frame.left);
      break;
    case 'output': {
      const before = frame.isFirst || output.value.server !== frame.server ? { lines: [], left: 0 } : output.value;
      const next = (before.lines.at(-1)?.number ?? 0) + 1;
      const more = frame.lines.map((line, at) => ({ ...line, number: next + at }));
      const lines = [...before.lines, ...more].slice(-MAX_LINES);
      output.value = { server: frame.server, lines, left: before.left + frame.left };
      break;
    }
    case 'recording':
      recording.value = frame.recording;
      break;
  }
}

function takeCalls(more: readonly CallRow[], left: Readonly<Record<string, number>>): void {
  const [first] = more;
  callsWatched.value ??= { since: Date.now(), gaps: new Set() };
  // The numbers of another hub begin again.
  if (first !== undefined && first.id <= (calls.value.at(-1)?.id ?? 0)) calls.value = [];
  if (isResuming && first !== undefined) {
    const gaps = calls.value.length === 0 ? [] : [...callsWatched.value.gaps, first.id];
    callsWatched.value = { since: callsWatched.value.since, gaps: new Set(gaps) };
    isResuming = false;
  }
  const kept = appendCalls(calls.value, more);
  const older = calls.value.length + more.length - kept.length;
  calls.value = kept;
  callsLeft.value += Object.values(left).reduce((sum, count) => sum + count, older);
}

function takeUsage(at: number, points: readonly UsagePoint[]): void {
  const servers = new Map<string, Usage>();
  for (const server of new Set(points.map((point) => point.server))) {
    const own = points.filter((point) => point.server === server);
    const before = usage.value.servers.get(server);
    const add = (line: readonly Point[] = [], values: readonly (number | null)[]) => {
      const known = values.filter((value) => value !== null);
      const value = known.length === 0 ? null : known.reduce((sum, each) => sum + each, 0);
      return [...line.filter((point) => point.at > at - HISTORY_MS && point.at < at), { at, value }];
    };
    servers.set(server, {
      memory: add(
        before?.memory,
        own.map((point) => point.memoryBytes),
      ),
      cpu: add(
        before?.cpu,
        own.map((point) => point.cpuPercent),
      ),
      callsPerMinute: own.reduce((sum, point) => sum + point.callsPerMinute, 0),
    });
  }
  usage.value = { at, servers, instances: new Map(points.map((point) => [point.id, point])) };
}

/** Memory of all processes of a server. Null if it is unknown, or if none runs. */
export function memoryOf(server: ServerReport): number | null {
  const latest = usage.value.servers.get(server.server)?.memory.at(-1);
  if (latest !== undefined) return latest.value;
  const known = server.instances.map((each) => each.memoryBytes).filter((each) => each !== null);
  return known.length === 0 ? null : known.reduce((sum, each) => sum + each, 0);
}

/** Present share of one processor. Null if it is unknown. */
export function cpuOf({ server, usage: own }: ServerReport): number | null {
  const latest = usage.value.servers.get(server)?.cpu.at(-1);
  return latest === undefined ? (own?.cpuPercent ?? null) : latest.value;
}

type Tone = 'good' | 'busy' | 'bad' | 'off';

const TONES: Readonly<Record<ServerReport['state'], Tone>> = {
  ready: 'good',
  idle: 'off',
  stopped: 'off',
  starting: 'busy',
  installing: 'busy',
  stopping: 'busy',
  suspect: 'bad',
  backoff: 'bad',
  offline: 'bad',
  blocked: 'bad',
  parked: 'bad',
  misconfigured: 'bad',
};

export function toneOf(state: ServerReport['state']): Tone {
  return TONES[state] ?? 'off';
}

/** Text that changes when lists, states or approvals of servers do. What was read before may be out of date then. */
export const revision = computed(() =>
  (report.value?.servers ?? [])
    .map(({ server, state, tools, approval }) =>
      [server, state, tools.exposed.length, tools.denied.length, tools.quarantined.length, approval?.approved].join(),
    )
    .join(';'),
);
