import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { windowsProcesses } from '../host/process/windows.js';

/*
 * The endpoint at which a hub, or another gateway, listens. Its folder has the socket `s`, or the file `address` with the name of a pipe. A
 * process that reads the folder need not know the system; only a process that makes one does.
 */

export interface EndpointForm {
  /** Whether the endpoint of a hub in this folder gets a path that the system accepts. */
  fits(folder: string): boolean;
  /**
   * Makes the endpoint of a hub in its folder, which has no number yet. Resolves with a socket that listens already, for the process of
   * the hub; or with `undefined` if that process will listen itself.
   */
  prepareHub(folder: string): Promise<Server | undefined>;
  prepareGateway(folder: string): void;
}

/** The longest path of a socket that all supported systems accept, in bytes. Node cuts longer paths silently. */
const MAX_SOCKET_PATH = process.platform === 'linux' ? 107 : 103;
/** The longest part of the path of a socket after the folder of the hubs, with the name of a draft folder. */
const LONGEST_SUFFIX = '/.4294967295-abcdefgh/s'.length;

/** A socket in the folder. Its descriptor can be handed to another process, so it listens before the process of the hub exists. */
export const SOCKETS: EndpointForm = {
  fits: (folder) => Buffer.byteLength(folder) + LONGEST_SUFFIX <= MAX_SOCKET_PATH,
  prepareHub: (folder) => listen(socketIn(folder)),
  prepareGateway: () => {},
};

/**
 * A pipe with a random name, which only readers of the folder know. A pipe has no descriptor that could be handed over, so the process of
 * the hub listens itself. Until then, the file `claim` says for which process to wait: the one that claimed the number, then the hub.
 */
export function pipes(nextName: () => string = randomPipe): EndpointForm {
  const writeAddress = (folder: string) => writeFileSync(addressFile(folder), nextName(), { mode: 0o600, flag: 'wx' });
  return {
    fits: () => true,
    prepareHub: async (folder) => {
      writeAddress(folder);
      writeFileSync(claimFile(folder), claimText(process.pid), { mode: 0o600, flag: 'wx' });
      return undefined;
    },
    prepareGateway: writeAddress,
  };
}

function randomPipe(): string {
  return `\\\\.\\pipe\\trunkline-${randomBytes(16).toString('hex')}`;
}

export const SYSTEM_FORM: EndpointForm = process.platform === 'win32' ? pipes() : SOCKETS;

/** The socket of a hub or gateway on systems where sockets are files. */
export function socketIn(folder: string): string {
  return join(folder, 's');
}

function addressFile(folder: string): string {
  return join(folder, 'address');
}

function claimFile(folder: string): string {
  return join(folder, 'claim');
}

export function hasPipe(folder: string): boolean {
  return existsSync(addressFile(folder));
}

/** The path or name at which the process of this folder listens, or will listen. */
export function addressIn(folder: string): string {
  return hasPipe(folder) ? readFileSync(addressFile(folder), 'utf8') : socketIn(folder);
}

/** Number of clients that can connect to a pipe while its process is busy. Others would have to try again, in no order. */
const WAITING_CLIENTS = 64;

/** Lets a server listen for the process of this folder. `descriptor` is that of the socket that its starter has handed over, if it did. */
export function listenIn(folder: string, server: Server, descriptor?: number): void {
  if (descriptor !== undefined && !hasPipe(folder)) {
    server.listen({ fd: descriptor });
    return;
  }
  // Node takes the number from this variable only, when it begins to listen.
  const variable = 'NODE_PENDING_PIPE_INSTANCES';
  const before = process.env[variable];
  process.env[variable] = String(WAITING_CLIENTS);
  server.listen({ path: addressIn(folder) });
  if (before === undefined) delete process.env[variable];
  else process.env[variable] = before;
}

function listen(path: string): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    // Enough for all clients of one user that start at once.
    server.listen({ path, backlog: 511 }, () => resolve(server));
  });
}

/** The process in a claim, at a time at which it ran, because the pid can belong to another process later. */
function claimText(pid: number): string {
  return `${pid} ${Date.now()}`;
}

/** Notes that clients have to wait for this process, the hub, and no longer for the one that has started it. */
export function passClaim(folder: string, pid: number): void {
  writeFileSync(claimFile(folder), claimText(pid), { mode: 0o600 });
}

/** The processes of the system, as far as claims need them. */
export interface ClaimProcesses {
  /** Whether a process has this pid now. */
  isTaken(pid: number): boolean;
  /** Start of the process with this pid, in milliseconds since 1970; `undefined` if it is not known. May take a second. */
  startedAtMs(pid: number): Promise<number | undefined>;
}

/** The clock of the system's list of processes may be a little ahead. */
const CLOCK_MS = 100;

/**
 * Whether the process in the claim of this folder still runs, so that clients wait for its hub; `undefined` if the folder has no claim.
 * With `isSure`, which takes longer, a process with the same pid that was started after the claim does not count.
 */
export async function isClaimHeld(
  folder: string,
  isSure: boolean,
  processes: ClaimProcesses = windowsProcesses,
): Promise<boolean | undefined> {
  let text: string;
  try {
    text = readFileSync(claimFile(folder), 'utf8');
  } catch {
    return undefined;
  }
  const [, pid, at] = /^(\d+) (\d+)$/.exec(text) ?? [];
  // The claim is being written.
  if (pid === undefined) return true;
  if (!processes.isTaken(Number(pid))) return false;
  if (!isSure) return true;
  const startedAtMs = await processes.startedAtMs(Number(pid)).catch(() => undefined);
  return startedAtMs === undefined || startedAtMs <= Number(at) + CLOCK_MS;
}

/**
 * Whether the hub behind a socket that refuses a connection runs, because macOS also refuses connections while the queue of the socket is
 * full. Linux has another code for that. A process that was started after the file with the pid of the hub was written does not count.
 */
export async function isRunningBehind({ folder, pid }: { folder: string; pid: string }): Promise<boolean> {
  if (hasPipe(folder)) return false;
  try {
    const { mtimeMs } = statSync(pid);
    // Loaded only now, because hardly any client is refused.
    const { identify } = await import('../host/process/processes.js');
    const found = await identify(Number(readFileSync(pid, 'latin1')));
    return found?.startedAtMs !== undefined && !found.isZombie && found.startedAtMs <= mtimeMs + CLOCK_MS;
  } catch {
    // The starter of the hub has noted no process, or the system does not tell.
    return false;
  }
}
