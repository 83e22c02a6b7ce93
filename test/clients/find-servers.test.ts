import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { findServers } from '../../src/clients/find-servers.js';
import type { ClientSystem, FoundServer } from '../../src/clients/found-server.js';
import { readServers } from '../../src/clients/read-servers.js';
import { thisSystem } from '../../src/clients/this-system.js';
import { ClientHome } from './client-home.js';

let home: ClientHome;
beforeEach(() => {
  home = new ClientHome();
});
afterEach(() => home.remove());

const AS = 'Library/Application Support';
const ROAMING = 'AppData/Roaming';
const JSON_ENTRY = JSON.stringify({
  mcpServers: { files: { command: 'npx', args: ['-y', 'files'], env: { KEY: 'v' } } },
});
const VS_CODE = `{
  // mine
  "inputs": [],
  "servers": { "files": { "type": "stdio", "command": "npx", "args": ["-y", "files"], "env": { "KEY": "v" } }, },
}`;
const CODEX = `[mcp_servers.files]\ncommand = "npx"\nargs = ["-y", "files"]\nenv = { KEY = "v" }\n`;
const ZED =
  '{ "context_servers": { "files": { "command": { "path": "npx", "args": ["-y", "files"], "env": { "KEY": "v" } } } } }';
const OPENCODE =
  '{ "mcp": { "files": { "type": "local", "command": ["npx", "-y", "files"], "environment": { "KEY": "v" } } } }';
const GOOSE = `extensions:
  developer:
    type: builtin
    name: developer
  files:
    type: stdio
    cmd: npx
    args: [-y, files]
    envs: { KEY: v }
`;
const CONTINUE = 'mcpServers:\n  - name: files\n    command: npx\n    args: [-y, files]\n    env:\n      KEY: v\n';
const AMP = '{ "amp.mcpServers": { "files": { "command": "npx", "args": ["-y", "files"], "env": { "KEY": "v" } } } }';
const CLINE = 'globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json';

type Files = Readonly<Record<ClientSystem['platform'], string>>;
const everywhere = (file: string): Files => ({ darwin: file, linux: file, win32: file });
/** Where each client keeps the same server on each system. */
const USER_FILES: readonly (readonly [string, Files, string])[] = [
  [
    'claude-desktop',
    {
      darwin: `${AS}/Claude/claude_desktop_config.json`,
      linux: '.config/Claude/claude_desktop_config.json',
      win32: 'AppData/Local/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude/claude_desktop_config.json',
    },
    JSON_ENTRY,
  ],
  ['claude-code', everywhere('.claude.json'), JSON_ENTRY],
  ['cursor', everywhere('.cursor/mcp.json'), JSON_ENTRY],
  [
    'vscode',
    { darwin: `${AS}/Code/User/mcp.json`, linux: '.config/Code/User/mcp.json', win32: `${ROAMING}/Code/User/mcp.json` },
    VS_CODE,
  ],
  [
    'vscode-insiders',
    {
      darwin: `${AS}/Code - Insiders/User/mcp.json`,
      linux: '.config/Code - Insiders/User/mcp.json',
      win32: `${ROAMING}/Code - Insiders/User/mcp.json`,
    },
    VS_CODE,
  ],
  ['windsurf', everywhere('.codeium/windsurf/mcp_config.json'), JSON_ENTRY],
  ['windsurf-jetbrains', everywhere('.codeium/mcp_config.json'), JSON_ENTRY],
  ['codex', everywhere('.codex/config.toml'), CODEX],
  ['gemini', everywhere('.gemini/settings.json'), JSON_ENTRY],
  ['antigravity', everywhere('.gemini/antigravity/mcp_config.json'), JSON_ENTRY],
  [
    'zed',
    {
      darwin: '.config/zed/settings.json',
      linux: '.config/zed/settings.json',
      win32: `${ROAMING}/Zed/settings.json`,
    },
    ZED,
  ],
  [
    'cline',
    { darwin: `${AS}/Code/User/${CLINE}`, linux: `.config/Code/User/${CLINE}`, win32: `${ROAMING}/Code/User/${CLINE}` },
    JSON_ENTRY,
  ],
  ['cline-cli', everywhere('.cline/data/settings/cline_mcp_settings.json'), JSON_ENTRY],
  [
    'opencode',
    {
      darwin: '.config/opencode/opencode.jsonc',
      linux: '.config/opencode/opencode.json',
      win32: 'AppData/Local/opencode/opencode.json',
    },
    OPENCODE,
  ],
  ['copilot', everywhere('.copilot/mcp-config.json'), JSON_ENTRY],
  [
    'goose',
    {
      darwin: '.config/goose/config.yaml',
      linux: '.config/goose/config.yaml',
      win32: `${ROAMING}/Block/goose/config/config.yaml`,
    },
    GOOSE,
  ],
  ['kiro', everywhere('.kiro/settings/mcp.json'), JSON_ENTRY],
  ['lm-studio', everywhere('.lmstudio/mcp.json'), JSON_ENTRY],
  ['continue', everywhere('.continue/config.yaml'), CONTINUE],
  ['amp', everywhere('.config/amp/settings.json'), AMP],
  ['kimi', everywhere('.kimi-code/mcp.json'), JSON_ENTRY],
  ['grok', everywhere('.grok/config.toml'), CODEX],
];
const CASES = USER_FILES.flatMap(([client, files, content]) => {
  return (['darwin', 'linux', 'win32'] as const).map((platform) => ({
    client,
    platform,
    file: files[platform],
    content,
  }));
});

describe('the file of a user', () => {
  it.each(CASES)('of $client is found on $platform', async ({ client, platform, file, content }) => {
    const path = home.write(file, content);
    const { servers, unreadable } = await findServers(home.system(platform));
    expect(unreadable).toEqual([]);
    expect(servers).toHaveLength(1);
    expect(servers[0]).toMatchObject({
      place: { client, scope: 'user', file: path },
      name: 'files',
      run: { kind: 'command', command: 'npx', args: ['-y', 'files'], env: { KEY: 'v' } },
      isDisabled: false,
    });
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
    home.remove();
    expect(await read('.codex/config.toml', toml)).toMatchObject({
      isDisabled: true,
      deniedTools: ['z'],
      run: { timeoutMs: 90_000 },
    });
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
