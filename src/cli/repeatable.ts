/** For an option that may be given several times: its values in order. */
export function collect(value: string, earlier: readonly string[] = []): string[] {
  return [...earlier, value];
}
