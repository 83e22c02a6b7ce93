import { ServerFault } from './server-fault.js';

export type Variables = Readonly<Record<string, string | undefined>>;

// Alternatives in this order: the escape `$${`, a complete reference, and any other `${`, which is an error.
const REFERENCE = /\$(?<escaped>\$\{)|\$\{(?<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?<fallback>[^{}]*))?\}|\$\{/g;

/**
 * Replaces `${NAME}` and `${NAME:-default}` with the values of the variables, and `$${` with a literal `${`.
 *
 * As in a shell, the default also replaces an empty value. Values are not expanded again. Throws a `ServerFault` for
 * a variable that is not set and has no default, and for a `${` without a valid reference.
 */
export function expand(text: string, variables: Variables): string {
  return text.replace(REFERENCE, (...match) => {
    const { escaped, name, fallback } = match.at(-1) as Record<string, string | undefined>;
    if (escaped !== undefined) return escaped;
    if (name === undefined) {
      throw new ServerFault(
        `"\${" does not start a valid reference; expected \${NAME} or \${NAME:-default}`,
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

/** The value of a variable; `undefined` if it is not set. */
export function variableIn(name: string, variables: Variables): string | undefined {
  return Object.hasOwn(variables, name) ? variables[name] : undefined;
}
