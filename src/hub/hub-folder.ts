import { randomBytes } from 'node:crypto';
import { existsSync, lstatSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import type { Server } from 'node:net';
import { userInfo } from 'node:os';
import { basename, join } from 'node:path';
import { errorCode } from '../host/errors/error-text.js';
import { systemFault } from '../host/errors/file-error.js';
import { whenFree } from '../host/files/held-files.js';
import { machineName } from '../host/process/machine-name.js';
import { SYSTEM_FORM, socketIn } from './endpoint.js';
import { WIRE } from './wire.js';

export interface HubFolderOptions {
  /** Absolute path of the configuration file, as the client names it. Two names of one file make two hubs. */
  readonly configFile: string;
  /** Trunkline's data folder. Two data folders make two hubs, because they have different packages and approvals. */
  readonly dataFolder: string;
  /** Absolute path of the folder of all hubs, from `TRUNKLINE_HUB_DIR`. Absent for the default folders. */
  readonly hubsFolder?: string | undefined;
}

/**
 * Returns the folder of the hubs of this user and this configuration, which only this user can enter. Creates the folder if necessary.
 *
 * The folder does not depend on variables such as HOME, XDG_RUNTIME_DIR or TMPDIR, because programs start their children with different
 * environments, and all of them must find the same hub. The home folder is the one in the password database. If it cannot be written, or
 * its path is too long for a socket, the folder is below `/tmp`. Throws if no folder can be used; the message is a phrase that fits after
 * "because".
 */
export function hubFolder(options: HubFolderOptions): string {
  return privateFolder(hubKey(options), options.hubsFolder);
}

/** A folder for sockets with this name, in the folder of hubs. Throws as `hubFolder` does. */
export function privateFolder(name: string, hubsFolder?: string): string {
  const faults: string[] = [];
  for (const hubs of foldersOfHubs(hubsFolder)) {
    const folder = join(hubs, name);
    const fault = lengthFault(hubs, folder) ?? makePrivate(hubs) ?? makePrivate(folder);
    if (fault === undefined) return folder;
    faults.push(fault);
  }
  throw new Error(faults.join(', and ') || 'the system knows no home folder of this user');
}

function lengthFault(hubs: string, folder: string): string | undefined {
  return SYSTEM_FORM.fits(folder) ? undefined : `the path ${hubs} is too long for a socket`;
}

/** Finds the folder that `hubFolder` would return, and the faults of the folders before it. Creates nothing. */
export function inspectHubFolder(options: HubFolderOptions): {
  readonly folder?: string;
  readonly faults: readonly string[];
} {
  const key = hubKey(options);
  const faults: string[] = [];
  for (const hubs of foldersOfHubs(options.hubsFolder)) {
    const folder = join(hubs, key);
    const existing = [hubs, folder].filter((path) => lstatSync(path, { throwIfNoEntry: false }));
    const fault = lengthFault(hubs, folder) ?? existing.map(faultOf).find(Boolean);
    if (fault === undefined) return lstatSync(folder, { throwIfNoEntry: false }) ? { folder, faults } : { faults };
    faults.push(fault);
  }
  return { faults };
}

/** The folders of all hubs of this user that exist, for all configurations. */
export function allHubFolders(hubsFolder: string | undefined): string[] {
  return privateFoldersIn(hubsFolder, (name) => /^[0-9a-f]{16}$/.test(name));
}

/** Name of the folder of the gateways that are no hubs. Each has a folder of its own in it. */
export const GATEWAYS = 'gateways';

/** The folders of the gateways of this user that are no hubs. */
export function gatewayFolders(hubsFolder: string | undefined): string[] {
  return privateFoldersIn(hubsFolder, (name) => name === GATEWAYS);
}

/** The existing folders with these names where hubs may be. Leaves out those that another user can enter or has made. */
function privateFoldersIn(hubsFolder: string | undefined, isWanted: (name: string) => boolean): string[] {
  return foldersOfHubs(hubsFolder).flatMap((hubs) => {
    try {
      if (faultOf(hubs) !== undefined) return [];
      const found = readdirSync(hubs).filter(isWanted);
      return found.map((name) => join(hubs, name)).filter((folder) => faultOf(folder) === undefined);
    } catch {
      // The folder does not exist, or cannot be read.
      return [];
    }
  });
}

/** Name of the folder: 16 hexadecimal digits, made from everything that distinguishes hubs of different folders. */
function hubKey({ configFile, dataFolder }: HubFolderOptions): string {
  const parts = [WIRE, machineName(), process.getuid?.() ?? userInfo().username, configFile, dataFolder];
  return fingerprint(JSON.stringify(parts));
}

/** FNV-1a with 64 bits, as 16 hexadecimal digits. Distinguishes the configurations of one user, and protects nothing. */
function fingerprint(text: string): string {
  let sum = 0xcbf29ce484222325n;
  for (const byte of Buffer.from(text)) sum = BigInt.asUintN(64, (sum ^ BigInt(byte)) * 0x100000001b3n);
  return sum.toString(16).padStart(16, '0');
}

/** The folders where hubs may be, the preferred one first. */
export function foldersOfHubs(named: string | undefined): string[] {
  if (named !== undefined) return [named];
  const home = homeOfUser();
  const preferred = home === undefined ? [] : [join(home, '.local', 'state', 'trunkline', 'run')];
  const uid = process.getuid?.();
  return uid === undefined ? preferred : [...preferred, join('/tmp', `trunkline-${uid}`)];
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
    return `the folder ${folder} cannot be created: ${systemFault(error).reason}`;
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

/** The numbers of all hubs in this folder, also of dead ones whose files remain, in ascending order. */
export function hubNumbers(folder: string): number[] {
  const numbers = readdirSync(folder).flatMap((name) => (/^[1-9]\d{0,8}$/.test(name) ? [Number(name)] : []));
  return numbers.sort((one, other) => one - other);
}

/** The number of the hub that clients have to use; 0 without a hub. */
export function latestHub(folder: string): number {
  return hubNumbers(folder).at(-1) ?? 0;
}

/** The files of a hub, or of another gateway whose folder has this name. */
export function hubFiles(folder: string, number: number | string) {
  const own = join(folder, String(number));
  return {
    folder: own,
    /** The socket of the hub, on systems on which sockets are files. */
    socket: socketIn(own),
    token: join(own, 'token'),
    /** Contains the pid of the hub, for messages only. The process that listens on the socket is the hub. */
    pid: join(own, 'pid'),
    /** Exists from the time when the hub answers its clients. */
    ready: join(own, 'ready'),
    /** Exists after the hub has ended on purpose, or when its process could not be started. Such a hub has not failed. */
    ended: join(own, 'ended'),
  };
}

/** Writes one of these files. Ignores errors, because a missing file only makes clients less sure of the state of the hub. */
export function writeMarker(file: string, text = ''): void {
  try {
    writeFileSync(file, text, { mode: 0o600 });
  } catch {
    // The disk is full, or the folder was removed.
  }
}

export function hubLog(folder: string): string {
  return join(folder, 'hub.log');
}

/** File descriptor of the listening socket in the process of a hub. */
export const LISTENER_DESCRIPTOR = 3;

export function numberOf(hubFolder: string): number {
  return Number(basename(hubFolder));
}

/** The right to start the hub with this number. */
export interface Claim {
  readonly number: number;
  /** The hub's socket, which listens already. Absent if the process of the hub has to listen itself. */
  readonly listener?: Server | undefined;
}

/**
 * Claims the right to start the successor of hub `latest`. Returns `undefined` if another process has claimed it. Then the
 * hub of that process is the one to use.
 *
 * The folder is the claim. It is made as a draft, and then renamed to the next number. The system refuses the rename if a folder with
 * content has that name, so the folder is whole from the start, and one process makes it. Where a socket can be handed over, it listens
 * in the draft already, so a hub whose socket refuses connections is dead, and no pid and no time has to be compared. Elsewhere, the
 * draft names this process, and a claim whose process has ended is free.
 *
 * Throws if the folder cannot be written.
 */
export async function claimSuccessor(folder: string, latest: number, form = SYSTEM_FORM): Promise<Claim | undefined> {
  const number = latest + 1;
  const draft = join(folder, `.${process.pid}-${randomBytes(4).toString('hex')}`);
  mkdirSync(draft, { mode: 0o700 });
  let listener: Server | undefined;
  try {
    writeFileSync(join(draft, 'token'), randomBytes(32).toString('base64url'), { mode: 0o600, flag: 'wx' });
    listener = await form.prepareHub(draft);
    const { folder: hub } = hubFiles(folder, number);
    const isOurs = await isRenamed(draft, hub);
    if (isOurs && latestHub(folder) === number) return { number, listener };
    // Another process has this number, or has started a hub with a higher one meanwhile, so this number is too late.
    rmSync(isOurs ? hub : draft, { recursive: true, force: true });
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    listener?.close();
    throw error;
  }
  listener?.close();
  return undefined;
}

/** Renames a draft, unless a hub has the name. Windows refuses both a taken name and a file that a virus scanner reads, with one code. */
function isRenamed(draft: string, hub: string): Promise<boolean> {
  return whenFree(async () => {
    try {
      renameSync(draft, hub);
      return true;
    } catch (error) {
      const code = errorCode(error) ?? '';
      if (code === 'ENOTEMPTY' || code === 'EEXIST' || (code === 'EPERM' && existsSync(hub))) return false;
      throw error;
    }
  });
}

/** Limit of the hubs that fail within `FAILED_WITHIN_MS`. At the limit, no hub is started until the time is over. */
const MAX_FAILED = 3;
const FAILED_WITHIN_MS = 60_000;

/** Whether several hubs have failed before they answered a client, so that each client has to start servers of its own. */
export function isHubFailing(folder: string, now: number): boolean {
  const failed = hubNumbers(folder).filter((number) => {
    const { folder: own, ready, ended } = hubFiles(folder, number);
    if (existsSync(ready) || existsSync(ended)) return false;
    const since = statSync(own, { throwIfNoEntry: false })?.mtimeMs;
    return since !== undefined && now - since < FAILED_WITHIN_MS;
  });
  return failed.length >= MAX_FAILED;
}
