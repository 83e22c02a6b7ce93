import { type DestinationStream, type Level, type Logger as PinoLogger, pino } from 'pino';
import { escapeUnsafe } from '../json/printable.js';
import { LogFile } from './log-file.js';
import { toText } from './log-line.js';
import type { Redact } from './redact.js';

/** The part of pino's interface that Trunkline uses. */
export type Logger = Pick<PinoLogger, 'level' | OwnLevel>;

type OwnLevel = Exclude<Level, 'trace'>;

export interface LoggerOptions {
  /** Number of `-v` options: 0 logs warnings and errors, 1 also events, 2 everything. */
  readonly verbosity: number;
  /** File to append to, readable by its owner only; stderr when absent. */
  readonly file?: string;
  /** Removes secrets; applied to every record. */
  readonly redact: Redact;
}

/**
 * Logs JSON lines to stderr or to a file, and text to a terminal on stderr. Never logs to stdout, which belongs to the
 * protocol.
 *
 * A log that cannot be written must not stop the gateway: records are dropped when the host does not read stderr, or the
 * disk is full. Throws when the file cannot be opened.
 */
export function createLogger({ verbosity, file, redact }: LoggerOptions): Logger {
  const level = LEVELS[Math.min(verbosity, LEVELS.length - 1)] ?? 'warn';
  const stream = file === undefined ? toStderr() : toFile(file);
  const timestamp = () => `,"time":"${new Date().toISOString()}"`;
  const options = { level, base: null, timestamp };
  return pino(options, { write: (line) => stream.write(cleanRecord(line, redact, stream.isTerminal === true)) });
}

const LEVELS = ['warn', 'info', 'debug'] as const;

interface Destination extends DestinationStream {
  /** Whether a person reads it, who gets text. */
  readonly isTerminal?: boolean;
}

/**
 * One record without secrets and without characters that could fool a terminal or an editor. `line` is JSON; the result is
 * JSON or, for a terminal, text.
 */
function cleanRecord(line: string, redact: Redact, isTerminal: boolean): string {
  const record = JSON.parse(line, (_, value) => (typeof value === 'string' ? redact(value) : value));
  return isTerminal ? toText(record) : `${escapeUnsafe(JSON.stringify(record))}\n`;
}

/** Limit for records that the host has not read yet; further records are dropped. */
const MAX_UNREAD_BYTES = 1024 * 1024;

function toStderr(): Destination {
  openStderr();
  const isTerminal = process.stderr.isTTY === true;
  let dropped = 0;
  return {
    isTerminal,
    write: (line) => {
      if (process.stderr.writableLength >= MAX_UNREAD_BYTES) {
        dropped += 1;
        return;
      }
      const gap = { level: 40, time: new Date().toISOString(), msg: describeGap(dropped) };
      if (dropped > 0) process.stderr.write(isTerminal ? toText(gap) : `${JSON.stringify(gap)}\n`);
      dropped = 0;
      process.stderr.write(line);
    },
  };
}

/** Ignores errors of stderr, because the host has closed its end, or stderr is a file on a full disk, as that of a hub can be. */
function openStderr(): void {
  if (!process.stderr.listeners('error').includes(NO_READER)) process.stderr.on('error', NO_READER);
}

const NO_READER = (): void => {};

function describeGap(lines: number): string {
  return `${lines} log lines were dropped, because the reader of stderr was too slow`;
}

function toFile(file: string): Destination {
  return new LogFile({
    file,
    onFault: (error) => {
      openStderr();
      process.stderr.write(`The log file ${file} cannot be written: ${String(error)}\n`);
    },
  });
}
