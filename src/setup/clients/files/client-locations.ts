import { existsSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join, sep } from 'node:path';
import { currentFolder } from '../../../config/file/find-config.js';
import { valueAt } from '../../../host/files/edit/edit-text.js';
import { FileRefusal, parseText } from '../../../host/files/edit/parse-text.js';
import { fileNamesIn } from '../../../host/files/whole-file.js';
import { isRecord } from '../../../wire/json/json-value.js';
import { CLIENTS, type KnownClient } from './client-table.js';
import type { ClientLocation, ClientSystem } from './found-server.js';
import { OWN_NAME } from './own-entry.js';

/** The system of this process. Any system but macOS and Windows keeps its files where Linux does. */
export function thisSystem(): ClientSystem {
  const { platform, env } = process;
  const known = platform === 'darwin' || platform === 'win32' ? platform : 'linux';
  return { platform: known, home: homedir(), cwd: currentFolder(), env };
}

/** All locations where clients may keep servers, whether the files exist or not. */
export function clientLocations(system: ClientSystem): ClientLocation[] {
  const files = new Set<string>();
  const places: ClientLocation[] = [];
  for (const client of CLIENTS) {
    for (const file of userFiles(client, system, 'all')) {
      files.add(file);
      places.push(...locationsIn(client, 'user', file));
    }
  }
  for (const client of CLIENTS) {
    const file = projectFile(client, system);
    // A variable such as `CODEX_HOME` can put the user's file into the project. It is not listed twice.
    if (file !== undefined && !files.has(file)) places.push(...locationsIn(client, 'project', file));
  }
  return places;
}

/** The files of the user: those to which entries are written, or all that the client may read. A file with two names comes once. */
export function userFiles(client: KnownClient, system: ClientSystem, which: 'written' | 'all'): string[] {
  const { user, alsoRead = [] } = client;
  const lists = which === 'all' ? [user, alsoRead] : [user];
  const files = lists.flatMap((list) => {
    const paths = 'darwin' in list ? list[system.platform] : list;
    return paths.flatMap((path) => resolvePath(path, system));
  });
  return files.filter((file, at) => files.findIndex((other) => isSameFile(file, other)) === at);
}

/** Whether two paths lead to one file, through a link or because letters of another case are the same. */
function isSameFile(one: string, other: string): boolean {
  if (one.toLowerCase() !== other.toLowerCase()) return false;
  const identify = (path: string) => (existsSync(path) ? statSync(path, { bigint: true }).ino : path);
  return one === other || identify(one) === identify(other);
}

export function locationIn(client: KnownClient, scope: ClientLocation['scope'], file: string): ClientLocation {
  const { title, format, path, isList } = client;
  return { client: client.client, title, scope, file, format, path, ...(isList && { isList }) };
}

/** The absolute paths that a path of the table stands for: one, unless it contains `*`. */
function resolvePath(path: string, system: ClientSystem): string[] {
  const [root = '', ...parts] = path.split('/');
  let found = [folderNamed(root.slice(1, -1), system)];
  for (const part of parts) {
    found = found.flatMap((folder) => (part.includes('*') ? matching(folder, part) : [join(folder, part)]));
  }
  return found;
}

function locationsIn(client: KnownClient, scope: ClientLocation['scope'], file: string): ClientLocation[] {
  const place = locationIn(client, scope, file);
  return client.otherPath === undefined ? [place] : [place, { ...place, path: client.otherPath }];
}

/** The nearest file of a project, from the current folder upwards. The home folder and its parents are no project. */
function projectFile({ project = [] }: KnownClient, { cwd, home }: ClientSystem): string | undefined {
  for (let folder = cwd; folder !== home; folder = dirname(folder)) {
    const found = project.map((path) => join(folder, path)).find((file) => existsSync(file));
    if (found !== undefined) return found;
    if (folder === dirname(folder)) break;
  }
  return undefined;
}

/** The folder that a path of the table names in braces. */
export function folderNamed(name: string, { platform, home, env }: ClientSystem): string {
  const set = (variable: string) => {
    const value = env[variable];
    return value !== undefined && isAbsolute(value) ? value : undefined;
  };
  const xdg = () => set('XDG_CONFIG_HOME') ?? join(home, '.config');
  switch (name) {
    case 'home':
      return home;
    case 'dot-config':
      return join(home, '.config');
    case 'xdg':
      return platform === 'linux' ? xdg() : join(home, '.config');
    case 'config':
      if (platform === 'darwin') return join(home, 'Library', 'Application Support');
      return platform === 'linux' ? xdg() : (set('APPDATA') ?? join(home, 'AppData', 'Roaming'));
    case 'local':
      return set('LOCALAPPDATA') ?? join(home, 'AppData', 'Local');
    default: {
      const [variable, usual] = OWN_FOLDERS.get(name) ?? [];
      if (variable === undefined || usual === undefined) throw new Error(`no folder has the name {${name}}`);
      return set(variable) ?? join(home, usual);
    }
  }
}

/** Folders of clients, each with the variable that names it and its usual place in the home folder. */
const OWN_FOLDERS: ReadonlyMap<string, readonly [variable: string, usual: string]> = new Map([
  ['claude', ['CLAUDE_CONFIG_DIR', '']],
  ['claude-folder', ['CLAUDE_CONFIG_DIR', '.claude']],
  ['codex', ['CODEX_HOME', '.codex']],
  ['cline', ['CLINE_DIR', '.cline']],
  ['copilot', ['COPILOT_HOME', '.copilot']],
  ['kimi', ['KIMI_CODE_HOME', '.kimi-code']],
  ['grok', ['GROK_HOME', '.grok']],
]);

/** The file of Trunkline's skill in the folder where a client looks for the skills of its user; `undefined` if it has none. */
export function skillFile({ skills }: KnownClient, system: ClientSystem): string | undefined {
  const [folder] = skills === undefined ? [] : resolvePath(skills, system);
  return folder && join(folder, OWN_NAME, 'SKILL.md');
}

/** Entries of a folder whose names match, sorted. None if the folder cannot be read. */
function matching(folder: string, part: string): string[] {
  const [before = '', after = ''] = part.split('*');
  const names = fileNamesIn(folder).filter((name) => name.startsWith(before) && name.endsWith(after));
  return names.sort().map((name) => join(folder, name));
}

/** Whether a client has left signs on this machine: its file, the folder of the file, or its program. */
export function isInstalled(client: KnownClient, system: ClientSystem): boolean {
  const files = userFiles(client, system, 'written');
  const folders = files.map((file) => dirname(file)).filter((folder) => folder !== system.home);
  const signs = (client.signs ?? []).flatMap((path) => resolvePath(path, system));
  return (
    [...files, ...folders, ...signs].some((path) => existsSync(path)) || programOfClient(client, system) !== undefined
  );
}

/** The file that takes an entry for the user. Throws a `FileRefusal` if several files are possible. */
export function targetFile(client: KnownClient, system: ClientSystem): string {
  const all = userFiles(client, system, 'written');
  // Claude Desktop from an MSIX package reads a copy of its folder below `LocalCache`, and ignores the usual file.
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

/** The location in a file to which an entry is written. */
export function targetLocation(client: KnownClient, file: string, text: string): ClientLocation {
  const place = locationIn(client, 'user', file);
  if (client.otherPath === undefined) return place;
  const other = valueAt(parseText(client.format, text), client.otherPath);
  // A server can have the name of the last member of `otherPath`, such as `servers`. Then not all its members are objects.
  const isOther = isRecord(other) && Object.values(other).every(isRecord);
  return isOther ? { ...place, path: client.otherPath } : place;
}

/** The client's own program for changes of its file, if it is installed. */
export function programOfClient({ program }: KnownClient, { platform, home, env }: ClientSystem): string | undefined {
  if (program === undefined) return undefined;
  const path = env.PATH ?? env.Path ?? '';
  const folders = path.split(platform === 'win32' ? ';' : ':').filter(Boolean);
  // Claude Code may be installed there and reached through an alias of the shell, so that PATH lacks the folder.
  if (program === 'claude') folders.push(join(home, '.local', 'bin'), join(home, '.claude', 'local'));
  const endings = platform === 'win32' ? ['.exe', '.cmd'] : [''];
  return folders
    .flatMap((folder) => endings.map((ending) => join(folder, program + ending)))
    .find((file) => existsSync(file));
}
