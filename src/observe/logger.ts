import { type DestinationStream, type Logger, pino } from 'pino';
import { LogFile } from './log-file.js';
import { cleanRecord } from './log-record.js';
import type { Redact } from './redact.js';

export type { Logger } from 'pino';

export interface LoggerOptions {
  /** How often `-v` was given: 0 shows what a person should act on, 1 what happens, 2 everything. */
  readonly verbosity: number;
  /** Appended to, readable by its owner only; stderr when absent. */
  readonly file?: string;
  /** Takes the secrets out of every line: the one place that all of them pass. */
  readonly redact: Redact;
}

/**
 * JSON lines to stderr or to a file, never to stdout, which belongs to the protocol.
 *
 * A log that cannot be written must not stop what it tells about: of a host that does not read our stderr, and of a
 * disk that is full, nobody but the log suffers. Throws when the file cannot be opened.
 */
export function createLogger({ verbosity, file, redact }: LoggerOptions): Logger {
  const level = LEVELS[Math.min(verbosity, LEVELS.length - 1)] ?? 'warn';
  const options = { level, base: null, timestamp: pino.stdTimeFunctions.isoTime };
  const destination = file === undefined ? toStderr() : toFile(file);
  return pino(options, { write: (line) => destination.write(cleanRecord(line, redact)) });
}

const LEVELS = ['warn', 'info', 'debug'] as const;

/** What may wait for a host that does not read. */
const MAX_UNREAD_BYTES = 1024 * 1024;

function toStderr(): DestinationStream {
  // EPIPE: the host reads no more.
  process.stderr.on('error', () => {});
  let dropped = 0;
  return {
    write: (line) => {
      if (process.stderr.writableLength >= MAX_UNREAD_BYTES) {
        dropped += 1;
        return;
      }
      if (dropped > 0) process.stderr.write(`${JSON.stringify({ level: 40, msg: describeGap(dropped) })}\n`);
      dropped = 0;
      process.stderr.write(line);
    },
  };
}

function describeGap(lines: number): string {
  return `${lines} lines of this log were dropped, because nobody read them`;
}

function toFile(file: string): DestinationStream {
  return new LogFile({
    file,
    onFault: (error) => process.stderr.write(`The log file ${file} cannot be written: ${String(error)}\n`),
  });
}
