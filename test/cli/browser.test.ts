import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { browserCommand } from '../../src/cli/browser.js';
import { folderWith } from '../config/files.js';

const URL = 'https://mcp.example/?a=1&b=2';

afterEach(() => {
  vi.unstubAllEnvs();
});

describe('the browser of the variable BROWSER', () => {
  it.each([
    ['a program', 'firefox', ['firefox', URL]],
    ['words', 'firefox --new-window', ['firefox', '--new-window', URL]],
    ['words with the place of the URL', 'open %s -a Safari', ['open', URL, '-a', 'Safari']],
    ['a path in quotes', '"C:\\Program Files\\b.exe" -new', ['C:\\Program Files\\b.exe', '-new', URL]],
  ])('may be %s', (_, value, words) => {
    vi.stubEnv('BROWSER', value);
    expect(browserCommand(URL)).toEqual(words);
  });

  it('may be the path of a file with spaces, without quotes', () => {
    const file = join(folderWith({ 'my browser': '' }), 'my browser');
    vi.stubEnv('BROWSER', file);
    expect(browserCommand(URL)).toEqual([file, URL]);
  });
});
