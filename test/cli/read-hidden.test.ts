import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { readHidden } from '../../src/cli/questions.js';

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
