// Tries the hub with eight clients and ten servers: started at once, a killed server, a killed hub, the commands, and what is left after
// `stop`. Runs on Windows' Node, within Wine, because pipes of Linux cannot be given to a program there. Prints what it has measured.
// `npm run test:windows` starts it. Exits with 1 if something is not as it should be.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const CLIENTS = 8;
const SERVERS = Array.from({ length: 10 }, (_, index) => `s${index}`);
/** Bound of each wait, not a budget: under Wine on a busy machine, everything takes many times as long. */
const PATIENCE_MS = 120_000;

const inRepository = (path) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
/** As in `src/host/process/windows.ts`, without what this needs not. */
const LISTING = `Get-CimInstance Win32_Process | ForEach-Object { "$($_.ProcessId) 0 0 $($_.CommandLine -replace '\\s+', ' ')" }`;
const CLI = inRepository('dist/cli.js');
const folder = mkdtempSync(join(tmpdir(), 'trunkline-hub-trial-'));
const config = join(folder, 'trunkline.yaml');
/** Stands on the command line of each server, so that those of other trials do not count. */
const MARK = `run=${folder}`;
const env = {
  ...process.env,
  TRUNKLINE_HUB_DIR: join(folder, 'hubs'),
  XDG_DATA_HOME: join(folder, 'data'),
};
const entry = { command: 'node', args: [inRepository('test/fixtures/servers/lab.mjs'), MARK], sharing: 'all' };
writeFileSync(
  config,
  JSON.stringify({
    servers: Object.fromEntries(SERVERS.map((name) => [name, entry])),
    gateway: { startupWait: '60s' },
  }),
);

class Client {
  #process = spawn(process.execPath, [CLI, '--config', config], { env, stdio: ['pipe', 'pipe', 'inherit'] });
  #waiting = new Map();
  #lastId = 0;
  exited = new Promise((resolve) => this.#process.once('exit', resolve));

  constructor() {
    createInterface({ input: this.#process.stdout }).on('line', (line) => {
      const message = JSON.parse(line);
      if (message.method === undefined) this.#waiting.get(message.id)?.(message);
    });
  }

  async request(method, params = {}) {
    this.#lastId += 1;
    const id = this.#lastId;
    const answer = new Promise((resolve) => this.#waiting.set(id, resolve));
    this.#write({ id, method, params });
    return (await soon(answer, method)).result;
  }

  /** Opens the session, and reads the list until it has all servers. Returns how long that took, in milliseconds. */
  async begin() {
    const begunAt = performance.now();
    const clientInfo = { name: 'trial', version: '1' };
    await this.request('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo });
    this.#write({ method: 'notifications/initialized' });
    await until('the lists of all servers', async () => {
      const { tools } = await this.request('tools/list');
      return SERVERS.every((server) => tools.some(({ name }) => name === `${server}__wait`));
    });
    return Math.round(performance.now() - begunAt);
  }

  /** Calls a tool, again if the call was lost with a process. */
  async call(server) {
    await until(`an answer of ${server}`, async () => {
      const { content, isError } = await this.request('tools/call', {
        name: `${server}__wait`,
        arguments: { delayMs: 0, marker: server },
      });
      return isError !== true && content[0].text === server;
    });
  }

  end() {
    this.#process.stdin.end();
    return soon(this.exited, 'the end of a client');
  }

  #write(message) {
    this.#process.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  }
}

async function soon(promise, what) {
  const late = setTimeout(PATIENCE_MS, 'late', { ref: false });
  const result = await Promise.race([promise, late]);
  if (result === 'late') throw new Error(`waited in vain for ${what}`);
  return result;
}

async function until(what, isDone) {
  for (const begunAt = performance.now(); !(await isDone()); await setTimeout(100))
    if (performance.now() - begunAt > PATIENCE_MS) throw new Error(`waited in vain for ${what}`);
}

/** The processes of the system, asked of the system and not of Trunkline, each as its pid and its command line. */
function processes() {
  const args = ['-NoProfile', '-NonInteractive', '-Command', LISTING];
  const { stdout } = spawnSync('powershell.exe', args, { encoding: 'utf8' });
  return stdout.split('\n').flatMap((line) => {
    const [pid, , , ...words] = line.trim().split(/\s+/);
    return words.length === 0 ? [] : [{ pid: Number(pid), text: words.join(' ') }];
  });
}

const pidsOf = (text) => processes().flatMap((each) => (each.text.includes(text) ? [each.pid] : []));
const serverPids = () => pidsOf(MARK);
const hubPids = () => pidsOf(join(folder, 'hubs'));

function start(...args) {
  return spawn(process.execPath, [CLI, ...args, '--config', config], { env, stdio: 'ignore' });
}

function run(...args) {
  const options = { env, encoding: 'utf8', timeout: PATIENCE_MS };
  return spawnSync(process.execPath, [CLI, ...args, '--config', config], options);
}

/** Runs a command, which has to succeed. Returns its output. */
function trunkline(...args) {
  const { status, stdout, stderr } = run(...args);
  if (status !== 0) throw new Error(`trunkline ${args.join(' ')} ended with ${status}: ${stdout}${stderr}`);
  return stdout;
}

function expect(what, found, expected) {
  if (found !== expected) throw new Error(`${what}: ${found} instead of ${expected}`);
}

const earlier = new Set(pidsOf('node').concat(process.pid));
const tell = (text) =>
  process.stdout.write(`[${String(Math.round(performance.now() / 1_000)).padStart(4)} s] ${text}\n`);
const clients = [];
try {
  clients.push(...Array.from({ length: CLIENTS }, () => new Client()));
  const listed = await Promise.all(clients.map((client) => client.begin()));
  tell(`${CLIENTS} clients at once had their lists after ${Math.min(...listed)} to ${Math.max(...listed)} ms`);
  expect('hubs', hubPids().length, 1);
  expect('server processes', serverPids().length, SERVERS.length);
  tell(`${SERVERS.length} server processes for ${CLIENTS} clients`);
  const later = new Client();
  clients.push(later);
  tell(`a later client had its list after ${await later.begin()} ms`);
  await Promise.all(clients.map((client, index) => client.call(SERVERS[index % SERVERS.length])));

  const description = JSON.parse(trunkline('ps', '--json')).hub;
  expect('clients in ps', description.clients.length, clients.length);
  for (const command of [['status'], ['list'], ['logs'], ['metrics'], ['restart', 's1'], ['hub', 'status']])
    trunkline(...command);

  const recording = join(folder, 'recording.jsonl');
  const recorder = start('record', '-o', recording);
  await until('a recording', () => existsSync(recording));
  await until('a recorded call', async () => {
    await later.call('s4');
    return readFileSync(recording, 'utf8').includes('s4__wait');
  });
  recorder.kill();
  tell('status, list, logs, metrics, restart and record work');

  const { pid } = description.servers.find(({ server }) => server === 's0');
  process.kill(pid, 'SIGKILL');
  await until('the end of a killed server', () => !serverPids().includes(pid));
  await later.call('s0');
  await until('ten servers again', () => serverPids().length === SERVERS.length);
  tell('a killed server has restarted');

  const [hub] = hubPids();
  const before = serverPids();
  const killedAt = performance.now();
  process.kill(hub, 'SIGKILL');
  await Promise.all(clients.map((client, index) => client.call(SERVERS[index % SERVERS.length])));
  tell(
    `${clients.length} clients had answers of the next hub ${Math.round(performance.now() - killedAt)} ms after a kill`,
  );
  await until('one other hub', () => hubPids().length === 1 && hubPids()[0] !== hub);
  await until('the end of the servers of the killed hub', () => !serverPids().some((each) => before.includes(each)));
  await until('ten other servers', () => serverPids().length === SERVERS.length);
  tell('its servers have ended, and ten others run');

  const hubOfRestart = hubPids()[0];
  trunkline('hub', 'restart');
  await until('another hub', () => hubPids().length === 1 && hubPids()[0] !== hubOfRestart);
  await Promise.all(clients.map((client) => client.call('s2')));
  tell('the clients have moved to another hub at `hub restart`');

  trunkline('stop');
  await until('the end of all servers and the hub', () => hubPids().length + serverPids().length === 0);
  await later.call('s3');
  tell('`stop` leaves no process, and the next message starts a hub');
  await Promise.all(clients.map((client) => client.end()));
  trunkline('stop');
  const gateway = start('--http', '127.0.0.1:0', '--no-auth');
  const ended = new Promise((resolve) => gateway.once('exit', resolve));
  await until('a gateway over HTTP', () => run('status').status === 0);
  trunkline('stop');
  await soon(ended, 'the end of the gateway over HTTP');
  tell('a gateway over HTTP has answered `status` and ended with `stop`');
  // The guardian has neither the folder nor the mark on its command line.
  await until('the end of all processes', () => pidsOf('node').every((pid) => earlier.has(pid)));
  tell('nothing is left');
} catch (error) {
  tell(`FAILED: ${error.message}`);
  process.exitCode = 1;
} finally {
  for (const { pid, text } of processes())
    if (text.includes('node') && !earlier.has(pid)) spawnSync('taskkill', ['/PID', String(pid), '/F']);
  // Files of processes that are ending are in use for a moment.
  rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
}
process.exit();
