import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished, test } from 'vitest';
import {
  fetchServer,
  isRegistryName,
  packageKey,
  runFromRegistry,
} from '../../../../src/setup/clients/import/registry.js';

const NPM = {
  name: 'io.github.ada/notes',
  version: '1.4.0',
  packages: [
    { registryType: 'pypi', identifier: 'notes', version: '1.4.0', transport: { type: 'stdio' } },
    {
      registryType: 'npm',
      identifier: '@ada/notes',
      version: '1.4.0',
      transport: { type: 'stdio' },
      packageArguments: [
        { type: 'named', name: '--mode', value: '{mode}', variables: { mode: { default: 'safe' } } },
        { type: 'named', name: '--verbose', default: 'no' },
        { type: 'positional', valueHint: 'folder', isRequired: true },
      ],
      environmentVariables: [
        { name: 'NOTES_KEY', isRequired: true, isSecret: true },
        { name: 'NOTES_LEVEL', isRequired: true, default: 'info' },
        { name: 'NOTES_COLOR', default: 'red' },
      ],
    },
  ],
};

/** Answers as the registry does, with the recorded answers by path. */
async function registryWith(answers: Readonly<Record<string, unknown>>): Promise<string> {
  const server = createServer(({ url = '' }, response) => {
    const answer = answers[url];
    response.writeHead(answer === undefined ? 404 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(answer ?? { title: 'Not Found', status: 404 }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe('the official registry', () => {
  it('is asked for the latest version of a server', async () => {
    const path = '/v0.1/servers/io.github.ada%2Fnotes/versions/latest';
    const address = await registryWith({ [path]: { server: NPM, _meta: {} } });
    expect(await fetchServer('io.github.ada/notes', `${address}/`)).toEqual(NPM);
  });

  it('offers similar names for one that it does not have', async () => {
    const hits = { servers: [{ server: NPM, _meta: {} }, { server: { name: 'bad name' } }], metadata: { count: 2 } };
    const address = await registryWith({ '/v0.1/servers?search=notes&version=latest&limit=20': hits });
    await expect(fetchServer('io.github.eve/notes', address)).rejects.toMatchObject({
      message: 'the registry has no server `io.github.eve/notes`',
      hint: 'similar ones are io.github.ada/notes',
    });
    await expect(fetchServer('io.github.eve/other', address)).rejects.toMatchObject({ hint: 'check the name' });
  });

  it('F117: that does not answer, or not as a registry, is named', async () => {
    const address = await registryWith({ '/v0.1/servers/a.b%2Fc/versions/latest': ['?'] });
    await expect(fetchServer('a.b/c', address)).rejects.toThrow(`the answer of ${address} is not that of a registry`);
    await expect(fetchServer('a.b/c', 'http://127.0.0.1:1')).rejects.toThrow(/127\.0\.0\.1:1 cannot be reached/);
  });
});

describe('a server of the registry', () => {
  it('runs as its npm package, with what it needs and what the user gives', () => {
    expect(runFromRegistry(NPM, { env: { NOTES_KEY: 'k', MORE: 'm' }, args: ['/notes'] })).toEqual({
      run: {
        program: { package: '@ada/notes', version: '1.4.0' },
        args: ['--mode', 'safe', '/notes'],
        env: { NOTES_KEY: 'k', NOTES_LEVEL: 'info', MORE: 'm' },
      },
      secretVariables: ['NOTES_KEY'],
    });
  });

  it('says everything that is missing', () => {
    expect(() => runFromRegistry(NPM, { env: {}, args: [] })).toThrow('it needs `--env NOTES_KEY=VALUE`, `-- FOLDER`');
  });

  const runOf = (server: object, env = {}) => runFromRegistry({ ...server }, { env, args: [] }).run;

  it('runs with the program of its kind of package', () => {
    const packageOf = (registryType: string, more = {}) => {
      return { packages: [{ registryType, identifier: 'x/y', version: '1', ...more }] };
    };
    expect(runOf(packageOf('pypi'))).toMatchObject({ program: { command: 'uvx' }, args: ['x/y@1'] });
    expect(runOf(packageOf('nuget'))).toMatchObject({ program: { command: 'dnx' }, args: ['x/y@1', '--yes'] });
    expect(runOf(packageOf('oci'), { A: '1' })).toEqual({
      program: { command: 'docker' },
      args: ['run', '-i', '--rm', '-e', 'A', 'x/y:1'],
      env: { A: '1' },
    });
    expect(() => runOf(packageOf('mcpb'))).toThrow('has no package of it that Trunkline can run');
    expect(() => runOf(packageOf('npm', { transport: { type: 'streamable-http' } }))).toThrow('no remote endpoint');
  });

  it('is reached at its endpoint if it has no package', () => {
    const url = 'https://{region}.a.test/mcp';
    const remotes = [
      { type: 'sse', url: 'https://a.test/sse' },
      {
        ...{ type: 'streamable-http', url, variables: { region: { isRequired: true } } },
        headers: [{ name: 'X-Key', isRequired: true, isSecret: true }, { name: 'X-Other' }],
      },
    ];
    expect(() => runOf({ remotes })).toThrow('it needs `--env REGION=VALUE`, `--env X_KEY=VALUE`');
    expect(runOf({ remotes }, { REGION: 'eu', X_KEY: 'k' })).toEqual({
      program: { url: 'https://eu.a.test/mcp', transport: 'http', headers: { 'X-Key': 'k' } },
      args: [],
      env: {},
    });
  });
});

test('names of the registry are told from packages', () => {
  const names = ['io.github.a/b', '@a/b', 'a/b', 'a', 'ai.x.y/Z_1.2', 'https://a.b/c'];
  expect(names.map(isRegistryName)).toEqual([true, false, false, false, true, false]);
});

test.each([
  ['@modelcontextprotocol/server-filesystem', 'filesystem'],
  ['@playwright/mcp', 'playwright'],
  ['mcp-server-git', 'git'],
  ['notion-mcp-server', 'notion'],
  ['io.github.ada/notes-mcp', 'notes'],
  ['server', 'server'],
  ['mcp-remote', 'remote'],
])('the key for %s is %s', (name, key) => {
  expect(packageKey(name)).toBe(key);
});
