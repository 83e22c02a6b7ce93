import { homedir } from 'node:os';
import { basename, dirname } from 'node:path';
import { privateFile, readRegularFile, replaceFile } from '../../host/files/whole-file.js';
import { isRecord, parseJson } from '../../wire/json/json-value.js';
import type { CheckedFile } from '../file/check-file.js';
import { expandHome, type Secret, type Variables } from './references.js';

interface ReadSecretsOptions {
  /** The configuration file. */
  readonly configFile: string;
  /** The file with the secrets of this user. */
  readonly secretFile: string;
  readonly env: Variables;
  readonly timeoutMs?: SecretCommandOptions['timeoutMs'];
}

/** Reads secrets from their commands or, without a command, from the secret file or the keychain. Runs each command once. */
export async function readSecrets(
  names: readonly string[],
  { secretCommands }: { readonly secretCommands: CheckedFile['secretCommands'] },
  { configFile, secretFile, env, timeoutMs }: ReadSecretsOptions,
): Promise<ReadonlyMap<string, Secret>> {
  const secrets = new Map<string, Secret>();
  const options = { cwd: dirname(configFile), env, timeoutMs };
  const stored = names.filter((name) => !Object.hasOwn(secretCommands, name));
  const file = stored.length > 0 ? await readSecretFile(secretFile) : undefined;
  const inKeychain = file !== undefined && 'inKeychain' in file ? file.inKeychain : new Set<string>();
  const keychain = systemKeychain(options);
  const run = async (name: string) => {
    const command = secretCommands[name];
    if (command !== undefined) {
      const outcome = await runSecretCommand(command, options);
      secrets.set(name, 'value' in outcome ? outcome : failedSecret(name, outcome.fault));
    } else {
      const found = (await keychain?.read(name)) ?? { fault: 'this system has none that Trunkline can use' };
      secrets.set(name, 'value' in found ? found : lockedSecret(name, found.fault));
    }
  };
  const [first, ...others] = names.filter((name) => Object.hasOwn(secretCommands, name) || inKeychain.has(name));
  for (const name of stored) {
    if (file !== undefined && !inKeychain.has(name)) secrets.set(name, storedSecret(name, file, secretFile));
  }
  // The first command runs before the others, so that a locked password manager or keychain asks its user only once.
  if (first !== undefined) await run(first);
  await Promise.all(others.map(run));
  return secrets;
}

function lockedSecret(name: string, fault: string): Secret {
  return {
    fault: `the secret ${name} cannot be read from the keychain: ${fault}`,
    hint: `unlock the keychain, or store the secret again: \`trunkline secret set ${name}\``,
  };
}

function storedSecret(name: string, file: Awaited<ReturnType<typeof readSecretFile>>, path: string): Secret {
  if ('fault' in file) {
    return {
      fault: `the file ${path} with the secrets cannot be used: ${file.fault}`,
      hint: 'correct or remove the file',
    };
  }
  const value = file.secrets.get(name);
  if (value !== undefined) return { value };
  return {
    fault: `there is no secret ${name}`,
    hint: `store it with \`trunkline secret set ${name}\`, or add a command for it below \`secretCommand:\``,
  };
}

function failedSecret(name: string, fault: string): Secret {
  return {
    fault: `the command of the secret ${name} failed: ${fault}`,
    hint: `run the command below \`secretCommand.${name}\` in a terminal to see why`,
  };
}

interface SecretCommandOptions {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Default: 30 s for each command. */
  readonly timeoutMs?: number | undefined;
  /** Text that the command reads on stdin; empty by default. */
  readonly input?: string | undefined;
}

/** The output of a command, or the reason of its failure: a phrase that quotes nothing of the output. */
type SecretOutcome = { readonly value: string } | { readonly fault: string };

/** Faults that the keychain treats in its own way. */
const PRINTED_NOTHING = 'it printed nothing';
const PROGRAM_NOT_FOUND = 'its program was not found';

/** Timeout of a command, because the user may have to confirm with a fingerprint. All servers wait meanwhile. */
const SECRET_TIMEOUT_MS = 30_000;

/** Size limit of the output, above that of any key or certificate. */
const MAX_OUTPUT_BYTES = 64 * 1024;

/** Runs a command without a shell. Its stdout is the value, without the line break at the end. */
async function runSecretCommand(
  [program = '', ...args]: readonly string[],
  { cwd, env, timeoutMs = SECRET_TIMEOUT_MS, input = '' }: SecretCommandOptions,
): Promise<SecretOutcome> {
  const file = expandHome(program, homedir());
  const { execa } = await import('execa');
  // `execFile` would throw some faults, and runs no `.cmd` on Windows. The command gets a stdin of its own, because the stdin of Trunkline
  // belongs to the client.
  const running = execa(file, args, {
    cwd,
    env,
    input,
    extendEnv: false,
    reject: false,
    stderr: 'ignore',
    windowsHide: true,
    timeout: timeoutMs,
    maxBuffer: MAX_OUTPUT_BYTES,
    killSignal: 'SIGKILL',
  });
  // execa rejects for a command that cannot run if the working folder of this process was removed.
  const ended = await running.catch(() => undefined);
  if (ended === undefined) return { fault: 'it did not run' };
  const { stdout, failed, ...result } = ended;
  if (failed) return { fault: faultOf(result, timeoutMs) };
  return stdout === '' ? { fault: PRINTED_NOTHING } : { value: stdout };
}

interface CommandFault {
  readonly code?: string | undefined;
  readonly exitCode?: number | undefined;
  readonly signal?: string | undefined;
  readonly isMaxBuffer: boolean;
  readonly timedOut: boolean;
}

/** Describes a failure without the message of the error, which quotes command line and output and so may contain secrets. */
function faultOf({ code, exitCode, signal, isMaxBuffer, timedOut }: CommandFault, timeoutMs: number): string {
  if (isMaxBuffer) return `it printed more than ${MAX_OUTPUT_BYTES / 1024} KiB`;
  if (timedOut) return `it took longer than ${timeoutMs / 1000} s`;
  // The exit code of cmd.exe for a command that does not exist.
  if (exitCode === 9009) return PROGRAM_NOT_FOUND;
  if (exitCode !== undefined) return `it ended with exit code ${exitCode}`;
  if (signal !== undefined) return `it was ended by ${signal}`;
  return code === 'ENOENT' ? PROGRAM_NOT_FOUND : `it could not be started (${code ?? 'unknown'})`;
}

/** The keychain of the system. */
export interface Keychain {
  /** The name for people. */
  readonly title: string;
  read(name: string): Promise<SecretOutcome>;
  /** Returns the reason of a failure, or `undefined` on success. */
  store(name: string, value: string): Promise<string | undefined>;
  /** Returns the reason of a failure, or `undefined` on success. */
  remove(name: string): Promise<string | undefined>;
}

interface KeychainOptions extends SecretCommandOptions {
  /** The program of the keychain, for tests. */
  readonly program?: string;
}

/** The keychain of the platform; `undefined` if Trunkline knows no program for it. */
export function systemKeychain(options: KeychainOptions, platform: string = process.platform): Keychain | undefined {
  const commands = COMMANDS[platform];
  return commands && new SystemKeychain(commands, options);
}

/** A keychain that is used through the system's own program. Faults are phrases without a value. */
class SystemKeychain implements Keychain {
  readonly title: string;
  readonly #commands: Commands;
  readonly #program: string;
  readonly #options: SecretCommandOptions;

  constructor(commands: Commands, { program = commands.program, ...options }: KeychainOptions) {
    this.title = commands.title;
    this.#commands = commands;
    this.#program = program;
    this.#options = options;
  }

  async read(name: string): Promise<SecretOutcome> {
    const outcome = await this.#run(this.#commands.read(name));
    return 'value' in outcome ? { value: decoded(outcome.value) } : outcome;
  }

  async store(name: string, value: string): Promise<string | undefined> {
    const { args, input } = this.#commands.store(name, encoded(value));
    const { maxLineBytes = Number.POSITIVE_INFINITY } = this.#commands;
    if (Buffer.byteLength(input) > maxLineBytes)
      return `it is too long for \`${basename(this.#program)}\`, which cuts a line after ${maxLineBytes} bytes`;
    const stored = await this.#run(args, input);
    // Read back, because both programs print nothing on success, and `security -i` ends with 0 even on failure.
    const after = await this.read(name);
    if ('value' in after) return after.value === value ? undefined : 'it has another value afterwards';
    return 'fault' in stored && stored.fault !== PRINTED_NOTHING ? stored.fault : after.fault;
  }

  async remove(name: string): Promise<string | undefined> {
    const outcome = await this.#run(this.#commands.remove(name));
    return 'fault' in outcome && outcome.fault !== PRINTED_NOTHING ? outcome.fault : undefined;
  }

  async #run(args: readonly string[], input?: string): Promise<SecretOutcome> {
    const outcome = await runSecretCommand([this.#program, ...args], { ...this.#options, input });
    const isMissing = 'fault' in outcome && outcome.fault === PROGRAM_NOT_FOUND;
    return isMissing ? { fault: `\`${basename(this.#program)}\` is not installed` } : outcome;
  }
}

/** The program of a keychain, and its arguments. Values are passed on stdin, because other users of the machine can read arguments. */
interface Commands {
  readonly title: string;
  /** Its path where the system has a fixed one, because a client may have started Trunkline without the folders of the system in PATH. */
  readonly program: string;
  readonly read: (name: string) => readonly string[];
  readonly remove: (name: string) => readonly string[];
  readonly store: (name: string, value: string) => { readonly args: readonly string[]; readonly input: string };
  /** Longest input of `store`, in bytes. The program would store the beginning of a longer one. */
  readonly maxLineBytes?: number;
}

const SERVICE = 'trunkline';

const COMMANDS: Readonly<Record<string, Commands>> = {
  // `secret-tool store` reads the value from stdin.
  linux: {
    title: 'Secret Service',
    program: 'secret-tool',
    read: (name) => ['lookup', 'service', SERVICE, 'account', name],
    remove: (name) => ['clear', 'service', SERVICE, 'account', name],
    store: (name, value) => ({
      args: ['store', `--label=Trunkline: ${name}`, 'service', SERVICE, 'account', name],
      input: value,
    }),
  },
  // `security -i` reads whole commands from stdin. The value is hexadecimal, so that it needs no quotes.
  darwin: {
    title: 'keychain of macOS',
    program: '/usr/bin/security',
    maxLineBytes: 4_095,
    read: (name) => ['find-generic-password', '-s', SERVICE, '-a', name, '-w'],
    remove: (name) => ['delete-generic-password', '-s', SERVICE, '-a', name],
    store: (name, value) => ({
      args: ['-i'],
      input: `add-generic-password -U -s ${SERVICE} -a ${name} -X ${Buffer.from(value).toString('hex')}\n`,
    }),
  },
};

const PREFIX = 'base64:';

/** Encodes a value with other characters than printable ASCII, which `security` on macOS would print in another notation. */
function encoded(value: string): string {
  const isPlain = /^[\x20-\x7e]+$/.test(value) && !value.startsWith(PREFIX);
  return isPlain ? value : PREFIX + Buffer.from(value).toString('base64');
}

function decoded(text: string): string {
  return text.startsWith(PREFIX) ? Buffer.from(text.slice(PREFIX.length), 'base64').toString() : text;
}

/** Size limit of the secret file: enough for hundreds of keys and certificates. */
const MAX_FILE_BYTES = 1024 * 1024;

/** The secrets of this user, or the reason why they cannot be read: a phrase without the value of a secret. */
export type SecretsOfUser = StoredSecrets | { readonly fault: string };

export interface StoredSecrets {
  readonly secrets: ReadonlyMap<string, string>;
  /** The names of the secrets whose values are in the keychain of the system. */
  readonly inKeychain: ReadonlySet<string>;
}

/** Reads the secret file, which must be private. A missing file has no secrets. */
export async function readSecretFile(file: string): Promise<SecretsOfUser> {
  const found = await readRegularFile(file, privateFile(MAX_FILE_BYTES));
  if (found.kind === 'absent') return { secrets: new Map(), inKeychain: new Set() };
  if (found.kind === 'unusable') return { fault: found.reason };
  const content = parseJson(new TextDecoder().decode(found.bytes));
  if (!isRecord(content)) return { fault: 'it is damaged' };
  const entries = Object.entries(content).filter((entry): entry is [string, string] => typeof entry[1] === 'string');
  const elsewhere = Object.entries(content).filter(([, entry]) => isRecord(entry) && entry.keychain === true);
  return { secrets: new Map(entries), inKeychain: new Set(elsewhere.map(([name]) => name)) };
}

/** Writes all secrets to the file, in the order of their names. */
export async function writeSecretFile(file: string, { secrets, inKeychain }: StoredSecrets): Promise<void> {
  const elsewhere = [...inKeychain].map((name) => [name, { keychain: true }] as const);
  const sorted = [...secrets, ...elsewhere].sort(([one], [other]) => (one < other ? -1 : 1));
  await replaceFile(file, `${JSON.stringify(Object.fromEntries(sorted), undefined, 2)}\n`, { flush: true });
}
