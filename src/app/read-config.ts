import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto';
import { statSync } from 'node:fs';
import { homedir } from 'node:os';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import type { CheckedFile } from '../config/file/checked-file.js';
import { ConfigError } from '../config/file/config-error.js';
import { ConfigLocation, candidateFiles, checksumOf, readConfigText, stateOf } from '../config/file/find-config.js';
import type { Config, Origin } from '../config/resolve/config.js';
import { secretNamesIn, textsOf } from '../config/resolve/references.js';
import { type LoadOptions, resolveConfig } from '../config/resolve/resolve-config.js';
import { errorCode } from '../errors/error-text.js';
import { UsageError } from '../errors/usage-error.js';
import type { FileWatch } from '../files/watch-files.js';
import { didYouMean, suggest } from '../json/suggest.js';
import { createLogger, type Logger } from '../observe/logger.js';
import { KnownSecrets } from '../observe/redact.js';
import { installedPackages } from '../packages/package-store.js';
import { serverNode } from '../process/environment.js';
import type { CacheFolder } from '../state/cache-folder.js';
import { packageFolders, secretFile } from '../state/user-files.js';
import { OWN_FOLDER, VERSION } from '../version.js';
import type { Composition } from './compose.js';

/** Finds and reads the configuration, as `readConfigFile` does. Throws a `ConfigError` when there is none. */
export async function readConfig(options: GlobalOptions, ...rest: ReadOptions): Promise<Config> {
  return await readConfigFile(new ConfigLocation(options).file, ...rest);
}

type ReadOptions = [checkedFiles?: ConfigCache | undefined, origin?: Origin | undefined];

/**
 * Reads this configuration file. Throws a `ConfigError` when it is missing or has mistakes. Without an origin, the servers
 * get the variables and the working folder of this process.
 */
export async function readConfigFile(file: string, ...[checkedFiles, origin]: ReadOptions): Promise<Config> {
  // A change of the file after this line makes the next run check the file again.
  const state = stateOf(file);
  const text = readConfigText(file);
  const checked = checkedFiles?.find(file, text) ?? (await check(file, text, checkedFiles));
  const config = await resolved(file, checked, origin);
  return state === undefined ? config : { ...config, stamp: { state, checksum: checksumOf(text) } };
}

/** Checks a file whose result is not cached. Only this step needs the YAML library and the schema. */
async function check(file: string, text: string, cache: ConfigCache | undefined): Promise<CheckedFile> {
  const { checkFile } = await import('../config/file/check-file.js');
  const checked = checkFile(text, file);
  cache?.put(file, text, checked);
  return checked;
}

/** Resolves a checked file, with the secrets that it refers to. */
async function resolved(file: string, checked: CheckedFile, origin: Origin | undefined): Promise<Config> {
  const secrets = await readSecretsOf(file, checked);
  const store = installedPackages({ configFile: resolve(file), ...packageFolders() });
  const environment = { env: process.env, ...(origin && { origin }), ...(secrets && { secrets }) };
  return resolveConfig(file, checked, { ...environment, nodePath: serverNode().path, ownFolder: OWN_FOLDER, store });
}

async function readSecretsOf(file: string, checked: CheckedFile): Promise<LoadOptions['secrets']> {
  const names = secretNamesIn(checked.servers.flatMap(({ entry }) => textsOf(entry)));
  if (names.length === 0) return undefined;
  const { readSecrets } = await import('../config/resolve/secrets.js');
  return await readSecrets(names, checked, { configFile: resolve(file), secretFile: secretFile(), env: process.env });
}

/** Throws a `UsageError` if the command line names a view that the configuration does not have. */
export function requireView({ gateway, file }: Config, view: string | undefined): void {
  const names = gateway.views.map(({ name }) => name);
  if (view === undefined || view === '' || names.includes(view)) return;
  const meant = suggest(view, names);
  const known =
    names.length === 0 ? `add it below \`views:\` in ${file}` : `the configuration has: ${names.join(', ')}`;
  throw new UsageError(
    `there is no view \`${view}\` in the configuration`,
    meant === undefined ? known : didYouMean(meant),
  );
}

export interface ReloadOptions {
  readonly settings: GlobalOptions;
  readonly composition: Pick<Composition, 'platform' | 'change' | 'refuse'>;
  readonly logger: Logger;
  /** The configuration that was read. Its file is empty when none was found; without a stamp, the file was rejected. */
  readonly read: Pick<Config, 'file' | 'stamp' | 'envFiles'>;
  readonly checkedFiles: ConfigCache | undefined;
  /** Variables and working folder for the servers. The default is those of this process. */
  readonly origin?: Origin;
  /** Called with each configuration that was applied. */
  readonly onApplied?: ((config: Config) => void) | undefined;
}

/** Watching starts after the first answers, because loading the watcher would delay them. */
const BEGIN_AFTER_MS = 1_000;

/**
 * Applies the configuration file whenever it or one of its environment files changes, until the returned function is called.
 * Reports a file with mistakes and changes nothing.
 */
export function reloadOnChange(options: ReloadOptions): () => Promise<void> {
  const { settings, composition, logger, checkedFiles, origin, onApplied } = options;
  const { envFiles, stamp: { state } = {} } = options.read;
  const file = options.read.file === '' ? undefined : options.read.file;
  const { clock } = composition.platform;
  let watching: Promise<FileWatch | undefined> | undefined;
  let isOver = false;

  const stop = async () => {
    isOver = true;
    cancel();
    await (await watching)?.close();
  };
  // Once a file is chosen, it stays the same: another file would be another set of servers.
  let chosen = file;
  const read = () => {
    const rest = [checkedFiles, origin] as const;
    return chosen === undefined ? readConfig(settings, ...rest) : readConfigFile(chosen, ...rest);
  };
  // One read at a time, so that the last state of the file wins.
  let reading = Promise.resolve();
  const reload = () => {
    reading = reading.then(readAgain);
  };
  const readAgain = async () => {
    if (isOver) return;
    const config = await applyFile(read, composition, logger);
    chosen ??= config?.file;
    if (config !== undefined) onApplied?.(config);
    if (config !== undefined) follow(config.envFiles);
    if (config?.gateway.watch !== false) return;
    logger.info('stopped watching the configuration file, because it says `watch: false`');
    void stop();
  };
  const { env, platform } = process;
  const configFiles =
    file === undefined ? candidateFiles({ env, cwd: process.cwd(), home: homedir(), platform }) : [file];
  let watched: readonly string[] = [...configFiles, ...envFiles];
  const follow = (named: readonly string[]) => {
    const files = [...configFiles, ...named];
    if (isDeepStrictEqual(files, watched)) return;
    watched = files;
    watching = watching?.then(async (earlier) => {
      await earlier?.close();
      return await begin();
    });
  };
  const begin = async (): Promise<FileWatch | undefined> => {
    const onError = (err: unknown) =>
      logger.warn({ err }, 'the configuration file cannot be watched; restart Trunkline to apply changes');
    const loaded = await import('../files/watch-files.js').catch(onError);
    if (!loaded) return undefined;
    const watch = loaded.watchFiles({ files: watched, clock, onChange: reload, onError });
    // A file may have changed between the first read and now. Without a change, no secret is read a second time.
    const isSame = () => configFiles.length === watched.length && file !== undefined && stateOf(file) === state;
    void watch.ready.then(() => {
      logger.debug('watching the configuration file');
      if (state === undefined || !isSame()) reload();
    });
    return watch;
  };
  const cancel = clock.schedule(BEGIN_AFTER_MS, () => {
    watching = begin();
  });
  return stop;
}

/** Logs the warnings of a configuration, and why servers cannot run. */
export function logConfig({ warnings, servers }: Config, logger: Logger): void {
  for (const warning of warnings) logger.warn(warning);
  for (const { key, problem } of servers) if (problem !== undefined) logger.error({ server: key, ...problem });
}

/** A configuration that cannot be read for another reason than its mistakes is left for the next start. */
async function readOrKeep(read: () => Promise<Config>, logger: Logger): Promise<Config | undefined> {
  try {
    return await read();
  } catch (err) {
    if (err instanceof ConfigError) throw err;
    // Parts of the program are loaded when they are needed, and may be gone by then.
    logger.error(
      { err },
      'the changed configuration cannot be read, so the previous one stays active; restart Trunkline',
    );
    return undefined;
  }
}

async function applyFile(
  read: () => Promise<Config>,
  composition: ReloadOptions['composition'],
  logger: Logger,
): Promise<Config | undefined> {
  try {
    const config = await readOrKeep(read, logger);
    if (config === undefined) return undefined;
    const { needsRestart, ...changes } = composition.change(config);
    if (changes.isOther) {
      logger.info(changes, 'applied the changed configuration');
      logConfig(config, logger);
      if (needsRestart.length > 0)
        logger.warn({ needsRestart }, 'these settings take effect when Trunkline is restarted');
    }
    return config;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    if (composition.refuse(error.report)) {
      logger.error(
        { code: error.code },
        `the changed configuration file has mistakes, so the previous configuration stays active: ${error.report}`,
      );
    }
    return undefined;
  }
}

export interface ConfigCacheOptions {
  readonly folder: CacheFolder;
  readonly secret: string;
  /** Called when a file is written: it can be read only as long as the secret exists. */
  readonly onCached: () => void;
}

const CIPHER = 'aes-256-gcm';
const NONCE_LENGTH = 12;
const TAG_LENGTH = 16;

/**
 * Caches checked configurations on disk, so that a start with an unchanged configuration file skips the check.
 *
 * A configuration can contain secrets, and its owner can remove them later. So each entry is encrypted under a key that
 * is derived from the text of the file: an entry can be read only by a process that has the same text.
 */
export class ConfigCache {
  readonly #options: ConfigCacheOptions;

  constructor(options: ConfigCacheOptions) {
    this.#options = options;
  }

  find(file: string, text: string): CheckedFile | undefined {
    const sealed = this.#options.folder.read(this.#nameOf(file));
    if (sealed === undefined || sealed.length < NONCE_LENGTH + TAG_LENGTH) return undefined;
    const decipher = createDecipheriv(CIPHER, this.#keyOf(text), sealed.subarray(0, NONCE_LENGTH));
    decipher.setAuthTag(sealed.subarray(NONCE_LENGTH, NONCE_LENGTH + TAG_LENGTH));
    try {
      const opened = [decipher.update(sealed.subarray(NONCE_LENGTH + TAG_LENGTH)), decipher.final()];
      return JSON.parse(Buffer.concat(opened).toString()) as CheckedFile;
    } catch {
      // The text or the version of Trunkline is another one, or the entry is broken: the file is checked again.
      return undefined;
    }
  }

  put(file: string, text: string, checked: CheckedFile): void {
    const nonce = randomBytes(NONCE_LENGTH);
    const cipher = createCipheriv(CIPHER, this.#keyOf(text), nonce);
    const sealed = [cipher.update(JSON.stringify(checked)), cipher.final()];
    this.#options.onCached();
    this.#options.folder.write(this.#nameOf(file), Buffer.concat([nonce, cipher.getAuthTag(), ...sealed]));
  }

  #nameOf(file: string): string {
    return this.#mac(`name of a checked configuration\0${file}`).toString('hex').slice(0, NAME_LENGTH);
  }

  #keyOf(text: string): Buffer {
    return this.#mac(`checked configuration\0${VERSION} ${builtAt()}\0${text}`);
  }

  #mac(text: string): Buffer {
    return createHmac('sha256', this.#options.secret).update(text).digest();
  }
}

const NAME_LENGTH = 32;

/** In a clone of the repository the code changes while the version stays the same. */
function builtAt(): number {
  return statSync(fileURLToPath(import.meta.url)).mtimeMs;
}

/** The options of every command. */
export interface GlobalOptions {
  /** `--config`; the default places are searched when absent. */
  readonly config: string | undefined;
  /** How often `-v` was given. */
  readonly verbosity: number;
  readonly logFile: string | undefined;
  /** The file that all messages are recorded to, and how many bytes it may have. */
  readonly record?: string | undefined;
  readonly recordMax?: number | undefined;
  /** The view of the configuration that the client on stdin, or the command, asks for. */
  readonly view?: string | undefined;
}

/** A logger, and the secrets that it removes from every record. */
export interface OpenLog {
  readonly logger: Logger;
  readonly secrets: KnownSecrets;
}

export function openLog({ verbosity, logFile }: GlobalOptions): OpenLog {
  const secrets = new KnownSecrets();
  const { redact } = secrets;
  if (logFile === undefined) return { logger: createLogger({ verbosity, redact }), secrets };
  try {
    return { logger: createLogger({ verbosity, redact, file: logFile }), secrets };
  } catch (cause) {
    const code = errorCode(cause) ?? 'unknown';
    const reason = code === 'ENXIO' ? 'it is a pipe that nobody reads, or a socket' : code;
    const hint = 'name a file in a folder that you may write to with --log-file FILE';
    throw new UsageError(`the log file ${logFile} cannot be written (${reason})`, hint, { cause });
  }
}
