import { readOrCreateToken, TokenFileError } from '../store/token-file.js';
import { EXIT } from './exit.js';
import { UsageError } from './usage-error.js';
import { tokenFile } from './user-files.js';

/** Prints the bearer token that HTTP clients need, and makes one if there is none yet. */
export async function token(): Promise<number> {
  try {
    process.stdout.write(`${await readOrCreateToken(tokenFile())}\n`);
    return EXIT.ok;
  } catch (error) {
    if (!(error instanceof TokenFileError)) throw error;
    throw new UsageError(error.message, 'mend or remove the file', { cause: error });
  }
}
