import { readFileSync } from 'node:fs';
import { errorCode } from '../errors/error-text.js';
import { ConfigError } from './config-error.js';

/** Reads the text of a configuration file. Throws a `ConfigError` if the file cannot be read. */
export function readConfigText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    const reason = errorCode(cause) ?? 'unknown';
    if (reason === 'ENOENT') {
      const problem = {
        message: 'the file does not exist',
        hint: 'create it, or name another file with --config FILE',
      };
      throw new ConfigError('config-not-found', file, [problem], { cause });
    }
    const message = `the file cannot be read (${reason}); check its path and its permissions`;
    throw new ConfigError('config-unreadable', file, [{ message }], { cause });
  }
}
