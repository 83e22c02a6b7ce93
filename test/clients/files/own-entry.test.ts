import { mkdirSync, symlinkSync } from 'node:fs';
import { dirname } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ownCommand } from '../../../src/clients/files/own-entry.js';
import { ClientHome } from './client-home.js';

let home: ClientHome;
beforeEach(() => {
  home = new ClientHome();
});
afterEach(() => home.remove());

function link(from: string, to: string): string {
  const path = home.path(from);
  mkdirSync(dirname(path), { recursive: true });
  symlinkSync(home.path(to), path);
  return path;
}

describe('the registered command', () => {
  it('is the Node.js that runs with the real path of the program, and the configuration', () => {
    const execPath = home.write('usr/bin/node', '');
    const program = home.write('lib/node_modules/trunkline/dist/cli.js', '');
    const cliPath = link('bin/trunkline', 'lib/node_modules/trunkline/dist/cli.js');
    expect(ownCommand({ execPath, cliPath, config: '/etc/t.yaml' })).toEqual({
      command: execPath,
      args: [program, '--config', '/etc/t.yaml'],
    });
  });

  it.each([
    ['opt/homebrew/Cellar/node@22/22.1.0/bin/node', 'opt/homebrew/opt/node@22', 'opt/homebrew/Cellar/node@22/22.1.0'],
    [
      '.local/share/fnm/node-versions/v22/installation/bin/node',
      '.local/share/fnm/aliases/default',
      '.local/share/fnm/node-versions/v22/installation',
    ],
    ['.nvm/versions/node/v22.1.0/bin/node', '.nvm/current', '.nvm/versions/node/v22.1.0'],
    [
      '.local/share/mise/installs/node/22.1.0/bin/node',
      '.local/share/mise/installs/node/lts',
      '.local/share/mise/installs/node/22.1.0',
    ],
  ])('uses the link that outlives %s', (file, from, to) => {
    const execPath = home.write(file, '');
    const cliPath = home.write('lib/cli.js', '');
    link(from, to);
    expect(ownCommand({ execPath, cliPath, config: undefined })).toEqual({
      command: home.path(`${from}/bin/node`),
      args: [cliPath],
    });
  });

  it('does not use a link to another version, and warns that this one may go', () => {
    const execPath = home.write('.nvm/versions/node/v22.1.0/bin/node', '');
    home.write('.nvm/versions/node/v20.0.0/bin/node', '');
    link('.nvm/current', '.nvm/versions/node/v20.0.0');
    const { command, warning } = ownCommand({ execPath, cliPath: home.write('cli.js', ''), config: undefined });
    expect(command).toBe(execPath);
    expect(warning).toContain('is gone when you remove this version of Node.js');
  });

  it('never names the folder that fnm makes for one shell', () => {
    home.write('fnm/node-versions/v22/installation/bin/node', '');
    const execPath = link('run/fnm_multishells/12_3/bin/node', 'fnm/node-versions/v22/installation/bin/node');
    const { command } = ownCommand({ execPath, cliPath: home.write('cli.js', ''), config: undefined });
    expect(command).toBe(home.path('fnm/node-versions/v22/installation/bin/node'));
  });

  it('warns of a program in the cache of npx', () => {
    const execPath = home.write('usr/bin/node', '');
    const cliPath = home.write('.npm/_npx/a1/node_modules/trunkline/dist/cli.js', '');
    expect(ownCommand({ execPath, cliPath, config: undefined }).warning).toContain('the cache of npx');
  });
});
