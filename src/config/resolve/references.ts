import { join } from 'node:path';
import { printable, quotedPath } from '../../wire/json/printable.js';
import type { WrittenServer } from '../file/check-file.js';
import { ServerFault } from '../file/config-error.js';

export type Variables = Readonly<Record<string, string | undefined>>;

// Alternatives in this order: the escape `$${`, a secret, a variable of the environment or of a user, and any other `${`,
// which is an error.
const REFERENCE =
  /\$(?<escaped>\$\{)|\$\{secret:(?<secret>[A-Za-z_][A-Za-z0-9_]*)\}|\$\{(?<name>(?:user:)?[A-Za-z_][A-Za-z0-9_]*)(?::-(?<fallback>[^{}]*))?\}|\$\{/g;

/** Begins the names of variables whose values belong to a user of the HTTP server. */
const OF_USER = 'user:';

/** The name of a user's variable without the prefix `user:`; `undefined` for a variable of the environment. */
export function userVariable(name: string): string | undefined {
  return name.startsWith(OF_USER) ? name.slice(OF_USER.length) : undefined;
}

/** The key of the server whose token a variable of `env` gets; `undefined` for any other value. */
export function loginReference(value: string): string | undefined {
  return /^\$\{login:([A-Za-z0-9_-]+)\}$/.exec(value)?.[1];
}

/** The user whose variables `${user:NAME}` refers to. Both members are absent if there is no user. */
export interface Owner {
  readonly userName?: string | undefined;
  /** Whether the user is a machine with a token of its own. */
  readonly isMachine?: boolean | undefined;
}

/** The variables of a user, by the names that stand in references: with the prefix `user:`. */
export function asUserVariables(values: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [OF_USER + name, value]));
}

/** The value of a secret, or the reason why it is missing: a sentence without a period, and the next step. */
export type Secret = { readonly value: string } | { readonly fault: string; readonly hint: string };

/** Returns the value of a secret. Throws a `ServerFault` if there is no value. */
type ReadSecret = (name: string) => string;

/**
 * Replaces `${NAME}` and `${NAME:-default}` with the values of the variables, `${secret:NAME}` with the value of the secret,
 * `${user:NAME}` with the value for the user, and `$${` with a literal `${`. `owner` is the user, for the message.
 *
 * As in a shell, the default also replaces an empty value. Values are not expanded again. Throws a `ServerFault` for
 * a variable that is not set and has no default, and for a `${` without a valid reference.
 */
export function expand(text: string, variables: Variables, readSecret: ReadSecret, owner: Owner = {}): string {
  return text.replace(REFERENCE, (...match) => {
    const { escaped, secret, name, fallback } = match.at(-1) as Record<string, string | undefined>;
    if (escaped !== undefined) return escaped;
    if (secret !== undefined) return readSecret(secret);
    if (name === undefined) {
      if (/\$\{login:/.test(text))
        throw new ServerFault(
          `\${login:SERVER} is not the whole value of a variable in \`env\` of a server with a program`,
          `write it alone, such as \`env: { TOKEN: "\${login:SERVER}" }\`; a token is for no other place`,
        );
      throw new ServerFault(
        `"\${" does not start a valid reference; expected \${NAME}, \${NAME:-default}, \${secret:NAME} or \${user:NAME}`,
        `write "$\${" for a literal "\${"; a default cannot contain { or }`,
      );
    }
    const value = variableIn(name, variables);
    if (fallback !== undefined) return value || fallback;
    if (value !== undefined) return value;
    const ofUser = userVariable(name);
    if (ofUser !== undefined) throw lackOf(ofUser, owner);
    throw new ServerFault(
      `the environment variable ${name} is not set`,
      `set ${name} in the environment that starts Trunkline or in an \`envFile\`, or give it a default: \${${name}:-default}`,
    );
  });
}

function lackOf(variable: string, { userName, isMachine }: Owner): ServerFault {
  const shown = printable(userName ?? '');
  const message = `the variable ${variable} of the ${isMachine ? 'machine' : 'user'}${shown && ` ${shown}`} is not set`;
  const command = `trunkline user set ${shown ? quotedPath(shown, process.platform) : 'USER'} ${variable}`;
  const hint = shown
    ? `run \`${command}${isMachine ? ' --machine' : ''}\` where the gateway runs, or give it a default: \${user:${variable}:-default}`
    : `run \`${command}\` for each user. Commands and clients over stdio have no user, and need a default: \${user:${variable}:-default}`;
  return new ServerFault(message, hint, [], shown ? 'one' : 'any');
}

/**
 * A command line of a shell, with `${` for each `$${`. Throws a `ServerFault` for a reference, because the shell would run the value as a
 * part of the command.
 */
export function commandLine(text: string): string {
  return text.replace(REFERENCE, (reference, ...match) => {
    const { escaped } = match.at(-1) as Record<string, string | undefined>;
    if (escaped !== undefined) return escaped;
    throw new ServerFault(
      `the command is run by a shell, and the value of ${reference} would become a part of it`,
      `give the value to the command as a variable: \`env: { VALUE: "${reference}" }\` in this entry, and $VALUE in the command`,
    );
  });
}

/**
 * The names of the variables that these texts refer to, sorted, each once. With `areNeeded`, references with a default do not
 * count.
 */
export function variableNamesIn(texts: readonly string[], areNeeded = false): string[] {
  const found = texts.flatMap((text) => [...text.matchAll(REFERENCE)].map(({ groups }) => groups ?? {}));
  const names = found.flatMap(({ name, fallback }) => (areNeeded && fallback !== undefined ? [] : (name ?? [])));
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

/** The members of an entry in which texts may refer to variables, besides the values of parameters in `tools`. */
const REFERRING = [
  ...['args', 'env', 'command', 'package', 'cwd', 'url', 'headers', 'proxy', 'caFile', 'oauth', 'rules', 'auth'],
] as readonly (keyof WrittenServer)[];

/** The two keys of a tool in `params` below which values of its parameters stand. */
const VALUE_KEYS = ['set', 'default'] as const;

/**
 * Copies an entry, and replaces each text that may refer to variables by the result of `map`. The path leads from the entry to the
 * text, or to the parameter that has the text in its value.
 */
export function mapTexts<Entry extends Partial<WrittenServer>>(
  entry: Entry,
  map: (text: string, path: readonly PropertyKey[]) => string,
): Entry {
  const { tools } = entry;
  const members = REFERRING.filter((name) => entry[name] !== undefined).map((name) => {
    return [name, mapIn(entry[name], [name], map)];
  });
  const params = Object.entries(tools?.params ?? {}).map(([tool, shapes]) => {
    const values = VALUE_KEYS.filter((key) => shapes[key] !== undefined).map((key) => {
      const of = Object.entries(shapes[key] ?? {}).map(([param, value]) => {
        return [param, mapIn(value, [], (text) => map(text, ['tools', 'params', tool, key, param]))];
      });
      return [key, Object.fromEntries(of)];
    });
    return [tool, { ...shapes, ...Object.fromEntries(values) }];
  });
  const shaped = tools?.params && { tools: { ...tools, params: Object.fromEntries(params) } };
  return { ...entry, ...Object.fromEntries(members), ...shaped };
}

function mapIn(value: unknown, path: readonly PropertyKey[], map: Parameters<typeof mapTexts>[1]): unknown {
  if (typeof value === 'string') return map(value, path);
  if (Array.isArray(value)) return value.map((each, at) => mapIn(each, [...path, at], map));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, mapIn(each, [...path, name], map)]));
}

/** All texts of an entry that may contain references. */
export function textsOfEntry(entry: Partial<WrittenServer>): string[] {
  const found: string[] = [];
  mapTexts(entry, (text) => {
    found.push(text);
    return text;
  });
  return found;
}

/**
 * The values to remove from logs even if they do not look like secrets: `secret:` references, variables of users, and
 * variables in parameters.
 */
export function secretValuesOf(
  entry: WrittenServer,
  environment: Variables,
  secrets: ReadonlyMap<string, Secret> = new Map(),
): Record<string, string> {
  const ofUser = variableNamesIn(textsOfEntry(entry)).filter((name) => userVariable(name) !== undefined);
  const ofParams = [
    ...ofUser,
    ...variableNamesIn(textsOfEntry(entry.tools === undefined ? {} : { tools: entry.tools })),
  ].map((name) => [name, variableIn(name, environment)] as const);
  const stored = secretNamesIn(textsOfEntry(entry)).map((name) => {
    const secret = secrets.get(name);
    return [`secret:${name}`, secret !== undefined && 'value' in secret ? secret.value : undefined] as const;
  });
  return Object.fromEntries(
    [...ofParams, ...stored].flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}

/** Returns a function that looks up secrets. It throws a `ServerFault` for a secret that could not be read. */
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

/** A path whose leading `~` is replaced by the home folder. */
export function expandHome(path: string, home: string): string {
  return /^~(?=$|[\\/])/.test(path) ? join(home, path.slice(1)) : path;
}
