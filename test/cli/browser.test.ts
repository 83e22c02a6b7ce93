import { execFileSync } from 'node:child_process';
import { chmodSync } from 'node:fs';
import { delimiter, join } from 'node:path';
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

describe.skipIf(process.platform === 'win32')('the browser of macOS', () => {
  /** Runs the command with these programs in place of those of macOS. Returns the arguments of `open`. */
  function opened(osascript: string): readonly string[] {
    const programs = { open: '#!/bin/sh\nprintf "%s\\n" "$@"\n', osascript: `#!/bin/sh\n${osascript}\n` };
    const folder = folderWith(programs);
    for (const name of Object.keys(programs)) chmodSync(join(folder, name), 0o755);
    vi.stubEnv('BROWSER', '');
    const [program = '', ...args] = browserCommand(URL, 'darwin');
    const env = { PATH: [folder, process.env.PATH].join(delimiter) };
    return execFileSync(program, args, { env, encoding: 'utf8' }).trim().split('\n');
  }

  it('is the program for web pages, not the one for HTML files', () => {
    expect(opened('echo "/Applications/My Browser.app"')).toEqual(['-a', '/Applications/My Browser.app', URL]);
  });

  it('is the one that `open` chooses where the system names none', () => {
    expect(opened('exit 1')).toEqual([URL]);
  });
});
