import { utimesSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import type { Code } from '../../../src/host/errors/codes.js';
import {
  type ClientStart,
  checkClientStart,
  clientEnvironment,
  startAsClient,
} from '../../../src/setup/doctor/client-start.js';
import { type Finding, repair } from '../../../src/setup/doctor/finding.js';
import { home, useHome } from './doctor-home.js';

useHome();

/** Registers this entry in Claude Desktop, with the installed copy as its program. */
async function registered(
  rest: Record<string, unknown> = {},
  args: readonly string[] = [],
): Promise<readonly Finding[]> {
  home.register({ trunkline: { ...home.entry(...args), ...rest } });
  return await home.checkClients();
}

async function claudeCode(): Promise<void> {
  home.register({ trunkline: home.entry() }, '.claude.json');
}

/** Registers Trunkline in a project, for a Claude Code that has decided this about the project. */
async function inProject(decided: Record<string, unknown>, settings = '{}'): Promise<readonly Finding[]> {
  home.register({ trunkline: home.entry() }, 'code/.mcp.json');
  const project = home.path('code');
  home.write('.claude.json', JSON.stringify({ projects: { [project]: decided } }));
  home.write('code/.claude/settings.local.json', settings);
  return await home.checkClients({ cwd: project });
}

/** Serves HTTP with this answer, and has a client use it as Trunkline. */
async function answering(status: number, headers: Record<string, string>, body: string): Promise<readonly Code[]> {
  const server = createHttpServer((_, response) => response.writeHead(status, headers).end(body));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  home.register({ trunkline: { url: `http://127.0.0.1:${port}/mcp` } }, '.cursor/mcp.json');
  const found = await home.checkClients();
  await new Promise((resolve) => server.close(resolve));
  return found.map(({ code }) => code);
}

/** Makes what the title says, and expects one finding with this code and sentence. */
function reports(what: string, code: Code, says: RegExp, make: () => unknown): void {
  it(`are reported with ${what}: ${code}`, async () => {
    const made = await make();
    const findings: readonly Finding[] = Array.isArray(made) ? made : await home.checkClients();
    const found = findings.filter((one) => one.code === code);
    expect(found.map(({ sentence }) => sentence)).toEqual([expect.stringMatching(says)]);
  });
}

describe('the clients', () => {
  reports(
    'a correct entry',
    'TL-CLIENT-OK',
    /^Claude Desktop \(user, as trunkline\) has/,
    async () => await registered(),
  );
  reports(
    'a command without its path',
    'TL-CLIENT-RELATIVE',
    /runs `node`, which depends on the PATH/,
    async () => await registered({ command: 'node' }),
  );
  reports(
    'a configuration that does not exist',
    'TL-CLIENT-CONFIG',
    /passes a configuration that does not exist/,
    async () => await registered({}, ['--config', home.path('none.yaml')]),
  );
  it.each([
    ['the user', [], 'Name the file that it is now: `trunkline connect claude-desktop --config FILE`.'],
    ['a project', ['code/.mcp.json'], 'Correct the path after `--config` in the file of the client.'],
  ])('are told how to name the configuration that was moved: %s', async (_, files, remedy) => {
    const entry = home.entry('--config', home.path('none.yaml'));
    home.register({ trunkline: entry }, ...files);
    const found = await home.checkClients({ cwd: home.path('code') });
    expect(found.find(({ code }) => code === 'TL-CLIENT-CONFIG')?.remedy).toBe(remedy);
  });
  reports('no configuration', 'TL-CLIENT-NO-CONFIG', /names no configuration/, () =>
    home.register({ trunkline: { command: process.execPath, args: [home.install()] } }),
  );
  reports('another version', 'TL-CLIENT-VERSION', /runs Trunkline 1\.9\.0; this is 2\.0\.0/, () =>
    home.register({ trunkline: { command: process.execPath, args: [home.install('1.9.0', 'old/trunkline')] } }),
  );
  reports('a disabled entry', 'TL-CLIENT-DISABLED', /has Trunkline disabled/, async () => {
    const entry = { ...home.entry(), disabled: true };
    home.register({ trunkline: entry }, '.codeium/windsurf/mcp_config.json');
  });
  reports(
    'the file that the app of the Windows store ignores',
    'TL-CLIENT-MSIX',
    /does not read this file/,
    async () => {
      const entry = home.entry();
      home.register({ trunkline: entry }, 'AppData/Roaming/Claude/claude_desktop_config.json');
      home.write('AppData/Local/Packages/Claude_x/LocalCache/Roaming/x', '');
      return await home.checkClients({ platform: 'win32' });
    },
  );
  reports(
    'a rule of Claude Code',
    'TL-CLIENT-DENIED',
    /the settings of Claude Code \(user, as trunkline\) forbid Trunkline/,
    async () => {
      await claudeCode();
      home.write('.claude/settings.json', '{"permissions":{"deny":["Bash","mcp__trunkline"]}}');
    },
  );
  reports('a list of denied servers of Claude Code', 'TL-CLIENT-DENIED', /forbid Trunkline/, async () => {
    await claudeCode();
    home.write('.claude/settings.json', '{"deniedMcpServers":[{"serverName":"trunkline"}]}');
  });
  reports('a denied command, by the administrator of Claude Code', 'TL-CLIENT-DENIED', /forbid Trunkline/, async () => {
    await claudeCode();
    const { command, args } = home.entry();
    const rule = { serverCommand: [command, ...args] };
    home.write('root/etc/claude-code/managed-settings.json', JSON.stringify({ deniedMcpServers: [rule] }));
  });
  reports('a list of allowed servers without Trunkline', 'TL-CLIENT-DENIED', /forbid Trunkline/, async () => {
    await claudeCode();
    const allowedMcpServers = [{ serverName: 'github' }];
    home.write('root/etc/claude-code/managed-settings.json', JSON.stringify({ allowedMcpServers }));
  });
  reports(
    'servers of the administrator, besides which Claude Code uses none',
    'TL-CLIENT-DENIED',
    /forbid Trunkline/,
    async () => {
      await claudeCode();
      home.write('root/etc/claude-code/managed-mcp.json', '{"mcpServers":{}}');
    },
  );
  reports(
    'an entry of a project that nobody has approved',
    'TL-CLIENT-PENDING',
    /^Claude Code \(project, as trunkline\) waits for your approval/,
    async () => await inProject({}),
  );
  reports(
    'VS Code that may use servers of a registry only',
    'TL-CLIENT-DENIED',
    /the settings of VS Code \(user, as trunkline\) forbid Trunkline/,
    async () => {
      const servers = { trunkline: home.entry() };
      home.write('.config/Code/User/mcp.json', JSON.stringify({ servers }));
      home.write('.config/Code/User/settings.json', '{\n  // ours\n  "chat.mcp.access": "registry",\n}');
    },
  );
  reports(
    'another gateway',
    'TL-CLIENT-GATEWAY',
    /^Claude Desktop runs mcp-hub \(`hub`\) besides Trunkline$/,
    async () => {
      const trunkline = home.entry();
      home.register({ trunkline, hub: { command: 'mcp-hub' } });
    },
  );
  reports(
    'a Trunkline on another machine without TLS',
    'TL-CLIENT-CLEARTEXT',
    /^Cursor uses Trunkline on another machine without TLS$/,
    () => home.register({ trunkline: { url: 'http://192.0.2.7:7411/mcp' } }, '.cursor/mcp.json'),
  );
  reports(
    'a log of Claude Code with a failure',
    'TL-CLIENT-LOG',
    /the log of Claude Code \(user, as trunkline\) shows a failure/,
    async () => {
      await claudeCode();
      const folder = `.cache/claude-cli-nodejs/${home.folder.replaceAll(/[^a-zA-Z0-9]/g, '-')}/mcp-logs-trunkline`;
      home.write(`${folder}/2026-11-23.jsonl`, '{"debug":"Connection failed: spawn /x/node ENOENT"}\n');
    },
  );
  reports(
    'a log of Cursor with a failure',
    'TL-CLIENT-LOG',
    /the log of Cursor \(user, as trunkline\) shows a failure/,
    async () => {
      home.register({ trunkline: home.entry() }, '.cursor/mcp.json');
      const logs = '.config/Cursor/logs/20261123T1/window1/exthost/anysphere.cursor-mcp';
      home.write(`${logs}/MCP user-trunkline.log`, '[error] spawn node ENOENT\n');
      home.write(`${logs}/MCP user-other.log`, '[info] fine\n');
    },
  );
  reports(
    'a log of VS Code with a failure',
    'TL-CLIENT-LOG',
    /the log of VS Code \(user, as trunkline\) shows a failure/,
    async () => {
      const servers = { trunkline: home.entry() };
      home.write('.config/Code/User/mcp.json', JSON.stringify({ servers }));
      const log = '.config/Code/logs/20261123T1/window2/mcpServer.mcp.config.usrlocal.trunkline.log';
      home.write(log, '[error] Process exited with code 1\n');
    },
  );
  reports(
    'a log with a failure',
    'TL-CLIENT-LOG',
    /the log of Claude Desktop \(user, as trunkline\) shows a failure/,
    async () => {
      home.write('.config/Claude/logs/mcp-server-trunkline.log', 'hello\nspawn /x/node ENOENT\n');
      return await registered();
    },
  );

  it('are not blamed for a log of last week, or for a failure before the last success', async () => {
    const file = home.write('.config/Claude/logs/mcp-server-trunkline.log', 'spawn ENOENT\n');
    utimesSync(file, 1, 1);
    expect((await registered()).map(({ code }) => code)).toEqual(['TL-CLIENT-OK']);
    home.write('.config/Claude/logs/mcp-server-trunkline.log', 'spawn ENOENT\n{"result":{"tools":[]}}\n');
    expect((await registered()).map(({ code }) => code)).toEqual(['TL-CLIENT-OK']);
  });

  it('are not blamed for what Trunkline writes to stderr, which Claude Code calls an error', async () => {
    await claudeCode();
    const folder = `.cache/claude-cli-nodejs/${home.folder.replaceAll(/[^a-zA-Z0-9]/g, '-')}/mcp-logs-trunkline`;
    home.write(`${folder}/2026-11-23.jsonl`, '{"error":"Server stderr: all is well"}\n');
    expect((await home.checkClients()).map(({ code }) => code)).toEqual(['TL-CLIENT-OK']);
  });

  it('may use an address where somebody listens, with a token that only they can put in', async () => {
    const server = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as { port: number };
    const entry = { url: `http://127.0.0.1:${port}/mcp`, headers: { Authorization: `Bearer \${env:TOKEN}` } };
    home.register({ trunkline: entry }, '.cursor/mcp.json');
    expect((await home.checkClients()).map(({ code }) => code)).toEqual(['TL-CLIENT-OK']);
    await new Promise((resolve) => server.close(resolve));
  });

  it.each([
    ['Trunkline itself', 'TL-CLIENT-OK', 200, {}, '{"result":{"serverInfo":{"name":"trunkline"}}}'],
    ['as an event', 'TL-CLIENT-OK', 200, {}, 'event: message\ndata: {"result":{"serverInfo":{"name":"trunkline"}}}\n'],
    ['a wrong token', 'TL-CLIENT-TOKEN', 401, { 'www-authenticate': 'Bearer realm="trunkline"' }, ''],
    ['another server', 'TL-CLIENT-FOREIGN', 200, {}, '{"result":{"serverInfo":{"name":"files"}}}'],
    ['a web server', 'TL-CLIENT-FOREIGN', 404, {}, '<html>'],
    ['a web server with passwords', 'TL-CLIENT-FOREIGN', 401, { 'www-authenticate': 'Basic' }, ''],
  ] as const)('are told who answers at their address: %s (%s)', async (_, code, status, headers, body) => {
    expect(await answering(status, headers, body)).toEqual([code]);
  });

  it.each([
    [{ enabledMcpjsonServers: ['trunkline'] }, '{}'],
    [{}, '{"enableAllProjectMcpServers":true}'],
    [{}, '{"enabledMcpjsonServers":["trunkline"]}'],
  ])('have approved the entry of a project with %j or settings %s', async (decided, settings) => {
    expect((await inProject(decided, settings)).map(({ code }) => code)).toEqual(['TL-CLIENT-OK']);
  });

  it('lose a server that exists twice by --fix, if their Trunkline has it with all of its variables', async () => {
    home.configure({ a: { package: 'notes', env: { KEY: 'x' } } });
    const trunkline = home.entry();
    const notes = { command: 'npx', args: ['-y', 'notes@2'], env: { KEY: 'y' } };
    home.register({ trunkline, notes });
    const findings = await repair(await home.checkClients());
    expect(findings.find(({ code }) => code === 'TL-FIX-DONE')?.sentence).toMatch(
      /^TL-CLIENT-DUPLICATE: removed `notes`/,
    );
    expect(home.takenOut).toEqual(['claude-desktop user notes']);
  });

  it('F198: lose all servers of a file in one change, and keep those that do not work in their Trunkline', async () => {
    home.configure({ a: { package: 'notes' }, b: { package: 'maps' }, broken: { package: 'bad' } });
    const trunkline = home.entry();
    const npx = (name: string) => ({ command: 'npx', args: ['-y', name] });
    home.register({ trunkline, notes: npx('notes'), bad: npx('bad'), maps: npx('maps') });
    const findings = await repair(await home.checkClients());
    expect(home.takenOut).toEqual(['claude-desktop user notes, claude-desktop user maps']);
    expect(findings.filter(({ code }) => code === 'TL-FIX-DONE')).toHaveLength(2);
    expect(findings.filter(({ code, level }) => code === 'TL-CLIENT-DUPLICATE' && level === 'warn')).toHaveLength(1);
  });

  it.each([
    ['has another configuration', ['--config', '/other.yaml'], {}],
    ['has a configuration that depends on the folder', ['--config', 'trunkline.yaml'], {}],
    ['does not set a variable of the entry', [], { TOKEN: 'x' }],
  ])('keep a server that exists twice if their Trunkline %s', async (_, args, env) => {
    home.configure({ a: { package: 'notes' } });
    const trunkline = home.entry(...args);
    home.register({ trunkline, notes: { command: 'npx', args: ['-y', 'notes'], env } });
    await repair(await home.checkClients());
    expect(home.takenOut).toEqual([]);
  });

  it('are not told of a server twice if their Trunkline has another configuration', async () => {
    home.configure({ a: { package: 'notes' } });
    const trunkline = home.entry('--config', '/other.yaml');
    home.register({ trunkline, notes: { command: 'npx', args: ['-y', 'notes'] } });
    expect((await home.checkClients()).map(({ code }) => code)).not.toContain('TL-CLIENT-DUPLICATE');
  });

  it('keep a server that exists twice in the file of a project, which belongs to others, too', async () => {
    home.configure({ a: { package: 'notes' } });
    home.register({ trunkline: home.entry() }, '.claude.json');
    home.register({ notes: { command: 'npx', args: ['-y', 'notes'] } }, 'code/.mcp.json');
    const found = await home.checkClients({ cwd: home.path('code') });
    expect(found.map(({ code }) => code)).toContain('TL-CLIENT-DUPLICATE');
    await repair(found);
    expect(home.takenOut).toEqual([]);
  });

  it('are told how to register Trunkline again, with the same configuration', async () => {
    const config = home.write('servers.yaml', '');
    expect(await registered({ command: 'node' }, ['--config', config])).toMatchObject([
      { code: 'TL-CLIENT-RELATIVE', remedy: `trunkline connect claude-desktop --config ${config}` },
    ]);
  });

  it('get the path of their configuration by --fix', async () => {
    home.register({ trunkline: { command: process.execPath, args: [home.install()] } });
    const findings = await repair(await home.checkClients());
    expect(home.registered).toEqual(['claude-desktop']);
    expect(findings.map(({ code }) => code)).toContain('TL-FIX-DONE');
  });

  it('are told how to remove a server that exists twice', async () => {
    home.configure({ a: { package: 'notes' } });
    const entry = home.entry();
    home.register({ trunkline: entry, notes: { command: 'npx', args: ['-y', 'notes@2'] } }, '.claude.json');
    expect(await home.checkClients()).toContainEqual(
      expect.objectContaining({ code: 'TL-CLIENT-DUPLICATE', remedy: 'claude mcp remove notes --scope user' }),
    );
  });
});

/** A server that answers the handshake, and lists a tool with this name. */
const SERVER = `require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line);
  const result = method === 'tools/list' ? { tools: [{ name: process.env.TOOL }] } : {};
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result }));
});`;

async function start(script: string, env: Record<string, string> = {}): Promise<ClientStart> {
  const run = { kind: 'command', command: process.execPath, args: ['-e', script], env: {} } as const;
  return await startAsClient(run, env, home.folder);
}

const LISTED: ClientStart = { afterMs: 100, tools: ['a__b'], junk: [], output: [] };

describe('the command of a client', () => {
  it('is fine if it lists tools', async () => {
    const started = await start(SERVER, { TOOL: 'a__b' });
    expect(started).toMatchObject({ tools: ['a__b'], junk: [] });
    expect(checkClientStart(started, ['Cursor'], 1)).toMatchObject([
      {
        code: 'TL-START-OK',
        sentence: expect.stringMatching(/^started as Cursor does it, Trunkline listed 1 tool after/),
      },
    ]);
  });

  it('fails with its output if it ends', async () => {
    const started = await start("console.error('no such file'); process.exit(3)");
    expect(checkClientStart(started, ['Cursor'], 1)).toMatchObject([
      {
        code: 'TL-START-FAILED',
        sentence: expect.stringMatching(/it ended with exit code 3/),
        evidence: ['no such file'],
      },
    ]);
  });

  it('fails if there is no such program', async () => {
    const run = { kind: 'command', command: home.path('none'), args: [], env: {} } as const;
    const started = await startAsClient(run, {}, home.folder);
    expect(checkClientStart(started, ['Cursor'], 1)).toMatchObject([
      { code: 'TL-START-FAILED', sentence: expect.stringMatching(/ENOENT/) },
    ]);
  });

  it('is reported if it lists late, or nothing but the tools of Trunkline itself', () => {
    const late = { ...LISTED, afterMs: 12_000 };
    expect(checkClientStart(late, ['Cursor', 'Zed'], 1)[0]?.sentence).toMatch(/^started as Cursor and Zed do it, /);
    expect(checkClientStart(late, ['Cursor'], 1)).toMatchObject([{ code: 'TL-START-SLOW' }]);
    const empty = { ...LISTED, tools: ['trunkline__status'] };
    expect(checkClientStart(empty, ['Cursor'], 1)).toMatchObject([{ code: 'TL-START-EMPTY' }]);
    expect(checkClientStart(empty, ['Cursor'], 0)).toMatchObject([{ code: 'TL-START-OK' }]);
  });

  it('gets the variables of a desktop program, and those of its entry', () => {
    const run = { kind: 'command', command: 'x', args: [], env: { A: '1' } } as const;
    const env = { HOME: '/h', SECRET: 's', PATH: '/mine' };
    expect(clientEnvironment(run, '/usr/bin', { platform: 'linux', env })).toEqual({
      HOME: '/h',
      PATH: '/usr/bin',
      A: '1',
    });
  });
});
