import { randomBytes } from 'node:crypto';
import { existsSync, lstatSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { hostname, tmpdir, userInfo } from 'node:os';
import { basename, join } from 'node:path';
import { errorCode } from '../errors/error-text.js';
import { WIRE } from './wire.js';

export interface HubFolderOptions {
  /** The configuration file as the client names it, absolute. Two names of one file are two hubs. */
  readonly configFile: string;
  /** Trunkline's data folder. Hubs with different stores and approvals are different hubs. */
  readonly dataFolder: string;
  /** Overrides where the folders of hubs are, by an absolute path; `TRUNKLINE_HUB_DIR`. */
  readonly hubsFolder?: string | undefined;
}

/** The longest path that every system accepts for a socket. Node cuts longer ones without a word. */
const MAX_SOCKET_PATH = process.platform === 'linux' ? 107 : 103;
/** Path of a socket after the folder of its hub: a number, or the name of a folder that is being prepared. */
const LONGEST_SUFFIX = '/.4294967295-abcdefgh/s'.length;

/**
 * The folder of the hub of this user and this configuration, which only this user can enter. Creates it if necessary.
 *
 * Programs start their children with different environments, and all of them must find the same hub. So the folder does
 * not depend on variables such as HOME, XDG_RUNTIME_DIR or TMPDIR: the home folder is the one of the password database.
 * Where it cannot be written, or its path is too long for a socket, a folder below `/tmp` is used.
 * Throws if no folder can be used; the message is a phrase that fits after "because".
 */
export function hubFolder(options: HubFolderOptions): string {
  const key = hubKey(options);
  const faults: string[] = [];
  for (const hubs of foldersOfHubs(options.hubsFolder)) {
    const folder = join(hubs, key);
    if (process.platform !== 'win32' && Buffer.byteLength(folder) + LONGEST_SUFFIX > MAX_SOCKET_PATH) {
      faults.push(`the path ${hubs} is too long for a socket`);
      continue;
    }
    const fault = makePrivate(hubs) ?? makePrivate(folder);
    if (fault === undefined) return folder;
    faults.push(fault);
  }
  throw new Error(faults.join(', and '));
}

/** Finds the folder of the hub of this user and this configuration, or the faults of the folders. Creates nothing. */
export function inspectHubFolder(options: HubFolderOptions): {
  readonly folder?: string;
  readonly faults: readonly string[];
} {
  const key = hubKey(options);
  const faults: string[] = [];
  for (const hubs of foldersOfHubs(options.hubsFolder)) {
    const folder = join(hubs, key);
    const fault = [hubs, folder]
      .filter((path) => lstatSync(path, { throwIfNoEntry: false }))
      .map(faultOf)
      .find(Boolean);
    if (fault === undefined) return lstatSync(folder, { throwIfNoEntry: false }) ? { folder, faults } : { faults };
    faults.push(fault);
  }
  return { faults };
}

/** The folders of all hubs of this user that ever were and left something, whatever their configuration. */
export function allHubFolders(hubsFolder: string | undefined): string[] {
  return foldersOfHubs(hubsFolder).flatMap((hubs) => {
    try {
      return readdirSync(hubs).flatMap((name) => (/^[0-9a-f]{16}$/.test(name) ? [join(hubs, name)] : []));
    } catch {
      // No hub has ever been there.
      return [];
    }
  });
}

/** 16 hexadecimal digits. Everything by which two hubs have to differ is part of it. */
function hubKey({ configFile, dataFolder }: HubFolderOptions): string {
  const parts = [WIRE, hostname(), process.getuid?.() ?? userInfo().username, configFile, dataFolder];
  return fingerprint(JSON.stringify(parts));
}

/** FNV-1a with 64 bits, as 16 hexadecimal digits. Keeps apart the configurations of one user; nothing secret depends on it. */
function fingerprint(text: string): string {
  let sum = 0xcbf29ce484222325n;
  for (const byte of Buffer.from(text)) sum = BigInt.asUintN(64, (sum ^ BigInt(byte)) * 0x100000001b3n);
  return sum.toString(16).padStart(16, '0');
}

/** The folders where hubs may be, the preferred one first. */
function foldersOfHubs(named: string | undefined): string[] {
  if (named !== undefined) return [named];
  const temporary = process.platform === 'win32' ? tmpdir() : '/tmp';
  const fallback = join(temporary, `trunkline-${process.getuid?.() ?? 'hub'}`);
  const home = homeOfUser();
  return home === undefined ? [fallback] : [join(home, '.local', 'state', 'trunkline', 'run'), fallback];
}

/** The home folder in the password database; `undefined` if the user has no entry there. */
function homeOfUser(): string | undefined {
  try {
    const { homedir } = userInfo();
    return homedir === '' || homedir === '/' ? undefined : homedir;
  } catch {
    return undefined;
  }
}

/** Creates the folder, or checks that no other user can enter it. Returns the problem as a phrase. */
function makePrivate(folder: string): string | undefined {
  try {
    if (lstatSync(folder, { throwIfNoEntry: false }) === undefined) mkdirSync(folder, { recursive: true, mode: 0o700 });
    return faultOf(folder);
  } catch (error) {
    return `the folder ${folder} cannot be created (${errorCode(error) ?? 'unknown error'})`;
  }
}

function faultOf(folder: string): string | undefined {
  const stats = lstatSync(folder);
  if (stats.isSymbolicLink()) return `${folder} is a symbolic link`;
  if (!stats.isDirectory()) return `${folder} is not a folder`;
  const uid = process.getuid?.();
  if (uid === undefined) return undefined;
  if (stats.uid !== uid) return `the folder ${folder} belongs to another user`;
  return (stats.mode & 0o077) === 0 ? undefined : `other users can enter the folder ${folder}`;
}

/** The numbers of the hubs that ever were in this folder and left something, in ascending order. */
export function hubNumbers(folder: string): number[] {
  const numbers = readdirSync(folder).flatMap((name) => (/^[1-9]\d{0,8}$/.test(name) ? [Number(name)] : []));
  return numbers.sort((one, other) => one - other);
}

/** The number of the hub that clients have to use; 0 if there never was one. */
export function latestHub(folder: string): number {
  return hubNumbers(folder).at(-1) ?? 0;
}

export function hubFiles(folder: string, number: number) {
  const own = join(folder, String(number));
  return {
    folder: own,
    socket: socketPath(own),
    token: join(own, 'token'),
    /** Has the id of the process. It only informs: who listens on the socket is the hub. */
    pid: join(own, 'pid'),
    /** Exists once the hub gives its clients answers. */
    ready: join(own, 'ready'),
    /** Exists after the hub has ended on purpose. Its clients then start no other hub before they have a message. */
    ended: join(own, 'ended'),
  };
}

/** Writes one of these files. Without it, clients are only less sure of the state of the hub. */
export function note(file: string, text = ''): void {
  try {
    writeFileSync(file, text, { mode: 0o600 });
  } catch {
    // The disk is full, or the folder was removed.
  }
}

export function hubLog(folder: string): string {
  return join(folder, 'hub.log');
}

/** The descriptor on which a hub finds its listening socket. */
export const LISTENER_DESCRIPTOR = 3;

/** Windows has no sockets in folders; a named pipe has a name of its own. */
function socketPath(folder: string): string {
  if (process.platform !== 'win32') return join(folder, 's');
  return `\\\\.\\pipe\\trunkline-${fingerprint(folder)}`;
}

/** The number of the hub with this folder. */
export function numberOf(hubFolder: string): number {
  return Number(basename(hubFolder));
}

/** The right to start the hub with this number, and its socket, which listens already. */
export interface Claim {
  readonly number: number;
  readonly listener: Server;
}

/**
 * Claims the right to start the successor of hub `latest`. Returns `undefined` if another process was faster, or has done
 * so meanwhile: its hub is the one to use.
 *
 * The listening socket is the lock. It is made in a folder of its own, and that folder is renamed to the next number, which
 * the system refuses while a folder with content has that name. So a hub is never seen without its socket, and a socket
 * that refuses connections belongs to a dead hub: no process ids, no times, nothing stale to interpret.
 *
 * Throws if the folder cannot be written.
 */
export async function claimSuccessor(folder: string, latest: number): Promise<Claim | undefined> {
  const number = latest + 1;
  const draft = join(folder, `.${process.pid}-${randomBytes(4).toString('hex')}`);
  mkdirSync(draft, { mode: 0o700 });
  let listener: Server | undefined;
  try {
    writeFileSync(join(draft, 'token'), randomBytes(32).toString('base64url'), { mode: 0o600, flag: 'wx' });
    listener = await listen(socketPath(draft));
    const { folder: hub } = hubFiles(folder, number);
    renameSync(draft, hub);
    if (latestHub(folder) === number) return { number, listener };
    // Somebody saw a later hub end and started another one since: this number came too late.
    rmSync(hub, { recursive: true, force: true });
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    if (!['ENOTEMPTY', 'EEXIST'].includes(errorCode(error) ?? '')) {
      listener?.close();
      throw error;
    }
  }
  listener?.close();
  return undefined;
}

function listen(path: string): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    // Enough for all clients of a person that start at once.
    server.listen({ path, backlog: 511 }, () => resolve(server));
  });
}

/** Number of failed starts within a minute after which no hub is started for a while. */
const MAX_FAILED = 3;
const FAILED_WITHIN_MS = 60_000;

/** Whether the hub keeps failing before it has served anybody, so that clients had better serve themselves. */
export function isHubFailing(folder: string, now: number): boolean {
  const failed = hubNumbers(folder).filter((number) => {
    const { folder: own, ready, ended } = hubFiles(folder, number);
    if (existsSync(ready) || existsSync(ended)) return false;
    const since = statSync(own, { throwIfNoEntry: false })?.mtimeMs;
    return since !== undefined && now - since < FAILED_WITHIN_MS;
  });
  return failed.length >= MAX_FAILED;
}
