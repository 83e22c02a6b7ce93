import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from './client.mjs';

export const DIRECT = 'direct';
export const RELAY = 'byte relay';
export const TRUNKLINE = 'Trunkline';
export const OTHER_BUILD = 'other build';
export const NAIVE = 'naive gateway';

/** Calls that the client has in flight. How many of them Trunkline sends at once is its default, unless a way says it. */
export const IN_FLIGHT = 64;
const LIMIT = 16;

/** The command of the tiny server. */
export function tinyServer(...args) {
  return [...node(import.meta.resolve('./tiny-server.mjs')), ...args];
}

/**
 * The ways to a server that are compared. `against` is the folder of another build of Trunkline; `peers` are other
 * gateways, `NAME=COMMAND` with `{config}` in the place of a file like Claude Desktop's.
 */
export function allWays({ against, peers = [] }) {
  return [
    { name: DIRECT, commandFor: (server) => server },
    {
      name: RELAY,
      isProbed: true,
      commandFor: (server) => [...node(import.meta.resolve('./byte-relay.mjs')), ...server],
    },
    ...buildsWith(against),
    { name: NAIVE, ...gateway, isQuiet: true, start: node(import.meta.resolve('./naive-gateway.mjs')) },
    ...peers.map(toPeer),
  ];
}

const gateway = { isProbed: true, isGateway: true };

export const trunkline = {
  name: TRUNKLINE,
  ...gateway,
  start: [...node(import.meta.resolve('../../dist/cli.js')), '--config'],
  settings: { callLog: 'off' },
};

/** Trunkline with its call log, which is on by default. */
export const LOGGED = { ...trunkline, name: 'Trunkline, call log', settings: {} };

/** This build and, for `--against`, the build of another checkout. */
export function buildsWith(checkout) {
  if (checkout === undefined) return [trunkline];
  const start = [process.execPath, resolve(checkout, 'dist/cli.js'), '--config'];
  return [trunkline, { ...trunkline, name: OTHER_BUILD, start }];
}

/** The name of a case, with the build before it unless that is this one. */
export function caseOf(build, name) {
  return build === TRUNKLINE ? name : `${build}: ${name}`;
}

/** Trunkline with a concurrency limit, so that most calls in flight wait in its queue. */
export const LIMITED = { ...trunkline, name: `Trunkline, concurrency ${LIMIT}`, limits: { concurrency: LIMIT } };

/** One process for two servers that copies bytes as the byte relay does, with a pipe for each. */
export const TWO_RELAYS = {
  name: 'byte relays in one process',
  isPair: true,
  start: node(import.meta.resolve('./two-relays.mjs')),
};

/** One way to some servers, opened: a process for each of them, or one gateway for all. */
export class OpenWay {
  #clients;

  constructor(clients) {
    this.#clients = clients;
  }

  /** `servers` are commands by key; `tools` is how many tools a gateway will list in all. */
  static async open(way, folder, servers, tools = 4 * Object.keys(servers).length) {
    const clients = way.isGateway
      ? shared(way, folder, servers)
      : way.isPair
        ? paired(way, servers)
        : separate(way, servers);
    const opened = new OpenWay(clients);
    await opened.#all((client) => client.initialize());
    await opened.#all((client) => client.open(tools / opened.#distinct.length));
    return opened;
  }

  /** To be called through this way: who to ask, and the name of the tool there. */
  to(server, tool) {
    const client = this.#clients.get(server);
    return { client, tool: client.toolNamed(tool, server) };
  }

  /** Of all processes of this way together; `undefined` where there is no probe. */
  async ask(what) {
    const answers = await this.#all((client) => client.ask(what));
    return answers.includes(undefined) ? undefined : answers.reduce((sum, answer) => sum + answer, 0);
  }

  async close() {
    await this.#all((client) => client.close());
  }

  get #distinct() {
    return [...new Set(this.#clients.values())];
  }

  #all(run) {
    return Promise.all(this.#distinct.map(run));
  }
}

function separate({ commandFor, isProbed }, servers) {
  return new Map(Object.entries(servers).map(([key, command]) => [key, new Client(commandFor(command), { isProbed })]));
}

function paired({ start }, servers) {
  const [one, other] = Object.keys(servers);
  const [first, second] = Client.pair([...start, ...servers[one], '--', ...servers[other]]);
  return new Map([
    [one, first],
    [other, second],
  ]);
}

function shared({ name, start, style, limits, settings, era, isProbed, isQuiet }, folder, servers) {
  const config = writeConfig(folder, `${name.replaceAll(/\W/g, '-')}.json`, servers, { style, limits, settings });
  const command = style === undefined ? [...start, config] : start.map((word) => word.replace('{config}', config));
  const client = new Client(command, { isProbed, isQuiet, era });
  return new Map(Object.keys(servers).map((key) => [key, client]));
}

/** JSON, which is YAML too, so that all gateways read the same file. */
export function writeConfig(folder, name, servers, { style = 'servers', limits = {}, settings } = {}) {
  const entries = Object.entries(servers).map(([key, [command, ...args]]) => [key, { command, args, ...limits }]);
  const file = join(folder, name);
  writeFileSync(file, JSON.stringify({ [style]: Object.fromEntries(entries), gateway: settings }));
  return file;
}

function toPeer(peer) {
  const [, name, command] = /^([^=]+)=(.*\{config\}.*)$/.exec(peer) ?? [];
  if (name === undefined) throw new Error(`--peer takes NAME=COMMAND with {config} in it, not ${peer}`);
  return { name, isGateway: true, isQuiet: true, start: command.split(/\s+/), style: 'mcpServers' };
}

function node(url) {
  return [process.execPath, fileURLToPath(url)];
}
