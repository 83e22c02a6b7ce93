import { type DestinationStream, destination, type Logger, pino } from 'pino';

export type { Logger } from 'pino';

export interface LoggerOptions {
  /** How often `-v` was given: 0 shows what a person should act on, 1 what happens, 2 everything. */
  readonly verbosity: number;
  /** Appended to, readable by its owner only; stderr when absent. */
  readonly file?: string;
}

/**
 * JSON lines to stderr or to a file, never to stdout, which belongs to the protocol.
 *
 * A log that cannot be written must not stop what it tells about: of a host that does not read our stderr, and of a
 * disk that is full, nobody but the log suffers. Throws when the file cannot be opened.
 */
export function createLogger({ verbosity, file }: LoggerOptions): Logger {
  const level = LEVELS[Math.min(verbosity, LEVELS.length - 1)] ?? 'warn';
  const options = { level, base: null, timestamp: pino.stdTimeFunctions.isoTime };
  return pino(options, file === undefined ? toStderr() : toFile(file));
}

const LEVELS = ['warn', 'info', 'debug'] as const;

/** What may wait for a host that does not read. */
const MAX_UNREAD_BYTES = 1024 * 1024;

function toStderr(): DestinationStream {
  // EPIPE: the host reads no more.
  process.stderr.on('error', () => {});
  return {
    write: (line) => {
      if (process.stderr.writableLength < MAX_UNREAD_BYTES) process.stderr.write(line);
    },
  };
}

/** Synchronous, so that the last line before an exit is not lost. */
function toFile(file: string): DestinationStream {
  const stream = destination({ dest: file, append: true, mkdir: true, mode: 0o600, sync: true });
  let isReported = false;
  stream.on('error', (error: unknown) => {
    if (isReported) return;
    isReported = true;
    process.stderr.write(`The log file ${file} cannot be written: ${String(error)}\n`);
  });
  return stream;
}
