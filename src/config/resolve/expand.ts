import { ServerFault } from './server-fault.js';

export type Variables = Readonly<Record<string, string | undefined>>;

// Alternatives in this order: the escape `$${`, a secret, a variable, and any other `${`, which is an error.
const REFERENCE =
  /\$(?<escaped>\$\{)|\$\{secret:(?<secret>[A-Za-z_][A-Za-z0-9_]*)\}|\$\{(?<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?<fallback>[^{}]*))?\}|\$\{/g;

/** The value of a secret. Throws a `ServerFault` if there is none. */
export type ReadSecret = (name: string) => string;

/**
 * Replaces `${NAME}` and `${NAME:-default}` with the values of the variables, `${secret:NAME}` with the value of the secret,
 * and `$${` with a literal `${`.
 *
 * As in a shell, the default also replaces an empty value. Values are not expanded again. Throws a `ServerFault` for
 * a variable that is not set and has no default, and for a `${` without a valid reference.
 */
export function expand(text: string, variables: Variables, readSecret: ReadSecret): string {
  return text.replace(REFERENCE, (...match) => {
    const { escaped, secret, name, fallback } = match.at(-1) as Record<string, string | undefined>;
    if (escaped !== undefined) return escaped;
    if (secret !== undefined) return readSecret(secret);
    if (name === undefined) {
      throw new ServerFault(
        `"\${" does not start a valid reference; expected \${NAME}, \${NAME:-default} or \${secret:NAME}`,
        `write "$\${" for a literal "\${"; a default cannot contain { or }`,
      );
    }
    const value = variableIn(name, variables);
    if (fallback !== undefined) return value || fallback;
    if (value !== undefined) return value;
    throw new ServerFault(
      `the environment variable ${name} is not set`,
      `set ${name} in the environment that starts Trunkline or in an \`envFile\`, or give it a default: \${${name}:-default}`,
    );
  });
}

/** The names of the variables that these texts refer to, sorted, each once. */
export function namesIn(texts: readonly string[]): string[] {
  const names = texts.flatMap((text) => [...text.matchAll(REFERENCE)].flatMap(({ groups }) => groups?.name ?? []));
  return [...new Set(names)].sort();
}

/** The names of the secrets that these texts refer to, each once. */
export function secretNamesIn(texts: readonly string[]): string[] {
  return [
    ...new Set(texts.flatMap((text) => [...text.matchAll(REFERENCE)].flatMap(({ groups }) => groups?.secret ?? []))),
  ];
}

/** The value of a variable; `undefined` if it is not set. */
export function variableIn(name: string, variables: Variables): string | undefined {
  return Object.hasOwn(variables, name) ? variables[name] : undefined;
}
