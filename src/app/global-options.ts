import { errorCode } from '../errors/error-text.js';
import { UsageError } from '../errors/usage-error.js';
import { createLogger, type Logger } from '../observe/logger.js';
import { KnownSecrets } from '../observe/redact.js';

/** The options of every command. */
export interface GlobalOptions {
  /** `--config`; the default places are searched when absent. */
  readonly config: string | undefined;
  /** How often `-v` was given. */
  readonly verbosity: number;
  readonly logFile: string | undefined;
  /** The file that all messages are recorded to, and how many bytes it may have. */
  readonly record?: string | undefined;
  readonly recordMax?: number | undefined;
  /** The view of the configuration that the client on stdin, or the command, asks for. */
  readonly view?: string | undefined;
}

/** A logger, and the secrets that it removes from every record. */
export interface OpenLog {
  readonly logger: Logger;
  readonly secrets: KnownSecrets;
}

export function openLog({ verbosity, logFile }: GlobalOptions): OpenLog {
  const secrets = new KnownSecrets();
  const { redact } = secrets;
  if (logFile === undefined) return { logger: createLogger({ verbosity, redact }), secrets };
  try {
    return { logger: createLogger({ verbosity, redact, file: logFile }), secrets };
  } catch (cause) {
    const code = errorCode(cause) ?? 'unknown';
    const reason = code === 'ENXIO' ? 'it is a pipe that nobody reads, or a socket' : code;
    const hint = 'name a file in a folder that you may write to with --log-file FILE';
    throw new UsageError(`the log file ${logFile} cannot be written (${reason})`, hint, { cause });
  }
}
