import { existsSync } from 'node:fs';
import { connect } from 'node:net';
import { dirname, isAbsolute, join, resolve, win32 } from 'node:path';
import type { ServerConfig } from '../../config/resolve/config.js';
import { readJsonFile, realPath } from '../../host/files/whole-file.js';
import { bare, isLoopback } from '../../host/http/addresses.js';
import { programOf } from '../../spec/server-spec.js';
import { isRecord, parseJson } from '../../wire/json/json-value.js';
import type { FoundCommand, FoundRemote, FoundServer, FoundServers } from '../clients/files/found-server.js';
import { configIn, identityOf, isOurselves } from '../clients/files/own-entry.js';
import { type Finding, finding } from './finding.js';
import { type Machine, whyVanishing } from './machine.js';

/** Checks that the files of the clients can be read, and that each client has one working registration of Trunkline. */
export async function checkClients(
  found: FoundServers,
  registrations: readonly Registration[],
  machine: Machine,
  register: Register,
): Promise<Finding[]> {
  const unreadable = found.unreadable.map(({ place, because }) => {
    return finding('TL-CLIENT-FILE', `${place.title} has a file that cannot be used: ${because}`, [place.file]);
  });
  if (registrations.length === 0)
    return [...unreadable, finding('TL-CLIENT-NONE', 'no client has Trunkline registered'), ...checkCleartext(found)];
  const each = await Promise.all(registrations.map(async (one) => await checkRegistration(one, machine, register)));
  return [...unreadable, ...each.flat(), ...checkTwice(registrations, machine), ...checkCleartext(found)];
}

/** Registers Trunkline with a client again, so that its entry names a configuration. */
export type Register = (client: string) => Promise<void>;

async function checkRegistration(registration: Registration, machine: Machine, register: Register): Promise<Finding[]> {
  const { server } = registration;
  const title = titleOf(registration);
  const evidence = [server.place.file];
  if (server.isDisabled) return [finding('TL-CLIENT-DISABLED', `${title} has Trunkline disabled`, evidence)];
  const { run } = server;
  const found =
    run.kind === 'remote'
      ? await checkAddress(run, title, server.place.file)
      : checkCommand(run, registration, machine, register);
  return found.length > 0 ? found : [finding('TL-CLIENT-OK', `${title} has Trunkline registered`, evidence)];
}

function checkCommand(run: FoundCommand, registration: Registration, machine: Machine, register: Register): Finding[] {
  const { program, version, server } = registration;
  const title = titleOf(registration);
  const found: Finding[] = [];
  const { file } = server.place;
  const config = configIn(run);
  const remedy = remedyFor(server, config);
  const missing = [run.command, program].find(isMissing);
  if (missing !== undefined) {
    const text = `${title} names a program or file that does not exist: ${missing}`;
    found.push(finding('TL-CLIENT-COMMAND', text, [file], { remedy }));
  }
  // Claude Desktop has a Node of its own for its extensions.
  if (!isAbsolutePath(run.command) && server.place.scope !== 'extension') {
    const text = `${title} runs \`${run.command}\`, which depends on the PATH of the client`;
    found.push(finding('TL-CLIENT-RELATIVE', text, [file], { remedy }));
  }
  const why = whyVanishing(run.command);
  if (why !== undefined)
    found.push(finding('TL-NODE-VANISHING', `${title} runs a Node that may vanish: ${why}`, [run.command]));
  if (config === undefined) {
    const text = `${title} names no configuration, so the entry depends on the default`;
    const apply = () => register(server.place.client);
    const done = `registered Trunkline with its configuration in ${file}; restart ${server.place.title}`;
    found.push(
      finding('TL-CLIENT-NO-CONFIG', text, [file], {
        remedy,
        repair: remedy === undefined ? undefined : { done, apply },
      }),
    );
  }
  if (config !== undefined && isMissing(config)) {
    const again = remedyFor(server, 'FILE');
    const text = `${title} passes a configuration that does not exist`;
    const moved = again === undefined ? undefined : `Name the file that it is now: \`${again}\`.`;
    found.push(finding('TL-CLIENT-CONFIG', text, [config, file], { remedy: moved }));
  }
  if (missing === undefined && version !== undefined && version !== machine.version) {
    const text = `${title} runs Trunkline ${version}; this is ${machine.version}`;
    found.push(finding('TL-CLIENT-VERSION', text, program === undefined ? [] : [program], { remedy }));
  }
  return found;
}

function isMissing(path: string | undefined): boolean {
  return path !== undefined && isAbsolutePath(path) && !existsSync(path);
}

/** Whether the entry names a program or a configuration that does not exist, so that its start would show nothing more. */
export function lacksFile({ server: { run }, program }: Registration): boolean {
  return run.kind === 'command' && [run.command, program, configIn(run)].some(isMissing);
}

/** Returns the command that corrects an entry. `undefined` for entries under other names or in other files than `connect` writes. */
function remedyFor({ place, name }: FoundServer, config: string | undefined): string | undefined {
  if (place.scope !== 'user' || name !== 'trunkline') return undefined;
  return `trunkline connect ${place.client}${config === undefined ? '' : ` --config ${config}`}`;
}

/** Finds clients that use a Trunkline on another machine without TLS, because the network can read their tokens. */
function checkCleartext({ servers }: FoundServers): Finding[] {
  return servers.flatMap(({ place, name, run, isDisabled }) => {
    if (isDisabled || run.kind === 'command' || name !== 'trunkline') return [];
    if (!/^http:/i.test(run.url) || isLocalUrl(run.url)) return [];
    const text = `${place.title} uses Trunkline on another machine without TLS`;
    return [finding('TL-CLIENT-CLEARTEXT', text, [place.file])];
  });
}

/** Finds clients with several active entries. Entries of Claude Code for different projects are never active together. */
function checkTwice(registrations: readonly Registration[], { cwd }: Machine): Finding[] {
  const active = registrations.filter(({ server: { isDisabled, place } }) => {
    return !isDisabled && (place.scope !== 'local' || place.path.includes(cwd));
  });
  const titles = new Set(active.map(({ server }) => server.place.title));
  return [...titles].flatMap((title) => {
    const own = active.filter(({ server }) => server.place.title === title);
    if (own.length < 2) return [];
    const evidence = own.map(({ server: { place, name } }) => `${place.scope} \`${name}\` in ${place.file}`);
    return [finding('TL-CLIENT-TWICE', `${title} has Trunkline registered ${own.length} times`, evidence)];
  });
}

const WITHIN_MS = 1_000;

/** Whether Trunkline answers at the address that a client uses, with the headers that the client sends. */
async function checkAddress(run: FoundRemote, title: string, file: string): Promise<Finding[]> {
  const { hostname, port, protocol } = new URL(run.url);
  const number = port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port);
  const address = `${hostname}:${number}`;
  const evidence = [file];
  if (!(await listens(bare(hostname), number)))
    return [finding('TL-CLIENT-UNREACHED', `${title} uses ${address}, where nothing listens`, evidence)];
  switch (await whoAnswers(run)) {
    case 'trunkline':
    // A certificate that only the client trusts, for example.
    case 'unknown':
      return [];
    case 'refused':
      return [finding('TL-CLIENT-TOKEN', `${title} uses ${address}, which refuses its token`, evidence)];
    case 'other':
      return [finding('TL-CLIENT-FOREIGN', `${title} uses ${address}, where another program answers`, evidence)];
  }
}

async function listens(host: string, port: number): Promise<boolean> {
  return await new Promise((resolve) => {
    const socket = connect({ host, port, timeout: WITHIN_MS });
    const done = (isListening: boolean) => {
      socket.destroy();
      resolve(isListening);
    };
    socket.once('connect', () => done(true));
    socket.once('timeout', () => done(false));
    socket.once('error', () => done(false));
  });
}

/** Introduces a client, and ends its session at once. */
async function whoAnswers({ url, headers }: FoundRemote): Promise<'trunkline' | 'refused' | 'other' | 'unknown'> {
  // Only the client knows the values of its variables.
  if (Object.values(headers).some((value) => value.includes('${'))) return 'unknown';
  const sent = { ...headers, 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const clientInfo = { name: 'trunkline-doctor', version: '1' };
  const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params });
  try {
    const signal = AbortSignal.timeout(WITHIN_MS);
    const response = await fetch(url, { method: 'POST', headers: sent, body, signal, redirect: 'manual' });
    const isRefused = response.status === 401;
    if (isRefused) return response.headers.get('www-authenticate')?.includes('trunkline') ? 'refused' : 'other';
    const session = response.headers.get('mcp-session-id');
    const text = await response.text();
    if (session !== null)
      await fetch(url, { method: 'DELETE', headers: { ...headers, 'mcp-session-id': session }, signal });
    return isTrunkline(text) ? 'trunkline' : 'other';
  } catch {
    return 'unknown';
  }
}

/** Whether Trunkline has sent the answer, which is JSON, or an event that has it. */
function isTrunkline(text: string): boolean {
  const lines = [text, ...text.split('\n').map((line) => line.replace(/^data:\s*/, ''))];
  return lines.some((line) => {
    const message = parseJson(line);
    const result = isRecord(message) ? message.result : undefined;
    return isRecord(result) && isRecord(result.serverInfo) && result.serverInfo.name === 'trunkline';
  });
}

/** An entry of a client that runs Trunkline, or connects to one. */
export interface Registration {
  readonly server: FoundServer;
  /** The file of Trunkline's program that the entry names; `undefined` for a name such as `npx`, and for an address. */
  readonly program: string | undefined;
  readonly version: string | undefined;
}

/** Finds the entries that run Trunkline under any name, or connect to one on this machine under the name `trunkline`. */
export function findRegistrations(servers: readonly FoundServer[], machine: Machine): Registration[] {
  return servers.flatMap((server): Registration[] => {
    const { run, name } = server;
    if (run.kind === 'remote') {
      const isOwn = name === 'trunkline' && isLocalUrl(run.url);
      return isOwn ? [{ server, program: undefined, version: undefined }] : [];
    }
    if (!isOurselves(run, machine.program)) return [];
    const program = programIn(run);
    return [{ server, program, version: program === undefined ? undefined : versionAt(program) }];
  });
}

/** Names a registration, such as `Claude Code (user, as trunkline)`. */
export function titleOf({ server: { place, name } }: Registration): string {
  return `${place.title} (${place.scope}, as ${name})`;
}

const OWN_PROGRAM = /[\\/](?:cli\.js|trunkline(?:\.cmd|\.exe)?)$/i;

/** The file of the program itself, whether it exists or not. */
function programIn({ command, args }: FoundCommand): string | undefined {
  const isProgram = (word: string) => isAbsolutePath(word) && OWN_PROGRAM.test(word);
  return [command, ...args].find(isProgram);
}

function versionAt(program: string): string | undefined {
  for (let folder = dirname(realPath(program) ?? program); folder !== dirname(folder); folder = dirname(folder)) {
    const manifest = readJsonFile(join(folder, 'package.json'));
    if (isRecord(manifest) && manifest.name === 'trunkline') return String(manifest.version);
  }
  return undefined;
}

/** Accepts Windows paths on every system, because tests run on another one. */
function isAbsolutePath(path: string): boolean {
  return isAbsolute(path) || /^[a-z]:[\\/]/i.test(path) || (path.startsWith('\\\\') && win32.isAbsolute(path));
}

function isLocalUrl(url: string): boolean {
  return URL.canParse(url) && isLoopback(new URL(url).hostname);
}

/** The servers of Trunkline, and how `--fix` removes the same server from a client. */
export interface Taken {
  readonly servers: readonly ServerConfig[];
  readonly configFile: string;
  /** The configuration file that Trunkline uses when a client passes no `--config`. */
  readonly userConfigFile: string;
  /** Whether this server has run in Trunkline. A client keeps its entry of one that may not. */
  readonly works: (key: string) => boolean;
  /** Removes entries of one file, with a backup, so that `trunkline undo` can put them back. */
  readonly takeOut: (servers: readonly FoundServer[]) => Promise<void>;
}

/** Servers that a client with Trunkline runs itself although they are in the configuration, too. */
export function checkDuplicates(found: FoundServers, registrations: readonly Registration[], taken: Taken): Finding[] {
  const active = registrations.filter(({ server }) => !server.isDisabled);
  // A Trunkline with another configuration may not have the server.
  const serves = active.filter(({ server }) => {
    const file = configOf(server, taken.userConfigFile);
    return file === undefined || file === taken.configFile;
  });
  const clients = new Set(serves.map(({ server }) => server.place.client));
  const ours = new Map(taken.servers.map((server) => [identityOfOurs(server), server]));
  const duplicates = found.servers.flatMap((server) => {
    const { place, run, isDisabled } = server;
    if (isDisabled || run.kind === 'remote' || !clients.has(place.client)) return [];
    const same = ours.get(identityOf(run));
    return same === undefined ? [] : [{ server, same, canGo: canTakeOut(server, same, active, taken) }];
  });
  const removable = duplicates.flatMap(({ server, canGo }) => (canGo ? [server] : []));
  const changes = new Map<string, Promise<void>>();
  // One change of each file for all of its servers, because each change makes a backup, and the oldest backups are removed.
  const change = (file: string) => {
    const made = changes.get(file) ?? taken.takeOut(removable.filter((each) => each.place.file === file));
    changes.set(file, made);
    return made;
  };
  return duplicates.map(({ server, same, canGo }) => {
    const { place, name } = server;
    const done = `removed \`${name}\` from ${place.file}; \`trunkline undo\` puts it back. Restart ${place.title}`;
    const text = `${place.title} runs \`${name}\` itself, which is server \`${same.key}\` of Trunkline, too`;
    const repair = canGo ? { done, apply: () => change(place.file) } : undefined;
    return finding('TL-CLIENT-DUPLICATE', text, [place.file], { remedy: removalOf(server), repair });
  });
}

/** A client that runs Trunkline and another gateway. `gatewayOf` returns the name of the gateway that a server is. */
export function checkGateways(
  found: FoundServers,
  registrations: readonly Registration[],
  gatewayOf: (server: FoundServer) => string | undefined,
): Finding[] {
  const active = registrations.filter(({ server }) => !server.isDisabled);
  const clients = new Set(active.map(({ server }) => server.place.client));
  return found.servers.flatMap((server) => {
    const { place, name, isDisabled } = server;
    const gateway = isDisabled || !clients.has(place.client) ? undefined : gatewayOf(server);
    if (gateway === undefined) return [];
    const text = `${place.title} runs ${gateway} (\`${name}\`) besides Trunkline`;
    return [finding('TL-CLIENT-GATEWAY', text, [place.file])];
  });
}

/**
 * Whether the client can do without the entry, because its entry of Trunkline for all folders runs this server, with all variables that the
 * entry sets. False for the file of a project, which belongs to others, too, and for an extension, which belongs to its client.
 */
function canTakeOut(
  { place, run }: FoundServer,
  server: ServerConfig,
  active: readonly Registration[],
  { configFile, userConfigFile, works }: Taken,
): boolean {
  if (!works(server.key)) return false;
  if (place.scope === 'project' || place.scope === 'extension' || run.kind === 'remote') return false;
  const serves = active.some(({ server }) => {
    const isSameClient = server.place.client === place.client && server.place.scope === 'user';
    return isSameClient && configOf(server, userConfigFile) === configFile;
  });
  return serves && Object.keys(run.env).every((name) => Object.hasOwn(programOf(server)?.env ?? {}, name));
}

/** The configuration that an entry uses. `undefined` for a URL, or if the path depends on the folder in which the client runs. */
function configOf({ run }: FoundServer, userConfigFile: string): string | undefined {
  if (run.kind === 'remote') return undefined;
  const named = configIn(run);
  if (!named) return userConfigFile;
  return isAbsolute(named) ? resolve(named) : undefined;
}

function identityOfOurs(server: ServerConfig): string {
  const { spec, package: used } = server;
  if (spec === undefined) return '';
  if (spec.kind === 'remote') return identityOf({ kind: 'remote', url: spec.url, transport: 'http', headers: {} });
  const { command, args, env } = spec;
  if (used === undefined) return identityOf({ kind: 'command', command, args, env });
  // The program of an installed package is the first argument.
  const own = used.found === undefined ? args : args.slice(1);
  return identityOf({ kind: 'command', command: 'npx', args: [used.request.name, ...own], env });
}

function removalOf({ place, name }: FoundServer): string {
  if (place.scope === 'extension') return `Disable the extension \`${name}\` in Claude Desktop: Settings, Extensions.`;
  if (place.client === 'claude-code') return `claude mcp remove ${name} --scope ${place.scope}`;
  if (place.client === 'codex') return `codex mcp remove ${name}`;
  return `Remove \`${name}\` from \`${place.path.join('.')}\` in ${place.file}.`;
}
