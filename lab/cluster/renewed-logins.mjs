// One login at a remote server that all gateways of a cluster use, and whose refresh token is good for one use.
import { execFile } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startProtected } from '../../test/fixtures/servers/protected.mjs';
import { CLI } from '../conformance/targets.mjs';
import { Renewals } from '../soak/renewals.mjs';
import { until } from '../soak/wait.mjs';
import { Place } from './place.mjs';
import { Store } from './store.mjs';

const BROWSER = fileURLToPath(new URL('../../test/fixtures/cli/browser.mjs', import.meta.url));
const FULL = { rounds: 200, killed: 20 };
const SHORT = { rounds: 10, killed: 1 };
const CALLS = 50;
/** Lifetime of a token that ends within the next round. All gateways have to be called before. */
const SHORT_SECONDS = 4;
const LONG_SECONDS = 3_600;
const SERVED_WITHIN_MS = 30_000;
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
      for (let round = 1; round <= rounds; round += 1) races.push(await logins.renew(round % 2 === 0));
      revokedBefore = logins.revoked;
      for (let round = 1; round <= killed; round += 1) kills.push(await logins.kill());
    } finally {
      await logins.close();
    }
    const sum = (list, key) => list.reduce((total, one) => total + one[key], 0);
    const once = races.filter(({ posts }) => posts === 1).length;
    const wrong = [...races, ...kills].flatMap((one) => one.wrong);
    const lost = kills.filter(({ isLost }) => isLost).length;
    return {
      figures: {
        'rounds in which the server refuses the token, in which the token ends': `${Math.ceil(rounds / 2)}, ${Math.floor(rounds / 2)}`,
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

function target(text, measured, isMet) {
  return { target: text, measured: String(measured), isMet };
}

/** The login, and the gateways that use it. */
class Logins {
  #server;
  #renewals;
  #place;
  #next = 0;

  static async open() {
    const logins = new Logins();
    logins.#server = await startProtected({ lifetimeSeconds: LONG_SECONDS });
    logins.#renewals = new Renewals(logins.#server);
    const servers = { files: { url: logins.#server.url } };
    try {
      logins.#place = await Place.open({ balance: 'none', store: Store.open, servers });
      await logins.#login();
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

  /** One renewal, when the server refuses the token or when it ends. */
  async renew(isEnd) {
    const before = this.#renewals.forms.length;
    this.#server.lifetimeSeconds = isEnd ? LONG_SECONDS : SHORT_SECONDS;
    if (isEnd) await sleep(Math.max(0, this.#renewals.endsAt - Date.now()));
    else this.#renewals.refuseAll();
    const calls = await this.#callAll();
    this.#renewals.tokenRead();
    const wrong = calls.filter(({ kind }) => kind !== 'answered').map(({ text }) => text);
    return { posts: this.#renewals.forms.length - before, answered: calls.length - wrong.length, wrong };
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

  async #callAll() {
    const calls = this.#place.instances.flatMap((gateway) => Array.from({ length: CALLS }, () => this.#call(gateway)));
    return await Promise.all(calls);
  }

  async #serves(gateway) {
    let last;
    const isServed = async () => {
      last = await this.#call(gateway);
      return last.kind === 'answered';
    };
    if (!(await until(isServed, SERVED_WITHIN_MS, 200))) throw new Error(`gateway ${gateway.number}: ${last.text}`);
  }

  async #call({ address, pid }) {
    const since = performance.now();
    const { kind, text } = await this.#outcome(address).catch((error) => ({ kind: 'failed', text: String(error) }));
    return { kind, text, pid, ms: performance.now() - since };
  }

  async #outcome(address) {
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
        authorization: `Bearer ${this.#place.token}`,
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
    return { kind: shown.includes('`trunkline login files') ? 'named' : 'failed', text: shown };
  }
}
