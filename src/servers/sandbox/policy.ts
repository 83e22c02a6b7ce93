import { posix } from 'node:path';
import type { SandboxSpec } from '../../spec/server-spec.js';

/** Functions for the paths of Linux, because only Linux has the sandbox. */
const { basename, delimiter, dirname, isAbsolute, join, resolve, sep } = posix;

interface Program {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

export interface Files {
  /** The target of a symbolic link, as the link has it; `undefined` if the path is no link. */
  readonly linkAt: (path: string) => string | undefined;
  readonly kindOf: (path: string) => 'file' | 'folder' | 'other' | undefined;
  /** The first line of a file; '' if it cannot be read. */
  readonly firstLine: (path: string) => string;
}

/** The places that a policy depends on; absolute, without symbolic links. */
export interface Places {
  readonly home: string;
  /** The folder that the server has as its home. */
  readonly ownHome: string;
  readonly node: string;
  /** Trunkline's own files and folders, which stay closed in a folder that is opened. */
  readonly closed: readonly string[];
  /** Files and folders with certificates that variables of Trunkline's own environment name. */
  readonly certificates: readonly string[];
}

export interface Opening {
  readonly path: string;
  readonly access: 'read' | 'write';
  /** The reason, as a phrase. */
  readonly because: string;
  /** The copy that the server sees at the path, if it does not see the file itself. */
  readonly source?: string;
}

/** The files, names and sockets that a confined server can use. */
export interface Policy extends OpenedPlaces {
  /** Sorted, each folder before the openings within it. */
  readonly openings: readonly Opening[];
  /** Trunkline's own files and folders within an opening. The server sees them empty. */
  readonly closed: readonly string[];
  readonly home: string;
  readonly ownHome: string;
  readonly unixSockets: boolean;
  /** The path under which the program can be started. `undefined` if it was not found. */
  readonly command: string | undefined;
  /** The reason why there is no safe policy, as a clause. */
  readonly fault?: string;
}

/** The places that an entry opens to its server, and those that stay closed. */
export interface OpenedPlaces {
  readonly network: readonly { readonly name: string; readonly because: string }[];
  /** Files and folders in its arguments and variables that stay closed. The server sees nothing there. */
  readonly proposed: readonly string[];
  /** Sentences about places that stay closed, because the server or the author of its program could have chosen them. */
  readonly distrusted: readonly string[];
}

/** Folders of the system, all of whose files are open. */
export const SYSTEM_FOLDERS: readonly string[] = [
  ...['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/nix/store', '/gnu/store'],
  '/run/current-system/sw',
];

/**
 * Files of `/etc` that programs read to run: users, names, certificates, the linker, the time zone, fonts. The others hold
 * settings and keys of other programs.
 */
export const SYSTEM_FILES: readonly string[] = [
  ...['passwd', 'group', 'nsswitch.conf', 'hosts', 'host.conf', 'gai.conf', 'services', 'protocols', 'mime.types'],
  ...['ld.so.cache', 'ld.so.conf', 'ld.so.conf.d', 'alternatives', 'localtime', 'timezone', 'os-release', 'fonts'],
  ...['ssl/certs', 'ssl/cert.pem', 'ssl/openssl.cnf', 'ssl/ct_log_list.cnf', 'ca-certificates', 'crypto-policies'],
  ...['pki/tls/certs', 'pki/tls/cert.pem', 'pki/tls/openssl.cnf', 'pki/ca-trust/extracted', 'locale.alias'],
  ...['terminfo', 'magic', 'magic.mime', 'java', 'python3', 'debian_version', 'fedora-release', 'redhat-release'],
].map((name) => `/etc/${name}`);

/**
 * Decides what a confined program sees. `settings` are those of its entry. Nothing in a folder that the server may write decides
 * what else is open: no link, no first line of a program, no file of a project.
 */
export function policyOf(program: Program, settings: SandboxSpec, places: Places, files: Files): Policy {
  const finder = new Finder(program, places, files, settings.write);
  const command = finder.locate(program.command);
  finder.openProgram(places.node, 'the Node of Trunkline');
  if (command !== undefined) finder.openProgram(command, 'its program');
  finder.openScripts();
  if (settings.opensFolder) finder.openFolder(program.cwd, 'its working folder');
  for (const name of CERTIFICATE_VARIABLES) {
    const path = program.env[name] ?? '';
    if (places.certificates.includes(path)) finder.open(path, 'read', `the certificates of ${name}`);
  }
  for (const path of settings.read) finder.open(path, 'read', '`read` of its entry');
  for (const path of settings.write) finder.open(path, 'write', '`write` of its entry');
  const openings = withoutCovered(finder.openings);
  const closed = places.closed.filter((path) => openings.some((opening) => isWithin(path, opening.path)));
  const exposed = openings.find(({ path, access }) => access === 'write' && closed.some((own) => isWithin(own, path)));
  return {
    openings: openings.filter(({ path }) => !closed.includes(path)),
    closed,
    home: places.home,
    ownHome: places.ownHome,
    network: settings.network.map((name) => ({ name, because: '`network` of its entry' })),
    unixSockets: settings.unixSockets,
    command: command === undefined ? undefined : finder.startable(command, openings),
    proposed: finder.proposals(openings),
    distrusted: finder.distrusted,
    ...(exposed && {
      fault: `\`write\` opens ${exposed.path}, which has files of Trunkline itself; name the folders in it that the server needs`,
    }),
  };
}

/** Whether a path is this folder or in it. */
export function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}

export const CERTIFICATE_VARIABLES = ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'SSL_CERT_DIR', 'REQUESTS_CA_BUNDLE'];

/** Files whose folder is a project, with everything that its program loads. */
const PROJECT_FILES = [
  ...['package.json', 'pyproject.toml', 'setup.py', 'requirements.txt', 'deno.json', 'go.mod', 'Cargo.toml', 'Gemfile'],
];
/** Most links in a row that the system follows. */
const MAX_LINKS = 40;
const SCRIPT = /\.(?:[cm]?[jt]s|[jt]sx|py|pyz|rb|pl|php|lua|sh|jar|wasm)$/i;
const INTERPRETER = /^(?:node|nodejs|bun|deno|python[\d.]*|pypy[\d.]*|ruby|perl|php|java|lua|sh|bash|zsh|tsx)$/;
/** Options of `uv` and of other programs whose value is the folder of a project to run. */
const PROJECT_OPTION = /^--(?:directory|project|prefix)$/;

class Finder {
  readonly openings: Opening[] = [];
  readonly distrusted: string[] = [];
  readonly #program: Program;
  readonly #places: Places;
  readonly #files: Files;
  /** Folders that the server may write, without links. */
  readonly #writable: string[] = [];

  constructor(program: Program, places: Places, files: Files, writable: readonly string[]) {
    this.#program = program;
    this.#places = places;
    this.#files = files;
    // Resolves a folder before those in it, because the server could replace these by links.
    for (const path of writable.toSorted((one, other) => depthOf(one) - depthOf(other))) {
      const real = this.#realPath(path);
      if (real !== undefined) this.#writable.push(real);
    }
  }

  /**
   * The path without links; `undefined` if nothing is there, or if a link that the server could have made leads out of the folders
   * that it may write.
   */
  #realPath(path: string): string | undefined {
    if (path === '') return undefined;
    const real = this.#follow(path, 0);
    return real === undefined || this.#files.kindOf(real) === undefined ? undefined : real;
  }

  #follow(path: string, depth: number): string | undefined {
    if (depth > MAX_LINKS) return undefined;
    let at: string = sep;
    for (const name of resolve(path).split(sep).filter(Boolean)) {
      const next = join(at, name);
      const target = this.#files.linkAt(next);
      const real = target === undefined ? next : this.#follow(resolve(at, target), depth + 1);
      if (real === undefined) return undefined;
      if (target !== undefined && this.#isOwn(at) && !this.#isOwn(real) && !isOfSystem(real)) {
        this.distrusted.push(
          `${next} is a link to ${real}, which stays closed, because the server can change the link.`,
        );
        return undefined;
      }
      at = real;
    }
    return at;
  }

  /** Whether the server may write in a folder. */
  #isOwn(path: string): boolean {
    return this.#writable.some((folder) => isWithin(path, folder));
  }

  locate(command: string): string | undefined {
    const { cwd, env } = this.#program;
    const isPath = command.includes(sep);
    const folders = (env.PATH ?? '').split(delimiter).filter(isAbsolute);
    const candidates = isPath ? [resolve(cwd, command)] : folders.map((folder) => join(folder, command));
    return candidates.find((path) => this.#files.kindOf(path) === 'file');
  }

  /** The path under which the program can be started: a link in a closed folder is replaced by its target. */
  startable(command: string, openings: readonly Opening[]): string {
    const isSeen = (path: string) => isOfSystem(path) || openings.some((opening) => isWithin(path, opening.path));
    return isSeen(dirname(command)) ? command : (this.#realPath(command) ?? command);
  }

  open(path: string, access: Opening['access'], because: string): void {
    const real = this.#realPath(path);
    if (real === undefined) return;
    if (!isOfSystem(real) || access === 'write') this.openings.push({ path: real, access, because });
    // Opens the path in the entry, too, because the server looks for the files there.
    if (real !== resolve(path) && !isOfSystem(resolve(path)))
      this.openings.push({ path: resolve(path), access, because });
  }

  /** Opens a folder, unless it is the home folder or above it, or a link to one of those. */
  openFolder(path: string, because: string): void {
    if (!this.#isBroad(this.#realPath(path) ?? path)) this.open(path, 'read', because);
  }

  /** Opens a program, its installation, and the interpreter that its first line names. */
  openProgram(path: string, because: string, depth = 0): void {
    const real = this.#realPath(path);
    if (real === undefined || depth > 5) return;
    const environment = this.#environmentOf(path);
    if (environment !== undefined) this.open(environment, 'read', `${because}, in an environment of Python`);
    const line = this.#files.firstLine(real);
    const interpreter = interpreterIn(line);
    if (!isOfSystem(real)) this.#openInstallation(real, because, interpreter !== undefined || SCRIPT.test(real));
    const found = interpreter === undefined ? undefined : this.locate(interpreter);
    if (found === undefined || found === path) return;
    const doubt = this.#isOwn(real)
      ? 'the server can change the line'
      : !interpreter?.includes(sep) || INTERPRETER.test(basename(this.#realPath(found) ?? ''))
        ? undefined
        : 'it is no interpreter that Trunkline knows';
    if (doubt === undefined) this.openProgram(found, because, depth + 1);
    else if (!isOfSystem(found) && found !== this.#places.node)
      this.distrusted.push(`${real} names ${found} in its first line, which stays closed, because ${doubt}.`);
  }

  /** Opens the scripts among the arguments, with their projects. */
  openScripts(): void {
    const { command, args, cwd } = this.#program;
    const runsScript = INTERPRETER.test(basename(command));
    const first = runsScript ? args.findIndex((arg) => !arg.startsWith('-')) : -1;
    const named = args.flatMap((arg, index) => {
      const path = resolve(cwd, arg);
      const kind = arg === '' ? undefined : this.#files.kindOf(path);
      const option = args[index - 1] ?? '';
      if (kind === 'folder' && PROJECT_OPTION.test(option)) return [{ path, option }];
      return kind === 'file' && (index === first || SCRIPT.test(arg)) ? [{ path, option: '' }] : [];
    });
    // Trusts no link if it is unclear which of them the program runs, because the program could have made the link.
    const isDoubtful = named.length > 1 || (command.includes(sep) && !runsScript);
    for (const { path, option } of named) {
      if (isDoubtful && this.#isForeignLink(path)) continue;
      if (option !== '') {
        this.openFolder(path, `the project of \`${option}\``);
        continue;
      }
      const real = this.#realPath(path);
      if (real === undefined) continue;
      if (real !== path) this.open(path, 'read', 'a script of its arguments');
      if (!isOfSystem(real)) this.#openInstallation(real, 'a script of its arguments', true);
    }
  }

  /** Files and folders in arguments and variables that are not open. */
  proposals(openings: readonly Opening[]): readonly string[] {
    const { args, env, cwd } = this.#program;
    const { home } = this.#places;
    const texts = [...args.map((arg) => arg.replace(/^--?[\w-]+=/, '')), ...Object.entries(env).flatMap(ownValue)];
    const paths = texts
      .filter((text) => /^(?:~?\/|\.{1,2}(?:\/|$))/.test(text))
      .map((text) => resolve(cwd, text.replace(/^~(?=\/)/, home)));
    const isOpen = (path: string) => isOfSystem(path) || openings.some((opening) => isWithin(path, opening.path));
    const exist = paths.filter((path) => path !== sep && this.#files.kindOf(path) !== undefined && !isOpen(path));
    return [...new Set(exist)];
  }

  /** The root of the virtual environment of Python that a path is in, by the name of its program. */
  #environmentOf(path: string): string | undefined {
    const root = dirname(dirname(path));
    return this.#files.kindOf(join(root, 'pyvenv.cfg')) === 'file' && !this.#isBroad(root) ? root : undefined;
  }

  #openInstallation(file: string, because: string, isScript: boolean): void {
    const [modules] = /^.*?\/node_modules(?=\/)/.exec(file) ?? [];
    if (modules !== undefined) {
      this.open(modules, 'read', `${because}, with its packages`);
      return;
    }
    const above = ancestorsOf(file).filter((folder) => !this.#isBroad(folder));
    const prefix = dirname(dirname(file));
    const isPrefix = basename(dirname(file)) === 'bin' && this.#files.kindOf(join(prefix, 'lib')) === 'folder';
    if (isPrefix && above.includes(prefix)) {
      this.open(prefix, 'read', because);
      return;
    }
    if (!isScript) {
      this.open(file, 'read', because);
      return;
    }
    const isOwn = this.#isOwn(file);
    const project = above.find(
      (folder) => this.#isOwn(folder) === isOwn && PROJECT_FILES.some((name) => this.#files.kindOf(join(folder, name))),
    );
    const [folder] = above;
    const isAlone = folder === undefined || this.#places.closed.some((path) => dirname(path) === folder);
    this.open(
      project ?? (isAlone ? file : folder),
      'read',
      project === undefined ? because : `${because}, with its project`,
    );
    // A package of a workspace finds those that it needs in a folder above.
    if (project === undefined && !isOwn) return;
    for (const higher of above)
      if (project === undefined || !isWithin(higher, project)) this.#openModules(higher, because);
  }

  #openModules(folder: string, because: string): void {
    const modules = join(folder, 'node_modules');
    if (this.#files.kindOf(modules) !== 'folder') return;
    if (!this.#isForeignLink(modules)) this.open(modules, 'read', `${because}, with its packages`);
  }

  /** Whether this is a link. Notes that it stays closed, because the author of a program could let it lead to any place. */
  #isForeignLink(path: string): boolean {
    const target = this.#files.linkAt(path);
    if (target === undefined) return false;
    this.distrusted.push(
      `${path} stays closed, because it is a link to ${target}, which \`read\` of the entry does not name.`,
    );
    return true;
  }

  /** Whether a folder holds much that has nothing to do with one server: the home folder, and folders above it. */
  #isBroad(folder: string): boolean {
    const { home, closed } = this.#places;
    const others = [join(home, '.local'), '/tmp', '/var/tmp', ...closed];
    return isWithin(home, folder) || dirname(folder) === sep || others.includes(folder);
  }
}

function ownValue([name, value]: readonly [string, string]): string[] {
  return name === 'PATH' || name === 'HOME' || name === 'SHELL' ? [] : [value];
}

/** The folders above a file, the nearest first. */
function ancestorsOf(file: string): string[] {
  const found: string[] = [];
  for (let folder = dirname(file); folder !== dirname(folder); folder = dirname(folder)) found.push(folder);
  return found;
}

/** The program in the first line of a script, as in `#!/usr/bin/env -S node --flag`. */
function interpreterIn(line: string): string | undefined {
  const [program, ...words] = (/^#!\s*(.*)$/.exec(line)?.[1] ?? '').trim().split(/\s+/);
  if (program === undefined || program === '') return undefined;
  if (basename(program) !== 'env') return program;
  return words.find((word) => !word.startsWith('-') && !word.includes('='));
}

function isOfSystem(path: string): boolean {
  return [...SYSTEM_FOLDERS, ...SYSTEM_FILES].some((folder) => isWithin(path, folder));
}

/** Sorts folders before the openings within them, and leaves out openings within one that has at least the same rights. */
function withoutCovered(openings: readonly Opening[]): Opening[] {
  const sorted = openings.toSorted((one, other) => depthOf(one.path) - depthOf(other.path) || rank(one) - rank(other));
  const kept: Opening[] = [];
  for (const opening of sorted) {
    const above = kept.filter(({ path }) => isWithin(opening.path, path));
    const isCovered = above.some(({ access }) => access === 'write') || (opening.access === 'read' && above.length > 0);
    if (!isCovered) kept.push(opening);
  }
  return kept;
}

function rank({ access }: Opening): number {
  return access === 'write' ? 0 : 1;
}

function depthOf(path: string): number {
  return path === sep ? 0 : path.split(sep).length - 1;
}
