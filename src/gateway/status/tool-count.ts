/** Tool counts that some clients accept at most. They differ between clients and their versions. */
const CLIENT_LIMITS = [40, 80, 128];

/** Returns the largest client limit that this many tools reach, or 0. */
function reachedLimit(count: number): number {
  return CLIENT_LIMITS.findLast((limit) => count >= limit) ?? 0;
}

/** Returns advice for a person about this many tools. Empty if there are few. */
export function adviseOnToolCount(count: number): string {
  const limit = reachedLimit(count);
  if (limit === 0) return '';
  return `${count} tools are listed. Some clients accept no more than ${limit}, and models choose worse among many tools. To list fewer, set \`tools.allow\` or \`tools.deny\` of a server.`;
}

/** Returns a function that takes the current tool count and calls `warn` once for each client limit that it reaches. */
export function createToolCountWarning(warn: (advice: string) => void): (count: number) => void {
  let warnedAt = 0;
  return (count) => {
    const limit = reachedLimit(count);
    if (limit <= warnedAt) return;
    warnedAt = limit;
    warn(adviseOnToolCount(count));
  };
}
