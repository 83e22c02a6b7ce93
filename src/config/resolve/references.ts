import type { ParamShapes, ToolShapes } from '../../gateway/catalog/tool-shaping.js';
import type { CheckedEntry } from '../file/checked-file.js';
import { faultsAt, ServerFault } from '../file/config-error.js';

export type Variables = Readonly<Record<string, string | undefined>>;

// Alternatives in this order: the escape `$${`, a secret, a variable, and any other `${`, which is an error.
const REFERENCE =
  /\$(?<escaped>\$\{)|\$\{secret:(?<secret>[A-Za-z_][A-Za-z0-9_]*)\}|\$\{(?<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?<fallback>[^{}]*))?\}|\$\{/g;

/** A secret, or why there is none: a sentence without a period, and the next step. */
export type Secret = { readonly value: string } | { readonly fault: string; readonly hint: string };

/** The value of a secret. Throws a `ServerFault` if there is none. */
type ReadSecret = (name: string) => string;

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

/** All texts of an entry that may refer to variables and secrets. */
export function textsOf({
  args = [],
  command = '',
  package: used = '',
  cwd = '',
  env = {},
  tools,
}: CheckedEntry): string[] {
  return [command, used, cwd, ...args, ...Object.values(env), ...textsIn(tools)];
}

/**
 * The values in an entry that are secrets whatever they look like: its secrets, and the variables in values of parameters.
 */
export function secretValuesOf(
  entry: CheckedEntry,
  environment: Variables,
  secrets: ReadonlyMap<string, Secret> = new Map(),
): Record<string, string> {
  const ofParams = namesIn(textsIn(entry.tools)).map((name) => [name, variableIn(name, environment)] as const);
  const stored = secretNamesIn(textsOf(entry)).map((name) => {
    const secret = secrets.get(name);
    return [`secret:${name}`, secret !== undefined && 'value' in secret ? secret.value : undefined] as const;
  });
  return Object.fromEntries(
    [...ofParams, ...stored].flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}

/** Looks up the secrets that were read. Its result throws a `ServerFault` for one that could not be read. */
export function secretReader(secrets: ReadonlyMap<string, Secret> = new Map()): ReadSecret {
  return (name) => {
    const secret = secrets.get(name) ?? {
      fault: `the secret ${name} was not read`,
      hint: 'save the configuration again',
    };
    if ('fault' in secret) throw new ServerFault(secret.fault, secret.hint);
    return secret.value;
  };
}

/** The two places of a parameter's value. */
const VALUE_KEYS = ['set', 'default'] as const;

/** All texts in the values of parameters. */
function textsIn({ params = {} }: ToolShapes = {}): string[] {
  return Object.values(params).flatMap((shapes) =>
    VALUE_KEYS.flatMap((key) => Object.values(shapes[key] ?? {})).flatMap(texts),
  );
}

/** The shapes of a server's tools with each text in a value replaced. `undefined` if nothing is shaped. */
export function resolveShapes(
  { rename, describe, params }: ToolShapes = {},
  expand: (text: string) => string,
): ToolShapes | undefined {
  if (rename === undefined && describe === undefined && params === undefined) return undefined;
  const resolved = Object.entries(params ?? {}).map(([tool, shapes]): [string, ParamShapes] => {
    const values = VALUE_KEYS.flatMap((key) => {
      const of = shapes[key];
      if (of === undefined) return [];
      const entries = Object.entries(of).map(([param, value]) => [
        param,
        faultsAt(['tools', 'params', tool, key, param], () => mapTexts(value, expand)),
      ]);
      return [[key, Object.fromEntries(entries)]];
    });
    return [tool, { ...shapes, ...Object.fromEntries(values) }];
  });
  return {
    ...(rename && { rename }),
    ...(describe && { describe }),
    ...(params && { params: Object.fromEntries(resolved) }),
  };
}

function texts(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(texts) : [];
}

function mapTexts(value: unknown, map: (text: string) => string): unknown {
  if (typeof value === 'string') return map(value);
  if (Array.isArray(value)) return value.map((each) => mapTexts(each, map));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, mapTexts(each, map)]));
}
