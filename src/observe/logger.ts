import { createRequire } from 'node:module';
import type { DestinationStream, Level, pino as Pino, Logger as PinoLogger } from 'pino';
import { escapeUnsafe } from '../json/printable.js';
import { LogFile } from './log-file.js';
import { toText } from './log-text.js';
import type { Redact } from './redact.js';

/** The part of pino's interface that Trunkline uses. */
export type Logger = Pick<PinoLogger, 'level' | OwnLevel>;

type OwnLevel = Exclude<Level, 'trace'>;

export interface LoggerOptions {
  /** How often `-v` was given: 0 logs warnings and errors, 1 also events, 2 everything. */
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
export function createLogger({ verbosity, file, redact }: LoggerOptions): PreparedLogger {
  const level = LEVELS[Math.min(verbosity, LEVELS.length - 1)] ?? 'warn';
  // The file is opened now, to report a bad path at once. Opening stderr is slow and happens at the first record.
  const destination = file === undefined ? undefined : toFile(file);
  return new PreparedLogger(level, (now) => open(destination ?? toStderr(), redact, now));
}

const LEVELS = ['warn', 'info', 'debug'] as const;

/**
 * A logger that loads pino when `prepare` is called, or for the first record that cannot wait. Most runs log nothing before
 * the first answers, and loading pino would delay them.
 */
export class PreparedLogger implements Logger {
  level: string;
  readonly fatal = this.#entry('fatal');
  readonly error = this.#entry('error');
  readonly warn = this.#entry('warn');
  readonly info = this.#entry('info');
  readonly debug = this.#entry('debug');
  readonly #open: (now: () => number) => Logger;
  #opened: Logger | undefined;
  #isPostponed = false;
  readonly #buffered: BufferedRecord[] = [];
  /** Time of the buffered record that is being written; undefined for a new record. */
  #loggedAt: number | undefined;

  constructor(level: string, openLog: (now: () => number) => Logger) {
    this.level = level;
    this.#open = openLog;
  }

  /** Buffers records below `error` until `prepare` is called, an error is logged, or the process exits. */
  postpone(): void {
    this.#isPostponed = true;
    process.once('exit', () => {
      if (this.#buffered.length > 0) this.prepare();
    });
  }

  /**
   * Loads pino and writes what was buffered. Call it early: later the machine may be out of file descriptors or memory,
   * and loading could fail.
   */
  prepare(): void {
    this.#isPostponed = false;
    this.#opened ??= this.#open(() => this.#loggedAt ?? Date.now());
    for (const { level, at, entry } of this.#buffered.splice(0)) {
      this.#loggedAt = at;
      this.#opened[level](...entry);
    }
    this.#loggedAt = undefined;
  }

  #entry(level: OwnLevel): (...entry: [unknown, ...unknown[]]) => void {
    return (...given) => {
      if (LEVEL_ORDER.indexOf(level) < LEVEL_ORDER.indexOf(this.level)) return;
      const entry = given as [string];
      const canWait = LEVEL_ORDER.indexOf(level) < LEVEL_ORDER.indexOf('error') && this.#buffered.length < MAX_BUFFERED;
      if (this.#isPostponed && canWait) {
        this.#buffered.push({ level, at: Date.now(), entry });
        return;
      }
      if (this.#opened === undefined || this.#buffered.length > 0) this.prepare();
      this.#opened?.[level](...entry);
    };
  }
}

interface BufferedRecord {
  readonly level: OwnLevel;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly entry: [string];
}

/** Far more than is logged before the first list. */
const MAX_BUFFERED = 1_000;

const LEVEL_ORDER: readonly string[] = ['debug', 'info', 'warn', 'error', 'fatal'];

function open(stream: Destination, redact: Redact, now: () => number): Logger {
  pino ??= requirePino();
  const timestamp = () => `,"time":"${new Date(now()).toISOString()}"`;
  const options = { level: 'debug', base: null, timestamp };
  return pino(options, { write: (line) => stream.write(cleanRecord(line, redact, stream.isTerminal === true)) });
}

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

let pino: typeof Pino | undefined;

/** Loads pino synchronously, for a record that cannot wait. The build puts it into one file. */
function requirePino(): typeof Pino {
  return createRequire(import.meta.url)('pino').pino;
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

/** An error is none of ours: the host has closed its end, or stderr is a file on a full disk, as that of a hub can be. */
function openStderr(): void {
  if (!process.stderr.listeners('error').includes(NO_READER)) process.stderr.on('error', NO_READER);
}

const NO_READER = (): void => {};

function describeGap(lines: number): string {
  return `${lines} log lines were dropped, because the reader of stderr was too slow`;
}

function toFile(file: string): DestinationStream {
  return new LogFile({
    file,
    onFault: (error) => {
      openStderr();
      process.stderr.write(`The log file ${file} cannot be written: ${String(error)}\n`);
    },
  });
}
