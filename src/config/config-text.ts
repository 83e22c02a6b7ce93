import { readFileSync } from 'node:fs';
import { errorCode } from '../errors/error-text.js';
import { ConfigError } from './config-error.js';

/** What stands in a configuration file; a `ConfigError` when it cannot be read. */
export function readConfigText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    const reason = errorCode(cause) ?? 'unknown';
    if (reason === 'ENOENT') {
      const problem = { message: 'there is no such file', hint: 'create it, or name another one with --config FILE' };
      throw new ConfigError('config-not-found', file, [problem], { cause });
    }
    const message = `this cannot be read (${reason}); expected a readable file`;
    throw new ConfigError('config-unreadable', file, [{ message }], { cause });
  }
}
