// Repetitions of the longest tests. `npm test` runs them shortened, `npm run test:long` in full. No
// other file reads the variable, so that there is one place that decides.

const isLong = process.env.TRUNKLINE_LONG === '1';

/** A count for the full run and for the shortened one: rounds, sessions, or fast-check's `numRuns`. */
export function repetitions({ full, short }: { readonly full: number; readonly short: number }): number {
  return isLong ? full : short;
}
