import { describe, expect, it } from 'vitest';
import { table } from '../../src/cli/terminal.js';

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

  it('is as wide as the terminal at most: the widest columns are cut', () => {
    expect(table(TOOLS, { width: 60, isColored: false }).split('\n')).toEqual([
      'TOOL                   SERVER  DESCRIPTION',
      'files__read_text_file  files   Reads a file as text and ret…',
      'files__write           files   Writes.',
    ]);
  });

  it('keeps a few columns of each cell in a terminal that is too narrow', () => {
    const widest = table(TOOLS, { width: 10, isColored: false }).split('\n')[1];
    expect(widest).toBe('files…  files   Reads…');
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
