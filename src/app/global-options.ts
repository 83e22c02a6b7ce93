import { errorCode } from '../errors/error-text.js';
import { createLogger, type PreparedLogger } from '../observe/logger.js';
import { KnownSecrets } from '../observe/redact.js';
import { UsageError } from './usage-error.js';

/** What every command is given: where the configuration is, and where and how much to log. */
export interface GlobalOptions {
  /** `--config`; looked for in the usual places when absent. */
  readonly config: string | undefined;
  /** How often `-v` was given. */
  readonly verbosity: number;
  readonly logFile: string | undefined;
}

/** Where to log, and what is kept out of it. */
export interface OpenLog {
  readonly logger: PreparedLogger;
  readonly secrets: KnownSecrets;
}

export function openLog({ verbosity, logFile }: GlobalOptions): OpenLog {
  const secrets = new KnownSecrets();
  const { redact } = secrets;
  if (logFile === undefined) return { logger: createLogger({ verbosity, redact }), secrets };
  try {
    return { logger: createLogger({ verbosity, redact, file: logFile }), secrets };
  } catch (cause) {
    const reason = errorCode(cause) ?? 'unknown';
    const hint = 'name a file in a folder that you may write to with --log-file FILE';
    throw new UsageError(`the log file ${logFile} cannot be written (${reason})`, hint, { cause });
  }
}
