import { homedir } from 'node:os';
import { findConfigFile } from '../config/file/find-config.js';
import type { GlobalOptions } from './global-options.js';

/**
 * Where the configuration file of one run is: what is read for the answer to `initialize` and what is read after it are
 * of the same file. The places are searched until one has a file, and then no more.
 */
export class ConfigPlace {
  readonly #flag: string | undefined;
  #file: string | undefined;

  constructor({ config }: Pick<GlobalOptions, 'config'>) {
    this.#flag = config;
  }

  /** The absolute path. Throws a `ConfigError` if there is no file. */
  get file(): string {
    const { env, platform, argv } = process;
    const [, program] = argv;
    this.#file ??= findConfigFile({ flag: this.#flag, env, cwd: process.cwd(), home: homedir(), platform, program });
    return this.#file;
  }
}
