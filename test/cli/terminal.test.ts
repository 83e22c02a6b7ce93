import { describe, expect, it } from 'vitest';
import { logText } from '../../src/cli/commands/hub/logs.js';
import { colorOf, lookOf, PLAIN, stateCell } from '../../src/cli/terminal.js';

describe('colors', () => {
  it.each([
    [{ isTTY: true, columns: 120 }, {}, 120, true],
    [{ isTTY: true, columns: 0 }, {}, 80, true],
    [{ isTTY: true, columns: 80 }, { NO_COLOR: '1' }, 80, false],
    [{ isTTY: true, columns: 80 }, { NO_COLOR: '' }, 80, true],
    [{ isTTY: true, columns: 80 }, { TERM: 'dumb' }, 80, false],
    [{ isTTY: true, columns: 80 }, { FORCE_COLOR: '0' }, 80, false],
    [{}, {}, undefined, false],
    [{}, { FORCE_COLOR: '1' }, undefined, true],
    [{}, { FORCE_COLOR: '', NO_COLOR: '1' }, undefined, true],
  ])('of %j with %j', (stream, env, width, isColored) => {
    expect(lookOf(stream, env)).toEqual({ width, isColored });
  });

  it('of a server are the same each time, and those of its instances', () => {
    expect(colorOf('files')).toBe(colorOf('files'));
    expect(new Set(['files', 'memory', 'git', 'web'].map(colorOf)).size).toBeGreaterThan(1);
    const line = (server: string) => JSON.stringify({ level: 30, time: '2026-01-01T10:20:30Z', server, msg: 'ready' });
    const look = { width: 80, isColored: true };
    const [one = '', two = ''] = ['files', 'files~2'].map((server) => logText(line(server), undefined, look));
    // biome-ignore lint/suspicious/noControlCharactersInRegex: colors are control characters.
    const color = (text: string) => /\u001b\[\d+m/.exec(text)?.[0];
    expect(color(one)).toBe(color(two));
    expect(color(one)).toBeDefined();
    expect(logText(line('files'), undefined, PLAIN)).toMatch(/^\d\d:\d\d:\d\d info {2}files: ready$/);
  });

  it('and symbols tell a state on a terminal; elsewhere it is one word', () => {
    expect(stateCell('ready', { width: 80, isColored: true })).toEqual({ text: '● ready', format: 'green' });
    expect(stateCell('parked', PLAIN).text).toBe('parked');
  });
});
