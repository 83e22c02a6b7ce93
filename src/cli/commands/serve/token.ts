import { EXIT, UsageError } from '../../../host/errors/usage-error.js';
import { readOrCreateToken, TokenFileError } from '../../../state/token-file.js';
import { tokenFile } from '../../../state/user-files.js';
import type { Invocation } from '../../command.js';
import { print, printJson } from '../../output.js';

/** `trunkline token`: prints the bearer token for HTTP clients, and creates it if there is none. */
export async function token({ isJson }: Invocation): Promise<number> {
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
