import { homedir } from 'node:os';
import type { Config } from '../config/config.js';
import { ConfigError } from '../config/config-error.js';
import { candidateFiles } from '../config/find-config.js';
import type { FileWatch } from '../config/watch.js';
import type { Logger } from '../observe/logger.js';
import type { Composition } from './compose.js';
import type { GlobalOptions } from './global-options.js';
import { type CheckedFiles, readConfig, readConfigFile } from './read-config.js';

export interface ReloadOptions {
  readonly settings: GlobalOptions;
  readonly composition: Composition;
  readonly logger: Logger;
  /** The file that was read, or that could not be; not known when none was found. */
  readonly file: string | undefined;
  /** What files said when they were checked before. */
  readonly checkedFiles: CheckedFiles | undefined;
}

/** Nobody edits the file while a client waits for its first answers. */
const BEGIN_AFTER_MS = 1_000;

/**
 * Takes over what the configuration file says whenever it changes, until the function that is returned is called. A
 * file that cannot be used changes nothing.
 */
export function reloadOnChange(options: ReloadOptions): () => Promise<void> {
  const { settings, composition, logger, file, checkedFiles } = options;
  const { clock } = composition.platform;
  let watching: Promise<FileWatch> | undefined;
  let isOver = false;

  const stop = async () => {
    isOver = true;
    cancel();
    await (await watching)?.close();
  };
  // Should it vanish, another one that is found in its place would be another set of servers.
  let chosen = file;
  const read = () => (chosen === undefined ? readConfig(settings, checkedFiles) : readConfigFile(chosen, checkedFiles));
  // One at a time, so that the last state of the file is the one in force.
  let reading = Promise.resolve();
  const reload = () => {
    reading = reading.then(readAnew);
  };
  const readAnew = async () => {
    if (isOver) return;
    const config = await takeOver(read, composition, logger);
    chosen ??= config?.file;
    if (config?.gateway.watch !== false) return;
    logger.info('changes of the configuration file are not followed any more: it says `watch: false`');
    void stop();
  };
  const begin = async () => {
    const { watchFiles } = await import('../config/watch.js');
    const onError = (err: unknown) => logger.warn({ err }, 'changes of the configuration file may go unnoticed');
    const watch = watchFiles({ files: file === undefined ? candidates() : [file], clock, onChange: reload, onError });
    // It may have changed since it was read.
    void watch.ready.then(reload);
    return watch;
  };
  const cancel = clock.schedule(BEGIN_AFTER_MS, () => {
    watching = begin();
  });
  return stop;
}

/** Says what a person should know of a configuration that can be used. */
export function logConfig({ warnings, servers }: Config, logger: Logger): void {
  for (const warning of warnings) logger.warn(warning);
  for (const { key, problem } of servers) if (problem !== undefined) logger.error({ server: key, ...problem });
}

async function takeOver(
  read: () => Promise<Config>,
  composition: Composition,
  logger: Logger,
): Promise<Config | undefined> {
  try {
    const config = await read();
    const { kept, needsRestart, ...changes } = composition.change(config);
    if (changes.isOther) {
      logger.info({ ...changes, kept }, 'another configuration is in force');
      logConfig(config, logger);
      if (needsRestart.length > 0) logger.warn({ needsRestart }, 'in force when Trunkline is started again');
    }
    return config;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    if (composition.refuse(error.report)) {
      logger.error({ code: error.code }, `the configuration file cannot be used, and changes nothing: ${error.report}`);
    }
    return undefined;
  }
}

function candidates(): string[] {
  return candidateFiles({ env: process.env, cwd: process.cwd(), home: homedir(), platform: process.platform });
}
