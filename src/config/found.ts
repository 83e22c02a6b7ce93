const LONGEST_QUOTE = 40;

/** Describes a value of the file in words. With `secret` it names only the type of the value, never its content. */
export function describeFound(value: unknown, { secret = false } = {}): string {
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
