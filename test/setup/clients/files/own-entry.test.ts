import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import type { FoundServer } from '../../../../src/setup/clients/files/found-server.js';
import { identityOf, isOurselves, ownCommand } from '../../../../src/setup/clients/files/own-entry.js';
import { ClientHome } from './client-home.js';

let home: ClientHome;
beforeEach(() => {
  home = new ClientHome();
});

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
    expect(ownCommand(execPath, cliPath, '/etc/t.yaml')).toEqual({
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
    expect(ownCommand(execPath, cliPath, '/etc/t.yaml')).toEqual({
      command: home.path(`${from}/bin/node`),
      args: [cliPath, '--config', '/etc/t.yaml'],
    });
  });

  it('does not use a link to another version, and warns that this one may go', () => {
    const execPath = home.write('.nvm/versions/node/v22.1.0/bin/node', '');
    home.write('.nvm/versions/node/v20.0.0/bin/node', '');
    link('.nvm/current', '.nvm/versions/node/v20.0.0');
    const { command, warning } = ownCommand(execPath, home.write('cli.js', ''), '/etc/t.yaml');
    expect(command).toBe(execPath);
    expect(warning).toContain('is gone when you remove this version of Node.js');
  });

  it('never names the folder that fnm makes for one shell', () => {
    home.write('fnm/node-versions/v22/installation/bin/node', '');
    const execPath = link('run/fnm_multishells/12_3/bin/node', 'fnm/node-versions/v22/installation/bin/node');
    const { command } = ownCommand(execPath, home.write('cli.js', ''), '/etc/t.yaml');
    expect(command).toBe(home.path('fnm/node-versions/v22/installation/bin/node'));
  });

  it('warns of a program in the cache of npx', () => {
    const execPath = home.write('usr/bin/node', '');
    const cliPath = home.write('.npm/_npx/a1/node_modules/trunkline/dist/cli.js', '');
    expect(ownCommand(execPath, cliPath, '/etc/t.yaml').warning).toContain('the cache of npx');
  });
});

const command = (...[program = '', ...args]: string[]): FoundServer['run'] => {
  return { kind: 'command', command: program, args, env: {} };
};
const remote = (url: string): FoundServer['run'] => ({ kind: 'remote', url, transport: 'http', headers: {} });

describe('two entries are the same server', () => {
  it.each([
    [command('npx', '-y', 'files@1.2.3', '/a'), command('bunx', 'files', '/a')],
    [command('npx', '-y', '@x/files@latest', '/a'), command('cmd', '/c', 'npx.cmd', '--yes', '@x/files', '/a')],
    [command('/usr/bin/npx', 'files'), command('pnpm', 'dlx', 'files')],
    [command('/usr/bin/uvx', 'git'), command('uvx.exe', 'git')],
    [remote('https://A.example/mcp/'), remote('https://a.example/mcp')],
    [remote('https://a.example/mcp'), command('npx', '-y', 'mcp-remote', 'https://a.example/mcp')],
  ])('%j and %j', (one, other) => {
    expect(identityOf(one)).toBe(identityOf(other));
  });

  it.each([
    [command('npx', '-y', 'files', '/a'), command('npx', '-y', 'files', '/b')],
    [command('npx', '-p', 'a', 'b'), command('npx', '-p', 'a', 'c')],
    [remote('https://a.example/mcp?team=1'), remote('https://a.example/mcp?team=2')],
    [command('node', 'a.js'), command('node', 'b.js')],
  ])('but not %j and %j', (one, other) => {
    expect(identityOf(one)).not.toBe(identityOf(other));
  });
});

describe('an entry that starts Trunkline', () => {
  it('is known by its program, also through a link, and in another installation', () => {
    const cli = home.write('one/dist/cli.js', '');
    const other = home.write('two/dist/cli.js', '');
    writeFileSync(home.path('two/package.json'), '{"name": "trunkline"}');
    mkdirSync(home.path('bin'));
    symlinkSync(cli, home.path('bin/cli.js'));
    const stranger = home.write('three/dist/cli.js', '');
    expect(isOurselves(command('/usr/bin/node', cli, '--config', 'x'), cli)).toBe(true);
    expect(isOurselves(command('node', home.path('bin/cli.js')), cli)).toBe(true);
    expect(isOurselves(command('node', other), cli)).toBe(true);
    expect(isOurselves(command('node', stranger), cli)).toBe(false);
  });

  it.each([
    [command('npx', '-y', 'trunkline@1.0.0'), true],
    [command('C:\\npm\\trunkline.cmd'), true],
    [command('node', '/gone/trunkline/dist/cli.js'), true],
    [command('node', '/gone/other/dist/cli.js'), false],
    [command('npx', '-y', 'trunkline-other'), false],
    [remote('http://127.0.0.1:7411/mcp'), false],
  ])('%j: %s', (run, expected) => {
    expect(isOurselves(run, '/nowhere/cli.js')).toBe(expected);
  });
});
