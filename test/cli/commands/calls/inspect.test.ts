import { describe, expect, it } from 'vitest';
import { lineText } from '../../../../src/cli/commands/calls/inspect.js';
import { countsText } from '../../../../src/cli/commands/calls/record.js';
import { fitted } from '../../../../src/cli/terminal.js';
import { type Entry, parseLine } from '../../../../src/extras/record/format.js';

/** The shown text of a message, without the time. */
function shown(entry: Partial<Entry>, server?: string): string | undefined {
  const whole: Entry = { t: 0, dir: 'c>g', conn: 3, ...entry };
  return lineText({ kind: 'entry', entry: whole }, server)?.replace(/^[\d:.]+ /, '');
}

describe('a message that is inspected', () => {
  it('is one line: between whom, and what', () => {
    const raw = '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a"}}';
    expect(shown({ raw, client: 'agent/1' })).toBe('client →        agent/1 #3: tools/call 7 {"name":"a"}');
    expect(shown({ dir: 's>g', server: 'files', gen: 2, raw: '{"id":"x","result":{"n":1}}' })).toBe(
      '       ← server files gen 2: answer "x" {"n":1}',
    );
    expect(shown({ dir: 'g>c', raw: '{"id":1,"error":{"code":-1}}' })).toBe(
      'client ←        client #3: error 1 {"code":-1}',
    );
  });

  it('is shown although it is no message, no text, or was too large', () => {
    expect(shown({ raw: 'Hello\u001b[31m' })).toBe('client →        client #3: no message: Hello\\u{1b}[31m');
    expect(shown({ base64: Buffer.of(0x41, 0xff).toString('base64') })).toBe(
      'client →        client #3: no message: A\ufffd',
    );
    expect(shown({ omitted: 9 })).toBe('client →        client #3: a message of 9 bytes, too large to be recorded');
  });

  it('is left out if it is of another server', () => {
    expect(shown({ dir: 's>g', server: 'files', raw: '{}' }, 'memory')).toBeUndefined();
    expect(shown({ raw: '{}' }, 'files')).toBeUndefined();
  });

  it('is cut to the width of a terminal, and to nothing else', () => {
    expect(fitted('x'.repeat(30), { isTTY: true, columns: 10 })).toBe(`${'x'.repeat(9)}…`);
    expect(fitted('x'.repeat(300), {})).toHaveLength(300);
  });

  it('has its place among the gaps and the parts of a recording', () => {
    const header = {
      trunkline: 'recording',
      part: 2,
      version: '1.0.0',
      startedAt: 'then',
      servers: ['a', 'b'],
      note: 'why',
    };
    const text = (line: object) => {
      const parsed = parseLine(JSON.stringify(line));
      return parsed && lineText(parsed, undefined);
    };
    expect(text(header)).toBe('--- recording, part 2: Trunkline 1.0.0, from then, servers: a, b; why');
    expect(text({ t: 1, dropped: 3 })).toBe(
      '--- 3 messages are missing here, because they could not be written in time',
    );
    expect(text({ unknown: 1 })).toBeUndefined();
  });
});

describe('the size of a recording', () => {
  it('is a count of one message or several', () => {
    expect(countsText({ written: 1, dropped: 0 })).toBe('1 message');
    expect(countsText({ written: 2, dropped: 1 })).toBe(
      '2 messages; 1 is missing, because the disk was too slow or full',
    );
  });
});
