import { homedir } from 'node:os';
import { join } from 'node:path';
import type { ApprovalPlaces } from '../approvals/approvals.js';
import { dataFolder } from '../files/data-folder.js';

/** File of the bearer token for HTTP clients. */
export function tokenFile(): string {
  return inDataFolder('token');
}

/** File of the key that signs task ids and protects the caches. */
export function sealFile(): string {
  return inDataFolder('seal');
}

/** Folder where each gateway of this user lists its processes. */
export function runFolder(): string {
  return inDataFolder('run');
}

/** Folder of installed packages, and folder of lock files for configurations in read-only folders. */
export function packageFolders(): { storeFolder: string; locksFolder: string } {
  return { storeFolder: inDataFolder('store'), locksFolder: inDataFolder('locks') };
}

/** Folder of cached catalogues. */
export function catalogueFolder(): string {
  return inDataFolder('catalogue');
}

/** Folders of approved tools and of tools that wait for approval. */
export function approvalPlaces(purpose: ApprovalPlaces['purpose']): ApprovalPlaces {
  return { approvalsFolder: inDataFolder('approvals'), withheldFolder: inDataFolder('withheld'), purpose };
}

/** Folder of cached checked configurations. */
export function checkedFolder(): string {
  return inDataFolder('checked');
}

function inDataFolder(name: string): string {
  return join(dataFolder({ env: process.env, home: homedir(), platform: process.platform }), name);
}
