import { describe, expect, it } from 'vitest';
import { logText } from '../../src/cli/commands/hub/logs.js';
import { colorOf, lookOf, PLAIN, stateCell, table } from '../../src/cli/terminal.js';

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
    expect(logText(line('files'), undefined, PLAIN)).toMatch(/ \d\d:\d\d:\d\d info {2}files: ready$/);
  });

  it('and symbols tell a state on a terminal; elsewhere it is one word', () => {
    expect(stateCell('ready', { width: 80, isColored: true })).toEqual({ text: '●\u00a0ready', format: 'green' });
    expect(stateCell('parked', PLAIN).text).toBe('parked');
  });
});

const TOOLS = [
  ['TOOL', 'SERVER', 'DESCRIPTION'],
  ['files__read_text_file', 'files', 'Reads a file as text and returns all of it, or the first lines of it.'],
  ['files__write', 'files', 'Writes.'],
];

describe('a table', () => {
  it('counts the columns that a terminal needs, not the characters', () => {
    expect(
      table([
        ['漢字', 'x'],
        ['e\u0301', 'y'],
      ]),
    ).toBe('漢字  x\ne\u0301     y');
  });

  it('is as wide as it has to be in a file', () => {
    expect(table(TOOLS).split('\n')[1]).toBe(`files__read_text_file  files   ${TOOLS[1]?.[2]}`);
    expect(
      table([
        ['A', 'LONG', 'C'],
        ['aaa', 'b', ''],
      ]),
    ).toBe('A    LONG  C\naaa  b');
  });

  it('cuts the columns that may be cut, such as descriptions, so that each row fits on one line', () => {
    expect(table(TOOLS, { width: 60, isColored: false }, 2).split('\n')).toEqual([
      'TOOL                   SERVER  DESCRIPTION',
      'files__read_text_file  files   Reads a file as text and ret…',
      'files__write           files   Writes.',
    ]);
  });

  it('keeps a few columns of each cell of a screen in a terminal that is too narrow', () => {
    const widest = table(TOOLS, { width: 10, isColored: false }, 0).split('\n')[1];
    expect(widest).toBe('files…  files   Reads…');
  });

  it.each([40, 60, 80, 120])('keeps every word whole and no line wider than a terminal of %i columns', (width) => {
    const [name, version] = ['@modelcontextprotocol/server-filesystem', '2026.8.31'];
    const result = 'installed, but its author marks this version as deprecated in favor of another package';
    const rows = [
      ['SERVER', 'PACKAGE', 'VERSION', 'RESULT'],
      ['a-server-with-24-letters', name, version, result],
      ['b', 'b', '1.0.0', 'installed'],
    ];
    const lines = table(rows, { width, isColored: false }).split('\n');
    const words = lines.join(' ').split(' ');
    for (const word of rows.slice(1).flat().join(' ').split(' ')) expect(words).toContain(word);
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(width);
  });

  it('wraps cells, and becomes lists where the words of a row do not fit beside each other', () => {
    const rows = [
      ['OPEN', 'WHAT', 'UP', 'WHY'],
      ['read', 'the system', '2 min 21 s', 'programs, libraries, certificates and fonts'],
      ['write', '/tmp', '-', 'its own'],
    ];
    const look = { width: 54, isColored: false };
    expect(`\n${table(rows, look)}\n`).toBe(`
OPEN   WHAT        UP          WHY
read   the system  2 min 21 s  programs, libraries,
                               certificates and fonts
write  /tmp        -           its own
`);
    const long = `/home/ada/${'y'.repeat(75)}`;
    expect(`\n${table([...rows, ['write', long, '-', 'it is named']], look)}\n`).toBe(`
OPEN: read
WHAT: the system
UP: 2 min 21 s
WHY: programs, libraries, certificates and fonts

OPEN: write
WHAT: /tmp
WHY: its own

OPEN: write
WHAT:
${long}
WHY: it is named
`);
  });

  it('loses the columns without a value in a terminal that is too narrow for it', () => {
    const rows = [
      ['SERVER', 'PID', 'TOOLS', 'DENIED'],
      ['files', '-', '3', '0'],
      ['git', '', '0', '0'],
    ];
    expect(table(rows, { width: 20, isColored: false }).split('\n')).toEqual([
      'SERVER  TOOLS',
      'files   3',
      'git     0',
    ]);
    expect(table(rows, { width: 28, isColored: false }).split('\n')[0]).toBe('SERVER  PID  TOOLS  DENIED');
    expect(table(rows.slice(0, 1), { width: 20, isColored: false })).toContain('DENIED');
  });

  it('has a bold head and colored cells where colors are wanted, in the same columns', () => {
    const text = table(
      [
        ['STATE', 'N'],
        [{ text: 'ready', format: 'green' }, '1'],
      ],
      { width: 80, isColored: true },
    );
    expect(text).toBe('\u001b[1mSTATE\u001b[22m  \u001b[1mN\u001b[22m\n\u001b[32mready\u001b[39m  1');
  });

  it('escapes what a server says on a terminal only', () => {
    expect(table([['a\u001b[2J']], { width: 80, isColored: false })).toBe('a\\u{1b}[2J');
    expect(table([['a\u001b[2J']])).toBe('a\u001b[2J');
  });
});
