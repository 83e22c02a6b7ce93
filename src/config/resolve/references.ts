import { join, resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { type ReadRules, readRegularFileSync } from '../../files/whole-file.js';
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

/** Allows symbolic links, because dotfile managers put them in place of files. The size is far above that of real files. */
export const ENV_FILE_RULES: ReadRules = { maxBytes: 1024 * 1024, followsLinks: true, isGuarded: true };

/**
 * The environment files of one configuration. Each file is read once, so that all servers and all clients get the same
 * values until the configuration is read again.
 */
export class EnvFiles {
  readonly #folder: string;
  readonly #read = new Map<string, ReadEnvFile>();

  /** `folder` is the folder of the configuration file. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Describes files that are accepted but should be changed, such as a file that other users can read. */
  get warnings(): string[] {
    return [...this.#read.values()].flatMap(({ warnings }) => warnings);
  }

  /** The files that were read, or should have been. */
  get paths(): string[] {
    return [...this.#read.keys()];
  }

  /**
   * The variables that an entry refers to. A value in its environment file comes before that of the environment, so that a
   * server is the same whatever program has started Trunkline. An entry that refers to no variable does not need the file.
   */
  variablesOf(entry: CheckedEntry, environment: Variables, home: string): ReferredVariables {
    const { envFile } = entry;
    const names = namesIn(textsOf(entry));
    const isNeeded = envFile !== undefined && names.length > 0;
    const { values, fault } = isNeeded ? this.#readOnce(envFile, home) : NOTHING_READ;
    const references = names.flatMap((name) => {
      const value = variableIn(name, values) ?? variableIn(name, environment);
      return value === undefined ? [] : [[name, value] as const];
    });
    return {
      variables: names.filter((name) => variableIn(name, values) === undefined),
      references: Object.fromEntries(references),
      ...(fault && { fault }),
    };
  }

  #readOnce(envFile: string, home: string): ReadEnvFile {
    const file = envFilePath(envFile, this.#folder, home);
    const read = this.#read.get(file) ?? readEnvFile(file, envFile);
    this.#read.set(file, read);
    return read;
  }
}

/** Values of the references of an entry. */
interface ReferredVariables {
  /** The names whose values come from the environment, which may differ from client to client. Sorted. */
  readonly variables: readonly string[];
  /** All values, from the file and from the environment. */
  readonly references: Readonly<Record<string, string>>;
  /** The reason why the environment file cannot be used. */
  readonly fault?: ServerFault;
}

/** The absolute path of the file that `envFile` names. */
export function envFilePath(envFile: string, folder: string, home: string): string {
  return resolve(folder, expandHome(envFile, home));
}

/** A path whose leading `~` is replaced by the home folder. */
export function expandHome(path: string, home: string): string {
  return /^~(?=$|[\\/])/.test(path) ? join(home, path.slice(1)) : path;
}

interface ReadEnvFile {
  readonly values: Variables;
  readonly warnings: readonly string[];
  /** The reason why the file cannot be used; it has no values then. */
  readonly fault?: ServerFault;
}

const NOTHING_READ: ReadEnvFile = { values: {}, warnings: [] };

function readEnvFile(file: string, shown: string): ReadEnvFile {
  const faulty = (what: string, hint: string): ReadEnvFile => {
    return { ...NOTHING_READ, fault: new ServerFault(`the environment file ${shown} ${what}`, hint, ['envFile']) };
  };
  const found = readRegularFileSync(file, ENV_FILE_RULES);
  if (found.kind === 'absent') {
    return faulty('does not exist', `create ${file} with lines such as NAME=VALUE, or correct \`envFile\``);
  }
  if (found.kind === 'unusable') {
    const hint =
      found.fault === 'exposed'
        ? `make it yours alone: chmod 600 ${file}. Somebody may have changed it already`
        : `correct \`envFile\`, or the file ${file}`;
    return faulty(`cannot be used: ${found.reason}`, hint);
  }
  const text = found.bytes.toString();
  const mistake = mistakeInEnv(text);
  if (mistake !== undefined) {
    const { line, message } = mistake;
    return faulty(`has a mistake in line ${line}: ${message}`, `correct line ${line} of ${file}`);
  }
  const warning = `${file}: other users can read this environment file; make it yours alone: chmod 600 ${file}`;
  return { values: valuesInEnv(text), warnings: found.isReadableByOthers ? [warning] : [] };
}

/** The variables in the text of an environment file. Editors of Windows begin a file with a mark, which is no part of a name. */
export function valuesInEnv(text: string): Variables {
  return parseEnv(text.replace(/^\ufeff/, ''));
}

// Node's own parser skips every line that it does not understand, and a variable would be missing without a word.
const ASSIGNMENT = /^\s*(?:export\s+)?([^\s=]+)[^\S\n]*=[^\S\n]*/;
const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** The first mistake in the text of an environment file. Lines count from 1; the message never quotes the text. */
export function mistakeInEnv(text: string): { readonly line: number; readonly message: string } | undefined {
  const lines = text.split('\n');
  for (let at = 0; at < lines.length; at += 1) {
    const line = (lines[at] ?? '').trimEnd();
    if (/^\s*(?:#|$)/.test(line)) continue;
    const [start, name = ''] = ASSIGNMENT.exec(line) ?? [];
    if (start === undefined) return { line: at + 1, message: 'expected NAME=VALUE' };
    if (!ENV_NAME.test(name)) {
      return { line: at + 1, message: 'the name may have letters, digits and _ only, and no digit at its start' };
    }
    const quote = line[start.length] ?? '';
    if (!/^["'`]$/.test(quote) || line.indexOf(quote, start.length + 1) >= 0) continue;
    const end = lines.findIndex((other, index) => index > at && other.includes(quote));
    if (end < 0) return { line: at + 1, message: `the quote ${quote} is not closed` };
    at = end;
  }
  return undefined;
}
