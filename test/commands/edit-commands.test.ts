import { once } from 'node:events';
import { mkdirSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { Workplace } from '../cli/cli-run.js';
import { shownMode } from '../support/platform.js';

const PEER = fileURLToPath(new URL('../fixtures/cli/ok.mjs', import.meta.url));

let place: Workplace;
beforeEach(() => {
  place = new Workplace();
});
afterEach(() => place.dispose());

const read = (name: string) => readFileSync(join(place.folder, name), 'utf8');

describe('import', () => {
  it('creates a configuration that runs, with the secrets in a file of its own', async () => {
    mkdirSync(join(place.folder, '.cursor'));
    const servers = {
      'my server': {
        command: process.execPath,
        args: [PEER, `run=${place.folder}`],
        env: { API_TOKEN: 'canary-7f3a', LEVEL: 'info' },
      },
      trunkline: { command: 'trunkline' },
    };
    place.write('.cursor/mcp.json', JSON.stringify({ mcpServers: servers }));
    const first = await place.run(['import']);
    expect(first).toMatchObject({ code: 1, stdout: '' });
    expect(first.stderr).toContain('Nothing was written, because');
    const { code, stderr } = await place.run(['import', '--yes']);
    expect(code).toBe(0);
    expect(stderr).toMatch(/my server +Cursor .* API_TOKEN LEVEL +new as my-server\n/);
    expect(stderr).toMatch(/trunkline .* skipped: it is Trunkline itself\n/);
    expect(first.stderr + stderr).not.toContain('canary');
    expect(read('none/trunkline/trunkline.env')).toBe('MY_SERVER_API_TOKEN=canary-7f3a\n');
    expect(read('none/trunkline/trunkline.yaml')).not.toContain('canary');
    for (const name of ['env', 'yaml']) {
      expect(statSync(join(place.folder, `none/trunkline/trunkline.${name}`)).mode & 0o777).toBe(shownMode(0o600));
    }
    expect(await place.run(['check'])).toMatchObject({ code: 0, stdout: expect.stringMatching(/\nmy-server +ready/) });
  });

  it('prints its plan as JSON, for servers on stdin', async () => {
    const input = JSON.stringify({ mcpServers: { a: { command: 'node', args: ['--key=canary-7f3a'] } } });
    const { code, stdout } = await place.run(['import', '--from', '-', '--json'], input);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ written: false, servers: [{ name: 'a', key: 'a', verdict: 'new' }] });
    expect(stdout).not.toContain('canary');
  });
});

describe('add, disable, enable and remove', () => {
  it('change one server and no other byte', async () => {
    const text = '# mine\nservers:\n  files: {command: node} # keep\n';
    place.write('trunkline.yaml', text);
    expect(await place.run(['add', 'time', '--env', 'ZONE=utc', '--', 'uvx', '--quiet', 'time'])).toMatchObject({
      code: 0,
    });
    const added = `${text}  time:\n    command: uvx\n    args: [--quiet, time]\n    env:\n      ZONE: utc\n`;
    expect(read('trunkline.yaml')).toBe(added);
    const configFile = join(place.folder, 'trunkline.yaml');
    const disabled = await place.run(['disable', 'time', '--json']);
    expect(JSON.parse(disabled.stdout)).toEqual({
      configFile,
      server: 'time',
      result: 'disabled',
      unused: [],
      files: [],
    });
    expect(read('trunkline.yaml')).toBe(`${added}    disabled: true\n`);
    await place.run(['enable', 'time']);
    expect(read('trunkline.yaml')).toBe(added);
    await place.run(['remove', 'time']);
    expect(read('trunkline.yaml')).toBe(text);
    const last = await place.run(['remove', 'files']);
    expect(last).toMatchObject({ code: 2, stderr: expect.stringContaining('files is the only server') });
    const unknown = await place.run(['disable', 'flies']);
    expect(unknown).toMatchObject({ code: 2, stderr: expect.stringContaining('did you mean `files`?') });
  });

  it.each([
    ['my.server', 'node', 'did you mean `my-server`?'],
    ['trunkline', 'node', 'this key is reserved'],
    ['playwright', '--headless', 'write `trunkline add NAME playwright -- …`'],
  ])('refuse to take the name %s before `-- %s` for something else', async (name, word, message) => {
    const { code, stderr } = await place.run(['add', name, '--', word]);
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
  });

  it('name a place for an unset variable from which the server gets it', async () => {
    place.write('trunkline.yaml', 'servers: { a: { command: node } }\n');
    const file = join(place.folder, 'trunkline.env');
    const alone = await place.run(['add', 'b', '--env', 'KEY', '--', 'node']);
    expect(alone.stderr).toContain(
      `set KEY in your environment, or in ${file} with \`envFile: trunkline.env\` in its entry\n`,
    );
    const beside = await place.run(['add', 'c', '--env', 'KEY', '--env', 'TOKEN=canary-7f3a', '--', 'node']);
    expect(beside.stderr).toContain(`set KEY in ${file} or in your environment\n`);
  });

  it('name a variable of a removed server as unused only if nothing else in the file refers to it', async () => {
    const rest = `  files: { command: "\${BY_COMMAND}" }\ndefaults: { env: { SHARED: "\${BY_ALL}" } }\n`;
    const args = `args: ["\${MINE}", "\${BY_COMMAND}", "\${BY_ALL}"], envFile: trunkline.env`;
    place.write('trunkline.yaml', `servers:\n  time: { command: node, ${args} }\n${rest}`);
    place.write('trunkline.env', 'MINE=1\nBY_COMMAND=node\nBY_ALL=2\n');
    const { stdout } = await place.run(['remove', 'time', '--json']);
    expect(JSON.parse(stdout)).toMatchObject({ result: 'removed', unused: ['MINE'] });
  });

  it('add a server behind a URL, except below `mcpServers`', async () => {
    place.write('trunkline.yaml', 'servers: { a: { command: node } }\n');
    const added = await place.run(['add', 'docs', 'https://docs.test/mcp']);
    expect(added).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('if it needs a login, run `trunkline login`'),
    });
    expect(read('trunkline.yaml')).toContain('"docs": { "url": "https://docs.test/mcp" }');
    const headers = ['--header', `Authorization: Bearer \${secret:X}`, '--header', 'X-Key:canary-7f3a91'];
    const { code } = await place.run(['add', 'two', 'https://two.test/mcp', ...headers]);
    expect(code).toBe(0);
    expect(read('trunkline.yaml')).toContain(
      `"headers": { "Authorization": "Bearer \${secret:X}", "X-Key": "\${TWO_X_KEY}" }`,
    );
    expect(read('trunkline.env')).toBe('TWO_X_KEY=canary-7f3a91\n');
    place.write('trunkline.yaml', '{ "mcpServers": { "a": { "command": "node" } } }');
    const refused = await place.run(['add', 'docs', 'https://docs.test/mcp']);
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('are used below `servers:` only') });
  });

  it('add a confined server, with the known needs of its package', async () => {
    const words = ['add', 'github', '@modelcontextprotocol/server-github', '--sandbox', '--dry-run'];
    const { code, stdout } = await place.run(words);
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: 'github:\n  package: "@modelcontextprotocol/server-github"\n  sandbox:\n    network: [api.github.com]\n',
    });
  });

  it('add a server of the registry', async () => {
    const server = {
      name: 'io.github.ada/notes',
      packages: [{ registryType: 'npm', identifier: 'notes', version: '1.0.0' }],
    };
    const registry = createServer((_, response) => response.end(JSON.stringify({ server }))).listen(0, '127.0.0.1');
    await once(registry, 'listening');
    onTestFinished(() => {
      registry.close();
    });
    place.env.TRUNKLINE_REGISTRY_URL = `http://127.0.0.1:${(registry.address() as AddressInfo).port}`;
    const words = ['add', 'io.github.ada/notes', '--dry-run'];
    const { code, stdout } = await place.run([...words, '--', '/notes']);
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'notes:\n  package: notes@1.0.0\n  args: [/notes]\n' });
    const asJson = await place.run([...words, '--json', '--', '/notes']);
    expect(JSON.parse(asJson.stdout)).toEqual({
      ...{ configFile: join(place.folder, 'none/trunkline/trunkline.yaml'), envFile: null, written: false },
      ...{ server: 'notes', entry: { package: 'notes@1.0.0', args: ['/notes'] }, unset: [] },
    });
  });
});
