import { createHash } from 'node:crypto';
import { closeSync, lstatSync, mkdirSync, openSync, readdirSync, readlinkSync, readSync, rmSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { readTextFile, realPath, statOf } from '../../host/files/whole-file.js';
import type { ChildSpec, SandboxSpec } from '../../spec/server-spec.js';
import { environmentOf, serverNode } from '../process/environment.js';
import type { SpawnRequest } from '../process/spawn-child.js';
import { bubblewrapCommand, type ConfinedProgram, HIDDEN_FILES, homeOf, type SystemFolders } from './bubblewrap.js';
import { type ConfinementFault, confinement } from './find-bubblewrap.js';
import { CERTIFICATE_VARIABLES, isWithin, type Policy, policyOf, SYSTEM_FOLDERS } from './policy.js';
import { syscallFilter } from './syscall-filter.js';

type Variables = Readonly<Record<string, string | undefined>>;

export interface ConfinementPlaces {
  readonly folder: string;
  readonly home: string;
  readonly configFile: string;
  readonly closed: readonly string[];
}

type Confinable = ChildSpec & { readonly sandbox: SandboxSpec };

/** Returns the policy of a server. `environment` are the variables of the gateway. */
export function policyFor(spec: Confinable, places: ConfinementPlaces, environment: Variables): Policy {
  const program = { ...spec, env: environmentOf(spec, environment) };
  return policyOf(
    program,
    spec.sandbox,
    {
      home: realPath(places.home) ?? places.home,
      ownHome: ownHomeOf(spec.sandbox, places),
      node: serverNode().path,
      certificates: CERTIFICATE_VARIABLES.flatMap((name) => environment[name] ?? []),
      closed: [places.configFile, ...places.closed].flatMap((path) => realPath(path) ?? []),
    },
    { linkAt, kindOf, firstLine },
  );
}

/** The home folder of a server, another one in each configuration and for each user. */
function ownHomeOf({ server, user }: SandboxSpec, { folder, configFile }: ConfinementPlaces): string {
  const owner = JSON.stringify([configFile, user ?? null]);
  return join(folder, `${server}-${createHash('sha256').update(owner).digest('hex').slice(0, 16)}`);
}

/** A launch that can begin, or the reason why it must not. */
export type Confined =
  | {
      readonly kind: 'ready';
      /** Turns the request to start the program into a request to start it confined. */
      readonly confine: (request: SpawnRequest) => SpawnRequest;
      /** The policy of the launch, changed by a trial. */
      readonly policy: Policy;
      /** Closes its connections to the network. Call this when the process has ended. */
      readonly close: () => void;
    }
  | { readonly kind: 'refused'; readonly reason: string };

export interface ConfineOptions {
  readonly places: ConfinementPlaces;
  readonly environment: Variables;
  /** Called when the server was refused a connection to this name and port. The server chose the name: it can be any text. */
  readonly onRefused: (target: string, reason: string) => void;
  readonly trial?: Trial | undefined;
}

/** A launch that finds out the needs of a server: all names are allowed, and its writes go to copies. */
export interface Trial {
  /** Folder that takes the files that the server writes outside of the policy's `openings`. */
  readonly scratch: string;
  readonly policy: (policy: Policy) => Policy;
  readonly onUsed: (target: string) => void;
}

/** Prepares the confined launch of a server. Never returns a launch that is not confined. */
export async function confineLaunch(spec: Confinable, options: ConfineOptions): Promise<Confined> {
  const available = await confinement();
  if (!available.isAvailable) {
    const { reason, remedy, code } = available.fault;
    return refuse(`it must be confined, and ${reason}; ${remedy} (${code})`);
  }
  const { places, environment, trial } = options;
  const found = policyFor(spec, places, environment);
  if (found.fault !== undefined) return refuse(`${found.fault} (TL-SANDBOX-ENTRY)`);
  const { command } = found;
  if (command === undefined) {
    const label = spec.label ?? spec.command;
    return refuse(`Cannot start "${label}": the command, or the interpreter it needs, was not found (ENOENT)`);
  }
  const policy = trial?.policy(found) ?? found;
  try {
    prepareHome(policy);
  } catch (error) {
    return refuse(`its home folder ${policy.ownHome} cannot be prepared: ${String(error)}`);
  }
  const proxy = policy.network.length === 0 && trial === undefined ? undefined : await openProxy(policy, options);
  const confine = (request: SpawnRequest): SpawnRequest => {
    const own = [command, ...request.args];
    const words = proxy === undefined ? own : ['/bin/sh', '-c', LISTEN_FIRST, serverNode().path, LISTEN, ...own];
    return {
      ...wrapped(request, available.program, { policy, words, scratch: trial?.scratch }),
      env: variablesIn(request.env, policy, proxy !== undefined),
      ...(proxy && { onListener: (listener) => proxy.serve(listener) }),
    };
  };
  return { kind: 'ready', confine, policy, close: () => proxy?.close() };
}

let areClosed = false;

/**
 * Closes the descriptors that the client has left open in this process, once, because bubblewrap would hand them on, and with a
 * folder among them the server could open every file. Leaves Node's own descriptors alone, because the system closes them when
 * another program starts.
 */
function closeInherited(): void {
  if (areClosed) return;
  areClosed = true;
  for (const name of readdirSync('/proc/self/fdinfo')) {
    const [, flags = ''] = /^flags:\s*(\d+)$/m.exec(readTextFile(`/proc/self/fdinfo/${name}`) ?? '') ?? [];
    const isInherited = Number(name) > 2 && flags !== '' && (Number.parseInt(flags, 8) & CLOSE_ON_EXEC) === 0;
    if (isInherited) closeSync(Number(name));
  }
}

const CLOSE_ON_EXEC = 0o2000000;

/** The request to run the command line `words` in bubblewrap. */
function wrapped(request: SpawnRequest, program: string, confined: ConfinedProgram): SpawnRequest {
  closeInherited();
  const { args, input } = bubblewrapCommand(
    { ...confined, cwd: request.cwd, filterDescriptor: 3, argumentsDescriptor: 4 },
    {
      system: systemFolders(),
      isFolder: (path) => kindOf(path) === 'folder',
      hidden: HIDDEN_FILES.filter((path) => kindOf(path) !== undefined),
    },
  );
  return { ...request, command: program, args, inputs: [syscallFilter(confined.policy), Buffer.from(input)] };
}

/**
 * Confines a program that installs something for confined servers: it has the network of the machine, reads the system, itself
 * and the files `read`, and writes its working folder and `ownHome`, which is its home folder. Returns the fault if programs
 * cannot be confined on this machine.
 */
export async function confineInstallation(
  request: SpawnRequest,
  { home, ownHome, read }: { readonly home: string; readonly ownHome: string; readonly read: readonly string[] },
): Promise<SpawnRequest | ConfinementFault> {
  const available = await confinement();
  if (!available.isAvailable) return available.fault;
  const own = { server: '', read, write: [request.cwd], network: [], unixSockets: false, opensFolder: false };
  const certificates = CERTIFICATE_VARIABLES.flatMap((name) => request.env[name] ?? []);
  const places = { home: realPath(home) ?? home, ownHome, node: serverNode().path, certificates, closed: [] };
  const policy = policyOf(request, own, places, { linkAt, kindOf, firstLine });
  prepareHome(policy);
  const words = [policy.command ?? request.command, ...request.args];
  const confined = wrapped(request, available.program, { policy, words, sharesNetwork: true });
  return { ...confined, env: { ...request.env, HOME: homeOf(policy) } };
}

function refuse(reason: string): Confined {
  return { kind: 'refused', reason };
}

async function openProxy({ network }: Policy, { onRefused, trial }: ConfineOptions) {
  const { NameProxy } = await import('./name-proxy.js');
  return new NameProxy({
    allowed: trial === undefined ? network.map(({ name }) => name) : 'all',
    onRefused: (name, port, reason) => onRefused(targetOf(name, port), reason),
    onUsed: (name, port) => trial?.onUsed(targetOf(name, port)),
  });
}

/** A name and a port, as `network` of an entry has them: without the port if it is 443 or 80. */
function targetOf(name: string, port: number): string {
  const host = name.includes(':') ? `[${name.replace(/^\[|\]$/g, '')}]` : name;
  return port === 443 || port === 80 ? host : `${host}:${port}`;
}

const PROXY_PORT = 3128;

/**
 * Listens in the network of the sandbox, in which no process of Trunkline is, and sends the socket to Trunkline. Then the
 * program takes the place of the shell. So no helper stays beside the program, and the program needs no unix socket to reach
 * Trunkline. The filter for system calls refuses unix sockets by default.
 */
const LISTEN = `const server=require('node:net').createServer();server.listen(${PROXY_PORT},'127.0.0.1',()=>process.send(0,server,()=>process.exit(0)))`;
const LISTEN_FIRST = [
  'NODE_OPTIONS= ELECTRON_RUN_AS_NODE=1 "$0" -e "$1" </dev/null >&2 || exit 126',
  'unset NODE_CHANNEL_FD NODE_CHANNEL_SERIALIZATION_MODE',
  'shift',
  'exec "$@" 5>&-',
].join('; ');

const PROXY = `http://127.0.0.1:${PROXY_PORT}`;
const PROXY_NAMES = /^(?:https?|all|no)_proxy$/i;

/** The variables of a confined program: its own home folder, and the proxy if it may use the network. */
function variablesIn(variables: SpawnRequest['env'], policy: Policy, hasProxy: boolean): SpawnRequest['env'] {
  const kept = Object.entries(variables).filter(([name]) => !PROXY_NAMES.test(name) && name !== 'TMPDIR');
  const names = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'http_proxy', 'https_proxy', 'all_proxy'];
  return {
    ...Object.fromEntries(kept),
    HOME: homeOf(policy),
    ...(hasProxy && {
      ...Object.fromEntries(names.map((name) => [name, PROXY])),
      NO_PROXY: 'localhost,127.0.0.1,::1',
      no_proxy: 'localhost,127.0.0.1,::1',
      NODE_USE_ENV_PROXY: '1',
    }),
  };
}

/**
 * Makes the home folder of the server, and removes links in it at paths of openings, because the server could have made them in an
 * earlier run, to have folders created elsewhere.
 */
function prepareHome({ ownHome, home, openings }: Policy): void {
  mkdirSync(ownHome, { recursive: true, mode: 0o700 });
  for (const { path } of openings) {
    if (!isWithin(path, home) || path === home) continue;
    let inside = ownHome;
    for (const name of relative(home, path).split(sep)) {
      inside = join(inside, name);
      if (lstatSync(inside, { throwIfNoEntry: false })?.isSymbolicLink() === true) rmSync(inside);
    }
  }
}

function kindOf(path: string): 'file' | 'folder' | 'other' | undefined {
  const stat = statOf(path);
  if (stat === undefined) return undefined;
  return stat.isDirectory() ? 'folder' : stat.isFile() ? 'file' : 'other';
}

function linkAt(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    // It is no link, or it is not there.
    return undefined;
  }
}

const MAX_FIRST_LINE = 256;

/** The first line of a file, of which 256 bytes are read; '' if it cannot be read. That of a script begins with `#!`. */
function firstLine(path: string): string {
  const bytes = Buffer.alloc(MAX_FIRST_LINE);
  let file: number | undefined;
  try {
    file = openSync(path, 'r');
    return bytes.subarray(0, readSync(file, bytes)).toString('latin1').split('\n', 1)[0] ?? '';
  } catch {
    // It may be run, but not read.
    return '';
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

function systemFolders(): SystemFolders {
  const found = SYSTEM_FOLDERS.flatMap((path): [string, string | true][] => {
    const stat = lstatSync(path, { throwIfNoEntry: false });
    return stat === undefined ? [] : [[path, stat.isSymbolicLink() ? readlinkSync(path) : true]];
  });
  return Object.fromEntries(found);
}
