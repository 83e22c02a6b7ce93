import type { CallRow } from '../web/contract.js';
import { matches } from './text.js';

/** Calls that the page keeps. Older ones are dropped. */
export const MAX_CALLS = 2_000;

/** Appends calls in the order of their numbers, and drops the oldest beyond the bound. */
export function appendCalls(calls: readonly CallRow[], more: readonly CallRow[]): readonly CallRow[] {
  return [...calls, ...more].slice(-MAX_CALLS);
}

export interface CallFilter {
  readonly words: string;
  readonly server: string;
  readonly client: string;
  /** `bad` means every outcome but `ok`. */
  readonly outcome: string;
  /** Only calls that ended after this time. */
  readonly after: number;
}

export function filterCalls(calls: readonly CallRow[], filter: CallFilter): readonly CallRow[] {
  const { words, server, client, outcome, after } = filter;
  return calls.filter(
    (call) =>
      call.at >= after &&
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

/** Groups repeats, newest first. A group has one outcome, because a failure among successes has to be seen. */
export function groupCalls(calls: readonly CallRow[]): readonly CallGroup[] {
  const groups: { id: number; calls: [CallRow, ...CallRow[]] }[] = [];
  for (const call of calls) {
    const last = groups.at(-1);
    if (last !== undefined && isRepeat(last.calls[0], call)) last.calls.unshift(call);
    else groups.push({ id: call.id, calls: [call] });
  }
  return groups.reverse();
}

function isRepeat(one: CallRow, other: CallRow): boolean {
  return (
    one.session === other.session &&
    one.server === other.server &&
    one.method === other.method &&
    one.name === other.name &&
    one.outcome === other.outcome &&
    one.reason === other.reason
  );
}

/** Slowest first, each call on its own. */
export function slowestFirst(calls: readonly CallRow[]): readonly CallGroup[] {
  return calls.toSorted((one, other) => other.ms - one.ms).map((call) => ({ id: call.id, calls: [call] }));
}
