import { realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseEnv } from 'node:util';
import { createFileSync, readRegularFileSync, replaceFileSync } from '../../host/files/whole-file.js';
import { ConfigError } from '../file/config-error.js';
import { ENV_FILE_RULES, envFilePath, mistakeInEnv, valuesInEnv } from '../resolve/env-file.js';
import type { Variables } from '../resolve/references.js';
import { cannotWrite, changedMeanwhile, sharedEnvFile } from './edit-config.js';

const ENV_FILE_NAME = 'trunkline.env';

/** The environment file of a configuration, and values to append. Only `save` writes; the present content stays. */
export class EnvDraft {
  /** Absolute. */
  readonly file: string;
  /** The `envFile` of an entry that refers to variables in this file; undefined if `defaults` names the file already. */
  readonly envFile: string | undefined;
  readonly #before: string | undefined;
  readonly #values: Map<string, string>;
  readonly #added: string[] = [];

  private constructor(file: string, envFile: string | undefined, text: string | undefined, values: Variables) {
    this.file = file;
    this.envFile = envFile;
    this.#before = text;
    this.#values = new Map(Object.entries(values).map(([name, value]) => [name, value ?? '']));
  }

  /** Opens the file of `defaults.envFile`, or `trunkline.env`. Throws a `ConfigError` if the file cannot be used. */
  static open(configFile: string, configText: string | undefined, home: string): EnvDraft {
    const folder = dirname(configFile);
    const shared = configText === undefined ? undefined : sharedEnvFile(configText);
    const file = shared === undefined ? join(folder, ENV_FILE_NAME) : envFilePath(shared, folder, home);
    const text = readText(file);
    const mistake = text === undefined ? undefined : mistakeInEnv(text);
    if (mistake !== undefined) {
      throw new ConfigError('config-invalid', file, [{ message: mistake.message, line: mistake.line }]);
    }
    return new EnvDraft(file, shared === undefined ? ENV_FILE_NAME : undefined, text, valuesInEnv(text ?? ''));
  }

  get added(): readonly string[] {
    return this.#added;
  }

  get values(): Readonly<Record<string, string>> {
    return Object.fromEntries(this.#values);
  }

  /**
   * Returns a name for the value: the wanted name, or the wanted name with a number if that has another value. Adds the value,
   * unless the name has it already.
   */
  put(wanted: string, value: string): string {
    for (let count = 1; ; count += 1) {
      const name = count === 1 ? wanted : `${wanted}_${count}`;
      const known = this.#values.get(name);
      if (known === value) return name;
      if (known !== undefined) continue;
      this.#values.set(name, value);
      this.#added.push(name);
      return name;
    }
  }

  /** The text with the added values. Throws an `Error` for a value that no kind of quotes can hold. */
  get text(): string {
    const before = this.#before ?? '';
    const start = before === '' || before.endsWith('\n') ? before : `${before}\n`;
    return start + this.#added.map((name) => `${name}=${quoted(this.#values.get(name) ?? '')}\n`).join('');
  }

  /** Writes the file, readable by its owner alone, if a value was added. A symbolic link stays a link. Throws a `ConfigError`. */
  save(): void {
    if (this.#added.length === 0) return;
    const { text, file } = this;
    if (readText(file) !== this.#before) throw changedMeanwhile(file);
    try {
      if (this.#before !== undefined) replaceFileSync(realpathSync(file), text, { flush: true });
      else if (!createFileSync(file, text, { flush: true })) throw changedMeanwhile(file);
    } catch (cause) {
      throw cause instanceof ConfigError ? cause : cannotWrite(file, cause);
    }
  }
}

/** Whether an environment file can hold this value. */
export function canBeInEnv(value: string): boolean {
  return quotedOrNothing(value) !== undefined;
}

function quoted(value: string): string {
  const text = quotedOrNothing(value);
  if (text === undefined) throw new Error('a value has all kinds of quotes');
  return text;
}

function quotedOrNothing(value: string): string | undefined {
  return [value, `'${value}'`, `"${value}"`, `\`${value}\``].find((text) => {
    return mistakeInEnv(`A=${text}`) === undefined && parseEnv(`A=${text}\nB=`).A === value;
  });
}

function readText(file: string): string | undefined {
  const found = readRegularFileSync(file, ENV_FILE_RULES);
  if (found.kind === 'absent') return undefined;
  if (found.kind === 'read') return found.bytes.toString();
  const problem = {
    message: `the environment file cannot be used: ${found.reason}`,
    hint: found.fault === 'exposed' ? `make it yours alone: chmod 600 ${file}` : 'correct or remove it',
  };
  throw new ConfigError('config-unreadable', file, [problem], { cause: found.cause });
}
