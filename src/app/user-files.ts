import { homedir } from 'node:os';
import { join } from 'node:path';
import type { ApprovalPlaces } from '../approvals/approvals.js';
import { dataFolder } from '../files/data-folder.js';

/** Where the bearer token of this user is kept. */
export function tokenFile(): string {
  return inDataFolder('token');
}

/** Where the secret is kept under which the ids of tasks are sealed. */
export function sealFile(): string {
  return inDataFolder('seal');
}

/** Where each gateway of this user says which processes run for it. */
export function runFolder(): string {
  return inDataFolder('run');
}

/** Where Trunkline installs packages, and the locks of configurations whose own folders cannot be written. */
export function packageFolders(): { storeFolder: string; locksFolder: string } {
  return { storeFolder: inDataFolder('store'), locksFolder: inDataFolder('locks') };
}

/** Where it is kept what servers offered in the last run. */
export function catalogueFolder(): string {
  return inDataFolder('catalogue');
}

/** Where it is kept what is approved of tools, and noted what is not. */
export function approvalPlaces(purpose: ApprovalPlaces['purpose']): ApprovalPlaces {
  return { approvalsFolder: inDataFolder('approvals'), withheldFolder: inDataFolder('withheld'), purpose };
}

/** Where it is kept what configuration files said when they were last checked. */
export function checkedFolder(): string {
  return inDataFolder('checked');
}

function inDataFolder(name: string): string {
  return join(dataFolder({ env: process.env, home: homedir(), platform: process.platform }), name);
}
