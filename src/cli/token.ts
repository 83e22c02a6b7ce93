import { EXIT } from '../app/exit-codes.js';
import { UsageError } from '../app/usage-error.js';
import { tokenFile } from '../app/user-files.js';
import { readOrCreateToken, TokenFileError } from '../files/token-file.js';

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
