const DURATION_UNITS = new Map([
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
]);

const BYTE_UNITS = new Map([
  ['B', 1],
  ['kB', 1000],
  ['KB', 1000],
  ['MB', 1000 ** 2],
  ['GB', 1000 ** 3],
  ['KiB', 1024],
  ['MiB', 1024 ** 2],
  ['GiB', 1024 ** 3],
]);

export const DURATION_PATTERN = patternOf(DURATION_UNITS);
export const BYTES_PATTERN = patternOf(BYTE_UNITS);

/** How error messages describe durations and sizes. */
export const DURATION_FORM = 'a duration with a unit, such as 500ms, 60s, 2m or 1h';
export const BYTES_FORM = 'a size with a unit, such as 512KiB, 4MB or 64MiB';

/** Parses a duration such as `"2m"` to whole milliseconds. Throws a `RangeError` for any other text. */
export function parseDuration(text: string): number {
  return parseWith(DURATION_PATTERN, DURATION_UNITS, DURATION_FORM, text);
}

/** Parses a size such as `"64MiB"` to whole bytes. Throws a `RangeError` for any other text. */
export function parseBytes(text: string): number {
  return parseWith(BYTES_PATTERN, BYTE_UNITS, BYTES_FORM, text);
}

function patternOf(units: ReadonlyMap<string, number>): RegExp {
  return new RegExp(`^(\\d+(?:\\.\\d+)?)(${[...units.keys()].join('|')})$`);
}

function parseWith(pattern: RegExp, units: ReadonlyMap<string, number>, form: string, text: string): number {
  const [, amount, unit = ''] = pattern.exec(text) ?? [];
  const factor = units.get(unit);
  if (factor === undefined) throw new RangeError(`expected ${form}`);
  return Math.round(Number(amount) * factor);
}
