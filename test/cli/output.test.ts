import { describe, expect, it } from 'vitest';
import { folded, forStream, print } from '../../src/cli/output.js';
import { ProgressLine } from '../../src/cli/terminal.js';

describe('text of a server', () => {
  const text = 'one\u001b[2J\u202e\r\n\ttwo\n';

  it('is escaped on a terminal, except line ends and tabs', () => {
    expect(forStream(text, { isTTY: true })).toBe('one\\u{1b}[2J\\u{202e}\n\ttwo\n');
  });

  it('is left as it is anywhere else', () => {
    expect(forStream(text, {})).toBe(text);
  });
});

describe('a line of sentences that is wider than a terminal', () => {
  it.each([
    ['breaks at spaces', 'one two three', 0, ['one two', 'three']],
    ['keeps its indentation', '  one two three', 0, ['  one two', '  three']],
    ['keeps the room of a bar', ' | one two three', 0, [' | one', '   two', '   three']],
    ['hangs under its beginning', 'one two three four', 2, ['one two', '  three', '  four']],
    ['keeps a command whole', 'run `a b c`, then go', 0, ['run', '`a b c`,', 'then go']],
    ['keeps a long word whole', 'see /home/ada/notes now', 0, ['see', '/home/ada/notes', 'now']],
    ['takes a single backtick as a letter', 'don`t one two', 0, ['don`t one', 'two']],
    ['counts no colors', '\u001b[31mone\u001b[39m two 3', 0, ['\u001b[31mone\u001b[39m two 3']],
  ])('%s', (_, text, hang, lines) => {
    expect(folded(text, 9, hang).split('\n')).toEqual(lines);
    expect(folded(text, undefined, hang)).toBe(text);
  });

  it('is broken alone: the other lines stay as they are', () => {
    expect(folded('A    B\n\none two three\n', 9)).toBe('A    B\n\none two\nthree\n');
  });
});

describe('a progress line', () => {
  it.each([
    ['fits', 4, 'fits'],
    ['does not', 5, 'does…'],
    ['漢字です', 8, '漢字です'],
    ['漢字です', 7, '漢字で…'],
    ['e\u0301e\u0301e\u0301', 2, 'e\u0301…'],
    ['', 1, ''],
  ])('%s in %i columns is %s', (line, columns, expected) => {
    const written: string[] = [];
    // A terminal starts a new line after the last column, so the line stays out of it.
    const terminal = { isTTY: true, columns: columns + 1, write: (text: string) => written.push(text) };
    new ProgressLine(terminal as unknown as NodeJS.WriteStream).show(line);
    expect(written).toEqual([`\r\x1b[K${expected}`]);
  });
});

describe('printing', () => {
  it('leaves no listener on stdout, however many lines are printed', async () => {
    const before = process.stdout.listenerCount('error');
    for (let line = 0; line < 3; line += 1) await print('');
    expect(process.stdout.listenerCount('error')).toBe(before);
  });
});
