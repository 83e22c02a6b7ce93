import { homedir } from 'node:os';
import { posix, win32 } from 'node:path';
import { systemFault } from '../../host/errors/file-error.js';
import { describeKind, type ReadRules, readRegularFileSync, realPath, statOf } from '../../host/files/whole-file.js';
import { ConfigError } from './config-error.js';

type Variables = Readonly<Record<string, string | undefined>>;

export interface FindConfigOptions extends SearchOptions {
  /** Value of `--config`. */
  flag: string | undefined;
}

/** Decides whether the working folder is searched. Called only if no file was named, because it may refuse with a `ConfigError`. */
export type FolderSearch = boolean | (() => boolean);

interface ConfigUser {
  env: Variables;
  home: string;
  platform: NodeJS.Platform;
}

interface SearchOptions extends ConfigUser {
  cwd: string;
  /**
   * Whether `cwd` is searched for a file. The default is true. False if an MCP client starts Trunkline, because the client may
   * have opened a stranger's repository, and a configuration runs commands.
   */
  searchesFolder?: boolean | undefined;
  /** The path of the running program, for advice. Default: the command `trunkline`. */
  program?: string | undefined;
}

const FILE_NAMES = ['trunkline.yaml', 'trunkline.yml'];

/** Value of `--config` in a desktop extension whose user has chosen no file. The value may also be empty. */
const UNSET_IN_DESKTOP = /^\$\{user_config\.\w+\}$/;

function isName(named: string | undefined): named is string {
  return named !== undefined && named !== '' && !UNSET_IN_DESKTOP.test(named);
}

/**
 * Advice to create a configuration. The command names the running program, because Trunkline may run from a clone or in a
 * desktop program, without `trunkline` in PATH.
 */
function initAdvice(program = 'trunkline'): string {
  const command = /(?:^|[\\/])trunkline(?:\.cmd)?$/.test(program) ? 'trunkline init' : `node "${program}" init`;
  return `\`${command}\` in a terminal takes over the servers of your MCP clients`;
}

/**
 * The absolute path of the configuration file to use.
 *
 * A file that `--config` or `TRUNKLINE_CONFIG` names has to exist; no other file replaces it. Without a name, the configuration
 * folders of the user are searched, and before them the current folder, unless `searchesFolder` is false. Throws a
 * `ConfigError`, which lists the searched paths if no file was named.
 */
export function findConfigFile(options: FindConfigOptions): string {
  const { flag, env, cwd, platform, program } = options;
  const path = platform === 'win32' ? win32 : posix;
  for (const [source, named] of [
    ['--config', flag],
    ['TRUNKLINE_CONFIG', env.TRUNKLINE_CONFIG],
  ] as const) {
    if (!isName(named)) continue;
    if (cwd === '' && !path.isAbsolute(named))
      throw new ConfigError('config-not-found', undefined, [withoutFolder(source)]);
    const file = withUsualDrive(path.resolve(cwd, named));
    const stats = statOf(file);
    if (stats?.isFile() === true) return file;
    if (stats?.isDirectory() === true) {
      const [usual = ''] = FILE_NAMES;
      const inside = FILE_NAMES.find((name) => isFile(path.join(file, name)));
      const hint = `name the file in it: ${source}${source === '--config' ? ' ' : '='}${path.join(named, inside ?? usual)}`;
      const problem = {
        message: `${source} names a folder; expected a file`,
        hint: inside === undefined ? `create a file in it, such as ${usual}, and name that file` : hint,
      };
      throw new ConfigError('config-unreadable', file, [problem]);
    }
    if (stats !== undefined) throw notRegular(file, `${source} names ${describeKind(stats)}`);
    throw new ConfigError('config-not-found', file, [
      {
        message: `the file that ${source} names does not exist`,
        hint: `correct ${source}, or create the file: ${initAdvice(program)}`,
      },
    ]);
  }

  const candidates = candidateFiles(options);
  const found = candidates.find(isFile);
  if (found !== undefined) return withUsualDrive(found);
  const ignored = options.searchesFolder === false && cwd !== '' ? filesIn(cwd, platform).find(isFile) : undefined;
  const unused =
    ignored === undefined ? '' : `\n  not ${ignored}, because a file in the current folder does not count here`;
  const other = ignored === undefined ? '--config FILE or TRUNKLINE_CONFIG' : `--config ${ignored}`;
  throw new ConfigError('config-not-found', undefined, [
    {
      message: `no configuration file found; looked for\n${candidates.map((candidate) => `  ${candidate}`).join('\n')}${unused}`,
      hint: `create one: ${initAdvice(program)}; or name a file with ${other}`,
    },
  ]);
}

/** A path of Windows with a large letter for its drive. Editors start programs in `c:\`, and one file must not have two hubs. */
function withUsualDrive(file: string): string {
  return file.replace(/^[a-z]:(?=\\)/, (drive) => drive.toUpperCase());
}

function withoutFolder(source: string) {
  const message = `${source} names a file by its path in the current folder, which was removed or is closed for this program`;
  return { message, hint: `give ${source} the absolute path of the file` };
}

function isFile(path: string): boolean {
  return statOf(path)?.isFile() === true;
}

/** Whether the user has a configuration file besides one in the current folder. */
export function hasUserConfig(user: ConfigUser): boolean {
  return candidateFiles({ ...user, cwd: '', searchesFolder: false }).some(isFile);
}

/** The paths to try when neither `--config` nor `TRUNKLINE_CONFIG` is given, in order of preference. */
export function candidateFiles({ cwd, searchesFolder = true, env, home, platform }: SearchOptions): string[] {
  const folders = [...(searchesFolder && cwd !== '' ? [cwd] : []), ...userFolders(env, home, platform)];
  return folders.flatMap((folder) => filesIn(folder, platform));
}

/**
 * The configuration file of the project around a folder: the nearest one upwards, by the path behind symbolic links. The search ends at
 * the root of the repository, and before the home folder, because a file there would be about every project. Whether a file counts
 * is for the caller to decide: the nearest one may be a stranger's.
 */
export function findProjectFile(folder: string, home: string, platform = process.platform): string | undefined {
  const { dirname, join } = platform === 'win32' ? win32 : posix;
  const top = realPath(home);
  for (let at = realPath(folder); at !== undefined && at !== top; at = dirname(at) === at ? undefined : dirname(at)) {
    const found = filesIn(at, platform).find(isFile);
    if (found !== undefined || statOf(join(at, '.git')) !== undefined) return found;
  }
  return undefined;
}

/** The working folder of this process; '' if it was removed, or if macOS keeps this program out of it. */
export function currentFolder(): string {
  try {
    return process.cwd();
  } catch {
    return '';
  }
}

function filesIn(folder: string, platform: NodeJS.Platform): string[] {
  return FILE_NAMES.map((name) => (platform === 'win32' ? win32 : posix).join(folder, name));
}

/** The file to create for a user without a configuration file. */
export function userConfigFile({ env, home, platform }: ConfigUser): string {
  const [folder = home] = userFolders(env, home, platform);
  const [name = ''] = FILE_NAMES;
  return (platform === 'win32' ? win32 : posix).join(folder, name);
}

function userFolders(env: Variables, home: string, platform: NodeJS.Platform): string[] {
  if (platform === 'win32') {
    return [win32.join(env.APPDATA || win32.join(home, 'AppData', 'Roaming'), 'trunkline')];
  }
  // The XDG specification says to ignore relative paths.
  const xdg = env.XDG_CONFIG_HOME;
  const folders = [posix.join(xdg && posix.isAbsolute(xdg) ? xdg : posix.join(home, '.config'), 'trunkline')];
  if (platform === 'darwin') folders.push(posix.join(home, 'Library', 'Application Support', 'trunkline'));
  return folders;
}

/** Size limit of a configuration file, far above that of real files. Checking a file of this size takes seconds. */
const MAX_CONFIG_BYTES = 1024 * 1024;

/** Allows symbolic links, because dotfile managers put them in place of files. */
const RULES: ReadRules = { maxBytes: MAX_CONFIG_BYTES, followsLinks: true };

/** Reads the text of a configuration file. Throws a `ConfigError` if the file cannot be read. */
export function readConfigText(file: string): string {
  const found = readRegularFileSync(file, RULES);
  if (found.kind === 'read') {
    if (isUtf16(found.bytes)) throw new ConfigError('config-unreadable', file, [IN_UTF_16]);
    return found.bytes.toString();
  }
  if (found.kind === 'absent') {
    const problem = { message: 'the file does not exist', hint: 'create it, or name another file with --config FILE' };
    throw new ConfigError('config-not-found', file, [problem]);
  }
  const { fault, reason, cause } = found;
  switch (fault) {
    case 'not-regular':
      throw notRegular(file, `the file cannot be read: ${reason}`);
    case 'too-large':
      throw new ConfigError('config-unreadable', file, [
        {
          message: 'the file is larger than 1 MiB, which is the limit for a configuration',
          hint: 'remove what does not belong in it, or divide the servers among several configuration files',
        },
      ]);
    default: {
      const problem = { message: `the file cannot be used: ${reason}`, hint: systemFault(cause).hint };
      throw new ConfigError('config-unreadable', file, [problem], { cause });
    }
  }
}

/** Whether the text begins with the byte order mark of UTF-16, which `>` of Windows PowerShell writes. */
function isUtf16([first, second]: Uint8Array): boolean {
  return (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff);
}

const IN_UTF_16 = {
  message: 'the file is in the encoding UTF-16; expected UTF-8',
  hint: 'save it again as UTF-8: editors offer the encoding where they save a file',
};

/** Refuses a pipe or device, because the file is read again whenever it changes, and a pipe can be read only once. */
function notRegular(file: string, message: string): ConfigError {
  const hint = 'write the configuration into a file and name that file: Trunkline reads it again whenever it changes';
  return new ConfigError('config-unreadable', file, [{ message, hint }]);
}

/** The checksum of the text of a configuration file, so that a later look notices a change; `undefined` if it cannot be read. */
export function stampOf(file: string): number | undefined {
  try {
    return checksumOf(readConfigText(file));
  } catch {
    return undefined;
  }
}

/** FNV-1a with 32 bits. Written here because loading `node:crypto` would delay the start. */
export function checksumOf(text: string): number {
  let sum = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) sum = Math.imul(sum ^ text.charCodeAt(at), 0x01000193);
  return sum >>> 0;
}

/**
 * The configuration file of one run. Once a file is found, the folders are not searched again, because the answer to
 * `initialize` and all later answers must come from the same file.
 */
export class ConfigLocation {
  readonly #flag: string | undefined;
  readonly #searchesFolder: FolderSearch;
  #file: string | undefined;

  constructor({ config, searchesFolder = true }: LocationOptions) {
    this.#flag = config;
    this.#searchesFolder = searchesFolder;
  }

  /** The absolute path. Throws a `ConfigError` if there is no file. */
  get file(): string {
    const { env, platform, argv } = process;
    const [, program] = argv;
    const place = { env, cwd: currentFolder(), home: homedir(), platform };
    if (this.#file !== undefined) return this.#file;
    const search = this.#searchesFolder;
    const isNamed = [this.#flag, env.TRUNKLINE_CONFIG].some(isName);
    const searchesFolder = typeof search === 'boolean' || isNamed ? search !== false : search();
    this.#file = findConfigFile({ ...place, flag: this.#flag, searchesFolder, program });
    return this.#file;
  }
}

interface LocationOptions {
  /** Value of `--config`. */
  readonly config: string | undefined;
  /** See `FindConfigOptions`. */
  readonly searchesFolder?: FolderSearch | undefined;
}
