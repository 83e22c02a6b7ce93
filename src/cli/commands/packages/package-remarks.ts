import { homedir } from 'node:os';
import { join } from 'node:path';
import type { ServerConfig } from '../../../config/resolve/config.js';
import { type NewestVersion, NpmFault, newestOf } from '../../../servers/packages/npm-client.js';
import {
  fitsNode,
  type InstalledTree,
  isNewer,
  needsOtherNode,
  nodeRangeIn,
  withInstallScripts,
} from '../../../servers/packages/package-needs.js';
import { installedTree, lockKey } from '../../../servers/packages/package-store.js';
import { carryOver } from '../../../servers/packages/written-files.js';
import type { PackageRequest } from '../../../spec/server-spec.js';
import { packageFolders } from '../../../state/user-files.js';
import { someOf } from '../../../wire/json/printable.js';
import { withoutHome } from '../../output.js';
import type { PackageWork } from './package-work.js';

/** The Node that runs Trunkline, which also runs the packages. */
const THIS_NODE = { version: process.versions.node, path: process.execPath };

/** Returns the reasons why an installed package may not work, each as one line with a remedy. */
export function remarksOnPackage(request: PackageRequest, tree: InstalledTree | undefined, node = THIS_NODE): string[] {
  return tree === undefined ? [] : [...nodeRemarks(request, tree, node), ...scriptRemarks(request, tree)];
}

/** Returns the remarks on the package of a server. The list is empty if the server runs no package. */
export function remarksOnServer({ package: used }: ServerConfig, configFile: string): string[] {
  if (used === undefined) return [];
  return remarksOnPackage(used.request, installedTree(used.request, used.found, { ...packageFolders(), configFile }));
}

/** Returns a remark if npm installs an older version, because the newest one needs another Node. */
export function remarksOnNewest(
  request: PackageRequest,
  newest: NewestVersion | undefined,
  installed: string | undefined,
  node = THIS_NODE,
): string[] {
  const range = nodeRangeIn(newest?.engines);
  if (newest === undefined || fitsNode(range, node.version)) return [];
  if (installed !== undefined && !isNewer(newest.version, installed)) return [];
  const then = request.version === undefined ? 'run `trunkline update`' : 'change `package`';
  return [
    `${visibleName(request)} ${newest.version} needs Node ${range}; ${thisIs(node)}: to use it, start Trunkline with a Node that fits, then ${then}`,
  ];
}

/** Copies the files that a server has written beside its program to the folder of another version, and returns lines about them. */
export function describeCarried(from: string, to: string, options?: { readonly newerWins: boolean }): string[] {
  const { carried, left, kept } = carryOver(from, to, options);
  const shown = (folder: string, path: string) => withoutHome(join(folder, path), homedir());
  return [
    ...carried.map((path) => `  carried over: ${shown(from, path)}, which the server has written`),
    ...kept.map((path) => `  the older data is kept in ${shown(to, path)}`),
    ...left.map(
      (path) => `  not carried over: ${shown(from, path)}, because the server has ${shown(to, path)}, which it uses`,
    ),
    ...(carried.length === 0 ? [] : [`  ${RESTART}`]),
  ];
}

const RESTART = 'What the earlier program writes until it has ended is copied at the next start.';

/** Returns the text below a table, in which servers with the same remarks share them. */
export function listRemarks(servers: readonly { readonly key: string; readonly remarks: readonly string[] }[]): string {
  const byText = new Map<string, string[]>();
  for (const { key, remarks } of servers) {
    if (remarks.length === 0) continue;
    const text = remarks.map((remark) => `  ${remark}`).join('\n');
    byText.set(text, [...(byText.get(text) ?? []), key]);
  }
  return [...byText].map(([text, keys]) => `\n${keys.join(', ')}:\n${text}\n`).join('');
}

/** Looks up the newest version after an installation, and returns the remark on it. Returns no remark if the lookup fails. */
export async function lookUpNewest(
  request: PackageRequest,
  installed: string,
  { npm, ending }: PackageWork,
): Promise<string[]> {
  try {
    return remarksOnNewest(request, newestOf(await npm.published(request, ending)), installed);
  } catch (error) {
    if (error instanceof NpmFault) return [];
    throw error;
  }
}

function nodeRemarks(request: PackageRequest, tree: InstalledTree, node: typeof THIS_NODE): string[] {
  const needs = needsOtherNode(tree, node.version);
  const [first] = needs;
  if (first === undefined) return [];
  const shown = visibleName(request);
  const who =
    first.name === request.name
      ? `${shown} ${first.version} needs Node ${first.range}`
      : `dependencies of ${shown} need another Node: ${someOf(needs.map(({ name, version, range }) => `${name} ${version} (Node ${range})`))}`;
  return [`${who}; ${thisIs(node)}: start Trunkline with a Node that fits, or name an older version in \`package\``];
}

function scriptRemarks(request: PackageRequest, tree: InstalledTree): string[] {
  if (request.installScripts) return [];
  const shown = visibleName(request);
  const names = withInstallScripts(tree).map((name) => (name === request.name ? shown : name));
  if (names.length === 0) return [];
  return [
    `the install scripts of ${someOf(names)} were not run, so files that they build or download may be missing; if the server needs them, set \`installScripts: true\` in its entry, then run \`trunkline install\``,
  ];
}

function thisIs({ version, path }: typeof THIS_NODE): string {
  return `this is ${version} at ${path}`;
}

/** Returns the name as the configuration writes it, if that contains a variable. */
function visibleName(request: PackageRequest): string {
  return request.shown === lockKey(request) ? request.name : request.shown;
}
