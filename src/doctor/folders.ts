import { accessSync, constants, existsSync, type Stats, statSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { errorCode } from '../errors/error-text.js';
import { type Finding, finding } from './finding.js';
import type { Machine } from './machine.js';

/** Less than this is too little for a few packages. */
const MIN_FREE_BYTES = 500 * 1024 * 1024;

/** Magic numbers of file systems over a network, as Linux reports them. */
const NETWORK_FILE_SYSTEMS = new Map([
  [0x6969, 'NFS'],
  [0x517b, 'SMB'],
  [0xff534d42, 'CIFS'],
  [0xfe534d42, 'SMB2'],
  [0x5346414f, 'AFS'],
  [0x01021997, '9P'],
]);

/** Whether Trunkline can use its folders: they exist or can be created, are ours, and have space. */
export async function checkFolders(
  machine: Pick<Machine, 'platform' | 'uid'>,
  folders: FolderPlaces,
): Promise<Finding[]> {
  const found = [folders.data, ...folders.others].flatMap((folder) => checkFolder(folder, machine));
  const space = await checkSpace(nearestExisting(folders.data), machine);
  const synced = machine.platform === 'win32' && /[\\/]OneDrive[^\\/]*[\\/]/i.test(folders.data);
  if (synced) found.push(finding('TL-HOME-SYNCED', 'OneDrive copies the data folder', { evidence: [folders.data] }));
  const all = [...found, ...space];
  return all.length > 0
    ? all
    : [finding('TL-DIR-OK', 'the folders of Trunkline can be used', { evidence: [folders.data] })];
}

export interface FolderPlaces {
  /** Packages, approvals, tokens, caches. */
  readonly data: string;
  readonly others: readonly string[];
}

function checkFolder(folder: string, { uid }: Pick<Machine, 'uid'>): Finding[] {
  const existing = nearestExisting(folder);
  const evidence = [folder];
  let stats: Stats;
  try {
    stats = statSync(existing);
    if (!stats.isDirectory())
      return [finding('TL-DIR-UNWRITABLE', `${existing} is a file, where a folder is needed`, { evidence })];
    accessSync(existing, constants.W_OK | constants.X_OK);
  } catch (error) {
    const why = errorCode(error) ?? 'unknown error';
    return [finding('TL-DIR-UNWRITABLE', `${existing} cannot be written (${why})`, { evidence })];
  }
  if (existing !== folder || uid === undefined) return [];
  if (stats.uid !== uid)
    return [finding('TL-DIR-FOREIGN', `${folder} belongs to the user with the id ${stats.uid}`, { evidence })];
  if ((stats.mode & 0o022) === 0) return [];
  const remedy = `chmod go-w ${folder}`;
  return [finding('TL-DIR-EXPOSED', `other users can write into ${folder}`, { evidence, remedy })];
}

async function checkSpace(folder: string, { platform }: Pick<Machine, 'platform'>): Promise<Finding[]> {
  try {
    const { bavail, bsize, type } = await statfs(folder);
    return diskFindings({ folder, freeBytes: bavail * bsize, type: platform === 'linux' ? type : 0 });
  } catch {
    // A folder that cannot be read has a finding already.
    return [];
  }
}

/** `type` is the magic number of the file system on Linux; 0 if it is not known. */
export function diskFindings(disk: { folder: string; freeBytes: number; type: number }): Finding[] {
  const { folder, freeBytes, type } = disk;
  const evidence = [folder];
  const found: Finding[] = [];
  if (freeBytes < MIN_FREE_BYTES)
    found.push(finding('TL-DISK-LOW', `${Math.round(freeBytes / 1024 / 1024)} MB are free`, { evidence }));
  const network = NETWORK_FILE_SYSTEMS.get(type);
  if (network !== undefined)
    found.push(finding('TL-HOME-NETWORK', `the data folder is on a network file system (${network})`, { evidence }));
  return found;
}

function nearestExisting(path: string): string {
  for (let at = path; ; at = dirname(at)) if (existsSync(at) || at === dirname(at)) return at;
}
