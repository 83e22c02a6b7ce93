import type { CallRow, CallsEvent } from '../server/contract.js';
import { matches } from './text.js';

/** Number of calls that the page keeps. Older ones are dropped. */
export const MAX_CALLS = 2_000;
/** Number of failed calls that the page keeps, even if they are older. */
const MAX_FAILED = 100;

/** Time in which calls were not followed, in milliseconds since 1970. */
export interface Gap {
  /** Number of the last call before it. */
  readonly after: number;
  readonly from: number;
  readonly to: number;
}

export interface ShownCalls {
  readonly calls: readonly CallRow[];
  readonly failed: readonly CallRow[];
  /** Number of calls that the list no longer has, or that the stream had no room for. */
  readonly left: number;
  /** Time since which calls are known, in milliseconds since 1970; 0 before that. */
  readonly since: number;
  readonly gaps: readonly Gap[];
}

/** Adds calls, and drops the oldest beyond the bound. `until` is the time until which calls were followed before. */
export function addCalls(log: ShownCalls, { calls, left, since = 0 }: CallsEvent, until = 0): ShownCalls {
  const last = log.calls.at(-1);
  // A stream begins with the latest calls, some of which are known.
  const fresh = calls.filter(({ id }) => id > (last?.id ?? 0));
  const all = [...log.calls, ...fresh];
  const kept = all.slice(-MAX_CALLS);
  const gap = last !== undefined && since > until ? [{ after: last.id, from: until, to: since }] : [];
  return {
    calls: kept,
    failed: [...log.failed, ...fresh.filter(({ outcome }) => outcome !== 'ok')].slice(-MAX_FAILED),
    left: Object.values(left).reduce((sum, count) => sum + count, log.left + all.length - kept.length),
    since: last === undefined && since > until ? since : log.since,
    gaps: [...log.gaps, ...gap].filter(({ after }) => after >= (kept[0]?.id ?? 0)),
  };
}

/** Adds earlier calls to a log, the oldest first. Leaves out those that the log has, too. */
export function withPast(log: ShownCalls, past: readonly CallRow[]): ShownCalls {
  const until = Math.min(log.since || Number.POSITIVE_INFINITY, log.calls[0]?.at ?? Number.POSITIVE_INFINITY);
  const older = past.filter(({ at }) => at < until);
  const [first] = older;
  if (first === undefined) return log;
  return {
    ...log,
    calls: [...older, ...log.calls],
    failed: [...older.filter(({ outcome }) => outcome !== 'ok'), ...log.failed],
    since: first.at,
  };
}

export interface CallFilter {
  readonly words: string;
  readonly server: string;
  readonly client: string;
  /** `bad` means every outcome but `ok`. */
  readonly outcome: string;
}

export function filterCalls(calls: readonly CallRow[], filter: CallFilter): readonly CallRow[] {
  const { words, server, client, outcome } = filter;
  return calls.filter(
    (call) =>
      (server === '' || call.server === server) &&
      (client === '' || call.client === client) &&
      (outcome === '' || (outcome === 'bad' ? call.outcome !== 'ok' : call.outcome === outcome)) &&
      (words === '' || matches(textOf(call), words)),
  );
}

function textOf({ server, name, method, client, outcome, reason }: CallRow): string {
  return [server, name, method, client, outcome, reason].filter((each) => each !== null).join(' ');
}

/** Calls in a row that differ only in their times and sizes. */
export interface CallGroup {
  /** Number of the oldest call, which stays while the group grows. */
  readonly id: number;
  /** Newest first. */
  readonly calls: readonly [CallRow, ...CallRow[]];
}

/** Groups repeats, newest first, with the gaps between them. A group has one outcome, because a failure among successes has to be seen. */
export function groupCalls(calls: readonly CallRow[], gaps: readonly Gap[] = []): readonly (CallGroup | Gap)[] {
  const entries: ({ id: number; calls: [CallRow, ...CallRow[]] } | Gap)[] = [];
  const waiting = [...gaps];
  for (const call of calls) {
    while (waiting[0] !== undefined && waiting[0].after < call.id) entries.push(...waiting.splice(0, 1));
    const last = entries.at(-1);
    if (last !== undefined && 'calls' in last && isRepeat(last.calls[0], call)) last.calls.unshift(call);
    else entries.push({ id: call.id, calls: [call] });
  }
  return [...entries, ...waiting].reverse();
}

const SAME = ['session', 'server', 'method', 'name', 'outcome', 'reason'] as const;

function isRepeat(one: CallRow, other: CallRow): boolean {
  return SAME.every((member) => one[member] === other[member]);
}
