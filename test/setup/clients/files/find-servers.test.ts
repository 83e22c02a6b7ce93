import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync } from 'node:fs';
import { beforeEach, describe, expect, it } from 'vitest';
import { thisSystem } from '../../../../src/setup/clients/files/client-locations.js';
import { CLIENTS } from '../../../../src/setup/clients/files/client-table.js';
import { findServers } from '../../../../src/setup/clients/files/find-servers.js';
import type { FoundServer } from '../../../../src/setup/clients/files/found-server.js';
import { readServers } from '../../../../src/setup/clients/files/read-servers.js';
import { AMP, CODEX, CONTINUE, filesOn, GOOSE, JSON_ENTRY, OPENCODE, PLATFORMS, VS_CODE, ZED } from './client-files.js';
import { ClientHome } from './client-home.js';

let home: ClientHome;
beforeEach(() => {
  home = new ClientHome();
});

describe('the file of a user', () => {
  it.each(PLATFORMS)('of each client is found on %s', async (platform) => {
    const files = filesOn(platform);
    for (const { file, content } of files) home.write(file, content);
    const { servers, unreadable } = await findServers(home.system(platform));
    expect(unreadable).toEqual([]);
    expect(
      servers.map(({ place: { client, scope, file }, name, run }) => ({ client, scope, file, name, run })),
    ).toEqual(
      files.map(({ client, file }) => ({
        client,
        scope: 'user',
        file: home.path(file),
        name: 'files',
        run: { kind: 'command', command: 'npx', args: ['-y', 'files'], env: { KEY: 'v' } },
      })),
    );
  });

  it('is known for every client of the table', () => {
    const tested = filesOn('linux').map(({ client }) => client);
    expect(CLIENTS.map(({ client }) => client).filter((client) => !tested.includes(client))).toEqual(['cline-cursor']);
  });

  it('is where the variables of the client say', async () => {
    const codex = home.write('other/config.toml', CODEX);
    const claude = home.write('claude/.claude.json', JSON_ENTRY);
    const env = { CODEX_HOME: home.path('other'), CLAUDE_CONFIG_DIR: home.path('claude') };
    const { servers } = await findServers(home.system('linux', { env }));
    expect(servers.map(({ place }) => place.file)).toEqual([claude, codex]);
  });

  it('is read in every profile of VS Code', async () => {
    home.write('.config/Code/User/profiles/-1a2b/mcp.json', VS_CODE);
    const { servers } = await findServers(home.system());
    expect(servers.map(({ place }) => place.client)).toEqual(['vscode']);
  });

  it('of the system that runs is looked for where its environment says', () => {
    expect(thisSystem().cwd).toBe(process.cwd());
  });
});

describe('the file of a project', () => {
  it('is found from a folder inside the project, and the file of the user is not taken for one', async () => {
    home.write('.cursor/mcp.json', JSON_ENTRY);
    const project = home.write('work/app/.mcp.json', JSON_ENTRY);
    home.write('work/app/src/deep/.keep', '');
    const { servers } = await findServers(home.system('linux', { cwd: home.path('work/app/src/deep') }));
    expect(servers.map(({ place: { client, scope } }) => [client, scope])).toEqual([
      ['cursor', 'user'],
      ['claude-code', 'project'],
    ]);
    expect(servers[1]?.place.file).toBe(project);
  });

  it('is not read twice if variables make it the file of the user', async () => {
    home.write('app/.codex/config.toml', CODEX);
    const system = home.system('linux', { cwd: home.path('app'), env: { CODEX_HOME: home.path('app/.codex') } });
    expect((await findServers(system)).servers.map(({ place }) => place.scope)).toEqual(['user']);
  });

  it('may be the file of the user: Claude Code keeps servers of single projects there', async () => {
    const entry = { command: 'a' };
    home.write('.claude.json', JSON.stringify({ projects: { '/w/x': { mcpServers: { one: entry } }, '/w/y': {} } }));
    const { servers } = await findServers(home.system());
    expect(servers.map(({ name, place }) => [name, place.scope, place.path])).toEqual([
      ['one', 'local', ['projects', '/w/x', 'mcpServers']],
    ]);
  });
});

describe('a file that cannot be read', () => {
  it.each([
    ['.cursor/mcp.json', '{ "mcpServers": {\n "a": s3cret } }', 'it is not valid JSON: the mistake is in line 2'],
    ['.codex/config.toml', 'a = 1\nb = s3cret\n', 'it is not valid TOML: the mistake is in line 2'],
    ['.continue/config.yaml', 'a: 1\nb: [s3cret\n', /^it is not valid YAML: the mistake is in line \d$/],
    ['.lmstudio/mcp.json', '['.repeat(100_000), 'it is not valid JSON'],
  ])('%s is reported with the line, without its content, and the others are read', async (file, content, because) => {
    home.write(file, content);
    home.write('.kiro/settings/mcp.json', JSON_ENTRY);
    const { servers, unreadable } = await findServers(home.system());
    expect(servers).toHaveLength(1);
    expect(unreadable).toHaveLength(1);
    expect(unreadable[0]?.because).toMatch(because);
    expect(JSON.stringify(unreadable)).not.toContain('s3cret');
  });

  it.skipIf(process.platform === 'win32')('may be a pipe or a folder: neither is opened', async () => {
    mkdirSync(home.path('.cursor/mcp.json'), { recursive: true });
    mkdirSync(home.path('.lmstudio'));
    execFileSync('mkfifo', [home.path('.lmstudio/mcp.json')]);
    const { unreadable } = await findServers(home.system());
    expect(unreadable.map(({ because }) => because)).toEqual([
      'it is a folder, not a file',
      'it is a pipe, not a regular file',
    ]);
  });

  it('is not one that is a symbolic link, empty, or begins with a byte order mark', async () => {
    const target = home.write('dotfiles/mcp.json', JSON_ENTRY);
    mkdirSync(home.path('.cursor'));
    symlinkSync(target, home.path('.cursor/mcp.json'));
    home.write('.lmstudio/mcp.json', '');
    home.write('.kiro/settings/mcp.json', `\ufeff${JSON_ENTRY}`);
    const { servers, unreadable } = await findServers(home.system());
    expect(unreadable).toEqual([]);
    expect(servers.map(({ place }) => place.client)).toEqual(['cursor', 'kiro']);
  });
});

describe('an entry', () => {
  const read = async (file: string, content: string): Promise<FoundServer | undefined> => {
    home.write(file, content);
    return (await findServers(home.system())).servers[0];
  };
  const json = (entry: object) => JSON.stringify({ mcpServers: { it: entry } });

  it.each([
    ['.cursor/mcp.json', { url: 'https://a.example/mcp' }, 'http'],
    ['.cursor/mcp.json', { url: 'https://a.example/sse' }, 'sse'],
    ['.claude.json', { type: 'sse', url: 'https://a.example/x' }, 'sse'],
    ['.gemini/settings.json', { url: 'https://a.example/x' }, 'sse'],
    ['.gemini/settings.json', { httpUrl: 'https://a.example/x' }, 'http'],
    ['.codeium/windsurf/mcp_config.json', { serverUrl: 'https://a.example/x' }, 'http'],
    ['.cline/data/settings/cline_mcp_settings.json', { type: 'streamableHttp', url: 'https://a.example/x' }, 'http'],
  ])('of %s, %j, is a remote server with the transport %s %s', async (file, entry, transport) => {
    expect((await read(file, json({ ...entry, headers: { A: 'b' } })))?.run).toMatchObject({
      kind: 'remote',
      transport,
      headers: { A: 'b' },
    });
  });

  it('that is switched off, and the tools that the client shows, are known', async () => {
    const found = await read('.gemini/settings.json', json({ command: 'a', includeTools: ['x'], excludeTools: ['y'] }));
    expect(found).toMatchObject({ allowedTools: ['x'], deniedTools: ['y'], isDisabled: false, variables: 'gemini' });
    const toml = '[mcp_servers.it]\ncommand = "a"\nenabled = false\ndisabled_tools = ["z"]\ntool_timeout_sec = 90.0\n';
    home = new ClientHome();
    expect(await read('.codex/config.toml', toml)).toMatchObject({
      isDisabled: true,
      deniedTools: ['z'],
      run: { timeoutMs: 90_000 },
    });
  });

  it('of Claude Code that is switched off for its project is known', async () => {
    const server = { a: { command: 'a' }, b: { command: 'b' } };
    const folder = home.path('app');
    home.write('app/.mcp.json', JSON.stringify({ mcpServers: server }));
    const project = { mcpServers: server, disabledMcpServers: ['a'], disabledMcpjsonServers: ['b'] };
    home.write('.claude.json', JSON.stringify({ projects: { [folder]: project } }));
    const { servers } = await findServers(home.system('linux', { cwd: folder }));
    expect(servers.filter(({ isDisabled }) => isDisabled).map(({ name, place }) => [name, place.scope])).toEqual([
      ['a', 'local'],
      ['b', 'project'],
    ]);
  });

  it('of Gemini CLI that its lists of servers leave out is switched off', async () => {
    const mcpServers = { a: { command: 'a' }, b: { command: 'b' }, c: { command: 'c' } };
    home.write('.gemini/settings.json', JSON.stringify({ mcpServers, mcp: { allowed: ['a', 'b'], excluded: ['b'] } }));
    const { servers } = await findServers(home.system());
    expect(servers.map(({ isDisabled }) => isDisabled)).toEqual([false, true, true]);
  });

  it('that takes variables of the user by name refers to them', async () => {
    const toml = `[mcp_servers.it]
url = "https://a.example/mcp"
bearer_token_env_var = "TOKEN"
env_http_headers = { "X-Key" = "KEY" }
`;
    expect(await read('.codex/config.toml', toml)).toMatchObject({
      variables: 'claude-code',
      // biome-ignore lint/suspicious/noTemplateCurlyInString: A variable of the configuration.
      run: { headers: { Authorization: 'Bearer ${TOKEN}', 'X-Key': '${KEY}' } },
    });
  });

  it.each([
    ['.claude.json', 20_000, 20_000],
    ['.claude.json', 500, undefined],
    ['.cline/data/settings/cline_mcp_settings.json', 60, 60_000],
  ])('of %s with a timeout of %d has the unit of its client', async (file, timeout, expected) => {
    const found = await read(file, json({ command: 'a', timeout }));
    expect(found?.run).toHaveProperty('kind', 'command');
    expect(found?.run.kind === 'command' && found.run.timeoutMs).toBe(expected);
  });

  it('without a command and an address is left out, and a member named __proto__ does no harm', async () => {
    home.write('.cursor/mcp.json', '{"mcpServers": {"__proto__": {"command": "a"}, "b": {}, "c": null, "d": "x"}}');
    const { servers } = await findServers(home.system());
    expect(servers.map(({ name }) => name)).toEqual(['__proto__']);
  });
});

describe('a text of no known client', () => {
  const place = (file: string) => {
    return { client: 'file', title: file, scope: 'user', file, format: 'json', path: ['mcpServers'] } as const;
  };

  it.each([
    ['servers.json', JSON_ENTRY],
    ['mcp.jsonc', VS_CODE],
    ['config.toml', CODEX],
    ['config.yaml', GOOSE],
    ['config.yml', CONTINUE],
    ['-', JSON_ENTRY],
    ['-', CODEX],
    ['-', GOOSE],
    ['-', ZED],
    ['-', AMP],
    ['-', OPENCODE],
  ])('%s is read by its name and its content', (file, content) => {
    const [server] = readServers(place(file), content);
    expect(server).toMatchObject({ name: 'files', run: { command: 'npx', args: ['-y', 'files'], env: { KEY: 'v' } } });
  });

  it('that is nothing of this kind is refused with a sentence', () => {
    expect(() => readServers(place('-'), 's3cret')).toThrow('it is neither JSON, TOML nor YAML');
    expect(() => readServers(place('x.json'), '{"s3cret": 1}')).toThrow('it has no servers: no `mcpServers`');
  });
});
