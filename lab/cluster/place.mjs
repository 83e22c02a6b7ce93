// Gateways with one key behind a proxy, in a folder of their own, with the journals of their servers; as a cluster with a store,
// too.
import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startNginx } from '../conformance/nginx.mjs';
import { CLI, freePort } from '../conformance/targets.mjs';
import { until } from '../soak/wait.mjs';
import { HomeWatch } from './home-watch.mjs';
import { Issuer } from './issuer.mjs';
import { Link } from './link.mjs';
import { OwnedProcess } from './owned-process.mjs';

const SERVER = fileURLToPath(new URL('server.mjs', import.meta.url));
const PAGE = new URL('../../docs/cluster.md', import.meta.url);
const HAPROXY = new URL('../../deploy/haproxy/haproxy.cfg', import.meta.url);
const INSTANCES = 3;
const READY_WITHIN_MS = 30_000;
const POLL_MS = 20;
/** Of so many users, one is a machine, whose sessions have a home each. The others are people with one home each. */
const PEOPLE_PER_MACHINE = 4;
/** The group of the users who have a process of their own, their view, and the server of the process. */
const OWN = 'own';

export function newKey() {
  return randomBytes(32).toString('base64');
}

/** The proxies that can be in front. With `chosen`, clients choose a gateway by its number in the header `X-To`. */
const PROXIES = { nginx: startPageNginx, haproxy: startHaproxy, chosen: startChosen, none: () => undefined };

export class Place {
  folder = mkdtempSync(join(tmpdir(), 'trunkline-cluster-'));
  instances = [];
  /** Those of the users, the same for all without users. */
  tokens = [randomBytes(32).toString('base64url')];
  /** Processes that were killed may still write for a moment. */
  #removeFolder = () => rmSync(this.folder, { recursive: true, force: true, maxRetries: 10 });
  #settings;

  /**
   * `drain` is as in the configuration. `users` is a number, of whom some are machines with `hasMachines`, and
   * `own` says whether a user has a process. `store` makes a store in a folder. With `hasLinks`, gateways reach
   * the store and each other over links that can be cut. `servers` come in addition. `env` has variables of gateways by number.
   */
  static async open({ count = INSTANCES, balance = 'nginx', ...settings } = {}) {
    const place = new Place();
    process.once('exit', place.#removeFolder);
    try {
      place.#settings = settings;
      await place.#start(count);
      place.proxy = await PROXIES[balance](place, settings);
      return place;
    } catch (error) {
      await place.close();
      throw error;
    }
  }

  get url() {
    return `http://${this.host}/mcp`;
  }

  get token() {
    return this.tokens[0];
  }

  tokenOf(number) {
    return this.tokens[number % this.tokens.length];
  }

  /** Replaces the keys. The gateways read them at their next start. */
  seal(...keys) {
    [this.key] = keys;
    writeFileSync(join(this.folder, 'seal-key'), keys.join('\n'), { mode: 0o600 });
  }

  /** Makes another gateway. It is not started, and the proxy does not know it. */
  async add() {
    const number = this.instances.length + 1;
    const { store, hasLinks, env = {} } = this.#settings;
    const data = join(this.folder, `data-${number}`);
    mkdirSync(join(data, 'trunkline'), { recursive: true, mode: 0o700 });
    writeFileSync(join(data, 'trunkline', 'token'), this.token, { mode: 0o600 });
    const instance = new Instance({ number, data, host: this.host, env: env[number] });
    instance.port = await freePort();
    if (store !== undefined) await instance.join(this.store, hasLinks);
    writeFileSync(instance.config, JSON.stringify(this.#configOf(instance)));
    this.instances.push(instance);
    return instance;
  }

  /** How often each token was executed. */
  executions() {
    const counts = new Map();
    const journals = readdirSync(this.#journals).map((name) => readFileSync(join(this.#journals, name), 'utf8'));
    for (const token of journals.flatMap((text) => text.split('\n').filter(Boolean)))
      counts.set(token, (counts.get(token) ?? 0) + 1);
    return counts;
  }

  async close() {
    this.homes?.close();
    await this.proxy?.close();
    await Promise.all(this.instances.map((instance) => instance.close()));
    await this.store?.close();
    this.issuer?.close();
    this.#removeFolder();
    process.off('exit', this.#removeFolder);
  }

  get #journals() {
    return join(this.folder, 'journals');
  }

  get #homes() {
    return join(this.folder, 'homes');
  }

  async #start(count) {
    const { users, store, hasMachines = true } = this.#settings;
    mkdirSync(this.#journals);
    mkdirSync(this.#homes);
    this.seal(newKey());
    this.host = `127.0.0.1:${await freePort()}`;
    if (users !== undefined) await this.#addUsers(users, hasMachines);
    this.store = await store?.(join(this.folder, 'store'));
    this.homes = new HomeWatch(this.#homes);
    for (let number = 1; number <= count; number += 1) await this.add();
    await Promise.all(this.instances.map((instance) => instance.start()));
  }

  async #addUsers(count, hasMachines) {
    this.issuer = await Issuer.open();
    const isMachine = (n) => hasMachines && n % (PEOPLE_PER_MACHINE + 1) === PEOPLE_PER_MACHINE;
    const groupsOf = (n) => (this.#settings.own?.(n) ? [OWN] : []);
    const tokenOf = (n) =>
      isMachine(n) ? randomBytes(32).toString('hex') : this.issuer.token(`user-${n}`, { groups: groupsOf(n) });
    this.tokens = await Promise.all(Array.from({ length: count }, (_, n) => tokenOf(n)));
    const lines = this.tokens.map((token, n) => isMachine(n) && `m${n} ${sha256(token)}\n`).filter(Boolean);
    writeFileSync(join(this.folder, 'machines'), lines.join(''), { mode: 0o600 });
  }

  #configOf(instance) {
    const { drain = '0s', users, own, servers = {} } = this.#settings;
    const limits = { maxSessions: 10_000, maxConnections: 20_000, requestsPerSecond: 100_000, requestBurst: 100_000 };
    const auth = this.issuer && { jwt: this.issuer.settings, tokens: join(this.folder, 'machines') };
    const http = { ...limits, ...(auth && { publicUrl: `http://${this.host}`, auth }) };
    const entry = (name, own) => ({
      command: process.execPath,
      args: [SERVER, this.#journals, this.#homes, name],
      env: { INSTANCE: String(instance.number) },
      era: 'legacy',
      concurrency: 256,
      ...own,
    });
    const jobs = entry('jobs', users === undefined ? {} : { sharing: 'all' });
    const ofServer = (name, own) => (own.url === undefined ? entry(name, own) : own);
    const others = Object.entries(servers).map(([name, own]) => [name, ofServer(name, own)]);
    const sealKeyFile = join(this.folder, 'seal-key');
    // A process would be started for each user who sees this server.
    const ofOwn = own && {
      servers: { [OWN]: entry(OWN, { sharing: 'user', start: 'lazy' }) },
      views: { [OWN]: { groups: [OWN], servers: ['jobs', OWN] }, others: { servers: ['jobs'] } },
    };
    return {
      servers: { jobs, ...ofOwn?.servers, ...Object.fromEntries(others) },
      views: ofOwn?.views,
      gateway: { sealKeyFile, drain, http, cluster: instance.cluster },
    };
  }
}

/** The nginx of the page, with our addresses and without TLS. With `namesGateway`, it names the gateway of each answer in `x-gateway`. */
async function startPageNginx({ host, instances }, { namesGateway = false }) {
  const ofServer = namesGateway ? 'add_header x-gateway $upstream_addr always;' : '';
  const [, shown] = /```nginx\n([\s\S]*?)```/.exec(readFileSync(PAGE, 'utf8'));
  const own = instances.reduce(
    (text, { port, number }) => text.replace(`gateway-${number}.example:7411`, `127.0.0.1:${port}`),
    shown.replace('listen 443 ssl;', `listen ${host}; ${ofServer}`).replaceAll(/^ *ssl_.*\n/gm, ''),
  );
  if (own.includes('.example:') || !own.includes(`listen ${host}`)) throw new Error(`docs/cluster.md shows:\n${shown}`);
  return await startNginx(host, own);
}

async function startHaproxy({ host, instances, folder }) {
  const shown = readFileSync(HAPROXY, 'utf8');
  const own = instances.reduce(
    (text, { port, number }) => text.replace(`gateway-${number}:7411`, `127.0.0.1:${port}`),
    shown.replace('bind :7410', `bind ${host}`),
  );
  if (/ gateway-\d:/.test(own) || !own.includes(`bind ${host}`)) throw new Error(`haproxy.cfg has:\n${shown}`);
  const file = join(folder, 'haproxy.cfg');
  writeFileSync(file, own);
  const haproxy = new OwnedProcess('haproxy', ['-db', '-f', file]);
  if (await until(() => answers(`http://${host}/livez`), READY_WITHIN_MS, POLL_MS)) return haproxy;
  await haproxy.close();
  throw new Error(`HAProxy does not serve:\n${haproxy.output}`);
}

async function startChosen({ host, instances }) {
  const servers = instances.map(({ port }) => `server 127.0.0.1:${port};`);
  const upstream = (name, some) => `upstream ${name} { ${some.join(' ')} keepalive 64; }`;
  const ofOne = instances.map(({ number }, index) => upstream(`gateway${number}`, [servers[index]]));
  const choices = instances.map(({ number }) => `${number} gateway${number};`);
  const headers = { Connection: '""', Host: '$http_host' };
  const lines = Object.entries(headers).map(([name, value]) => `proxy_set_header ${name} ${value};`);
  const location = `location / { proxy_pass http://$to; proxy_http_version 1.1; proxy_buffering off; ${lines.join(' ')} }`;
  const map = `map $http_x_to $to { default gateways; ${choices.join(' ')} }`;
  const own = [map, upstream('gateways', servers), ...ofOne, `server { listen ${host}; ${location} }`];
  return await startNginx(host, own.join('\n'));
}

class Instance {
  #links = [];

  constructor({ number, data, host, env }) {
    this.number = number;
    this.host = host;
    this.config = join(data, 'trunkline.yaml');
    this.env = { ...process.env, HOME: data, XDG_DATA_HOME: data, TRUNKLINE_HUB: 'off', ...env };
  }

  get pid() {
    return this.process.pid;
  }

  get address() {
    return `http://127.0.0.1:${this.port}`;
  }

  /** The settings with which it uses the store. */
  async join(store, hasLinks) {
    this.peerPort = await freePort();
    const listen = `127.0.0.1:${this.peerPort}`;
    this.cluster = { store: store.url, advertise: listen };
    if (!hasLinks) return;
    this.peerLink = await Link.open(this.peerPort);
    this.storeLink = await Link.open(store.port);
    this.#links = [this.peerLink, this.storeLink];
    const [advertise, url] = [`127.0.0.1:${this.peerLink.port}`, `redis://127.0.0.1:${this.storeLink.port}`];
    this.cluster = { store: url, advertise, listen };
  }

  /** Resolves when it is ready. */
  async start() {
    const http = ['--http', `127.0.0.1:${this.port}`, '--allowed-host', this.host];
    this.process = new OwnedProcess(process.execPath, [CLI, 'serve', '--config', this.config, ...http], {
      env: this.env,
    });
    const isDone = async () => this.process.hasEnded || (await answers(`${this.address}/readyz`));
    if (!(await until(isDone, READY_WITHIN_MS, POLL_MS)) || this.process.hasEnded)
      throw new Error(`gateway ${this.number} is not ready:\n${this.process.output}`);
  }

  /** Resolves with the exit code, or the signal, when it has ended. */
  async end(signal) {
    return await this.process.end(signal);
  }

  async close() {
    await this.process?.close('SIGINT');
    await Promise.all(this.#links.map((link) => link.close()));
  }
}

async function answers(url) {
  const response = await fetch(url).catch(() => undefined);
  await response?.text();
  return response?.ok;
}

function sha256(text) {
  return createHash('sha256').update(text).digest('hex');
}
