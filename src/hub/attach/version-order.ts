/** Whether a version is later than another. Both are `MAJOR.MINOR.PATCH`; what follows, such as `-beta.1`, does not count. */
export function isNewer(version: string, than: string): boolean {
  const [one, other] = [numbersOf(version), numbersOf(than)];
  const at = one.findIndex((number, index) => number !== other[index]);
  return at !== -1 && (one[at] ?? 0) > (other[at] ?? 0);
}

function numbersOf(version: string): number[] {
  const [core = ''] = version.split('-');
  return core.split('.').map(Number);
}
