import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CLI, Workplace } from '../cli/cli-run.js';
import { LAB } from '../support/gateway-process.js';
import { WITH_HUB } from '../support/hub-place.js';
import { killAll, processesOf, processesWith, until } from '../support/processes.js';

const DEAF = fileURLToPath(new URL('../fixtures/cli/ok.mjs', import.meta.url));

let place: Workplace;
let hubs: string;
beforeEach(() => {
  place = new Workplace();
  hubs = mkdtempSync(join(tmpdir(), 'tl-'));
  Object.assign(place.env, {
    TRUNKLINE_HUB_DIR: hubs,
    XDG_CONFIG_HOME: join(place.folder, '.config'),
    XDG_DATA_HOME: '',
  });
});
afterEach(async () => {
  await until('no process is left', () => processesOf(place.folder).length === 0);
  killAll(hubs);
  place.dispose();
  rmSync(hubs, { recursive: true, force: true });
});

function write(name: string, value: unknown): string {
  mkdirSync(dirname(join(place.folder, name)), { recursive: true });
  return place.write(name, JSON.stringify(value));
}

/** A process that leaves the group of the server. */
const DAEMON = `require('node:child_process').spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { detached: true, stdio: 'ignore' }).unref()`;

interface Report {
  readonly counts: Readonly<Record<string, number>>;
  readonly findings: readonly { level: string; code: string; sentence: string; evidence: string[]; remedy: string }[];
}

async function examine(args: readonly string[] = []) {
  const finished = await place.run(['doctor', '--json', '--offline', ...args]);
  expect(finished.stderr).toBe('');
  const report = JSON.parse(finished.stdout) as Report;
  return { code: finished.code, stdout: finished.stdout, codes: report.findings.map(({ code }) => code), ...report };
}

describe('the doctor', () => {
  it('tells a new user what is missing, and leaves nothing in the home folder', async () => {
    const { code, stdout, stderr } = await place.run(['doctor', '--offline']);
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' });
    expect(stdout).toContain(
      'fail  TL-CONFIG-NOT-FOUND  no configuration file found; looked for\n      | ~/trunkline.yaml\n',
    );
    expect(stdout).toContain('warn  TL-CLIENT-NONE  no client has Trunkline registered\n');
    expect(stdout).toMatch(/\n\n1 problem and 1 warning\.\n$/);
    expect(stdout).not.toContain(place.folder);
    expect(readdirSync(place.folder)).toEqual([]);
  });

  it('finds the broken ones among the servers, and shows no secret', async () => {
    const node = (script: string) => ({ command: 'node', args: ['-e', script, `run=${place.folder}`] });
    const secret = 'gho_16C7e42F292c6912E7710c838347Ae178B4a';
    place.configure({
      one: { command: 'node', args: [LAB, `run=${place.folder}`] },
      two: { command: 'node', args: [LAB, `run=${place.folder}`, 'two'] },
      crash: { ...node('console.error("API key is required: " + process.env.A_KEY)'), env: { A_KEY: secret } },
      mute: { ...node('console.log("hello"); setInterval(() => {}, 1000)'), startTimeout: '1s' },
      gone: { command: 'no-such-program' },
      deaf: { command: 'node', args: [DEAF, `run=${place.folder}`] },
      leaves: node(`${DAEMON}; import(${JSON.stringify(LAB)})`),
      stays: node(`process.on('SIGTERM', () => {}); setInterval(() => {}, 1000); import(${JSON.stringify(LAB)})`),
    });
    write('.config/Claude/claude_desktop_config.json', {
      mcpServers: {
        trunkline: { command: process.execPath, args: ['/none/trunkline/dist/cli.js'], env: { T: secret } },
      },
    });
    const { code, codes, counts, stdout, findings } = await examine();
    expect(code).toBe(1);
    expect(codes).toEqual(
      expect.arrayContaining([
        ...['TL-NODE-OK', 'TL-SECRET-LITERAL', 'TL-COMMAND-NOT-FOUND', 'TL-CLIENT-COMMAND', 'TL-SERVER-SPAWN'],
        ...[
          'TL-SERVER-UNAUTHORIZED',
          'TL-SERVER-SILENT',
          'TL-SERVER-STDOUT',
          'TL-SERVER-LINGERS',
          'TL-SERVER-LEFTOVERS',
        ],
      ]),
    );
    expect(codes.filter((one) => one === 'TL-SERVER-OK')).toHaveLength(5);
    expect(counts.fail).toBe(5);
    const onPing = findings.filter((one) => one.code === 'TL-SERVER-PING').map(({ sentence }) => sentence);
    expect(onPing).toEqual(
      expect.arrayContaining(['server `deaf` does not answer `ping`', 'server `one` answers `ping` with an error']),
    );
    expect(stdout).not.toContain(secret);
    expect(stdout).not.toContain(place.folder);
    expect(findings.find((one) => one.code === 'TL-CLIENT-COMMAND')?.evidence).toEqual([
      '~/.config/Claude/claude_desktop_config.json',
    ]);
  });

  it('runs what a client has registered as the client does it, and leaves no hub', async () => {
    Object.assign(place.env, WITH_HUB);
    const config = join(place.folder, 'trunkline.yaml');
    write('trunkline.yaml', {
      servers: { one: { command: 'node', args: [LAB, `run=${place.folder}`] } },
    });
    chmodSync(config, 0o600);
    const entry = { command: process.execPath, args: [CLI, '--config', config] };
    write('.cursor/mcp.json', { mcpServers: { trunkline: entry } });
    const { code, codes } = await examine();
    expect({ code, codes }).toMatchObject({ code: 0, codes: expect.arrayContaining(['TL-START-OK', 'TL-SERVER-OK']) });
    expect(readdirSync(hubs)).toEqual([]);
  });

  it('asks the running hub instead of starting servers a second time, and starts those that the hub has no process of', async () => {
    const one = { command: 'node', args: [LAB, `run=${place.folder}`] };
    write('trunkline.yaml', { servers: { one } });
    Object.assign(place.env, WITH_HUB);
    const { process: client, finished } = place.start([]);
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } };
    client.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params })}\n`);
    client.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
    client.stdin.write('{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"one__echo","arguments":{}}}\n');
    let out = '';
    client.stdout.on('data', (chunk: Buffer) => {
      out += chunk;
    });
    await until('the client is served', () => /"id": ?2\b/.test(out));
    const before = place.leftovers().map(({ pid }) => pid);
    const { codes, findings } = await examine();
    expect(codes).toEqual(expect.arrayContaining(['TL-HUB-OK', 'TL-SERVER-OK']));
    expect(findings.find((each) => each.code === 'TL-SERVER-OK')?.sentence).toMatch(
      /^server `one`: ready, revision 2025-11-25 \(legacy, /,
    );
    expect(place.leftovers().map(({ pid }) => pid)).toEqual(before);
    client.stdin.end();
    await finished;
    await until('the process of the session is gone', () => place.leftovers().length === 0);
    // The hub has no process of this server without a session, so the doctor starts one.
    expect((await examine()).codes).toEqual(expect.arrayContaining(['TL-HUB-OK', 'TL-SERVER-OK']));
    await place.run(['stop']);
    await until('the hub is gone', () => processesWith(hubs).length === 0);
  });

  it('F197: takes servers that exist twice and work out of a client with `--fix`, and `undo` puts all of them back', async () => {
    mkdirSync(join(place.folder, '.config/trunkline'), { recursive: true });
    const entry = (n: number) => [`lab${n}`, { command: 'node', args: [LAB, `n=${n}`] }];
    // More than there are backups of a file.
    const working = Object.fromEntries([1, 2, 3, 4, 5, 6].map(entry));
    const bad = { command: 'node', args: ['-e', 'process.exit(1)'] };
    const config = write('.config/trunkline/trunkline.yaml', { servers: { ...working, bad } });
    const trunkline = { command: process.execPath, args: [CLI, '--config', config] };
    const file = write('.config/Claude/claude_desktop_config.json', { mcpServers: { trunkline, ...working, bad } });
    const before = readFileSync(file, 'utf8');
    expect((await examine(['--no-start', '--fix'])).codes).not.toContain('TL-FIX-DONE');
    const { codes } = await examine(['--fix']);
    expect(codes.filter((code) => code === 'TL-FIX-DONE')).toHaveLength(6);
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({ mcpServers: { trunkline, bad } });
    expect((await place.run(['undo'])).code).toBe(0);
    expect(readFileSync(file, 'utf8')).toBe(before);
  });

  it('rejects a server that does not exist, and its options for other commands', async () => {
    place.configure({ one: 'ok' });
    expect(await place.run(['doctor', 'onne'])).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining('did you mean `one`'),
    });
    expect(await place.run(['check', '--fix'])).toMatchObject({ code: 2, stdout: '' });
  });
});
