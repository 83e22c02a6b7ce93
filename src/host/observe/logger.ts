import { type DestinationStream, type Level, type Logger as PinoLogger, pino } from 'pino';
import { withoutBlocking } from '../../wire/io/streams/read-into.js';
import { escapeUnsafe } from '../../wire/json/printable.js';
import { systemFault } from '../errors/file-error.js';
import { LogFile } from './log-file.js';
import { toText } from './log-line.js';
import type { Redact } from './redact.js';

/*
 * Host: this machine. Files (`files`), the log, events and the removal of secrets (`observe`), texts and codes of errors (`errors`),
 * requests over HTTP as a client (`http`), and who runs here (`process`). Rooms that come later in `docs/architecture.md` may use it, and
 * it uses none of them. Begin with `files/whole-file.ts`, through which files are read and written, and with `Logger` here.
 */

/** The part of pino's interface that Trunkline uses. */
export type Logger = Pick<PinoLogger, 'level' | OwnLevel>;

type OwnLevel = Exclude<Level, 'trace'>;

export interface LoggerOptions {
  /** Number of `-v` options: 0 logs warnings and errors, 1 also events, 2 everything. */
  readonly verbosity: number;
  /** File to append to, readable by its owner only; stderr when absent. */
  readonly file?: string;
  /** Takes the records in place of `file` and of stderr. */
  readonly to?: DestinationStream;
  /** Removes secrets; applied to every record. */
  readonly redact: Redact;
  /** Gets each record, without secrets, if the log goes to stderr. */
  readonly recent?: RecentLog | undefined;
}

/**
 * Logs JSON lines to stderr, to a file or to `to`, and text to a terminal on stderr. Never logs to stdout, which belongs to the protocol.
 *
 * A log that cannot be written must not stop the gateway: records are dropped when the host does not read stderr, or the disk is full.
 * Throws when the file cannot be opened.
 */
export function createLogger({ verbosity, file, to, redact, recent }: LoggerOptions): Logger {
  const level = LEVELS[Math.min(verbosity, LEVELS.length - 1)] ?? 'warn';
  const stream: Destination = to ?? (file === undefined ? toStderr() : toFile(file));
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    hooks: { streamWrite: (line: string) => `${escapeUnsafe(cleanStrings(line.trimEnd(), redact))}\n` },
  };
  return pino(options, {
    write: (line) => {
      recent?.add(line.trimEnd());
      stream.write(stream.isTerminal === true ? toText(JSON.parse(line)) : line);
    },
  });
}

const LEVELS = ['warn', 'info', 'debug'] as const;

interface Destination extends DestinationStream {
  /** Whether a person reads it, so that records are written as text. */
  readonly isTerminal?: boolean;
}

/** A string of JSON, with the colon behind it if it is the name of a member. */
const STRING = /"([^"\\]*(?:\\.[^"\\]*)*)"(:?)/g;

/** Removes secrets from the strings in a line of JSON, except for the names of members. */
function cleanStrings(line: string, redact: Redact): string {
  return line.replace(STRING, (literal: string, content: string, colon: string) => {
    if (colon !== '') return literal;
    const text: string = content.includes('\\') ? JSON.parse(literal) : content;
    const clean = redact(text);
    return clean === text ? literal : JSON.stringify(clean);
  });
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
  if (process.stderr.listeners('error').includes(NO_READER)) return;
  withoutBlocking(process.stderr).on('error', NO_READER);
}

const NO_READER = (): void => {};

function describeGap(lines: number): string {
  return `${lines} log lines were dropped, because the reader of stderr was too slow`;
}

function toFile(file: string): Destination {
  return new LogFile({
    file,
    onFault: (error) => {
      const { reason, hint } = systemFault(error);
      openStderr();
      process.stderr.write(`The log file ${file} cannot be written: ${reason}; ${hint}\n`);
    },
  });
}

/** Limit of the kept records, in characters of JSON. */
const MAX_CHARACTERS = 1024 * 1024;

/** The latest records of a log that goes to stderr, so that `trunkline logs` can print them. Each is a line of JSON. */
export class RecentLog {
  readonly #lines: string[] = [];
  readonly #followers = new Set<(line: string) => void>();
  #characters = 0;

  get lines(): readonly string[] {
    return this.#lines;
  }

  add(line: string): void {
    this.#lines.push(line);
    this.#characters += line.length;
    while (this.#characters > MAX_CHARACTERS) this.#characters -= this.#lines.shift()?.length ?? 0;
    for (const take of this.#followers) take(line);
  }

  /** Passes each further record to `take`, until the returned function is called. */
  follow(take: (line: string) => void): () => void {
    this.#followers.add(take);
    return () => void this.#followers.delete(take);
  }
}
