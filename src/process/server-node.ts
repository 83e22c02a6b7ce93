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
  const found = [...inPath(options), ...places(options)].find(isThere);
  return found === undefined ? { path: execPath, variables: AS_NODE } : { path: found, variables: {} };
}

/** Electron documents this variable: with it, its executable is a Node. */
const AS_NODE = { ELECTRON_RUN_AS_NODE: '1' };

function inPath({ env, platform }: ChooseNodeOptions): string[] {
  const { delimiter, isAbsolute, join } = platform === 'win32' ? win32 : posix;
  const folders = (env.PATH ?? env.Path ?? '').split(delimiter).filter(isAbsolute);
  return folders.map((folder) => join(folder, platform === 'win32' ? 'node.exe' : 'node'));
}

/** Places where installers put a Node. `*` stands for a folder that is named after a version, the newest first. */
function places({ env, home, platform, entriesOf }: ChooseNodeOptions): string[] {
  const isWindows = platform === 'win32';
  const { join } = isWindows ? win32 : posix;
  const roaming = env.APPDATA || join(home, 'AppData', 'Roaming');
  const local = env.LOCALAPPDATA || join(home, 'AppData', 'Local');
  const programs = env.PROGRAMFILES ?? env.ProgramFiles ?? 'C:\\Program Files';
  const onWindows = [
    ...[join(programs, 'nodejs'), join(local, 'Programs', 'nodejs'), join(local, 'Volta', 'bin')],
    ...[join(roaming, 'nvm', '*'), join(roaming, 'fnm', 'node-versions', '*', 'installation')],
  ];
  const onPosix = [
    ...['/opt/homebrew/bin', '/usr/local/bin', '/usr/bin', '/opt/local/bin', join(home, '.volta/bin')],
    join(home, '.nvm/versions/node/*/bin'),
    join(home, '.local/share/fnm/node-versions/*/installation/bin'),
    join(home, 'Library/Application Support/fnm/node-versions/*/installation/bin'),
    join(home, '.local/share/mise/installs/node/*/bin'),
  ];
  return (isWindows ? onWindows : onPosix).flatMap((folder) => {
    const path = join(folder, isWindows ? 'node.exe' : 'node');
    const [before = '', after] = path.split('*');
    if (after === undefined) return [path];
    return newestFirst(entriesOf(before.slice(0, -1))).map((version) => before + version + after);
  });
}

/** Of names of folders, those that are versions, such as `v22.3.0`. */
function newestFirst(names: readonly string[]): string[] {
  const versions = names.filter((name) => /^v?\d+\.\d+\.\d+$/.test(name));
  return versions.sort((a, b) => b.localeCompare(a, 'en', { numeric: true }));
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
