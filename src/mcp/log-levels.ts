/** The levels of log messages, from the most talkative to the gravest. */
const LOG_LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const;

export type LogLevel = (typeof LOG_LEVELS)[number];

export function isLogLevel(text: string): text is LogLevel {
  return (LOG_LEVELS as readonly string[]).includes(text);
}

/** Whether a message of `level` is grave enough for who asked for `least`. A level that nobody knows always is. */
export function isAtLeast(level: string, least: LogLevel): boolean {
  return !isLogLevel(level) || LOG_LEVELS.indexOf(level) >= LOG_LEVELS.indexOf(least);
}

/** The level that lets through what any of these want; `undefined` of none. */
export function mostTalkative(levels: Iterable<LogLevel>): LogLevel | undefined {
  const wanted = new Set(levels);
  return LOG_LEVELS.find((level) => wanted.has(level));
}
