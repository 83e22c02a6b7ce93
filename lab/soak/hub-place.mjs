import { execFile, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client } from './client.mjs';
import { CLI } from './gateway.mjs';
import { until } from './wait.mjs';

const END_WITHIN_MS = 10_000;
const KEPT_STDERR = 4 * 1024;
const MAX_LISTING_BYTES = 16 * 1024 * 1024;

const run = promisify(execFile);

/** A configuration with a hub of its own. All of its processes have the name of its folder in their command lines. */
export class HubPlace {
  folder;
  #config;
  #env;
  #clients = new Set();
  /** The guardian of a hub is known by the id of that hub. */
  #hubs = new Set();

  constructor(folder, servers) {
    this.folder = mkdtempSync(join(folder, 'hub-'));
    this.#config = join(this.folder, 'trunkline.json');
    const marked = Object.entries(servers).map(([key, { args, ...settings }]) => {
      return [key, { sharing: 'profile', ...settings, args: [...args, `run=${this.folder}`] }];
    });
    writeFileSync(this.#config, JSON.stringify({ servers: Object.fromEntries(marked) }));
    mkdirSync(join(this.folder, 'tmp'));
    this.#env = {
      ...process.env,
      // As if it were not set.
      TRUNKLINE_HUB: '',
      TRUNKLINE_HUB_DIR: join(this.folder, 'hubs'),
      XDG_DATA_HOME: join(this.folder, 'data'),
      // The helper that starts servers has its folder there.
      TMPDIR: join(this.folder, 'tmp'),
    };
  }

  /** Starts what a client has registered, with a client. */
  attach({ env = {} } = {}) {
    const child = spawn(process.execPath, [CLI, '--config', this.#config], {
      env: { ...this.#env, ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    const attached = { process: child, client: new Client(child), stderr: '', end: undefined, exited: undefined };
    child.stderr.setEncoding('utf8').on('data', (text) => {
      attached.stderr = (attached.stderr + text).slice(-KEPT_STDERR);
    });
    attached.exited = new Promise((resolve) => child.once('exit', (code, signal) => resolve(code ?? signal)));
    void attached.exited.then((end) => {
      attached.end = end;
    });
    this.#clients.add(attached);
    return attached;
  }

  /** The ids of the hubs that run. */
  async hubs() {
    const own = (await processes()).filter(({ args }) => args.includes(`--place ${this.folder}/`));
    // A process that a hub is starting has the command line of the hub until it runs its own program.
    const pids = own.filter(({ parent }) => !own.some(({ pid }) => pid === parent)).map(({ pid }) => pid);
    for (const pid of pids) this.#hubs.add(pid);
    return pids;
  }

  /** Everything that runs here but the attach processes, the guardians included. */
  async shared() {
    return (await processes()).filter(
      ({ pid, args }) =>
        (args.includes(this.folder) && ![...this.#clients].some((client) => client.process.pid === pid)) ||
        [...this.#hubs].some((hub) => args.includes(`trunkline-guardian ${hub} `)),
    );
  }

  /** Ends all clients and the hub. Resolves with the lines of `ps` of what is left, which is killed. */
  async end() {
    for (const { process: child } of this.#clients) child.stdin.end();
    await until(() => [...this.#clients].every(({ end }) => end !== undefined), END_WITHIN_MS);
    for (const pid of await this.hubs()) kill(pid, 'SIGTERM');
    await until(async () => (await this.shared()).length === 0, END_WITHIN_MS);
    const left = await this.shared();
    for (const { pid } of left) kill(pid, 'SIGKILL');
    for (const { process: child, end } of this.#clients) if (end === undefined) child.kill('SIGKILL');
    return left.map(({ line }) => line);
  }
}

/** Sends a signal to a process that may have ended. */
export function kill(pid, signal) {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended.
  }
}

/** Everything that runs on this machine and is no zombie. */
async function processes() {
  const { stdout } = await run('ps', ['-A', '-ww', '-o', 'pid=,ppid=,stat=,args='], { maxBuffer: MAX_LISTING_BYTES });
  return stdout.split('\n').flatMap((line) => {
    const [, pid, parent, state, args] = /^\s*(\d+)\s+(\d+) (\S+)\s+(.*)$/.exec(line) ?? [];
    if (args === undefined || state.startsWith('Z')) return [];
    return [{ pid: Number(pid), parent: Number(parent), args, line: line.slice(0, 300) }];
  });
}
