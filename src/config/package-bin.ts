import { readFileSync, realpathSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import { z } from 'zod';
import { ServerFault } from './server-fault.js';

export interface PackageBinOptions {
  /** `name` or `name@1.2.3`, with variables expanded. */
  spec: string;
  /** How the file spells `spec`; shown in its place, as a variable's value is never shown. */
  shown: string;
  /** Which program of the package, when it has several. */
  bin: string | undefined;
  /** Where the configuration file is; searched first, upwards. */
  configFolder: string;
  /** Where Trunkline itself is installed; searched last, upwards. */
  ownFolder?: string;
}

/**
 * The absolute path of the program that an installed npm package offers, to be run with Node.
 *
 * Nothing is downloaded and npx is not involved. Throws a `ServerFault` that says what to do when the package, the
 * version or the program is not there.
 */
export function packageBin({
  spec,
  shown,
  bin,
  configFolder,
  ownFolder = import.meta.dirname,
}: PackageBinOptions): string {
  const install = `npm install --prefix "${configFolder}" ${shown}`;
  const { name, version } = parseSpec(spec, shown);
  const installed = installedPackages(name, [configFolder, ownFolder]);
  const [first] = installed;
  if (first === undefined) throw new ServerFault(`the package ${shown} is not installed`, `install it: ${install}`);
  const wanted = version === undefined ? first : installed.find((candidate) => candidate.version === version);
  if (wanted === undefined) {
    const there = `version ${first.version ?? 'unknown'}`;
    throw new ServerFault(
      `expected the package ${shown}; ${there} is installed`,
      `install the one asked for: ${install}`,
    );
  }
  return programOf(wanted, { bin, name, shown, install });
}

const SPEC = /^(?<name>(?:@[a-z0-9~-][\w.~-]*\/)?[a-z0-9~-][\w.~-]*)(?:@(?<version>.*))?$/i;
const EXACT_VERSION = /^\d+\.\d+\.\d+(?:[-+][\w.+-]+)?$/;

function parseSpec(spec: string, shown: string): { name: string; version: string | undefined } {
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
      'leave the version out to run whichever is installed',
    );
  }
  return { name, version };
}

const manifestSchema = z.object({
  version: z.string().optional(),
  bin: z.union([z.string(), z.record(z.string(), z.string())]).optional(),
});

interface InstalledPackage extends z.output<typeof manifestSchema> {
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

function readManifest(file: string): z.output<typeof manifestSchema> | undefined {
  try {
    return manifestSchema.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    // Absent, or left half-written by an interrupted installation: either way this is no installed package.
    return undefined;
  }
}

interface Wanted {
  bin: string | undefined;
  name: string;
  shown: string;
  install: string;
}

function programOf({ folder, bin: declared = {} }: InstalledPackage, { bin, name, shown, install }: Wanted): string {
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
  const reinstall = `install it again: ${install}`;
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
