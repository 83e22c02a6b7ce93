/*
 * The files that outlive a gateway: approvals, cached catalogues and instructions, keys and tokens. Extras, the hub, the composition
 * root and the commands use this room. Begin here, with the paths of the files.
 */
import { homedir } from 'node:os';
import { join, posix, win32 } from 'node:path';
import type { ApprovalFolders } from './approvals.js';

export const tokenFile = inDataFolder('token');

/** File of the secrets that `trunkline secret set` has stored. */
export const secretFile = inDataFolder('secrets');

/** File of the key that signs task ids and protects the caches. */
export const sealFile = inDataFolder('seal');

export const loginFolder = inDataFolder('auth');

/** Folder where each gateway of this user lists its processes. */
export const runFolder = inDataFolder('run');

/** Folder of installed packages, and folder of lock files for configurations in read-only folders. */
export function packageFolders(): { storeFolder: string; locksFolder: string } {
  return { storeFolder: join(userDataFolder(), 'store'), locksFolder: join(userDataFolder(), 'locks') };
}

export const catalogueFolder = inDataFolder('catalogue');

export const callLogFile = inDataFolder('calls.jsonl');

export const instructionsFolder = inDataFolder('instructions');

/** Folder of the recordings that were made from the page. */
export const recordingFolder = inDataFolder('recordings');

/** Folders of approved tools and of tools that wait for approval. */
export function approvalFolders(purpose: ApprovalFolders['purpose']): ApprovalFolders {
  const folder = userDataFolder();
  return { approvalsFolder: join(folder, 'approvals'), withheldFolder: join(folder, 'withheld'), purpose };
}

/** File of the projects whose configuration `trunkline trust` has accepted. */
export const trustedFile = inDataFolder('trusted.json');

/** File that lists the changes of clients' files, for `trunkline undo`. */
export const clientChangesFile = inDataFolder('client-changes.json');

/** Folder of the lock that a command holds while it changes files of this user. */
export const changeLockFolder = inDataFolder('changes');

/** Folder of cached checked configurations. */
export const checkedFolder = inDataFolder('checked');

export const sandboxFolder = inDataFolder('sandboxes');

/** Folder for the data files of servers that would otherwise write beside their programs. */
export const serverFilesFolder = inDataFolder('servers');

export const codeCacheFolder = inDataFolder('code');

/** Returns a function, because the environment may change. */
function inDataFolder(name: string): () => string {
  return () => join(userDataFolder(), name);
}

/** The folder for Trunkline's data of the user of this process. */
export function userDataFolder(): string {
  return dataFolder({ env: process.env, home: homedir(), platform: process.platform });
}

/** The folder for hubs that `TRUNKLINE_HUB_DIR` names, if it is set. */
export function userHubsFolder(): string | undefined {
  return hubsFolder({ env: process.env, platform: process.platform });
}

interface System {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** As in `process.platform`. */
  readonly platform: string;
}

/** The folder for Trunkline's data of this user. Variables with relative paths count as unset. */
export function dataFolder({ env, home, platform }: System & { readonly home: string }): string {
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

/** The folder that `TRUNKLINE_HUB_DIR` names. A relative path counts as unset, because clients run in different folders. */
export function hubsFolder({ env, platform }: System): string | undefined {
  const { TRUNKLINE_HUB_DIR: named = '' } = env;
  return (platform === 'win32' ? win32 : posix).isAbsolute(named) ? named : undefined;
}
