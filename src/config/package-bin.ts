import { readFileSync, realpathSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import { isRecord } from '../json/is-record.js';
import type { PackageRequest } from '../supervision/child-spec.js';
import type { FoundPackage } from './config.js';
import { ServerFault } from './server-fault.js';

export interface FindPackageOptions {
  readonly request: PackageRequest;
  /** Where the configuration file is; searched first, upwards. */
  readonly configFolder: string;
  /** Where Trunkline itself is installed; searched after that, upwards. */
  readonly ownFolder?: string;
  /** What Trunkline has installed itself; asked last. */
  readonly store?: InstalledPackages;
}

/** The packages that Trunkline has installed itself. */
export interface InstalledPackages {
  /** Where the packages of a request are, and which version it is; `undefined` if they are yet to be installed. */
  find(request: PackageRequest): { readonly folder: string; readonly version: string } | undefined;
}

/**
 * The program of an npm package, if it is there; `undefined` when the package has yet to be installed.
 *
 * Nothing is downloaded and npx is not involved. Throws a `ServerFault` that says what to do when the package is there
 * but offers no such program.
 */
export function findPackage({
  request,
  configFolder,
  ownFolder = import.meta.dirname,
  store,
}: FindPackageOptions): FoundPackage | undefined {
  const { name, version } = request;
  const near = installedPackages(name, [configFolder, ownFolder]).find(
    (candidate) => version === undefined || candidate.version === version,
  );
  if (near !== undefined) {
    const reinstall = `install it again: npm install --prefix "${configFolder}" ${request.shown}`;
    return { place: 'near', version: near.version, program: programOf(near, request, reinstall) };
  }
  const stored = store?.find(request);
  if (stored === undefined) return undefined;
  return { place: 'store', version: stored.version, program: programIn(stored.folder, request) };
}

/** The program of a package that was installed into a folder of its own. Throws a `ServerFault` when it has none. */
export function programIn(folder: string, request: PackageRequest): string {
  const at = join(folder, 'node_modules', request.name);
  const remove = `remove the folder ${folder}, then run: trunkline install`;
  const manifest = readManifest(join(at, 'package.json'));
  if (manifest === undefined) throw new ServerFault(`the package ${request.shown} is missing from its folder`, remove);
  return programOf({ ...manifest, folder: at }, request, remove);
}

const SPEC = /^(?<name>(?:@[a-z0-9~-][\w.~-]*\/)?[a-z0-9~-][\w.~-]*)(?:@(?<version>.*))?$/i;
const EXACT_VERSION = /^\d+\.\d+\.\d+(?:[-+][\w.+-]+)?$/;

/**
 * Name and version of a `package:`, with variables expanded. `shown` is how the file spells it, which stands in
 * messages in its place, as a variable's value is never shown.
 */
export function parsePackage(spec: string, shown: string): Pick<PackageRequest, 'name' | 'version'> {
  const { name, version } = SPEC.exec(spec)?.groups ?? {};
  if (name === undefined) {
    throw new ServerFault(
      `${shown} is not the name of a package; expected \`name\` or \`name@1.2.3\``,
      'to run a file, use `command: node` and `args: [FILE]`',
    );
  }
  if (version !== undefined && !EXACT_VERSION.test(version)) {
    throw new ServerFault(
      `${shown} asks for no exact version; expected \`name\` or \`name@1.2.3\``,
      'leave the version out to run whichever is installed, or the newest',
    );
  }
  return { name, version };
}

/** What matters here of a package.json. */
interface Manifest {
  version?: string;
  bin?: string | Readonly<Record<string, string>>;
}

interface InstalledPackage extends Manifest {
  folder: string;
}

/** Nearest first. */
function installedPackages(name: string, starts: readonly string[]): InstalledPackage[] {
  const folders = new Set(starts.flatMap(upwards).map((folder) => join(folder, 'node_modules', name)));
  return [...folders].flatMap((folder) => {
    const manifest = readManifest(join(folder, 'package.json'));
    return manifest === undefined ? [] : [{ ...manifest, folder }];
  });
}

function upwards(folder: string): string[] {
  const parent = dirname(folder);
  return parent === folder ? [folder] : [folder, ...upwards(parent)];
}

/** Absent, or left half-written by an interrupted installation: either way this is no installed package. */
function readManifest(file: string): Manifest | undefined {
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return undefined;
  }
  if (!isRecord(value)) return undefined;
  const { version, bin } = value;
  const isSound =
    isTextOrAbsent(version) && (isTextOrAbsent(bin) || (isRecord(bin) && Object.values(bin).every(isText)));
  return isSound ? (value as Manifest) : undefined;
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function isTextOrAbsent(value: unknown): boolean {
  return value === undefined || isText(value);
}

function programOf(
  { folder, bin: declared = {} }: InstalledPackage,
  { bin, name, shown }: PackageRequest,
  reinstall: string,
): string {
  const unscoped = name.slice(name.indexOf('/') + 1);
  const programs = new Map(typeof declared === 'string' ? [[unscoped, declared]] : Object.entries(declared));
  const names = [...programs.keys()];
  if (names.length === 0) {
    throw new ServerFault(
      `the package ${shown} has no program to run; expected a \`bin\` in its package.json`,
      'if it is a server all the same, use `command: node` and `args: [FILE]`',
    );
  }
  const chosen = bin ?? (programs.has(unscoped) || names.length > 1 ? unscoped : names[0]);
  const file = programs.get(chosen ?? '');
  if (file === undefined) {
    const message =
      bin === undefined
        ? `the package ${shown} has several programs; expected a choice`
        : `the package ${shown} has no program ${bin}; expected one that it has`;
    throw new ServerFault(message, `set \`bin:\` to one of ${names.join(', ')}`);
  }
  const root = realPath(folder);
  const target = realPath(join(folder, file));
  if (root === undefined || target === undefined) {
    throw new ServerFault(`the program ${chosen} of the package ${shown} is missing from its folder`, reinstall);
  }
  if (!target.startsWith(root + sep)) {
    throw new ServerFault(`the program ${chosen} of the package ${shown} lies outside its folder`, reinstall);
  }
  return target;
}

function realPath(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    // Missing or unreadable: there is nothing to run.
    return undefined;
  }
}
