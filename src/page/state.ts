import { batch, computed, signal } from '@preact/signals';
import type { ProcessReport, ServerReport } from '../gateway/status/status.js';
import type { Frame, HubState, Need, RecordingState } from '../web/contract.js';
import { addCalls, type CallLog } from './calls-list.js';
import { HISTORY_MS, type Point } from './text.js';

/** Facts of which every part of the page shows some. They are `undefined` until they are known, which is not zero. */

export const hello = signal<Extract<Frame, { kind: 'hello' }> | undefined>(undefined);
export const hub = signal<HubState | undefined>(undefined);
export const needs = signal<readonly Need[] | undefined>(undefined);
/** Time of the latest frame. */
export const heardAt = signal(0);
export const recording = signal<RecordingState | null | undefined>(undefined);

export const report = computed(() => (hub.value?.kind === 'running' ? hub.value.report : undefined));
export const description = computed(() => (hub.value?.kind === 'none' ? undefined : hub.value?.hub));

export const callLog = signal<CallLog>({ calls: [], failed: [], left: 0, since: 0, gaps: [] });
/** Whether calls are followed now, and the time until which they were. */
let isFollowed = false;
let followedUntil = 0;

interface Usage {
  readonly memory: readonly Point[];
  readonly cpu: readonly Point[];
  readonly calls: number;
  /** Null until the second point. */
  readonly callsPerMinute: number | null;
}
/** Time between two points. The hub measures every ten seconds. */
const POINT_EVERY_MS = 9_500;
/** By server. It begins when the page is opened. */
export const usage = signal<{ readonly at: number; readonly servers: ReadonlyMap<string, Usage> }>({
  at: 0,
  servers: new Map(),
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
      isFollowed = false;
      break;
    case 'state':
      hub.value = frame.hub;
      needs.value = frame.needs;
      isFollowed &&= frame.hub.kind === 'running';
      if (isFollowed) followedUntil = frame.at;
      if (frame.hub.kind === 'running') takeUsage(frame.at, frame.hub.hub.servers);
      break;
    case 'calls':
      callLog.value = addCalls(callLog.value, frame, followedUntil);
      isFollowed = true;
      followedUntil = Math.max(followedUntil, frame.since ?? 0, frame.calls.at(-1)?.at ?? 0);
      break;
    case 'recording':
      recording.value = frame.recording;
      break;
  }
}

function takeUsage(at: number, processes: readonly ProcessReport[]): void {
  const before = usage.value;
  if (at - before.at < POINT_EVERY_MS) return;
  const minutes = (at - before.at) / 60_000;
  const servers = new Map<string, Usage>();
  for (const { server } of processes) {
    const own = processes.filter((each) => each.server === server);
    const known = before.servers.get(server);
    const add = (line: readonly Point[] = [], value: number | null) => [
      ...line.filter((point) => point.at > at - HISTORY_MS),
      { at, value },
    ];
    const calls = own.reduce((sum, each) => sum + each.calls, 0);
    servers.set(server, {
      memory: add(known?.memory, memoryOf(server, own)),
      cpu: add(known?.cpu, cpuOf(server, own)),
      calls,
      // Processes that have ended are counted no more.
      callsPerMinute: known === undefined || calls < known.calls ? null : Math.round((calls - known.calls) / minutes),
    });
  }
  usage.value = { at, servers };
}

/** Memory of all processes of a server. Null if it is unknown, or if none runs. */
export function memoryOf(server: string, processes = description.value?.servers): number | null {
  return sumOf(processes, server, ({ memoryBytes }) => memoryBytes);
}

/** Present share of one processor. Null if it is unknown. */
export function cpuOf(server: string, processes = description.value?.servers): number | null {
  return sumOf(processes, server, ({ cpuPercent }) => cpuPercent);
}

function sumOf(
  processes: readonly ProcessReport[] = [],
  server: string,
  value: (process: ProcessReport) => number | null,
): number | null {
  const known = processes.flatMap((each) => (each.server === server ? (value(each) ?? []) : []));
  return known.length === 0 ? null : known.reduce((sum, each) => sum + each, 0);
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
