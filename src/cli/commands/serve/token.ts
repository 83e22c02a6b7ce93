import type { GlobalOptions } from '../../../app/global-options.js';
import { checkFile } from '../../../config/file/check-file.js';
import { ConfigError } from '../../../config/file/config-error.js';
import { ConfigLocation, readConfigText } from '../../../config/file/find-config.js';
import { UsageError } from '../../../host/errors/usage-error.js';
import { readOrCreateToken, TokenFileError } from '../../../state/token-file.js';
import { tokenFile } from '../../../state/user-files.js';
import type { Invocation } from '../../command.js';
import { answer, tell } from '../../output.js';

/** `trunkline token`: prints the bearer token for HTTP clients, and creates it if there is none. */
export async function token({ settings, isJson }: Invocation): Promise<number> {
  try {
    const refusing = fileWithUsers(settings);
    if (refusing !== undefined)
      tell(
        `A gateway of ${refusing} refuses this token, because it has users. \`trunkline token add NAME\` makes one that it accepts.`,
      );
    const file = tokenFile();
    const value = await readOrCreateToken(file);
    return await answer(isJson, { token: value, file }, () => value);
  } catch (error) {
    if (!(error instanceof TokenFileError)) throw error;
    throw new UsageError(error.message, 'correct or remove the file', { cause: error });
  }
}

/** Returns the configuration file if it has users. `undefined` for a file that is missing or has mistakes, because no gateway serves it. */
function fileWithUsers(settings: GlobalOptions): string | undefined {
  try {
    const { file } = new ConfigLocation(settings);
    return checkFile(readConfigText(file), file).gateway.http.auth === undefined ? undefined : file;
  } catch (error) {
    if (error instanceof ConfigError) return undefined;
    throw error;
  }
}
