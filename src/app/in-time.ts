/** Waits until it is there, but no longer than so many milliseconds. */
export async function inTime(awaited: Promise<unknown>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const tooLong = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([awaited, tooLong]);
  clearTimeout(timer);
}
