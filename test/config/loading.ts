import { join } from 'node:path';
import { ConfigError } from '../../src/config/file/config-error.js';

import { loadConfig, type ProgramConfig, type ProgramServer, type TestLoadOptions } from '../support/load-config.js';
import { folderWith } from './files.js';

const OPTIONS: TestLoadOptions = { env: { HOME: '/home/ada' }, nodePath: '/opt/node' };

/** Loads a text as `trunkline.yaml`, next to other files if there are any. */
export function load(
  text: string,
  options: Partial<TestLoadOptions> = {},
  files: Record<string, string> = {},
): ProgramConfig {
  const folder = folderWith({ 'trunkline.yaml': text, ...files });
  return loadConfig(join(folder, 'trunkline.yaml'), { ...OPTIONS, ...options });
}

/** The only server of a text. */
export function loadServer(...parameters: Parameters<typeof load>): ProgramServer {
  const [server] = load(...parameters).servers;
  if (server === undefined) throw new Error('the text has no server');
  return server;
}

/** The error that a text deserves. */
export function errorOf(text: string, options: Partial<TestLoadOptions> = {}): ConfigError {
  try {
    load(text, options);
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
  throw new Error('the text was accepted');
}

/** Every problem of a text as `LINE:COL message`. */
export function problemsOf(text: string): string[] {
  return errorOf(text).problems.map(({ line, column, message }) => `${line}:${column} ${message}`);
}
