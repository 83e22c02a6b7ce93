import { readdirSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { posix, win32 } from 'node:path';

type Variables = Readonly<Record<string, string | undefined>>;

/** The Node that runs packages and npm. */
export interface ServerNode {
  readonly path: string;
  /** Variables that make the program run as Node. */
  readonly variables: Readonly<Record<string, string>>;
}

export interface ChooseNodeOptions {
  /** As in `process.versions`. */
  readonly versions: Variables;
  readonly execPath: string;
  readonly env: Variables;
  readonly home: string;
  /** As in `process.platform`. */
  readonly platform: string;
  readonly isFile: (path: string) => boolean;
  /** Names of the entries of a folder; none if it cannot be read. */
  readonly entriesOf: (folder: string) => readonly string[];
}

let chosen: ServerNode | undefined;

/** The Node that runs packages and npm on this machine. */
export function serverNode(): ServerNode {
  const { versions, execPath, env, platform } = process;
  chosen ??= chooseNode({ versions, execPath, env, home: homedir(), platform, isFile, entriesOf });
  return chosen;
}

/**
 * Usually the Node that runs Trunkline. A desktop program may run it with the Node of Electron; its executable is then a
 * part of that program. So the Node of the user comes first: the first in PATH, or in a place where installers put it.
 */
export function chooseNode(options: ChooseNodeOptions): ServerNode {
  const { versions, execPath, isFile: isThere } = options;
  if (versions.electron === undefined) return { path: execPath, variables: {} };
  const found = [...inPath(options), ...inUsualPlaces(options)].find(isThere);
  return found === undefined ? { path: execPath, variables: AS_NODE } : { path: found, variables: {} };
}

/** Electron documents this variable: with it, its executable is a Node. */
const AS_NODE = { ELECTRON_RUN_AS_NODE: '1' };

function inPath({ env, platform }: ChooseNodeOptions): string[] {
  const { delimiter, isAbsolute, join } = platform === 'win32' ? win32 : posix;
  const folders = (env.PATH ?? env.Path ?? '').split(delimiter).filter(isAbsolute);
  return folders.map((folder) => join(folder, platform === 'win32' ? 'node.exe' : 'node'));
}

function inUsualPlaces(options: ChooseNodeOptions): string[] {
  return options.platform === 'win32' ? usualOnWindows(options) : usualOnPosix(options);
}

function usualOnPosix({ home, entriesOf: entries }: ChooseNodeOptions): string[] {
  const { join } = posix;
  const share = join(home, '.local/share');
  return [
    ...['/opt/homebrew/bin/node', '/usr/local/bin/node', '/usr/bin/node', '/opt/local/bin/node'],
    join(home, '.volta/bin/node'),
    ...newestFirst(entries(join(home, '.nvm/versions/node')), (name) =>
      join(home, '.nvm/versions/node', name, 'bin/node'),
    ),
    ...[join(share, 'fnm/node-versions'), join(home, 'Library/Application Support/fnm/node-versions')].flatMap(
      (folder) => newestFirst(entries(folder), (name) => join(folder, name, 'installation/bin/node')),
    ),
    ...newestFirst(entries(join(share, 'mise/installs/node')), (name) =>
      join(share, 'mise/installs/node', name, 'bin/node'),
    ),
  ];
}

function usualOnWindows({ env, home, entriesOf: entries }: ChooseNodeOptions): string[] {
  const { join } = win32;
  const roaming = env.APPDATA || join(home, 'AppData', 'Roaming');
  const local = env.LOCALAPPDATA || join(home, 'AppData', 'Local');
  const programs = [env.PROGRAMFILES ?? env.ProgramFiles ?? 'C:\\Program Files', join(local, 'Programs')];
  return [
    ...programs.map((folder) => join(folder, 'nodejs', 'node.exe')),
    join(local, 'Volta', 'bin', 'node.exe'),
    ...newestFirst(entries(join(roaming, 'nvm')), (name) => join(roaming, 'nvm', name, 'node.exe')),
    ...newestFirst(entries(join(roaming, 'fnm', 'node-versions')), (name) =>
      join(roaming, 'fnm', 'node-versions', name, 'installation', 'node.exe'),
    ),
  ];
}

/** Of folders that are named after versions, such as `v22.3.0`. */
function newestFirst(names: readonly string[], toPath: (name: string) => string): string[] {
  const versions = names.filter((name) => /^v?\d+\.\d+\.\d+$/.test(name));
  return versions.sort((a, b) => b.localeCompare(a, 'en', { numeric: true })).map(toPath);
}

function isFile(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function entriesOf(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    // Absent, as for most managers of versions.
    return [];
  }
}
