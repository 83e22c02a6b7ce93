import { batch, computed, signal } from '@preact/signals';
import type { ProcessReport } from '../../status/status.js';
import type { HistoryReport } from '../../status/usage-history.js';
import type { Frame, HubState, Need, RecordingState } from '../server/contract.js';
import { addCalls, type ShownCalls } from './calls-list.js';

/** Facts for all parts of the page. Each is `undefined` until it is known, so that the page shows no zero before. */

export const hello = signal<Extract<Frame, { kind: 'hello' }> | undefined>(undefined);
export const hub = signal<HubState | undefined>(undefined);
export const needs = signal<readonly Need[] | undefined>(undefined);
/** Time of the latest frame, in milliseconds since 1970. */
export const heardAt = signal(0);
export const recording = signal<RecordingState | null | undefined>(undefined);

export const report = computed(() => (hub.value?.kind === 'running' ? hub.value.report : undefined));
export const description = computed(() => (hub.value?.kind === 'none' ? undefined : hub.value?.hub));

const NO_CALLS: ShownCalls = { calls: [], failed: [], left: 0, since: 0, gaps: [] };
export const callLog = signal(NO_CALLS);
/** Whether calls are followed now, and the time until which they were. */
let isFollowed = false;
let followedUntil = 0;

export const history = signal<HistoryReport | undefined>(undefined);

/** The file of the configuration that is shown; null if there is none, `undefined` before that is known. */
export const configFile = computed(() => hello.value?.configFile);

export function receive(frames: readonly Frame[]): void {
  batch(() => {
    for (const frame of frames) take(frame);
    heardAt.value = Date.now();
  });
}

function take(frame: Frame): void {
  switch (frame.kind) {
    case 'hello':
      if (hello.value !== undefined && hello.value.configFile !== frame.configFile) forget();
      hello.value = frame;
      isFollowed = false;
      break;
    case 'state':
      hub.value = frame.hub;
      needs.value = frame.needs;
      isFollowed &&= frame.hub.kind === 'running';
      if (isFollowed) followedUntil = frame.at;
      break;
    case 'history':
      history.value = frame;
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

/** Number of times that another configuration took the place of the one before. */
export const replacements = signal(0);

/** Forgets everything that belongs to another configuration. */
function forget(): void {
  replacements.value += 1;
  hub.value = undefined;
  needs.value = undefined;
  recording.value = undefined;
  history.value = undefined;
  callLog.value = NO_CALLS;
  followedUntil = 0;
}

/** Memory of all processes of a server. Null if it is unknown, or if none runs. */
export function memoryOfServer(server: string, processes = description.value?.servers): number | null {
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

/**
 * Text that changes with the configuration, and with the lists, states and approvals of servers. Facts that were read before may be
 * out of date then. The number of reloads is a part of it, because two changes in a row can lead back to the same lists.
 */
export const revision = computed(() =>
  [
    report.value?.configReloads,
    ...(report.value?.servers ?? []).map(({ server, state, tools, approval }) =>
      [server, state, tools.exposed.length, tools.denied.length, tools.quarantined.length, approval?.approved].join(),
    ),
  ].join(';'),
);
