import { resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { type ReadRules, readRegularFileSync } from '../../host/files/whole-file.js';
import type { WrittenServer } from '../file/check-file.js';
import { ServerFault } from '../file/config-error.js';
import { expandHome, textsOfEntry, type Variables, variableIn, variableNamesIn } from './references.js';

/** Allows symbolic links, because dotfile managers put them in place of files. `maxBytes` is far above the size of real files. */
export const ENV_FILE_RULES: ReadRules = { maxBytes: 1024 * 1024, followsLinks: true, isGuarded: true };

/**
 * The environment files of one configuration. Each file is read once, so that all servers and clients get the same values
 * until the configuration is read again.
 */
export class EnvFiles {
  readonly #folder: string;
  readonly #read = new Map<string, ReadEnvFile>();

  /** `folder` is the folder of the configuration file. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Warnings about accepted files that other users can read. */
  get warnings(): string[] {
    return [...this.#read.values()].flatMap(({ warnings }) => warnings);
  }

  /** The absolute paths of the files that the entries needed so far, whether they could be read or not. */
  get paths(): string[] {
    return [...this.#read.keys()];
  }

  /**
   * The variables to which an entry refers, as in `${NAME}`. A value in the environment file overrides the environment, so that
   * a server does not depend on the program that starts Trunkline. The file is read only if the entry refers to a variable.
   */
  variablesOf(entry: WrittenServer, environment: Variables, home: string): ReferredVariables {
    const { envFile } = entry;
    const names = variableNamesIn(textsOfEntry(entry));
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

/** The variables to which an entry refers, as in `${NAME}`. */
interface ReferredVariables {
  /**
   * The names of the variables that the file does not set. Their values come from the environment, if it has them, and may
   * differ from client to client. Sorted.
   */
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

interface ReadEnvFile {
  readonly values: Variables;
  readonly warnings: readonly string[];
  /** The reason why the file cannot be used. `values` is empty then. */
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

/** The variables in the text of an environment file, which may begin with a byte order mark. */
export function valuesInEnv(text: string): Variables {
  return parseEnv(text.replace(/^\ufeff/, ''));
}

// Lines are checked here, because Node's parser silently skips lines that it does not understand.
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
