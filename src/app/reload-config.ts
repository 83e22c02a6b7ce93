import { homedir } from 'node:os';
import { isDeepStrictEqual } from 'node:util';
import { ConfigError } from '../config/file/config-error.js';
import { candidateFiles, currentFolder, stampOf } from '../config/file/find-config.js';
import type { Config, Layers, Origin } from '../config/resolve/config.js';
import { watchFiles } from '../host/files/watch-files.js';
import { statesOf } from '../host/files/whole-file.js';
import type { Logger } from '../host/observe/logger.js';
import type { ConfigCache } from '../state/config-cache.js';
import type { GatewayProcess } from './gateway-process.js';
import type { GlobalOptions } from './global-options.js';
import { logConfig, readConfig, readConfigFile } from './read-config.js';
import type { LayerScope } from './read-layers.js';

export interface ReloadOptions {
  readonly settings: GlobalOptions;
  readonly composition: {
    readonly platform: GatewayProcess['platform'];
    readonly change: GatewayProcess['change'];
    readonly refuse: GatewayProcess['refuse'];
  };
  readonly logger: Logger;
  /** The configuration at the start. `file` is empty if no file was found; `stamp` is absent if the file was rejected. */
  readonly read: Followed & { readonly file: string; readonly stamp?: number };
  readonly checkedFiles: ConfigCache | undefined;
  /** The trusted projects that count. Their files are followed, too. */
  readonly layers?: LayerScope | undefined;
  /** Default: the variables and the working folder of this process. */
  readonly origin?: Origin;
  /** Called with each configuration that was applied. */
  readonly onApplied?: ((config: Config) => void) | undefined;
}

/** The parts of a configuration that name further files to follow. */
interface Followed {
  readonly envFiles: readonly string[];
  readonly layers?: Layers;
}

/**
 * Reads and applies the configuration file whenever this file, one of its environment files, or the trust in a project changes. Reports a file with
 * mistakes and changes nothing. Returns the function that stops this.
 */
export function reloadOnChange(options: ReloadOptions): () => void {
  const { settings, composition, logger, checkedFiles, origin, layers, onApplied } = options;
  const { envFiles, stamp, layers: known } = options.read;
  const file = options.read.file === '' ? undefined : options.read.file;
  const { clock } = composition.platform;
  let isOver = false;
  let unwatch = () => {};
  const stop = () => {
    isOver = true;
    unwatch();
  };
  // The first file that was found stays the file of this run, because another file would be another set of servers.
  let chosen = file;
  const read = () => {
    const rest = [checkedFiles, origin, layers] as const;
    return chosen === undefined ? readConfig(settings, ...rest) : readConfigFile(chosen, ...rest);
  };
  // Reads follow one another, so that the last state of the file is applied last.
  let reading = Promise.resolve();
  const reload = () => {
    reading = reading.then(readAgain);
  };
  const readAgain = async () => {
    if (isOver) return;
    const config = await applyFile(read, composition, logger, () => isOver);
    chosen ??= config?.file;
    if (config !== undefined) onApplied?.(config);
    // Another environment file may have changed before it was watched.
    if (config !== undefined && follow(config)) reload();
    if (config?.gateway.watch !== false) return;
    logger.info('stopped watching the configuration file, because it says `watch: false`');
    stop();
  };
  const { env, platform } = process;
  const searchesFolder = settings.searchesFolder !== false;
  const place = { env, cwd: currentFolder(), home: homedir(), platform };
  const configFiles = file === undefined ? candidateFiles({ ...place, searchesFolder }) : [file];
  let watched: readonly string[] = [];
  const follow = (named: Followed) => {
    const files = [...configFiles, ...named.envFiles, ...(named.layers?.files ?? [])];
    if (isOver || isDeepStrictEqual(files, watched)) return false;
    watched = files;
    unwatch();
    unwatch = watchFiles({ files, clock, onChange: reload });
    return true;
  };
  follow(options.read);
  logger.debug('watching the configuration file');
  // The file may have changed since the start. An unchanged file is not read again, so commands for secrets run once.
  const isSame =
    envFiles.length === 0 &&
    stamp !== undefined &&
    stampOf(configFiles[0] ?? '') === stamp &&
    (known === undefined || statesOf(known.files) === known.states);
  if (!isSame) reload();
  return stop;
}

/**
 * Reads and applies the configuration. Returns `undefined`, and logs the reason, if the previous one stays active. Applies nothing
 * once it `isOver`, because the gateway stops then.
 */
async function applyFile(
  read: () => Promise<Config>,
  composition: ReloadOptions['composition'],
  logger: Logger,
  isOver: () => boolean,
): Promise<Config | undefined> {
  let config: Config;
  try {
    config = await read();
  } catch (err) {
    // Code is loaded on demand, and an update of Trunkline may have removed its files.
    if (!(err instanceof ConfigError))
      logger.error(
        { err },
        'the changed configuration cannot be read, so the previous one stays active; restart Trunkline',
      );
    else if (composition.refuse(err.report))
      logger.error(
        { code: err.code },
        `the changed configuration file has mistakes, so the previous configuration stays active: ${err.report}`,
      );
    return undefined;
  }
  if (isOver()) return undefined;
  const { needsRestart, ...changes } = composition.change(config);
  if (changes.isOther) {
    logger.info(changes, 'applied the changed configuration');
    logConfig(config, logger);
    if (needsRestart.length > 0)
      logger.warn({ needsRestart }, 'these settings take effect when Trunkline is restarted');
  }
  return config;
}
