const LONGEST_QUOTE = 40;

/** What stands in the file, in words. With `secret` only its kind is told, never what it says. */
export function describeFound(value: unknown, { secret = false } = {}): string {
  if (value === null || value === undefined) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  switch (typeof value) {
    case 'object':
      return 'a map';
    case 'string':
      if (secret) return 'a text';
      return value.length > LONGEST_QUOTE ? 'a long text' : `the text ${JSON.stringify(value)}`;
    case 'number':
    case 'bigint':
      return secret ? 'a number' : `the number ${value}`;
    case 'boolean':
      return secret ? 'true or false' : `${value}`;
    default:
      return 'something else';
  }
}

/**
 * The zod parameters that make a wrong value read `found X; expected Y`.
 *
 * Values are not told unless `quote` allows it: what a server is started with may be a secret.
 */
export function expects(expected: string, { quote = false } = {}) {
  return {
    error: ({ code, input }: { code?: string | undefined; input?: unknown }): string | undefined =>
      // These two speak of keys; `toProblems` words them.
      code === 'unrecognized_keys' || code === 'invalid_key'
        ? undefined
        : `found ${describeFound(input, { secret: !quote })}; expected ${expected}`,
  };
}
