import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { openedPaths } from '../../../../src/setup/clients/import/opened-paths.js';
import type { Run } from '../../../../src/setup/clients/import/run.js';
import { toEntry } from '../../../../src/setup/clients/import/to-entry.js';
import { folderWith } from '../../../config/files.js';
import { IS_WINDOWS } from '../../../support/platform.js';

let home: string;
beforeEach(() => {
  home = folderWith();
  for (const folder of ['notes', 'keys', 'db']) mkdirSync(join(home, folder));
  for (const file of ['notes/a.db', 'keys/google.json', 'server.js']) writeFileSync(join(home, file), '');
});
function run(args: readonly string[], env: Record<string, string> = {}): Run {
  return { program: { command: 'node' }, args, env };
}

const opened = (args: readonly string[], env: Record<string, string> = {}) =>
  openedPaths(run(args, env), { home, env: { HOME: home } }).map(({ path, access }) => `${access} ${path}`);

// Windows has no sandbox.
describe.skipIf(IS_WINDOWS)('the paths that a confined server may use because its entry names them', () => {
  it('are folders and files, of arguments, options and variables, and the folder of a file that is to be created', () => {
    const args = [`${home}/server.js`, '~/notes', `--db=${home}/notes/a.db`, '--verbose'];
    expect(opened(args, { NEW_FILE: `\${HOME}/db/new.sqlite`, LEVEL: 'info' })).toEqual([
      'write ~/notes',
      'write ~/notes/a.db',
      'write ~/db',
    ]);
  });

  it('are read only if their names say that they hold credentials or settings', () => {
    const env = { GOOGLE_APPLICATION_CREDENTIALS: `${home}/keys/google.json` };
    expect(opened(['--config', '~/keys/google.json'])).toEqual(['read ~/keys/google.json']);
    expect(opened([], env)).toEqual(['read ~/keys/google.json']);
  });

  it('are neither the home folder, nor what holds many others, nor what does not exist', () => {
    const env = { KEY_FILE: '~/keys/none.json', URL: 'https://a.test/x', TOKEN: `\${secret:TOKEN}` };
    expect(opened(['/', '/usr', home, '~/', '/tmp', '~/none/file', '/nowhere/x'], env)).toEqual([]);
  });

  it('are in the entry, together with the needs of a known package', () => {
    const github = { ...run([`${home}/notes`]), program: { package: '@modelcontextprotocol/server-github' } };
    const { entry } = toEntry(github, 'github', {
      ...{ secrets: { put: (name: string) => name, envFile: undefined, values: {} }, env: {}, isConfined: true },
      opened: openedPaths(github, { home, env: {} }),
    });
    expect(entry.sandbox).toEqual({ write: ['~/notes'], network: ['api.github.com'] });
  });
});
