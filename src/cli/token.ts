import { EXIT } from '../app/exit-codes.js';
import { UsageError } from '../app/usage-error.js';
import { tokenFile } from '../app/user-files.js';
import { readOrCreateToken, TokenFileError } from '../files/token-file.js';
import { print, printJson } from './output.js';

/** `trunkline token`: prints the bearer token for HTTP clients, and creates it if there is none. */
export async function token(isJson: boolean): Promise<number> {
  try {
    const file = tokenFile();
    const value = await readOrCreateToken(file);
    if (isJson) await printJson({ token: value, file });
    else await print(value);
    return EXIT.ok;
  } catch (error) {
    if (!(error instanceof TokenFileError)) throw error;
    throw new UsageError(error.message, 'correct or remove the file', { cause: error });
  }
}
