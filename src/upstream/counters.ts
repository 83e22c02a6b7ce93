/** What was dropped, by kind; only ever counted up. */
export interface BridgeCounters {
  late: number;
  duplicate: number;
  unknown: number;
  junk: number;
  oversized: number;
  staleProgress: number;
  unsentReplies: number;
}

/** Nothing was dropped yet. */
export function newCounters(): BridgeCounters {
  return { late: 0, duplicate: 0, unknown: 0, junk: 0, oversized: 0, staleProgress: 0, unsentReplies: 0 };
}
