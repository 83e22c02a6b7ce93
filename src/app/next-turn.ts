/** Resolves in the next turn of the event loop, when what has come meanwhile was read. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
