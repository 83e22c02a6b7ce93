import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { FoundServer } from '../../../src/clients/files/found-server.js';
import { identityOf, isOurselves } from '../../../src/clients/files/identity.js';
import { ClientHome } from './client-home.js';

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
  let home: ClientHome;
  beforeEach(() => {
    home = new ClientHome();
  });
  afterEach(() => home.remove());

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
