import { createRequire } from 'node:module';
import type { DestinationStream, Level, Logger as PinoLogger } from 'pino';
import { escapeUnsafe } from '../json/unsafe-characters.js';
import { LogFile } from './log-file.js';
import type { Redact } from './redact.js';

/** What Trunkline uses of pino's. */
export type Logger = Pick<PinoLogger, 'level' | OwnLevel>;

type OwnLevel = Exclude<Level, 'trace'>;

/** A logger that is loaded when it has something to say, or when it is told to be ready for that. */
export interface PreparedLogger extends Logger {
  /** Somebody waits: warnings and less are held until `prepare`, or until there is worse to say, or we exit. */
  postpone(): void;
  /** To be called as soon as nobody waits: on a machine that has run out of something, it could not be loaded any more. */
  prepare(): void;
}

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
export function createLogger({ verbosity, file, redact }: LoggerOptions): PreparedLogger {
  const level = LEVELS[Math.min(verbosity, LEVELS.length - 1)] ?? 'warn';
  // A file that cannot be written is told of at once; to open stderr takes a while.
  const destination = file === undefined ? undefined : toFile(file);
  return new LateLogger(level, (now) => open(destination ?? toStderr(), redact, now));
}

const LEVELS = ['warn', 'info', 'debug'] as const;

/** Most runs have nothing to say, and a client waits while we load what says it. */
class LateLogger implements PreparedLogger {
  level: string;
  readonly fatal = this.#entry('fatal');
  readonly error = this.#entry('error');
  readonly warn = this.#entry('warn');
  readonly info = this.#entry('info');
  readonly debug = this.#entry('debug');
  readonly #open: (now: () => number) => Logger;
  #opened: Logger | undefined;
  #isPostponed = false;
  readonly #held: HeldEntry[] = [];
  /** When what is being written was said; absent for now. */
  #saidAt: number | undefined;

  constructor(level: string, openLog: (now: () => number) => Logger) {
    this.level = level;
    this.#open = openLog;
  }

  postpone(): void {
    this.#isPostponed = true;
    process.once('exit', () => {
      if (this.#held.length > 0) this.prepare();
    });
  }

  prepare(): void {
    this.#isPostponed = false;
    this.#opened ??= this.#open(() => this.#saidAt ?? Date.now());
    for (const { level, at, entry } of this.#held.splice(0)) {
      this.#saidAt = at;
      this.#opened[level](...entry);
    }
    this.#saidAt = undefined;
  }

  #entry(level: OwnLevel): (...entry: [unknown, ...unknown[]]) => void {
    return (...given) => {
      if (RISING.indexOf(level) < RISING.indexOf(this.level)) return;
      const entry = given as [string];
      const canWait = RISING.indexOf(level) < RISING.indexOf('error') && this.#held.length < MAX_HELD;
      if (this.#isPostponed && canWait) {
        this.#held.push({ level, at: Date.now(), entry });
        return;
      }
      if (this.#opened === undefined || this.#held.length > 0) this.prepare();
      this.#opened?.[level](...entry);
    };
  }
}

interface HeldEntry {
  readonly level: OwnLevel;
  /** In milliseconds of the calendar. */
  readonly at: number;
  readonly entry: [string];
}

/** Far more than is said before the first list. */
const MAX_HELD = 1_000;

const RISING: readonly string[] = ['debug', 'info', 'warn', 'error', 'fatal'];

function open(stream: DestinationStream, redact: Redact, now: () => number): Logger {
  const { pino } = loadPino();
  const timestamp = () => `,"time":"${new Date(now()).toISOString()}"`;
  const options = { level: 'debug', base: null, timestamp };
  return pino(options, { write: (line) => stream.write(cleanRecord(line, redact)) });
}

/**
 * One log line without secrets and without characters that could fool a terminal or an editor. `line` is JSON, and so is
 * the result.
 */
function cleanRecord(line: string, redact: Redact): string {
  const record: unknown = JSON.parse(line, (_, value) => (typeof value === 'string' ? redact(value) : value));
  return `${escapeUnsafe(JSON.stringify(record))}\n`;
}

/** Synchronous, since a log call cannot wait. */
function loadPino(): typeof import('pino') {
  return createRequire(import.meta.url)('pino');
}

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
