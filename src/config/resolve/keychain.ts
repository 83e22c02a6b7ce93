import { PRINTED_NOTHING, PROGRAM_NOT_FOUND, runSecretCommand, type SecretOutcome } from './secret-command.js';

/** The keychain of the system, used with the system's own program. Faults are phrases without a value. */
export interface Keychain {
  /** The name for people. */
  readonly title: string;
  read(name: string): Promise<SecretOutcome>;
  /** Returns why the secret could not be stored; `undefined` if it is there now. */
  store(name: string, value: string): Promise<string | undefined>;
  /** Returns why it could not be removed; `undefined` if it is gone. */
  remove(name: string): Promise<string | undefined>;
}

export interface KeychainOptions {
  readonly platform: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly timeoutMs?: number | undefined;
}

/** `undefined` on a system whose keychain has no program that Trunkline could use. */
export function systemKeychain({ platform, ...options }: KeychainOptions): Keychain | undefined {
  const commands = COMMANDS[platform];
  return commands === undefined ? undefined : new ProgramKeychain(commands, options);
}

/** What to run. A value is never an argument, because other users of the machine can read those. */
interface Commands {
  readonly title: string;
  readonly read: (name: string) => readonly string[];
  readonly remove: (name: string) => readonly string[];
  readonly store: (name: string, value: string) => { readonly words: readonly string[]; readonly input: string };
}

const SERVICE = 'trunkline';

const COMMANDS: Readonly<Record<string, Commands>> = {
  // `secret-tool store` reads the value from stdin.
  linux: {
    title: 'Secret Service',
    read: (name) => ['secret-tool', 'lookup', 'service', SERVICE, 'account', name],
    remove: (name) => ['secret-tool', 'clear', 'service', SERVICE, 'account', name],
    store: (name, value) => ({
      words: ['secret-tool', 'store', `--label=Trunkline: ${name}`, 'service', SERVICE, 'account', name],
      input: value,
    }),
  },
  // `security -i` reads whole commands from stdin; the value is in hexadecimal digits, so that nothing has to be quoted.
  darwin: {
    title: 'keychain of macOS',
    read: (name) => ['security', 'find-generic-password', '-s', SERVICE, '-a', name, '-w'],
    remove: (name) => ['security', 'delete-generic-password', '-s', SERVICE, '-a', name],
    store: (name, value) => ({
      words: ['security', '-i'],
      input: `add-generic-password -U -s ${SERVICE} -a ${name} -X ${Buffer.from(value).toString('hex')}\n`,
    }),
  },
};

class ProgramKeychain implements Keychain {
  readonly #commands: Commands;
  readonly #options: Omit<KeychainOptions, 'platform'>;

  constructor(commands: Commands, options: Omit<KeychainOptions, 'platform'>) {
    this.#commands = commands;
    this.#options = options;
  }

  get title(): string {
    return this.#commands.title;
  }

  async read(name: string): Promise<SecretOutcome> {
    const outcome = await this.#run(this.#commands.read(name));
    return 'value' in outcome ? { value: decoded(outcome.value) } : outcome;
  }

  async store(name: string, value: string): Promise<string | undefined> {
    const { words, input } = this.#commands.store(name, encoded(value));
    const stored = await this.#run(words, input);
    // Both programs print nothing if all is well, and `security -i` ends with 0 whatever happened.
    const after = await this.read(name);
    if ('value' in after) return after.value === value ? undefined : 'it has another value afterwards';
    return 'fault' in stored && stored.fault !== PRINTED_NOTHING ? stored.fault : after.fault;
  }

  async remove(name: string): Promise<string | undefined> {
    const outcome = await this.#run(this.#commands.remove(name));
    return 'fault' in outcome && outcome.fault !== PRINTED_NOTHING ? outcome.fault : undefined;
  }

  async #run(words: readonly string[], input?: string): Promise<SecretOutcome> {
    const { cwd, env, timeoutMs } = this.#options;
    const options = { cwd, env, ...(timeoutMs !== undefined && { timeoutMs }), ...(input !== undefined && { input }) };
    const outcome = await runSecretCommand(words, options);
    const isMissing = 'fault' in outcome && outcome.fault === PROGRAM_NOT_FOUND;
    return isMissing ? { fault: `\`${words[0]}\` is not installed` } : outcome;
  }
}

const PREFIX = 'base64:';

/** The program of macOS prints a value in another notation if it is more than one line of ASCII. */
function encoded(value: string): string {
  const isPlain = /^[\x20-\x7e]+$/.test(value) && !value.startsWith(PREFIX);
  return isPlain ? value : PREFIX + Buffer.from(value).toString('base64');
}

function decoded(text: string): string {
  return text.startsWith(PREFIX) ? Buffer.from(text.slice(PREFIX.length), 'base64').toString() : text;
}
