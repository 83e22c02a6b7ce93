import { homedir } from 'node:os';
import { join, posix, win32 } from 'node:path';
import type { ApprovalPlaces } from './approvals.js';

/** File of the bearer token for HTTP clients. */
export function tokenFile(): string {
  return inDataFolder('token');
}

/** File of the secrets that `trunkline secret set` has stored. */
export function secretFile(): string {
  return inDataFolder('secrets');
}

/** File of the key that signs task ids and protects the caches. */
export function sealFile(): string {
  return inDataFolder('seal');
}

/** Folder where each gateway of this user lists its processes. */
export function runFolder(): string {
  return inDataFolder('run');
}

/** Folder where each gateway of this user that serves HTTP tells where, and what it has refused. */
export function httpGatewayFolder(): string {
  return inDataFolder('http');
}

/** Folder of installed packages, and folder of lock files for configurations in read-only folders. */
export function packageFolders(): { storeFolder: string; locksFolder: string } {
  return { storeFolder: inDataFolder('store'), locksFolder: inDataFolder('locks') };
}

/** Folder of cached catalogues. */
export function catalogueFolder(): string {
  return inDataFolder('catalogue');
}

/** File of the call log. */
export function callLogFile(): string {
  return inDataFolder('calls.jsonl');
}

/** Folder of cached instructions. */
export function instructionsFolder(): string {
  return inDataFolder('instructions');
}

/** Folders of approved tools and of tools that wait for approval. */
export function approvalPlaces(purpose: ApprovalPlaces['purpose']): ApprovalPlaces {
  return { approvalsFolder: inDataFolder('approvals'), withheldFolder: inDataFolder('withheld'), purpose };
}

/** File that lists the changes of clients' files, for `trunkline undo`. */
export function clientChangesFile(): string {
  return inDataFolder('client-changes.json');
}

/** Folder of the lock that a command holds while it changes files of this user. */
export function changeLockFolder(): string {
  return inDataFolder('changes');
}

/** Folder of cached checked configurations. */
export function checkedFolder(): string {
  return inDataFolder('checked');
}

/** Folder of compiled code. */
export function codeCacheFolder(): string {
  return inDataFolder('code');
}

function inDataFolder(name: string): string {
  return join(userDataFolder(), name);
}

/** The folder for Trunkline's data of the user of this process. */
export function userDataFolder(): string {
  return dataFolder({ env: process.env, home: homedir(), platform: process.platform });
}

/** The folder of hubs that the user has named, if there is one. */
export function userHubsFolder(): string | undefined {
  return hubsFolder({ env: process.env, platform: process.platform });
}

interface DataFolderOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  /** As in `process.platform`. */
  readonly platform: string;
}

/** The folder for Trunkline's data of this user. Variables with relative paths count as unset. */
export function dataFolder({ env, home, platform }: DataFolderOptions): string {
  const path = platform === 'win32' ? win32 : posix;
  const set = (value: string | undefined) => (value !== undefined && path.isAbsolute(value) ? value : undefined);
  switch (platform) {
    case 'win32':
      return path.join(set(env.LOCALAPPDATA) ?? path.join(home, 'AppData', 'Local'), 'trunkline');
    case 'darwin':
      return path.join(home, 'Library', 'Application Support', 'trunkline');
    default:
      return path.join(set(env.XDG_DATA_HOME) ?? path.join(home, '.local', 'share'), 'trunkline');
  }
}

/** The folder that `TRUNKLINE_HUB_DIR` names. A relative path counts as unset: clients run in different folders. */
export function hubsFolder({ env, platform }: Omit<DataFolderOptions, 'home'>): string | undefined {
  const { TRUNKLINE_HUB_DIR: named = '' } = env;
  return (platform === 'win32' ? win32 : posix).isAbsolute(named) ? named : undefined;
}
