import { join, sep } from 'node:path';
import satisfies from 'semver/functions/satisfies.js';
import { readJsonFile, realPath } from '../../host/files/whole-file.js';
import type { PackageName, PackageRequest } from '../../spec/server-spec.js';
import { isRecord } from '../../wire/json/json-value.js';
import { ServerFault } from '../file/config-error.js';
import type { FoundPackage } from './config.js';

export interface FindPackageOptions {
  readonly request: PackageRequest;
  /** Folder of the configuration file. Its `node_modules` are searched first. */
  readonly configFolder: string;
  /** Folder of Trunkline itself. Its `node_modules`, which Trunkline is built and tested with, are never searched. */
  readonly ownFolder: string;
  /** Packages in Trunkline's own store. Searched last. */
  readonly store?: InstalledPackages;
}

/** The packages in Trunkline's own store. */
export interface InstalledPackages {
  /** Folder and version of a requested package; `undefined` if it is not installed. */
  find(request: PackageRequest): { readonly folder: string; readonly version: string } | undefined;
}

/**
 * Finds the program of an npm package: next to the configuration file, or in the store. Returns `undefined` if the package
 * is in neither. No other folder is searched, so that a program that runs is either locked or chosen by the owner of the
 * configuration.
 *
 * Downloads nothing and does not use npx. Throws a `ServerFault` if the package is installed but has no such program.
 */
export function findPackage({ request, configFolder, ownFolder, store }: FindPackageOptions): FoundPackage | undefined {
  const { name, version } = request;
  const near = realPath(configFolder) === realPath(ownFolder) ? undefined : installedIn(configFolder, name);
  if (near !== undefined && (version === undefined || near.version === version || isInRange(near.version, version))) {
    const reinstall = `reinstall the package: npm install --prefix "${configFolder}" ${request.shown}`;
    return { location: 'near', version: near.version, program: programOf(near, request, reinstall) };
  }
  const stored = store?.find(request);
  if (stored === undefined) return undefined;
  return { location: 'store', version: stored.version, program: programIn(stored.folder, request) };
}

/** The program of a package that is installed into a separate folder. Throws a `ServerFault` if it has none. */
export function programIn(folder: string, request: PackageRequest): string {
  const remove = `move the folder ${folder} away, because the server may have written files there, then run: trunkline install`;
  const installed = installedIn(folder, request.name);
  if (installed === undefined)
    throw new ServerFault(`the package ${request.shown} is missing from its installation folder`, remove);
  return programOf(installed, request, remove);
}

const SPEC = /^(?<name>(?:@[a-z0-9~-][\w.~-]*\/)?[a-z0-9~-][\w.~-]*)(?:@(?<version>.*))?$/i;
export const EXACT_VERSION = /^\d+\.\d+\.\d+(?:[-+][\w.+-]+)?$/;

/** Splits a text such as `name@1.2.3`; `undefined` if it is not the name of a package. */
export function packageParts(
  spec: string,
): { readonly name: string; readonly version: string | undefined } | undefined {
  const { name, version } = SPEC.exec(spec)?.groups ?? {};
  return name === undefined ? undefined : { name, version };
}

/** Characters of ranges and dist-tags. Excludes everything that npm would read as an address, a folder or an alias. */
const RANGE_OR_TAG = /^(?=.*[\w*])[\w.*^~<>=|+ -]+$/;

/**
 * Splits a `package:` with expanded variables into name and version. Messages quote `shown`, the text of the file, because
 * they must not contain the value of a variable.
 */
export function parsePackage(spec: string, shown: string): PackageName {
  const parts = packageParts(spec);
  if (parts === undefined) {
    throw new ServerFault(
      `${shown} is not the name of an npm package; expected \`name\`, \`name@1.2.3\` or \`name@latest\``,
      'to run a file, use `command: node` and `args: [FILE]`',
    );
  }
  if (parts.version !== undefined && !RANGE_OR_TAG.test(parts.version)) {
    throw new ServerFault(
      `${shown} does not name a version; expected a version (\`name@1.2.3\`), a range (\`name@^1.2\`) or a tag (\`name@latest\`)`,
      'leave the version out to run the installed version, or the newest one if none is installed',
    );
  }
  return parts;
}

/** Whether the request names one exact version, which needs no lookup and no update. */
export function isExact(request: PackageRequest): request is PackageRequest & { readonly version: string } {
  return request.version !== undefined && EXACT_VERSION.test(request.version);
}

/** Whether a version is in a range. False for a tag, because only the registry knows the version of a tag. */
function isInRange(version: string | undefined, range: string): boolean {
  if (version === undefined || EXACT_VERSION.test(range)) return false;
  return satisfies(version, range);
}

/** The members of a package.json that are used here. */
interface Manifest {
  version?: string;
  bin?: string | Readonly<Record<string, string>>;
}

interface InstalledPackage extends Manifest {
  folder: string;
}

/** The package in the `node_modules` of a folder. */
function installedIn(parent: string, name: string): InstalledPackage | undefined {
  const folder = join(parent, 'node_modules', name);
  const manifest = readManifest(join(folder, 'package.json'));
  return manifest && { ...manifest, folder };
}

/** `undefined` if the file is missing or incomplete, as after an interrupted installation. */
function readManifest(file: string): Manifest | undefined {
  const value = readJsonFile(file);
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
      'to run a file of the package, use `command: node` and `args: [FILE]`',
    );
  }
  const chosen = bin ?? (programs.has(unscoped) || names.length > 1 ? unscoped : names[0]);
  const file = programs.get(chosen ?? '');
  if (file === undefined) {
    const message =
      bin === undefined
        ? `the package ${shown} has several programs, none of which has the name of the package`
        : `the package ${shown} has no program \`${bin}\``;
    throw new ServerFault(message, `set \`bin:\` to one of ${names.join(', ')}`);
  }
  const root = realPath(folder);
  const target = realPath(join(folder, file));
  if (root === undefined || target === undefined) {
    throw new ServerFault(`the file of the program ${chosen} is missing from the package ${shown}`, reinstall);
  }
  if (!target.startsWith(root + sep)) {
    throw new ServerFault(`the file of the program ${chosen} is outside the folder of the package ${shown}`, reinstall);
  }
  return target;
}
