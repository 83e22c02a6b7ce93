// Logins at a remote server that all gateways of a cluster use, and whose refresh tokens are good for one use: one of the machine, or
// one of each user.
import { execFile } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { browse } from '../../test/fixtures/cli/browser.mjs';
import { startProtected } from '../../test/fixtures/servers/protected.mjs';
import { CLI } from '../conformance/targets.mjs';
import { Renewals } from '../soak/renewals.mjs';
import { until } from '../soak/wait.mjs';
import { Place } from './place.mjs';
import { Store } from './store.mjs';

const BROWSER = fileURLToPath(new URL('../../test/fixtures/cli/browser.mjs', import.meta.url));
const FULL = { rounds: 200, killed: 20 };
const SHORT = { rounds: 10, killed: 1 };
/** Kills in rounds that are drawn by lot, of those in which a token ends. */
const FULL_OF_USERS = { rounds: 200, killed: 6 };
const SHORT_OF_USERS = { rounds: 10, killed: 1 };
const USERS = 2;
/** Calls at each gateway in a round, with one login and with those of users. */
const CALLS = 50;
const CALLS_OF_USERS = 20;
/** Lifetime of a token that ends within the next round. All gateways have to be called before. */
const SHORT_SECONDS = 4;
const LONG_SECONDS = 3_600;
/** For so long, a gateway that is killed while it renews a login keeps the lease of it. */
const LEASE_SECONDS = 45;
const SERVED_WITHIN_MS = 90_000;
/** Of a call that another gateway passed on to the killed one, the home of its user. */
const UNKNOWN = /Whether the call took effect is unknown/;
const MODERN = '2026-07-28';
const run = promisify(execFile);

export const renewedLogins = {
  name: 'C10',
  about:
    'one login is renewed while three gateways have 50 calls each, then while the gateway that renews it is killed between the answer and its arrival',
  needs: ['redis-server'],
  run: async ({ isShort }) => {
    const { rounds, killed } = isShort ? SHORT : FULL;
    const logins = await Logins.open();
    const races = [];
    const kills = [];
    let revokedBefore;
    try {
      for (let round = 1; round <= rounds; round += 1) races.push(await logins.renew());
      revokedBefore = logins.revoked;
      for (let round = 1; round <= killed; round += 1) kills.push(await logins.kill());
    } finally {
      await logins.close();
    }
    const once = races.filter(({ posts }) => posts === 1).length;
    const wrong = [...races, ...kills].flatMap((one) => one.wrong);
    const lost = kills.filter(({ isLost }) => isLost).length;
    return {
      figures: {
        ...kindsOf(races),
        'calls answered by the server in them': sum(races, 'answered'),
        'kills, logins that were lost by them': `${kills.length}, ${lost}`,
        'calls of the others after a kill that were answered, that said how to log in': `${sum(kills, 'answered')}, ${sum(kills, 'named')}`,
        'longest call after a kill': `${(Math.max(...kills.map(({ longest }) => longest)) / 1_000).toFixed(1)} s`,
      },
      targets: [
        target(`one request for tokens in each of ${rounds} rounds`, once, once === rounds),
        target('no login revoked in them', revokedBefore, revokedBefore === 0),
        target(`no more than ${killed} logins lost by the kills`, lost, lost <= killed),
        target(
          'every other call is answered, or says how to log in',
          wrong.slice(0, 3).join('; ') || 'each',
          wrong.length === 0,
        ),
      ],
    };
  },
};

export const renewedUserLogins = {
  name: 'C10-users',
  about:
    'the logins of two users are renewed while three gateways have 20 calls each; in some rounds, one gateway is killed when a renewal begins',
  needs: ['redis-server'],
  run: async ({ isShort }) => {
    const { rounds, killed } = isShort ? SHORT_OF_USERS : FULL_OF_USERS;
    const lots = new Set();
    while (lots.size < killed) lots.add(2 + 2 * Math.floor((Math.random() * rounds) / 2));
    const logins = await Logins.open(USERS);
    const races = [];
    try {
      for (let round = 1; round <= rounds; round += 1) races.push(await logins.renew(lots.has(round)));
    } finally {
      await logins.close();
    }
    const withKill = races.filter(({ isKilled }) => isKilled);
    const waited = withKill.filter(({ servedAfter }) => servedAfter > (LEASE_SECONDS * 1_000) / 3).length;
    const posts = sum(races, 'posts');
    const once = races.filter((one) => one.posts === USERS).length;
    const wrong = races.flatMap((one) => one.wrong);
    return {
      figures: {
        ...kindsOf(races),
        'calls answered by the server in them': sum(races, 'answered'),
        'requests for tokens, those that ended with their gateway': `${posts}, ${logins.dropped}`,
        'calls that the killed gateway had for the others, and that said so': sum(races, 'unknown'),
        [`kills after which it took more than ${LEASE_SECONDS / 3} s until every gateway served every user`]: waited,
        'longest time until every gateway served every user after that': `${(Math.max(...races.map(({ servedAfter }) => servedAfter)) / 1_000).toFixed(1)} s`,
      },
      targets: [
        target(`one request for tokens for each of ${USERS} users in each of ${rounds} rounds`, once, once === rounds),
        target(`a gateway is killed in ${killed} rounds`, withKill.length, withKill.length === killed),
        target('no login revoked', logins.revoked, logins.revoked === 0),
        target(
          'no login lost: every other call is answered, and every gateway serves every user after a kill',
          wrong.slice(0, 3).join('; ') || 'each',
          wrong.length === 0,
        ),
      ],
    };
  },
};

function sum(list, key) {
  return list.reduce((total, one) => total + one[key], 0);
}

function kindsOf(races) {
  const ends = races.filter(({ isEnd }) => isEnd).length;
  return {
    'rounds in which the server refuses the token, in which the token ends': `${races.length - ends}, ${ends}`,
  };
}

function target(text, measured, isMet) {
  return { target: text, measured: String(measured), isMet };
}

/** The logins, and the gateways that use them. */
class Logins {
  #server;
  #renewals;
  #place;
  #next = 0;

  /** With `users`, each of so many has a login. */
  static async open(users) {
    const logins = new Logins();
    logins.#server = await startProtected({ lifetimeSeconds: LONG_SECONDS });
    logins.#renewals = new Renewals(logins.#server);
    const files = { url: logins.#server.url };
    const ofUsers = { users, hasMachines: false, servers: { files: { ...files, login: 'user' } } };
    // A user logs in on a page, whose address is that of the proxy.
    const settings = users === undefined ? { balance: 'none', servers: { files } } : ofUsers;
    try {
      logins.#place = await Place.open({ store: Store.open, ...settings });
      if (users === undefined) await logins.#login();
      else for (const token of logins.#place.tokens) await logins.#loginOf(token);
      for (const gateway of logins.#place.instances) await logins.#serves(gateway);
      return logins;
    } catch (error) {
      await logins.close();
      throw error;
    }
  }

  get revoked() {
    return this.#server.reused;
  }

  get dropped() {
    return this.#renewals.dropped;
  }

  /**
   * One renewal of each login, when the server refuses its token or, after a round in which it was given one that ends soon, when it
   * ends. With `isKilled`, which is for such a round, a gateway is killed when a request for tokens arrives, and started again.
   */
  async renew(isKilled = false) {
    const { instances } = this.#place;
    const before = this.#renewals.forms.length;
    const isEnd = this.#server.lifetimeSeconds === SHORT_SECONDS;
    this.#server.lifetimeSeconds = isEnd ? LONG_SECONDS : SHORT_SECONDS;
    const victim = isKilled ? instances[Math.floor(Math.random() * instances.length)] : undefined;
    const pids = instances.map(({ pid }) => pid);
    if (victim !== undefined) this.#renewals.killAtNext(victim.pid, pids);
    if (isEnd) await sleep(Math.max(0, this.#renewals.endsAt - Date.now()));
    else this.#renewals.refuseAll();
    const calls = (await this.#callAll()).filter(({ pid }) => pid !== victim?.pid);
    this.#renewals.tokenRead();
    const answered = calls.filter(({ kind }) => kind === 'answered').length;
    const failed = calls.filter(({ kind }) => kind !== 'answered').map(({ text }) => text);
    const wrong = failed.filter((text) => victim === undefined || !UNKNOWN.test(text));
    const unknown = failed.length - wrong.length;
    const since = performance.now();
    if (victim !== undefined) {
      await victim.process.exited;
      isKilled = this.#renewals.endKill();
      await victim.start();
      for (const gateway of instances) await this.#serves(gateway);
    }
    const posts = this.#renewals.forms.length - before;
    return { isEnd, isKilled, posts, answered, unknown, wrong, servedAfter: performance.now() - since };
  }

  /** One renewal whose gateway is killed. The login is made again, and the gateway started again. */
  async kill() {
    const { instances } = this.#place;
    this.#server.lifetimeSeconds = LONG_SECONDS;
    this.#renewals.refuseAll();
    const killed = this.#renewals.killNext(() => instances.map(({ pid }) => pid));
    const calling = this.#callAll();
    const pid = await killed;
    const others = (await calling).filter((call) => call.pid !== pid);
    const of = (kind) => others.filter((call) => call.kind === kind);
    const ended = instances.find((gateway) => gateway.pid === pid);
    await ended.process.exited;
    await this.#login();
    await ended.start();
    for (const gateway of instances) await this.#serves(gateway);
    return {
      isLost: of('named').length > 0,
      answered: of('answered').length,
      named: of('named').length,
      longest: Math.max(...others.map(({ ms }) => ms)),
      wrong: of('failed').map(({ text }) => text),
    };
  }

  async close() {
    await this.#place?.close();
    await this.#server.close();
  }

  /** Logs in at a gateway's machine, as its user does. */
  async #login() {
    const [{ config, env }] = this.#place.instances;
    const login = run(process.execPath, [CLI, 'login', 'files', '--config', config], {
      env: { ...env, BROWSER: `${process.execPath} ${BROWSER}` },
    });
    login.child.stdin.end();
    await login;
  }

  /** Logs a user in on the page that a call names. */
  async #loginOf(token) {
    const [gateway] = this.#place.instances;
    const named = await this.#until('named', gateway, token);
    await browse(/log in at (\S+)/.exec(named.text)[1]);
  }

  async #callAll() {
    const { instances, tokens } = this.#place;
    const length = tokens.length === 1 ? CALLS : CALLS_OF_USERS;
    const ofGateway = (gateway) => Array.from({ length }, (_, n) => this.#call(gateway, this.#place.tokenOf(n)));
    return await Promise.all(instances.flatMap(ofGateway));
  }

  /** Resolves when all users are served. */
  async #serves(gateway) {
    for (const token of this.#place.tokens) await this.#until('answered', gateway, token);
  }

  async #until(kind, gateway, token) {
    let last;
    const isSo = async () => {
      last = await this.#call(gateway, token);
      return last.kind === kind;
    };
    if (await until(isSo, SERVED_WITHIN_MS, 200)) return last;
    throw new Error(`gateway ${gateway.number}: ${last.text}`);
  }

  async #call({ address, pid }, token) {
    const since = performance.now();
    const { kind, text } = await this.#outcome(address, token).catch((error) => ({
      kind: 'failed',
      text: String(error),
    }));
    return { kind, text, pid, ms: performance.now() - since };
  }

  async #outcome(address, token) {
    this.#next += 1;
    const _meta = {
      'io.modelcontextprotocol/protocolVersion': MODERN,
      'io.modelcontextprotocol/clientInfo': { name: 'logins', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    };
    const params = { name: 'files__read', arguments: {}, _meta };
    const response = await fetch(`${address}/mcp`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
        ...{ 'mcp-protocol-version': MODERN, 'mcp-method': 'tools/call', 'mcp-name': 'files__read' },
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: this.#next, method: 'tools/call', params }),
    });
    const text = await response.text();
    if (response.status !== 200) return { kind: 'failed', text: `${response.status} ${text}` };
    // A call that takes long is answered on an event stream.
    const [, message = text] = /^data: (\{.*)$/m.exec(text) ?? [];
    const shown = JSON.parse(message).result?.content[0].text ?? text;
    if (shown === 'read done') return { kind: 'answered', text: shown };
    return { kind: /`trunkline login files|log in at http/.test(shown) ? 'named' : 'failed', text: shown };
  }
}
