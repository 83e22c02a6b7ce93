import { z } from 'zod';
import { describeFound, expects } from './found.js';
import { BYTES_FORM, BYTES_PATTERN, DURATION_FORM, DURATION_PATTERN, parseBytes, parseDuration } from './units.js';

interface Range<T> {
  min: T;
  max: T;
}

/** A text such as `60s`, read as milliseconds. */
export function duration(standard: string, description: string, range: Range<string> = { min: '1ms', max: '24h' }) {
  return quantity(standard, description, range, {
    kind: 'a duration',
    pattern: DURATION_PATTERN,
    form: DURATION_FORM,
    parse: parseDuration,
  });
}

/** A text such as `64MiB`, read as bytes. */
export function bytes(standard: string, description: string, range: Range<string>) {
  return quantity(standard, description, range, {
    kind: 'a size',
    pattern: BYTES_PATTERN,
    form: BYTES_FORM,
    parse: parseBytes,
  });
}

/** A whole number. Without `standard` the default depends on the machine. */
export function count(standard: number | undefined, description: string, { min, max }: Range<number>) {
  const expected = expects(`a whole number from ${min} to ${max}`, { quote: true });
  return z
    .number(expected)
    .int(expected)
    .min(min, expected)
    .max(max, expected)
    .meta({ description, ...(standard !== undefined && { default: standard }) });
}

export function flag(standard: boolean, description: string) {
  return z.boolean(expects('true or false', { quote: true })).meta({ description, default: standard });
}

/** One of a few words. */
export function oneOf<const Words extends readonly string[]>(
  words: Words,
  standard: Words[number],
  description: string,
) {
  return z.enum(words, expects(`one of ${words.join(', ')}`, { quote: true })).meta({ description, default: standard });
}

/** A text whose value is never told in an error. */
export function text(description: string, expected = 'a text, in quotes if it looks like something else') {
  return z.string(expects(expected)).min(1, expects(expected)).meta({ description });
}

export function list(item: z.ZodString, description: string) {
  return z.array(item, expects('a list of texts')).meta({ description });
}

interface Quantity {
  kind: string;
  pattern: RegExp;
  form: string;
  parse: (text: string) => number;
}

function quantity(
  standard: string,
  description: string,
  { min, max }: Range<string>,
  { kind, pattern, form, parse }: Quantity,
) {
  const inRange = (value: string) => parse(value) >= parse(min) && parse(value) <= parse(max);
  // A bare number is not guessed at: some programs would mean seconds by it, others milliseconds.
  const error = ({ input }: { input?: unknown }) =>
    `found ${describeFound(input)}; ${isBareNumber(input) ? 'add a unit; ' : ''}expected ${form}`;
  return z
    .string({ error })
    .regex(pattern, { error, abort: true })
    .refine(inRange, expects(`${kind} from ${min} to ${max}`, { quote: true }))
    .transform(parse)
    .meta({ description: `${description} From ${min} to ${max}.`, default: standard });
}

function isBareNumber(input: unknown): boolean {
  return typeof input === 'number' || (typeof input === 'string' && /^\d+$/.test(input));
}
