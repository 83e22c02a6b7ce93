/** Resolves when the promise does, or after `ms` milliseconds. */
export async function inTime(awaited: Promise<unknown>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const tooLong = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([awaited, tooLong]);
  clearTimeout(timer);
}
