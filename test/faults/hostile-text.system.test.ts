import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Workplace } from '../cli/cli-run.js';
import { startAtTerminal } from '../support/terminal.js';
import { configureHostile, HOSTILE, unsafe } from './hostile-words.js';

let place: Workplace;
beforeEach(() => {
  place = new Workplace();
  configureHostile(place);
});
afterEach(() => place.dispose());

describe('a server whose every word is hostile', () => {
  it('F56: is shown escaped by `call` on a terminal', async () => {
    const { shown, ended } = startAtTerminal(place, 'call f__answer "$NONCE"', {
      NONCE: JSON.stringify({ nonce: HOSTILE }),
    });
    await ended;
    expect(shown()).toContain('\\u{1b}[31mred');
    // The line that shows the progress is erased with this sequence.
    expect(unsafe(shown().replaceAll('\u001b[K', ''))).toEqual([]);
  });
});
