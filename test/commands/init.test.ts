import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { CLI, Workplace } from '../cli/cli-run.js';
import { LAB } from '../support/gateway-process.js';
import { until } from '../support/processes.js';
import { Registry } from '../support/registry.js';

const DESKTOP = '.config/Claude/claude_desktop_config.json';
const FAILING_WRITES = new URL('../fixtures/cli/failing-writes.mjs', import.meta.url);
const SECRET = 'sk-live-0123456789abcdefghij';

let work: Workplace;
beforeEach(() => {
  work = new Workplace();
  const folders = { XDG_DATA_HOME: join(work.folder, 'data'), XDG_CONFIG_HOME: join(work.folder, '.config') };
  Object.assign(work.env, { ...folders, USERPROFILE: work.folder, APPDATA: join(work.folder, '.config'), PATH: '' });
  mkdirSync(join(work.folder, '.config/Claude'), { recursive: true });
  mkdirSync(join(work.folder, '.cursor'));
});
afterEach(() => work.dispose());

/** A file of Claude Desktop with a server that works and one that does not. */
function desktopFile(): string {
  const works = { command: process.execPath, args: [LAB], env: { LAB_API_KEY: SECRET } };
  const broken = { command: process.execPath, args: ['/nowhere/server.js'] };
  return `${JSON.stringify({ mcpServers: { works, broken }, theme: 'dark' }, null, 2)}\n`;
}

describe('trunkline init', () => {
  it('F122: imports, tries and registers in one command, leaves what does not work in the clients, and can be undone', async () => {
    const desktop = work.write(DESKTOP, desktopFile());
    const cursorText = JSON.stringify({
      mcpServers: { same: { command: process.execPath, args: [LAB], env: { LAB_API_KEY: SECRET } } },
    });
    const cursor = work.write('.cursor/mcp.json', cursorText);
    const { code, stdout, stderr } = await work.run(['init', '--yes', '--json']);

    // One server does not start.
    expect(code).toBe(1);
    expect(stderr).toContain('broken: did not start, so the clients keep their own entries');
    expect(stderr).toMatch(
      /disabled in .*trunkline\.yaml\. The reasons are above\.\nThe next `trunkline init` tries again/,
    );
    expect(`${stdout}${stderr}`).not.toContain(SECRET);
    const args = [CLI, '--config', join(work.folder, '.config/trunkline/trunkline.yaml')];
    const own = { command: process.execPath, args };
    const { mcpServers, theme } = JSON.parse(readFileSync(desktop, 'utf8'));
    expect([Object.keys(mcpServers).sort(), mcpServers.trunkline, theme]).toEqual([
      ['broken', 'trunkline'],
      own,
      'dark',
    ]);
    expect(JSON.parse(readFileSync(cursor, 'utf8'))).toEqual({ mcpServers: { trunkline: own } });
    const { import: imported, check, changes } = JSON.parse(stdout);
    expect([imported.written, changes.map(({ action }: { action: string }) => action)]).toEqual([
      true,
      ['add', 'add', 'remove', 'remove'],
    ]);
    expect(check.servers).toContainEqual(expect.objectContaining({ server: 'broken', state: 'failed' }));
    const config = readFileSync(join(work.folder, '.config/trunkline/trunkline.yaml'), 'utf8');
    expect(config).toContain('  works:\n');
    expect(config).not.toContain(SECRET);
    // The client runs it, so Trunkline does not.
    const { servers } = parse(config);
    expect([servers.works.disabled, servers.broken.disabled]).toEqual([undefined, true]);
    expect(config).toMatch(/\n {4}disabled: true # trunkline init tries it again: it ended with exit code 1 before /);
    const disabled = imported.servers.flatMap(({ key, disabled }: { key: string; disabled: boolean }) =>
      disabled ? [key] : [],
    );
    expect(disabled).toEqual(['broken']);
    expect((await work.run(['tools', 'works', '--alone'])).stdout).toContain('works__');

    const undone = await work.run(['undo', '--json']);
    expect(JSON.parse(undone.stdout).changes).toContainEqual(
      expect.objectContaining({ client: 'cursor', file: cursor, result: 'restored', because: null }),
    );
    expect(readFileSync(desktop, 'utf8')).toBe(desktopFile());
    expect(readFileSync(cursor, 'utf8')).toBe(cursorText);
  });

  it('tries again what an earlier run has disabled, and takes it over if it works now', async () => {
    Object.assign(work.env, { npm_config_registry: 'http://127.0.0.1:9/', npm_config_fetch_retries: '0' });
    const tool = { command: 'npx', args: ['-y', 'tool'] };
    const broken = { command: process.execPath, args: ['/nowhere/server.js'] };
    const cursor = work.write('.cursor/mcp.json', JSON.stringify({ mcpServers: { tool, broken } }));
    const config = () => readFileSync(join(work.folder, '.config/trunkline/trunkline.yaml'), 'utf8');
    await work.run(['init', '--yes']);
    expect(config()).toMatch(/\n {4}disabled: true # trunkline init tries it again: tool could not be installed: .*\n/);
    const { stdout } = await work.run(['doctor', '--no-start', '--offline']);
    expect(stdout).toMatch(
      /TL-CONFIG-DISABLED +`trunkline init` has disabled 2 servers that did not start\n +\| tool: tool could not/,
    );
    expect(await work.run(['check', 'tool'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('enable tool'),
    });

    const registry = await Registry.open();
    registry.publish('tool', { version: '1.0.0' });
    Object.assign(work.env, registry.environment(work.folder));
    const { stderr } = await work.run(['init', '--yes']);
    await registry.close();
    expect(stderr).toContain('tries again what did not start when it was imported: tool, broken.');
    const { servers } = parse(config());
    expect([servers.tool, servers.broken.disabled]).toEqual([{ package: 'tool' }, true]);
    expect(Object.keys(JSON.parse(readFileSync(cursor, 'utf8')).mcpServers).sort()).toEqual(['broken', 'trunkline']);
    const { stderr: told } = await work.run(['disable', 'broken']);
    expect([config().includes('tries it again'), told]).toEqual([false, expect.stringContaining('does not try it')]);
  });

  it('takes along what a server has written beside its program in the cache of npx', async () => {
    const registry = await Registry.open();
    registry.publish('tool', { version: '1.0.0' });
    registry.publish('@modelcontextprotocol/server-memory', { version: '1.0.0' });
    Object.assign(work.env, registry.environment(work.folder));
    const npx = (file: string, text: string) => work.write(`npm-cache/_npx/1f/node_modules/${file}`, text);
    const cached = join(work.folder, 'npm-cache/_npx/1f/node_modules');
    mkdirSync(join(cached, 'tool'), { recursive: true });
    mkdirSync(join(cached, '@modelcontextprotocol/server-memory/dist'), { recursive: true });
    npx('.package-lock.json', '{}');
    utimesSync(join(cached, '.package-lock.json'), 1_000, 1_000);
    const state = npx('tool/state.json', 'state');
    const graph = npx('@modelcontextprotocol/server-memory/dist/memory.jsonl', 'graph');
    const entry = (name: string) => ({ command: 'npx', args: ['-y', name] });
    const mcpServers = { tool: entry('tool'), memory: entry('@modelcontextprotocol/server-memory') };
    work.write('.cursor/mcp.json', JSON.stringify({ mcpServers }));
    const { code, stderr } = await work.run(['init', '--yes']);
    await registry.close();
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: expect.stringMatching(/carried over: .*_npx.*state\.json, which/),
    });
    expect(stderr).toMatch(/^memory +Cursor {2}/m);
    const data = join(work.folder, 'data/trunkline');
    const stored = readdirSync(join(data, 'store')).find((name) => name.startsWith('tool@')) ?? '';
    expect(readFileSync(join(data, 'store', stored, 'node_modules/tool/state.json'), 'utf8')).toBe('state');
    const kept = join(data, 'servers/memory/memory.jsonl');
    expect(readFileSync(kept, 'utf8')).toBe('graph');
    const { servers } = parse(readFileSync(join(work.folder, '.config/trunkline/trunkline.yaml'), 'utf8'));
    expect(servers.memory.env.MEMORY_FILE_PATH.replace(`\${HOME}`, work.folder)).toBe(kept);
    expect([state, graph].map((file) => readFileSync(file, 'utf8'))).toEqual(['state', 'graph']);
    work.write('data/trunkline/servers/memory/memory.jsonl', 'longer graph');
    const undone = await work.run(['undo']);
    // `init` has changed the file twice.
    expect(undone.stdout.match(/Cursor: .* is as it was/g)).toHaveLength(1);
    expect(undone.stderr).toContain('Cursor uses ~/npm-cache/');
    expect(undone.stderr).toContain(`  \`cp ${JSON.stringify(kept)} ${JSON.stringify(graph)}\`\n`);

    // The client has used its own files since.
    const laterS = Math.ceil(Date.now() / 1_000) + 60;
    const bak = `.${new Date(laterS * 1_000).toISOString().replace(/[-:.]/g, '')}.bak`;
    const all = [kept, join(data, 'store', stored, 'node_modules/tool/state.json')];
    for (const file of all) {
      writeFileSync(file, 'of Trunkline');
      utimesSync(file, laterS, laterS);
    }
    for (const file of [state, graph]) {
      writeFileSync(file, 'newer');
      utimesSync(file, laterS + 60, laterS + 60);
    }
    const dry = await work.run(['init', '--dry-run']);
    expect(dry.stderr).toMatch(
      /memory: Trunkline copies the newer data of Cursor from ~.*_npx.* to ~.*servers\/memory/,
    );
    expect(readFileSync(kept, 'utf8')).toBe('of Trunkline');
    const again = await work.run(['init', '--yes']);
    expect(again.stderr).toContain(`keeps its own older data in ~${kept.slice(work.folder.length)}${bak}.\n`);
    expect(again.stderr).toContain(`tool/state.json${bak}\n`);
    const texts = all.flatMap((file) => [file, file + bak]).map((file) => readFileSync(file, 'utf8'));
    expect(texts).toEqual(['newer', 'of Trunkline', 'newer', 'of Trunkline']);
  });

  it('takes a server over that was mended and enabled, and leaves one enabled that was configured before', async () => {
    const file = join(work.folder, 'server.mjs');
    const late = { command: process.execPath, args: [file] };
    const known = { command: process.execPath, args: ['/nowhere/server.js'] };
    mkdirSync(join(work.folder, '.config/trunkline'));
    work.write('.config/trunkline/trunkline.yaml', JSON.stringify({ servers: { known } }));
    const cursor = work.write('.cursor/mcp.json', JSON.stringify({ mcpServers: { late, known } }));
    const namesIn = () => Object.keys(JSON.parse(readFileSync(cursor, 'utf8')).mcpServers).sort();

    const first = await work.run(['init', '--yes']);
    expect(first.stderr).toContain('\nknown: did not start, so the clients keep their own entries, too.');
    expect(namesIn()).toEqual(['known', 'late', 'trunkline']);
    const second = await work.run(['init', '--yes']);
    expect(second.stderr).toMatch(/\nlate: disabled in .*trunkline\.yaml, so the clients keep/);
    work.write('server.mjs', `await import(${JSON.stringify(LAB)});`);
    expect((await work.run(['enable', 'late'])).code).toBe(0);
    await work.run(['init', '--yes']);
    expect(namesIn()).toEqual(['known', 'trunkline']);
  });

  it('lists the logins that are open at its end, and leaves their servers in the clients until then, enabled', async () => {
    const server = createServer((_, response) => response.writeHead(401, { 'www-authenticate': 'Bearer' }).end());
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
    const cursor = work.write('.cursor/mcp.json', JSON.stringify({ mcpServers: { tracker: { url } } }));
    const { code, stderr } = await work.run(['init', '--yes']);
    server.close();
    expect(code).toBe(1);
    expect(stderr).toMatch(/\nThese servers wait for a login, .*:\n {2}trunkline login tracker\n/);
    expect(Object.keys(JSON.parse(readFileSync(cursor, 'utf8')).mcpServers).sort()).toEqual(['tracker', 'trunkline']);
    const { servers } = parse(readFileSync(join(work.folder, '.config/trunkline/trunkline.yaml'), 'utf8'));
    expect(servers).toEqual({ tracker: { url } });
  });

  it('reports a package that cannot be installed once, although it tries it twice', async () => {
    Object.assign(work.env, { npm_config_registry: 'http://127.0.0.1:9/', npm_config_fetch_retries: '0' });
    const absent = { command: 'npx', args: ['-y', 'no-such-package'] };
    work.write('.cursor/mcp.json', JSON.stringify({ mcpServers: { absent } }));
    const { code, stdout, stderr } = await work.run(['init', '--yes']);
    expect(code).toBe(1);
    expect(stdout).toMatch(/\nabsent +no-such-package +failed\n/);
    expect(stdout).toMatch(/\nabsent: no-such-package could not be installed/);
    expect(stderr).not.toContain('could not be installed');
  });

  it('only shows what it would do with --dry-run, and needs a terminal or --yes', async () => {
    const desktop = work.write(DESKTOP, desktopFile());
    const { code, stderr } = await work.run(['init', '--dry-run']);
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: expect.stringContaining('registers itself with Claude Desktop'),
    });
    expect(readFileSync(desktop, 'utf8')).toBe(desktopFile());
    expect(await work.run(['init'])).toMatchObject({ code: 2, stderr: expect.stringContaining('add --yes') });
  });

  it('F170: ends at a signal while the servers start, and has changed no client', async () => {
    const mute = { command: process.execPath, args: ['-e', 'setInterval(() => {}, 1000)', `run=${work.folder}`] };
    const text = JSON.stringify({ mcpServers: { mute } });
    const cursor = work.write('.cursor/mcp.json', text);
    const running = work.start(['init', '--yes']);
    await work.says(running.process, 'Starting every server once');
    await until('the server runs', () => work.leftovers().length > 0);
    running.process.kill('SIGTERM');
    const { code, stderr } = await running.finished;
    expect({ code, isRegistering: stderr.includes('Registering') }).toEqual({ code: 143, isRegistering: false });
    expect(readFileSync(cursor, 'utf8')).toBe(text);
    expect(stderr).toContain('Ended before a client was changed.');
    expect(readdirSync(join(work.folder, '.config/trunkline'))).toEqual([]);
  });

  it('ends before it changes a client where the disk is full, and leaves the configuration as it was', async () => {
    const text = JSON.stringify({ mcpServers: { tool: { command: 'npx', args: ['-y', 'tool'] } } });
    const cursor = work.write('.cursor/mcp.json', text);
    mkdirSync(join(work.folder, '.config/trunkline'));
    const config = work.write('.config/trunkline/trunkline.yaml', 'servers: { own: { command: node } } # mine\n');
    const FAILS_BELOW = join(work.folder, 'data');
    Object.assign(work.env, { NODE_OPTIONS: `--import=${FAILING_WRITES}`, FAILS_BELOW, FAILS_WITH: 'ENOSPC' });
    const { code, stderr } = await work.run(['init', '--yes']);
    expect([code, stderr]).toEqual([1, expect.stringMatching(/: the disk is full \(ENOSPC\); .*\nEnded before a /)]);
    expect(stderr).not.toContain('Starting every server');
    expect([cursor, config].map((file) => readFileSync(file, 'utf8'))).toEqual([
      text,
      'servers: { own: { command: node } } # mine\n',
    ]);
  });

  it('says how to go on where there is neither a server nor a configuration', async () => {
    const { code, stderr } = await work.run(['init', '--yes']);
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('`trunkline add NAME PACKAGE`') });
  });
});
