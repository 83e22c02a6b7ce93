import { describe, expect, it } from 'vitest';
import { isAtLeast, isLogLevel, type LogLevel, mostTalkative } from '../../src/mcp/log-levels.js';

const LEVELS: readonly LogLevel[] = [
  ...(['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const),
];

describe('a log level', () => {
  it.each(LEVELS)('is %s', (level) => {
    expect(isLogLevel(level)).toBe(true);
  });

  it.each(['', 'warn', 'DEBUG', 'fatal', '__proto__', 'length'])('is not %j', (text) => {
    expect(isLogLevel(text)).toBe(false);
  });

  it('lets through itself and all that are graver', () => {
    for (const [rank, least] of LEVELS.entries()) {
      expect(LEVELS.filter((level) => isAtLeast(level, least))).toEqual(LEVELS.slice(rank));
    }
  });

  it('lets through what nobody knows', () => {
    for (const least of LEVELS) expect(isAtLeast('fatal', least)).toBe(true);
  });
});

describe('the most talkative of several levels', () => {
  it('is none of none', () => {
    expect(mostTalkative([])).toBeUndefined();
  });

  it('is the least grave one, in whatever order they come', () => {
    expect(mostTalkative(['error', 'info', 'alert'])).toBe('info');
    expect(mostTalkative(['emergency', 'debug', 'debug'])).toBe('debug');
    expect(mostTalkative(new Set<LogLevel>(['alert']))).toBe('alert');
  });
});
