import { createHash } from 'node:crypto';
import { homedir } from 'node:os';
import { copyKeptFile, type KeepingPlaces, type KeptFile } from '../../../clients/import/kept-file.js';
import type { PlannedServer } from '../../../clients/import/plan.js';
import { userConfigFile } from '../../../config/file/find-config.js';
import { errorCode } from '../../../errors/error-text.js';
import { HintedError } from '../../../errors/usage-error.js';
import { plural } from '../../../gateway/status/status-text.js';
import { packageFolders, serverFilesFolder } from '../../../state/user-files.js';
import { tell, withoutHome } from '../../output.js';

/** Where packages and files of servers are for the user of this process. */
export function keepingPlaces(configFile: string): KeepingPlaces {
  const { platform, env, execPath } = process;
  const home = homedir();
  const isUsual = configFile === userConfigFile({ env, home, platform });
  const suffix = isUsual ? '' : `-${createHash('sha256').update(configFile).digest('hex').slice(0, 8)}`;
  const { storeFolder } = packageFolders();
  return { platform, home, env, nodePath: execPath, storeFolder, serversFolder: serverFilesFolder(), suffix };
}

/** Copies the files that servers have written beside their programs to the data folder. Throws a `HintedError`. */
export function copyKeptFiles(added: readonly PlannedServer[]): void {
  for (const { key = '', kept } of added) {
    if (kept === undefined) continue;
    try {
      const copied = copyKeptFile(kept);
      if (copied !== undefined) tell(`${key}: copied ${shown(copied)} to ${shown(kept.file)}.`);
    } catch (cause) {
      const message = `the file of ${key} cannot be copied to ${kept.file} (${errorCode(cause) ?? 'unknown'})`;
      throw new HintedError(message, 'nothing was imported; make room or correct the permissions, then try again', {
        cause,
      });
    }
  }
}

/** Says where the file of a server will be, and which files of earlier runs were found. */
export function describeKept(key: string, kept: KeptFile): string[] {
  const [newest, ...others] = kept.earlier;
  const older = others.map((each) => `  older, stays: ${describeFile(each)}`);
  if (newest === undefined) return [`${key}: ${where(kept)}`, '  no file of an earlier run was found'];
  const role = newest.file === kept.file ? 'from an earlier import' : 'newest, is copied';
  return [`${key}: ${where(kept)}`, `  ${role}: ${describeFile(newest)}`, ...older];
}

/** Says the same of a server that was added by hand. A file of an earlier run may belong to another server. */
export function describeNewFile(kept: KeptFile): string[] {
  const { file, earlier } = kept;
  const other = earlier.find((each) => each.file !== file);
  if (other === undefined) return [where(kept)];
  return [
    where(kept),
    `to begin with the file of an earlier run: cp ${JSON.stringify(other.file)} ${JSON.stringify(file)}`,
  ];
}

function where({ variable, file }: KeptFile): string {
  return `its data will be in ${shown(file)} (${variable}), because a file beside its program is lost with the next version`;
}

function describeFile({ file, modifiedMs, bytes }: KeptFile['earlier'][number]): string {
  return `${shown(file)} (${new Date(modifiedMs).toLocaleString('sv')}, ${plural(bytes, 'byte')})`;
}

function shown(file: string): string {
  return withoutHome(file, homedir());
}
