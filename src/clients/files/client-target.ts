import { existsSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import { valueAt } from '../../files/edit/edit-text.js';
import { FileRefusal, parseText } from '../../files/edit/parse-text.js';
import { isRecord } from '../../json/is-record.js';
import { placeIn, resolvePath, userFiles } from './client-places.js';
import type { Client } from './client-table.js';
import type { ClientPlace, ClientSystem } from './found-server.js';

/** Whether a client has left signs on this machine: its file, the folder of the file, or its program. */
export function isInstalled(client: Client, system: ClientSystem): boolean {
  const files = userFiles(client, system, 'written');
  const folders = files.map((file) => dirname(file)).filter((folder) => folder !== system.home);
  const signs = (client.signs ?? []).flatMap((path) => resolvePath(path, system));
  return [...files, ...folders, ...signs].some((path) => existsSync(path)) || programOf(client, system) !== undefined;
}

/** The file into which an entry for the user goes. Throws a `FileRefusal` if that cannot be told. */
export function targetFile(client: Client, system: ClientSystem): string {
  const all = userFiles(client, system, 'written');
  // Claude Desktop reads the folder of its package, and ignores the other file without a word.
  const packaged = all.filter((file) => file.includes(`${sep}LocalCache${sep}`) && existsSync(dirname(dirname(file))));
  if (packaged.length === 1 && packaged[0] !== undefined) return packaged[0];
  if (packaged.length > 1) {
    const [existing, ...more] = packaged.filter((file) => existsSync(file));
    if (existing !== undefined && more.length === 0) return existing;
    throw new FileRefusal(
      `${client.title} is installed more than once (${packaged.map((file) => dirname(file)).join(', ')})`,
    );
  }
  const files = all.filter((file) => !file.includes(`${sep}LocalCache${sep}`));
  const found = files.find((file) => existsSync(file)) ?? files.find((file) => existsSync(dirname(file))) ?? files[0];
  if (found === undefined) throw new FileRefusal(`${client.title} has no file on this system`);
  return found;
}

/** The place in a file to which an entry is written. */
export function targetPlace(client: Client, file: string, text: string): ClientPlace {
  const place = placeIn(client, 'user', file);
  if (client.otherPath === undefined) return place;
  const other = valueAt(parseText(client.format, text), client.otherPath);
  // A server may be called as the last member of that path.
  const isOther = isRecord(other) && Object.values(other).every(isRecord);
  return isOther ? { ...place, path: client.otherPath } : place;
}

/** The client's own program for changes of its file, if it is installed. */
export function programOf({ program }: Client, { platform, home, env }: ClientSystem): string | undefined {
  if (program === undefined) return undefined;
  const path = env.PATH ?? env.Path ?? '';
  const folders = path.split(platform === 'win32' ? ';' : ':').filter(Boolean);
  // The installer of Claude Code puts it there, with an alias for shells.
  if (program === 'claude') folders.push(join(home, '.local', 'bin'), join(home, '.claude', 'local'));
  const endings = platform === 'win32' ? ['.exe', '.cmd'] : [''];
  return folders
    .flatMap((folder) => endings.map((ending) => join(folder, program + ending)))
    .find((file) => existsSync(file));
}
