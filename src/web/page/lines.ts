import { HISTORY_MINUTES, type HistoryReport, type ServerHistory } from '../../status/usage-history.js';

/** One value for each minute, the latest last; null where it is unknown. */
export type Values = readonly (number | null)[];

const MINUTE_MS = 60_000;

/** Estimated calls in the last 60 s: those of this minute, and the share of the previous minute that is within the 60 s. */
export function callRate(history: HistoryReport, { calls }: ServerHistory): number {
  const elapsed = (history.at % MINUTE_MS) / MINUTE_MS;
  return Math.round((calls.at(-1) ?? 0) + (calls.at(-2) ?? 0) * (1 - elapsed));
}

/** Replaces the last value with `now`, because its minute is not over. Keeps the value if `now` is null. */
export function untilNow(values: Values, now: number | null): Values {
  return [...values.slice(0, -1), now ?? values.at(-1) ?? null];
}

export function spanOf({ length }: Values): string {
  return length < HISTORY_MINUTES ? `last ${length} min` : 'last hour';
}

/** Value at the top of a line: `least` or more, so that a line of small values stays low. */
export function topOf(values: Values, least: number): number {
  return Math.max(least, ...values.map((value) => value ?? 0));
}

/** Path of a line through all values, for the attribute `d` of SVG. `max` is the value at its top. */
export function linePath(values: Values, max: number, width: number, height: number): string {
  const steps = values.length - 1;
  let path = '';
  let isBroken = true;
  for (const [index, value] of values.entries()) {
    if (value !== null) {
      const x = steps === 0 ? width : (index / steps) * width;
      const y = height - (value / max) * height;
      // Begins with a segment of no length, whose round ends show a single value, too.
      path += `${isBroken ? 'M' : 'L'}${x.toFixed(1)} ${y.toFixed(1)}${isBroken ? 'h0' : ''}`;
    }
    isBroken = value === null;
  }
  return path;
}
