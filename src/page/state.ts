import { batch, computed, signal } from '@preact/signals';
import type { ServerReport } from '../gateway/status/status.js';
import type { Frame, HubState, Need, OutputLine, RecordingState, UsagePoint } from '../web/contract.js';
import { addCalls, type CallLog } from './calls-list.js';
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

export const callLog = signal<CallLog>({ calls: [], left: 0, since: 0, gaps: [] });
/** The pause in the following of calls that ends with the next ones. */
let resumed: { readonly from: number; readonly to: number } | undefined;

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
  /** Null until the second point. */
  readonly callsPerMinute: number | null;
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
      pauseCalls();
      break;
    case 'state':
      if (frame.hub.kind === 'none') pauseCalls();
      hub.value = frame.hub;
      needs.value = frame.needs;
      break;
    case 'usage':
      takeUsage(frame.at, frame.servers);
      break;
    case 'calls':
      if (frame.since !== undefined) pauseCalls();
      callLog.value = addCalls(callLog.value, frame, resumed);
      resumed = undefined;
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

/** Begins a pause in the following of calls. It began at the latest frame if none came for long. */
function pauseCalls(): void {
  const now = Date.now();
  resumed = { from: resumed?.from ?? (heardAt.value || now), to: now };
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
      // The first point after the stream was opened again has no rate.
      callsPerMinute: own.some((point) => point.callsPerMinute !== null)
        ? own.reduce((sum, point) => sum + (point.callsPerMinute ?? 0), 0)
        : (before?.callsPerMinute ?? null),
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

/** Text that changes with the lists, states and approvals of servers. Facts that were read before may be out of date then. */
export const revision = computed(() =>
  (report.value?.servers ?? [])
    .map(({ server, state, tools, approval }) =>
      [server, state, tools.exposed.length, tools.denied.length, tools.quarantined.length, approval?.approved].join(),
    )
    .join(';'),
);
