import * as z from 'zod/mini';
import type { Choice, Count, Flag, Quantity } from './settings.js';
import { NOTATIONS } from './units.js';

// A file is parsed once, so compiling the schema to functions would take longer than it saves.
z.config({ jitless: true });

/** A whole number. */
export function count({ standard, min, max, about }: Count) {
  const expected = expects(`a whole number from ${min} to ${max}`, { quote: true });
  return z
    .int(expected)
    .check(z.gte(min, expected), z.lte(max, expected))
    .register(z.globalRegistry, { description: about, ...(standard !== undefined && { default: standard }) });
}

export function flag({ standard, about }: Flag) {
  return z
    .boolean(expects('true or false', { quote: true }))
    .register(z.globalRegistry, { description: about, default: standard });
}

/** One of the words of a choice. */
export function oneOf({ words, standard, about }: Choice) {
  return z
    .enum(words, expects(`one of ${words.join(', ')}`, { quote: true }))
    .register(z.globalRegistry, { description: about, default: standard });
}

/** Refuses a NUL character: it ends the text for the operating system, so Node starts no program and opens no file with it. */
export function withoutNul() {
  return z.refine<string>((value) => !value.includes('\0'), { error: 'found a NUL character (\\0); remove it' });
}

/** A non-empty string. Error messages never quote its value, because it may be a secret. */
export function text(
  description: string,
  expected = 'a string that is not empty; put numbers, true and false in quotes',
) {
  return z
    .string(expects(expected))
    .check(z.minLength(1, expects(expected)), withoutNul())
    .register(z.globalRegistry, { description });
}

export function list(item: z.ZodMiniString, description: string) {
  return z.array(item, expects('a list of strings')).register(z.globalRegistry, { description });
}

/** A copy of the schema with this description, for a schema that is used at several places. */
export function described<Schema extends z.ZodMiniType>(schema: Schema, description: string): Schema {
  const copy = schema.clone();
  z.globalRegistry.add(copy, { description });
  return copy;
}

/** A text such as `60s` or `64MiB`, parsed to milliseconds or bytes. */
export function quantity({ kind, standard, min, max, about }: Quantity) {
  const { noun, form, pattern, parse } = NOTATIONS[kind];
  const inRange = (value: string) => parse(value) >= parse(min) && parse(value) <= parse(max);
  // A number without a unit is an error: some programs mean seconds by it, others milliseconds.
  const error = ({ input }: { input?: unknown }) =>
    `found ${describeFound(input)}${isBareNumber(input) ? ' without a unit' : ''}; expected ${form}`;
  const written = z
    .string({ error })
    .check(
      z.regex(pattern, { error, abort: true }),
      z.refine(inRange, expects(`${noun} from ${min} to ${max}`, { quote: true })),
    );
  return z.pipe(written, z.transform(parse)).register(z.globalRegistry, {
    description: `${about} From ${min} to ${max}.`,
    ...(standard !== undefined && { default: standard }),
  });
}

function isBareNumber(input: unknown): boolean {
  return typeof input === 'number' || (typeof input === 'string' && /^\d+$/.test(input));
}

const LONGEST_QUOTE = 40;

/** Describes a value of the file in words. With `secret` it names only the type of the value, never its content. */
function describeFound(value: unknown, { secret = false } = {}): string {
  if (value === null || value === undefined) return 'no value';
  if (Array.isArray(value)) return 'a list';
  switch (typeof value) {
    case 'object':
      return 'a map';
    case 'string':
      if (secret) return 'a string';
      return value.length > LONGEST_QUOTE ? 'a long string' : `the string ${JSON.stringify(value)}`;
    case 'number':
    case 'bigint':
      return secret ? 'a number' : `the number ${value}`;
    case 'boolean':
      return secret ? 'true or false' : `${value}`;
    default:
      return 'a value of another type';
  }
}

/**
 * The zod parameters that make the error of a wrong value read `found X; expected Y`.
 *
 * The error quotes the value only if `quote` is set, because command lines and variables may contain secrets.
 */
export function expects(expected: string, { quote = false } = {}) {
  return {
    error: ({ code, input }: { code?: string | undefined; input?: unknown }): string | undefined =>
      // These two issues concern keys; `toProblems` writes their messages.
      code === 'unrecognized_keys' || code === 'invalid_key'
        ? undefined
        : `found ${describeFound(input, { secret: !quote })}; expected ${expected}`,
  };
}
