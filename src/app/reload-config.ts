import { homedir } from 'node:os';
import { isDeepStrictEqual } from 'node:util';
import type { CheckedFileCache } from '../config/file/checked-file.js';
import { ConfigError } from '../config/file/config-error.js';
import { candidateFiles, stateOf } from '../config/file/find-config.js';
import type { Config, Origin } from '../config/resolve/config.js';
import type { FileWatch } from '../files/watch-files.js';
import type { Logger } from '../observe/logger.js';
import type { Composition } from './compose.js';
import type { GlobalOptions } from './global-options.js';
import { readConfig, readConfigFile } from './read-config.js';

export interface ReloadOptions {
  readonly settings: GlobalOptions;
  readonly composition: Pick<Composition, 'platform' | 'change' | 'refuse'>;
  readonly logger: Logger;
  /** The file that was read or rejected; undefined when no file was found. */
  readonly file: string | undefined;
  /** The state of the file when it was read; absent if it was rejected. */
  readonly state?: string | undefined;
  /** The environment files that were read then. */
  readonly envFiles?: readonly string[] | undefined;
  readonly checkedFiles: CheckedFileCache | undefined;
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
  const { settings, composition, logger, file, state, envFiles = [], checkedFiles, origin, onApplied } = options;
  const { clock } = composition.platform;
  let watching: Promise<FileWatch | undefined> | undefined;
  let isOver = false;

  const stop = async () => {
    isOver = true;
    cancel();
    await (await watching)?.close();
  };
  // Once a file is chosen, it stays the same: a file in another place would be another set of servers.
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
  const places = file === undefined ? candidates() : [file];
  let watched: readonly string[] = [...places, ...envFiles];
  const follow = (named: readonly string[]) => {
    const files = [...places, ...named];
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
    const isSame = () => places.length === watched.length && file !== undefined && stateOf(file) === state;
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

function candidates(): string[] {
  return candidateFiles({ env: process.env, cwd: process.cwd(), home: homedir(), platform: process.platform });
}
