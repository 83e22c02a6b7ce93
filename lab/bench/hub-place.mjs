// A folder in which Trunkline runs with a hub or without one, or something else that it is compared with. All processes are
// known by the name of the folder in their environment, which only Linux shows.
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { Client } from './client.mjs';
import { trunkline, writeConfig } from './ways.mjs';

const GONE_WITHIN_MS = 20_000;
const KIB = 1024;

export class HubPlace {
  env;
  config;
  #mark;
  #start;

  /** `start` is the command of a build, without the configuration. */
  constructor(folder, servers, { isShared = true, start = trunkline.start } = {}) {
    this.#start = start;
    const own = mkdtempSync(join(folder, 'h-'));
    this.config = writeConfig(own, 'config.json', servers, { limits: { sharing: 'profile' } });
    this.#mark = `TMPDIR=${join(own, 'tmp')}\0`;
    mkdirSync(join(own, 'tmp'));
    this.env = {
      TRUNKLINE_HUB: isShared ? 'auto' : 'off',
      TRUNKLINE_HUB_DIR: join(own, 'hubs'),
      XDG_DATA_HOME: join(own, 'data'),
      // A server gets this variable, too.
      TMPDIR: join(own, 'tmp'),
    };
  }

  /** What a client registers. */
  get command() {
    return [...this.#start, this.config];
  }

  /** A client of this command. */
  open([command, ...args] = this.command) {
    const env = { ...process.env, ...this.env };
    const child = spawn(command, args, { env, stdio: ['pipe', 'pipe', 'inherit'] });
    return new Client([command, ...args], { child });
  }

  /** All processes that run here, with their kinds: `hub`, `server`, `guardian`, `helper`, and `between` for the others. */
  processes() {
    const pids = readdirSync('/proc')
      .map(Number)
      .filter((pid) => pid > 0);
    const own = new Set(pids.filter((pid) => `${read(pid, 'environ')}\0`.includes(this.#mark)));
    return pids.flatMap((pid) => {
      const words = read(pid, 'cmdline').split('\0');
      // A guardian has no environment, but the id of its owner.
      const guarded = words[words.indexOf('trunkline-guardian') + 1];
      return own.has(pid) || own.has(Number(guarded)) ? [{ pid, kind: kindOf(words) }] : [];
    });
  }

  /** Ends the hub, once its clients are gone, and waits for the end of everything. */
  async end() {
    for (const { pid, kind } of this.processes()) if (kind === 'hub') signal(pid, 'SIGTERM');
    const overdueAt = performance.now() + GONE_WITHIN_MS;
    while (this.processes().length > 0) {
      if (performance.now() > overdueAt) {
        for (const { pid } of this.processes()) signal(pid, 'SIGKILL');
        throw new Error('Something of a hub is left');
      }
      await wait(20);
    }
  }
}

function kindOf(words) {
  if (words[2] === 'hub') return 'hub';
  if (words[1]?.endsWith('/tiny-server.mjs')) return 'server';
  if (words.includes('trunkline-guardian')) return 'guardian';
  if (words.includes('trunkline-spawn')) return 'helper';
  return 'between';
}

/** Microseconds of all threads so far. */
export function cpuOf(pid) {
  const threads = readdirSync(`/proc/${pid}/task`);
  return threads.reduce((sum, thread) => sum + Number(read(pid, `task/${thread}/schedstat`).split(' ')[0]), 0) / 1e3;
}

/** MiB: resident now, the most that was resident, and the share of what is shared with others. */
export function memoryOf(pid) {
  const mib = (file, name) => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(read(pid, file))?.[1] ?? 0) / KIB;
  return { resident: mib('status', 'VmRSS'), peak: mib('status', 'VmHWM'), share: mib('smaps_rollup', 'Pss') };
}

/** Empty if the process has ended, or belongs to somebody else. */
function read(pid, file) {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1');
  } catch {
    return '';
  }
}

function signal(pid, name) {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended.
  }
}
