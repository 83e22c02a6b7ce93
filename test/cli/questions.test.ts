import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { openQuestions, readHidden } from '../../src/cli/questions.js';

/** A terminal on which a person presses these keys. */
function terminal() {
  const input = Object.assign(new PassThrough(), { isTTY: true, setRawMode: () => {} });
  const output = Object.assign(new PassThrough(), { isTTY: true, columns: 0, rows: 0 });
  let shown = '';
  output.on('data', (chunk) => {
    shown += chunk;
  });
  return { input, output, shown: () => shown };
}

const [CTRL_C, ENTER, SPACE] = ['\u0003', '\r', ' '];

async function confirmed(key: string, byDefault: boolean): Promise<boolean | undefined> {
  const { input, output } = terminal();
  const questions = await openQuestions({ input, output } as never);
  const answer = questions?.confirm('Approve edit?', { byDefault });
  input.write(key);
  return await answer;
}

describe('questions of a command', () => {
  it.each([
    [{ isTTY: false }, { isTTY: true }],
    [{ isTTY: true }, { isTTY: false }],
  ])('are not asked with stdin %j and stderr %j, because nobody could answer', async (input, output) => {
    expect(await openQuestions({ input, output } as never)).toBeUndefined();
  });

  it.each([
    ['y', false, true],
    ['n', true, false],
    [ENTER, false, false],
    [ENTER, true, true],
    [CTRL_C, true, undefined],
  ])('take the key %j, where Enter means %s, as %s', async (key, byDefault, answer) => {
    expect(await confirmed(key, byDefault)).toBe(answer);
  });

  it('end without an answer when a signal ends the command', async () => {
    const { input, output } = terminal();
    const questions = await openQuestions({ input, output } as never);
    const ending = new AbortController();
    const answer = questions?.confirm('Approve edit?', { byDefault: false, signal: ending.signal });
    ending.abort();
    expect(await answer).toBeUndefined();
  });

  it('offer choices, all of them chosen at first, and show no control characters', async () => {
    const { input, output, shown } = terminal();
    const questions = await openQuestions({ input, output } as never);
    const choices = [
      { value: 1, label: 'Cursor' },
      { value: 2, label: 'Evil\u001b[2J' },
    ];
    const answer = questions?.choose('Which clients?', choices);
    input.write(SPACE);
    input.write(ENTER);
    expect(await answer).toEqual([2]);
    // The size of this terminal is not known.
    expect(shown()).toContain('Evil\\u{1b}[2J');
  });
});

async function typed(text: string) {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const value = readHidden(input, output, 'Value: ');
  input.write(text);
  return [await value, String(output.read())];
}

describe('a hidden prompt', () => {
  it('takes what is typed up to Enter, and shows none of it', async () => {
    expect(await typed('huntex\x7fr2\rmore')).toEqual(['hunter2', 'Value: \n']);
  });

  it('takes nothing after Ctrl-C', async () => {
    expect(await typed('hunter\x03')).toEqual([undefined, 'Value: \n']);
  });
});
