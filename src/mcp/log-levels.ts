/** The levels of log messages, from the least severe to the most severe. */
const LOG_LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const;

export type LogLevel = (typeof LOG_LEVELS)[number];

/** At this level, a server sends every message. */
export const MOST_VERBOSE: LogLevel = 'debug';

export function isLogLevel(text: string): text is LogLevel {
  return (LOG_LEVELS as readonly string[]).includes(text);
}

/** Whether `level` is at least as severe as `least`. An unknown level always is. */
export function isAtLeast(level: string, least: LogLevel): boolean {
  return !isLogLevel(level) || LOG_LEVELS.indexOf(level) >= LOG_LEVELS.indexOf(least);
}

/** Returns the least severe of the levels; `undefined` if there are none. */
export function mostTalkative(levels: Iterable<LogLevel>): LogLevel | undefined {
  const wanted = new Set(levels);
  return LOG_LEVELS.find((level) => wanted.has(level));
}
