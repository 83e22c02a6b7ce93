import { execFile, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startProtected } from '../../test/fixtures/servers/protected.mjs';
import { Client } from './client.mjs';
import { CLI } from './gateway.mjs';
import { kill } from './hub-place.mjs';
import { Renewals } from './renewals.mjs';
import { until, wait } from './wait.mjs';

const BROWSER = fileURLToPath(new URL('../../test/fixtures/cli/browser.mjs', import.meta.url));
/** Lifetime of a token that ends within the next round. All processes have to be called before. */
const SHORT_SECONDS = 4;
const LONG_SECONDS = 3_600;
const READY_WITHIN_MS = 30_000;
const END_WITHIN_MS = 10_000;

const run = promisify(execFile);

/**
 * Lets many processes and two hubs meet one login whose refresh token is good for one use: when the server refuses the access
 * token, and when it ends. Then kills the process that renews, between the request and the write.
 */
export const refreshRaces = {
  name: 'S-16',
  title: 'one login, renewed by many processes at once',
  full: { rounds: 200, kills: 20, processes: 20 },
  short: { rounds: 2, kills: 1, processes: 8 },
  run: race,
};

async function race({ rounds, kills, processes, folder }) {
  const place = await Place.open(folder, processes);
  const races = [];
  const ends = [];
  try {
    await place.login();
    await place.startAll();
    for (let round = 1; round <= rounds; round += 1) races.push(await place.renewOnce(round % 2 === 0));
    for (let round = 1; round <= kills; round += 1) ends.push(await place.killOnce());
  } finally {
    await place.close();
  }
  const { forms, reusedBefore } = place;
  const total = (list, key) => list.reduce((sum, one) => sum + one[key], 0);
  const wrong = [...races, ...ends].flatMap(({ wrong }) => wrong);
  return {
    facts: [
      ['processes, hubs', `${processes}, 2`],
      ['rounds: the server refuses the token, the token ends', `${Math.ceil(rounds / 2)}, ${Math.floor(rounds / 2)}`],
      ['calls answered by the server', String(total(races, 'answered'))],
      ['refresh tokens used', String(new Set(forms).size)],
      [
        'rounds with a kill: logins that were lost, that were kept',
        `${total(ends, 'isLost')}, ${ends.length - total(ends, 'isLost')}`,
      ],
      ['calls that named the login after a kill', String(total(ends, 'named'))],
    ],
    targets: [
      {
        target: `one request for tokens in each of ${rounds} rounds`,
        measured: `${races.filter(({ posts }) => posts === 1).length} with one, most in a round: ${Math.max(0, ...races.map(({ posts }) => posts))}`,
        isMet: races.length === rounds && races.every(({ posts }) => posts === 1),
      },
      { target: 'no login revoked in them', measured: String(reusedBefore), isMet: reusedBefore === 0 },
      {
        target: `every call of every process answered by the server in them`,
        measured: `${total(races, 'answered')} of ${rounds * (processes + 2)}`,
        isMet: total(races, 'answered') === rounds * (processes + 2),
      },
      {
        target: 'after a kill, each other process is served, or says how to log in; the next login serves all',
        measured: wrong.length === 0 ? 'each' : wrong.slice(0, 5).join('; '),
        isMet: wrong.length === 0,
      },
    ],
  };
}

class Place {
  /** Logins that were revoked before the first kill. */
  reusedBefore = 0;
  #server;
  #folder;
  #data;
  #size;
  #all = [];
  #renewals;

  static async open(folder, size) {
    const place = new Place();
    place.#folder = folder;
    place.#size = size;
    // The path of a socket is short.
    place.#data = mkdtempSync('/tmp/tls-');
    place.#server = await startProtected();
    const config = join(folder, 'trunkline.json');
    writeFileSync(config, JSON.stringify({ servers: { files: { url: place.#server.url } } }));
    symlinkSync(config, join(folder, 'link.json'));
    place.#renewals = new Renewals(place.#server);
    return place;
  }

  async login() {
    this.#server.lifetimeSeconds = LONG_SECONDS;
    const args = [CLI, 'login', 'files', '--config', join(this.#folder, 'trunkline.json')];
    const login = run(process.execPath, args, { env: this.#env('off') });
    login.child.stdin.end();
    await login;
  }

  async startAll() {
    for (let at = 0; at < this.#size; at += 1) this.#all.push(this.#start('off', 'trunkline.json'));
    // Two names of one configuration have two hubs.
    for (const file of ['trunkline.json', 'link.json']) this.#all.push(this.#start('', file));
    for (const one of this.#all) await this.#serve(one);
  }

  /** One renewal: all call at once, when the server refuses the token or when it ends. */
  async renewOnce(isEnd) {
    const { posts } = this;
    if (isEnd) {
      // The round before has got a token that ends soon, and the timers of all processes are about to renew it.
      this.#server.lifetimeSeconds = LONG_SECONDS;
      await wait(Math.max(0, this.#renewals.endsAt - Date.now()));
    } else {
      this.#server.lifetimeSeconds = SHORT_SECONDS;
      this.#renewals.refuseAll();
    }
    const outcomes = await this.#callAll();
    this.#renewals.tokenRead();
    this.reusedBefore = this.#server.reused;
    const answered = outcomes.filter(({ kind }) => kind === 'answered').length;
    return { posts: this.posts - posts, answered, wrong: [] };
  }

  /** One renewal whose process is killed after the authorization server has answered. */
  async killOnce() {
    this.#server.lifetimeSeconds = LONG_SECONDS;
    this.#renewals.refuseAll();
    const killed = this.#renewals.killNext(() => this.#pids());
    const outcomes = this.#callAll();
    const pid = await killed;
    const wrong = [];
    let named = 0;
    for (const [at, { kind, text }] of (await outcomes).entries()) {
      const one = this.#all[at];
      // The call of the killed process, or of a client of the killed hub, may have any end.
      if (kind === 'answered' || one.process.pid === pid || one.hub) continue;
      if (/`trunkline login files/.test(text)) named += 1;
      else wrong.push(`${kind}: ${text}`);
    }
    const isLost = named > 0 ? 1 : 0;
    await this.login();
    for (const one of this.#all.filter((each) => each.process.pid === pid)) {
      const again = this.#start('off', 'trunkline.json');
      this.#all[this.#all.indexOf(one)] = again;
      await this.#serve(again);
    }
    for (const one of this.#all) await this.#serve(one);
    return { isLost, named, wrong };
  }

  get forms() {
    return this.#renewals.forms;
  }

  get posts() {
    return this.forms.length;
  }

  async close() {
    for (const { process: child } of this.#all) child.stdin.end();
    await until(
      () => this.#all.every(({ process: { exitCode, signalCode } }) => exitCode !== null || signalCode !== null),
      END_WITHIN_MS,
    );
    for (const pid of this.#pids()) kill(pid, 'SIGTERM');
    await until(() => this.#pids().length === 0, END_WITHIN_MS);
    await this.#server.close();
    rmSync(this.#data, { recursive: true, force: true });
  }

  async #callAll() {
    return await Promise.all(this.#all.map((one) => call(one)));
  }

  /** Resolves when the client is served. */
  async #serve(one) {
    await one.begun;
    let last;
    const isServed = async () => {
      last = await call(one);
      return last.kind === 'answered';
    };
    await until(isServed, READY_WITHIN_MS, 50);
    if (last.kind !== 'answered') throw new Error(`a client is not served: ${last.text}`);
  }

  #env(hub) {
    const env = {
      ...process.env,
      TRUNKLINE_HUB: hub,
      TRUNKLINE_HUB_DIR: join(this.#data, 'h'),
      XDG_DATA_HOME: this.#data,
    };
    return { ...env, BROWSER: `${process.execPath} ${BROWSER}` };
  }

  #start(hub, file) {
    const args = [CLI, '--config', join(this.#folder, file)];
    const child = spawn(process.execPath, args, { env: this.#env(hub), stdio: ['pipe', 'pipe', 'ignore'] });
    const client = new Client(child);
    const ended = new Promise((resolve) => child.once('exit', () => resolve({ kind: 'ended', text: '' })));
    return { process: child, client, ended, hub: hub === '', begun: client.initialize() };
  }

  /** The processes that can hold a login: those without a hub, and the hubs. */
  #pids() {
    const own = this.#all.filter(({ hub }) => !hub).map(({ process: { pid } }) => pid);
    const hubs = readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && isHub(pid, this.#data));
    return [...own, ...hubs.map(Number)].filter(isAlive);
  }
}

/** Calls, and resolves with the text of the answer. */
async function call({ client, ended }) {
  const answered = client.call('files__read', {}).then(({ result, error }) => {
    const text = error?.message ?? result.content[0].text;
    return { kind: text === 'read done' ? 'answered' : 'failed', text };
  });
  return await Promise.race([answered, ended]);
}

function isHub(pid, data) {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(`hub\0serve\0--place\0${data}/`);
  } catch {
    return false;
  }
}

function isAlive(pid) {
  try {
    return !/^State:\tZ/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}
