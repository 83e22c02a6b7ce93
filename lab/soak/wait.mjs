export function wait(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Looks again and again until `check` says yes. Resolves with whether it did in time. */
export async function until(check, withinMs, everyMs = 20) {
  const overdueAt = performance.now() + withinMs;
  while (!(await check())) {
    if (performance.now() >= overdueAt) return false;
    await wait(everyMs);
  }
  return true;
}
