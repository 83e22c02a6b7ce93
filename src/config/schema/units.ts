/** The notation of a quantity: a number with a unit. */
interface Notation {
  /** The quantity in words, for error messages. */
  readonly noun: string;
  readonly form: string;
  readonly pattern: RegExp;
  /** Parses to whole milliseconds or bytes. Throws a `RangeError` for a text of another form. */
  readonly parse: (text: string) => number;
}

export const NOTATIONS = {
  duration: notation('a duration', 'a duration with a unit, such as 500ms, 60s, 2m or 1h', {
    ms: 1,
    s: 1000,
    m: 60_000,
    h: 3_600_000,
  }),
  bytes: notation('a size', 'a size with a unit, such as 512KiB, 4MB or 64MiB', {
    B: 1,
    kB: 1000,
    KB: 1000,
    MB: 1000 ** 2,
    GB: 1000 ** 3,
    KiB: 1024,
    MiB: 1024 ** 2,
    GiB: 1024 ** 3,
  }),
};

function notation(noun: string, form: string, units: Readonly<Record<string, number>>): Notation {
  const pattern = new RegExp(`^(\\d+(?:\\.\\d+)?)(${Object.keys(units).join('|')})$`);
  const parse = (text: string) => {
    const [, amount, unit = ''] = pattern.exec(text) ?? [];
    const factor = units[unit];
    if (factor === undefined) throw new RangeError(`expected ${form}`);
    return Math.round(Number(amount) * factor);
  };
  return { noun, form, pattern, parse };
}
