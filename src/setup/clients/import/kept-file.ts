import { mkdirSync, statSync } from 'node:fs';
import { basename, dirname, isAbsolute, join, normalize, resolve, sep } from 'node:path';
import { expand, expandHome, type Variables } from '../../../config/resolve/references.js';
import { copyWhole, fileNamesIn, readTextFile } from '../../../host/files/whole-file.js';
import { needsOf, type OwnFile } from '../../../servers/sandbox/needs.js';
import { escapeReferences, type Run } from './run.js';

/**
 * A file in the data folder, for a server that writes its file beside its program if no variable or option names another. Each
 * launcher, such as npx, runs the program from a folder of its own, and each new version has a new folder, so the server would
 * not find its file again. The file begins as a copy of the newest earlier one, if there is one.
 */
export interface KeptFile {
  readonly variable: string;
  /** The file in the data folder; absolute. */
  readonly file: string;
  /** The same in the notation of the configuration. */
  readonly value: string;
  /** Files of earlier runs, the newest first. */
  readonly earlier: readonly EarlierFile[];
}

export interface EarlierFile {
  readonly file: string;
  readonly modifiedMs: number;
  readonly bytes: number;
}

/** The machine, as far as it decides where packages are and where data goes. */
export interface KeepingPlaces {
  readonly platform: string;
  readonly home: string;
  readonly env: Variables;
  readonly nodePath: string;
  readonly storeFolder: string;
  readonly serversFolder: string;
  /** Follows the key in the name of the server's folder, because several configurations can have the same key. */
  readonly suffix: string;
}

/** Names a file in the data folder for a server that would write beside its program. `undefined` for any other server. */
export function keepFile(run: Run, key: string, places: KeepingPlaces): KeptFile | undefined {
  const found = ownFileOf(run, places.env);
  if (found === undefined) return undefined;
  const { own, paths, name } = found;
  const folder = join(places.serversFolder, key + places.suffix);
  const folders = 'package' in run.program ? packageFolders(run.program.package, run.cwd, places) : [];
  const before = folders.flatMap((each) => firstFile(paths.map((path) => join(each, path))));
  const earlier = newestFirst([...before, ...firstFile([join(folder, name)])]);
  // A file of an earlier import is used if it is the newest, and otherwise stays as it is.
  const isTaken = firstFile([join(folder, name)]).length > 0 && earlier[0]?.file !== join(folder, name);
  const file = join(isTaken ? freeFolder(folder) : folder, name);
  return { variable: own.variable, file, value: inNotation(file, places.env), earlier };
}

/** Copies the newest earlier file, with its time of change. Returns the copied file, or `undefined` if there is none. */
export function copyKeptFile({ file, earlier: [newest] }: KeptFile): string | undefined {
  if (newest === undefined || newest.file === file) {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    return undefined;
  }
  copyWhole(newest.file, file, newest.modifiedMs);
  return newest.file;
}

/**
 * Replaces the path of the server's own file in a run by the name of the file, so that the entry of a client and the entry that was
 * imported from it count as the same server.
 */
export function withoutKeptFile(run: Run, { env, serversFolder }: KeepingPlaces): Run {
  const own = ownOf(run);
  if (own === undefined) return run;
  const value = literalValue(run.env[own.variable], env);
  const isKept = value !== undefined && normalize(value).startsWith(serversFolder + sep);
  const name = isKept ? basename(value) : ownFileOf(run, env)?.name;
  return name === undefined ? run : { ...run, env: { ...run.env, [own.variable]: `beside its program: ${name}` } };
}

/** Finds the file that an entry names with an absolute path, for a server that would otherwise write beside its program. */
export function ownFileNamed(run: Run, env: Variables): string[] {
  const value = literalValue(run.env[ownOf(run)?.variable ?? ''], env);
  return value !== undefined && isAbsolute(value) ? firstFile([value]).map(({ file }) => file) : [];
}

function ownOf({ program }: Run): OwnFile | undefined {
  return 'package' in program ? needsOf(program.package)?.ownFile : undefined;
}

/** The paths of the file in the package, and its name. `undefined` if the entry names a file elsewhere. */
function ownFileOf(run: Run, env: Variables): { own: OwnFile; paths: readonly string[]; name: string } | undefined {
  const own = ownOf(run);
  if (own === undefined) return undefined;
  const { variable, option, files, isRelativeToProgram = false } = own;
  const [usual] = files;
  if (option !== undefined && run.args.some((arg) => arg === option || arg.startsWith(`${option}=`))) return undefined;
  if (!run.env[variable]) return { own, paths: files, name: basename(usual) };
  const value = literalValue(run.env[variable], env);
  if (value === undefined || isAbsolute(value) || !isRelativeToProgram) return undefined;
  return { own, paths: [join(dirname(usual), value)], name: basename(value) };
}

/** The value of a text of an entry; `undefined` if it needs a variable that is not set, or a secret. */
export function literalValue(text: string | undefined, env: Variables): string | undefined {
  try {
    return text === undefined || /\$\{(?:secret|user):/.test(text) ? undefined : expand(text, env, () => '');
  } catch {
    return undefined;
  }
}

/** The folders of a package that npm, npx and Trunkline have installed. */
function packageFolders(name: string, cwd: string | undefined, places: KeepingPlaces): readonly string[] {
  const { home, storeFolder } = places;
  const stored = fileNamesIn(storeFolder).filter((folder) => folder.startsWith(`${name.replace('/', '+')}@`));
  const near = cwd === undefined ? [] : [join(resolve(home, expandHome(cwd, home)), 'node_modules')];
  const parents = [
    ...npxFolders(places).map((folder) => join(folder, 'node_modules')),
    ...globalModules(places),
    ...stored.map((folder) => join(storeFolder, folder, 'node_modules')),
    ...near,
  ];
  return [...new Set(parents)].map((parent) => join(parent, name));
}

export function npxFolders(places: KeepingPlaces): readonly string[] {
  const { platform, home, env } = places;
  const local = env.LOCALAPPDATA ?? join(home, 'AppData', 'Local');
  const usual = platform === 'win32' ? join(local, 'npm-cache') : join(home, '.npm');
  const caches = new Set([npmSetting('cache', places), usual].flatMap((cache) => cache ?? []));
  return [...caches].flatMap((cache) => {
    const folder = join(cache, '_npx');
    return fileNamesIn(folder).map((hash) => join(folder, hash));
  });
}

/** The folders with the global packages of all versions of Node that are likely to have some. */
function globalModules({ platform, home, env, nodePath }: KeepingPlaces): string[] {
  const named = npmSetting('prefix', { home, env });
  if (platform === 'win32') {
    const prefixes = [named, join(env.APPDATA ?? join(home, 'AppData', 'Roaming'), 'npm'), dirname(nodePath)];
    return prefixes.flatMap((prefix) => (prefix === undefined ? [] : [join(prefix, 'node_modules')]));
  }
  const versions = join(home, '.nvm', 'versions', 'node');
  const prefixes = [
    ...(named === undefined ? [] : [named]),
    ...[dirname(dirname(nodePath)), '/usr/local', '/opt/homebrew', join(home, '.npm-global')],
    ...fileNamesIn(versions).map((version) => join(versions, version)),
  ];
  return prefixes.map((prefix) => join(prefix, 'lib', 'node_modules'));
}

/** A folder among the settings of npm, in the environment or in the `.npmrc` of the user. */
function npmSetting(
  name: 'cache' | 'prefix',
  { home, env }: { readonly home: string; readonly env: Variables },
): string | undefined {
  const variable = Object.keys(env).find((each) => each.toLowerCase() === `npm_config_${name}`);
  const own = variable === undefined ? undefined : env[variable];
  if (own) return own;
  const line = new RegExp(`^\\s*${name}\\s*=\\s*"?([^"\\n\\r]+?)"?\\s*$`, 'm').exec(
    readTextFile(join(home, '.npmrc')) ?? '',
  );
  const path = line?.[1]?.replace(/^~(?=[\\/])|\$\{HOME\}/, () => home);
  return path !== undefined && isAbsolute(path) ? path : undefined;
}

function firstFile(files: readonly string[]): EarlierFile[] {
  for (const file of files) {
    const stat = statSync(file, { throwIfNoEntry: false });
    if (stat?.isFile() && stat.size > 0) return [{ file, modifiedMs: stat.mtimeMs, bytes: stat.size }];
  }
  return [];
}

function newestFirst(files: readonly EarlierFile[]): EarlierFile[] {
  return files.toSorted((one, other) => other.modifiedMs - one.modifiedMs);
}

function freeFolder(folder: string): string {
  for (let count = 2; ; count += 1) {
    const other = `${folder}-${count}`;
    if (statSync(other, { throwIfNoEntry: false }) === undefined) return other;
  }
}

/** A path in the notation of the configuration, with `${HOME}` for the home folder, so that it fits other machines of the user. */
function inNotation(path: string, { HOME }: Variables): string {
  const isBelow = HOME !== undefined && HOME !== '' && path.startsWith(HOME + sep);
  return isBelow ? `\${HOME}${escapeReferences(path.slice(HOME.length))}` : escapeReferences(path);
}
