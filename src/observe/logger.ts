import { destination, type Logger, pino } from 'pino';

export type { Logger } from 'pino';

export interface LoggerOptions {
  /** How often `-v` was given: 0 shows what a person should act on, 1 what happens, 2 everything. */
  readonly verbosity: number;
  /** Appended to, readable by its owner only; stderr when absent. */
  readonly file?: string;
}

/** JSON lines to stderr or to a file, never to stdout, which belongs to the protocol. */
export function createLogger({ verbosity, file }: LoggerOptions): Logger {
  const level = LEVELS[Math.min(verbosity, LEVELS.length - 1)] ?? 'warn';
  const target = file === undefined ? { fd: 2 } : { dest: file, append: true, mkdir: true, mode: 0o600 };
  // Synchronous, so that the last line before an exit is not lost.
  return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, destination({ ...target, sync: true }));
}

const LEVELS = ['warn', 'info', 'debug'] as const;
