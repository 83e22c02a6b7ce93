import type { FolderSearch } from '../config/file/find-config.js';
import { errorCode } from '../host/errors/error-text.js';
import { systemFault } from '../host/errors/file-error.js';
import { UsageError } from '../host/errors/usage-error.js';
import { createLogger, type Logger, type RecentLog } from '../host/observe/logger.js';
import { KnownSecrets } from '../host/observe/redact.js';

export interface GlobalOptions {
  /** `--config`. When absent, the default places are searched. */
  readonly config: string | undefined;
  /** Whether the current folder is one of the default places. The default is true. */
  readonly searchesFolder?: FolderSearch;
  /** Number of `-v` options. */
  readonly verbosity: number;
  readonly logFile: string | undefined;
  readonly record?: string | undefined;
  /** Largest size of the recording, in bytes. */
  readonly recordMax?: number | undefined;
  /** `--gateway`: the pid or the URL of the gateway that a command asks. */
  readonly gateway?: string | undefined;
  /** `--view`: the view of the client on stdin, or of the command. */
  readonly view?: string | undefined;
}

/** A logger, and the secrets that it removes from every record. */
export interface OpenLog {
  readonly logger: Logger;
  readonly secrets: KnownSecrets;
}

/** Opens the log. `recent` gets the records if they go to stderr. Throws a `UsageError` for a file that cannot be written. */
export function openLog({ verbosity, logFile }: GlobalOptions, recent?: RecentLog): OpenLog {
  const secrets = new KnownSecrets();
  const { redact } = secrets;
  if (logFile === undefined) return { logger: createLogger({ verbosity, redact, recent }), secrets };
  try {
    return { logger: createLogger({ verbosity, redact, file: logFile }), secrets };
  } catch (cause) {
    const { reason, hint } = systemFault(cause);
    const why = errorCode(cause) === 'ENXIO' ? 'it is a pipe that nobody reads, or a socket' : reason;
    const next = `${hint}, or name another file with --log-file FILE`;
    throw new UsageError(`the log file ${logFile} cannot be written: ${why}`, next, { cause });
  }
}
