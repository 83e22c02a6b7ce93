// Installs real packages from the registry that npm is set up with: two gateways race for an empty store, both are
// killed in the middle, and resume; then they start without a registry. Exits with 1 when anything is not as promised.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));
const SERVERS = {
  memory: { package: '@modelcontextprotocol/server-memory@2026.7.4' },
  files: { package: '@modelcontextprotocol/server-filesystem@2026.7.4', args: ['.'] },
  thinking: { package: '@modelcontextprotocol/server-sequential-thinking' },
};
const KEYS = Object.keys(SERVERS);
const WITHIN_MS = 280_000;

// In every command line that runs for us.
const place = mkdtempSync(join(tmpdir(), 'trunkline-install-'));
const store = join(place, 'trunkline', 'store');
const config = join(place, 'trunkline.yaml');
writeFileSync(config, JSON.stringify({ servers: SERVERS }));

class Gateway {
  #answers = new Map();
  #lastId = 0;

  constructor(env = {}) {
    this.stderr = '';
    const inherited = {
      ...process.env,
      XDG_DATA_HOME: place,
      npm_config_cache: join(place, 'npm-cache'),
      TRUNKLINE_HUB: 'off',
    };
    this.process = spawn(process.execPath, [CLI, '--config', config, '-v'], { env: { ...inherited, ...env } });
    this.process.stderr.on('data', (chunk) => {
      this.stderr += chunk;
    });
    this.process.stdin.on('error', () => {});
    createInterface({ input: this.process.stdout }).on('line', (line) => {
      const message = JSON.parse(line);
      this.#answers.get(message.id)?.(message);
    });
    this.exited = new Promise((resolve) => this.process.once('exit', resolve));
    const clientInfo = { name: 'install-packages', version: '1' };
    this.ready = this.request('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo });
  }

  request(method, params) {
    this.#lastId += 1;
    const id = this.#lastId;
    this.process.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
    return new Promise((resolve) => this.#answers.set(id, resolve));
  }

  /** Everything that the status tells of each server. */
  async status() {
    const answers = KEYS.map((server) =>
      this.request('tools/call', { name: 'trunkline__status', arguments: { server } }),
    );
    return (await Promise.all(answers)).map(({ result }) => result.structuredContent.servers[0]);
  }

  /** Resolves when every server is ready; each was started once and never again. */
  async allReady() {
    await until('all servers are ready', async () => {
      const servers = await this.status();
      const failed = servers.find(({ lastFailure }) => lastFailure !== null);
      assert.equal(failed, undefined, `${failed?.server}: ${failed?.lastFailure}`);
      return servers.every(({ state }) => state === 'ready');
    });
    for (const { server, generation, restarts, tools } of await this.status()) {
      assert.deepEqual({ server, generation, restarts }, { server, generation: 1, restarts: 0 });
      assert.ok(tools.exposed.length > 0, `${server} has tools`);
    }
  }

  async close() {
    this.process.stdin.end();
    await this.exited;
  }

  async kill() {
    this.process.kill('SIGKILL');
    await this.exited;
  }
}

async function until(what, condition, withinMs = WITHIN_MS) {
  for (const deadline = performance.now() + withinMs; !(await condition()); ) {
    assert.ok(performance.now() < deadline, `waited ${withinMs} ms in vain: ${what}\n${whatIsThere()}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

function ours() {
  const lines = execFileSync('ps', ['-A', '-ww', '-o', 'stat=,pid=,args='], { encoding: 'utf8' }).split('\n');
  return lines.filter((line) => line.includes(place) && !line.startsWith('Z'));
}

function list(folder) {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** What a person needs to find the cause of a failure. */
function whatIsThere() {
  const logs = gateways.map(({ stderr }, at) => `gateway ${at + 1}:\n${stderr.slice(-3_000)}`);
  return [`in the store: ${list(store).join(', ')}`, `being installed: ${staged().join(', ')}`, ...logs].join('\n');
}

const published = () => list(store).filter((name) => name.includes('@'));
const staged = () => list(join(store, '.staging'));

/** The packages that the lock file has. */
function locked() {
  const file = join(place, 'trunkline.lock');
  return existsSync(file) ? Object.keys(JSON.parse(readFileSync(file, 'utf8')).packages) : [];
}

async function timed(what, work) {
  const startedAt = performance.now();
  await work();
  console.log(`${what.padEnd(64)} ${((performance.now() - startedAt) / 1000).toFixed(1)} s`);
}

const gateways = [];
const open = (env) => {
  const gateway = new Gateway(env);
  gateways.push(gateway);
  return gateway;
};

try {
  await timed('two gateways, an empty store: until the second package', async () => {
    const both = [open(), open()];
    await Promise.all(both.map(({ ready }) => ready));
    await until('one is there and locked, and another one is being unpacked', () => {
      // A gateway installs packages side by side, so two may be there at once.
      const isUnpacking = staged().some((name) => list(join(store, '.staging', name)).length > 0);
      const there = published().length;
      assert.ok(there < KEYS.length, `all were installed before the gateways could be killed\n${whatIsThere()}`);
      return there > 0 && locked().length === there && isUnpacking;
    });
    await Promise.all(both.map((gateway) => gateway.kill()));
  });
  const before = locked();
  await timed('both killed with SIGKILL: until no process is left', async () => {
    await until('npm and the servers are gone', () => ours().length === 0, 3_500);
  });

  await timed('two gateways resume: until all servers of both are ready', async () => {
    const both = [open(), open()];
    await Promise.all(both.map(({ ready }) => ready));
    await Promise.all(both.map((gateway) => gateway.allReady()));
    await Promise.all(both.map((gateway) => gateway.close()));
    const installed = both.flatMap(({ stderr }) => stderr.match(/"msg":"installed the package"/g) ?? []);
    const missing = KEYS.length - before.length;
    assert.equal(installed.length, missing, 'what was there was not installed again, and the rest once');
  });
  assert.equal(published().length, KEYS.length);
  assert.deepEqual(staged(), []);
  const lock = readFileSync(join(place, 'trunkline.lock'), 'utf8');
  assert.deepEqual(
    locked().sort(),
    Object.values(SERVERS)
      .map((one) => one.package)
      .sort(),
  );
  const registry = new URL(execFileSync('npm', ['config', 'get', 'registry'], { encoding: 'utf8' }).trim());
  assert.ok(!lock.includes(registry.host), 'the lock names no registry');

  await timed('no registry, no cache of npm: until all servers are ready', async () => {
    mkdirSync(join(place, 'empty'));
    const gateway = open({ npm_config_registry: 'http://127.0.0.1:1/', npm_config_cache: join(place, 'empty') });
    await gateway.ready;
    await gateway.allReady();
    assert.ok(!gateway.stderr.includes('installing'));
    assert.deepEqual(list(join(place, 'empty')), [], 'npm was not even started');
    await gateway.close();
  });
  assert.equal(readFileSync(join(place, 'trunkline.lock'), 'utf8'), lock);
  assert.deepEqual(ours(), []);
  console.log('all as promised');
} finally {
  for (const gateway of gateways) gateway.process.kill('SIGKILL');
  await Promise.all(gateways.map(({ exited }) => exited));
  await until('nothing is left', () => ours().length === 0, 5_000);
  rmSync(place, { recursive: true, force: true });
}
