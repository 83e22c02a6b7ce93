import gt from 'semver/functions/gt.js';
import parse from 'semver/functions/parse.js';
import satisfies from 'semver/functions/satisfies.js';
import validRange from 'semver/ranges/valid.js';
import { isRecord } from '../../wire/json/json-value.js';

/** A version of a package, and the versions of Node that it needs: `engines.node` of its package.json. */
export interface NeedsNode {
  readonly name: string;
  readonly version: string;
  readonly range: string;
}

/** The range of Node in `engines`; `undefined` if it is missing or not a range for npm. */
export function nodeRangeIn(engines: unknown): string | undefined {
  const range = isRecord(engines) ? engines.node : undefined;
  return typeof range === 'string' && validRange(range) !== null ? range : undefined;
}

/** Whether a version of Node is in the range; true without a range. As for npm, a prerelease of Node counts as the release. */
export function fitsNode(range: string | undefined, nodeVersion: string): boolean {
  return range === undefined || satisfies(nodeVersion, range, { includePrerelease: true });
}

/** Whether a version is newer than another one. False if npm would not accept one of them. */
export function isNewer(version: string, than: string): boolean {
  return parse(version) !== null && parse(than) !== null && gt(version, than);
}

export interface InstalledTree {
  readonly name: string;
  /** `packages` of npm's lock file. */
  readonly tree: Readonly<Record<string, unknown>>;
  /** Whether the folder of an entry exists, because npm leaves out optional packages for other machines. */
  readonly isPresent: (path: string) => boolean;
}

/** The packages of a tree that need another version of Node. The package itself comes first. */
export function needsOtherNode({ name, tree, isPresent }: InstalledTree, nodeVersion: string): NeedsNode[] {
  const found = Object.entries(tree).flatMap(([path, entry]) => {
    if (!isRecord(entry) || typeof entry.version !== 'string') return [];
    const range = nodeRangeIn(entry.engines);
    if (range === undefined || fitsNode(range, nodeVersion) || !isPresent(path)) return [];
    return { name: nameAt(path), version: entry.version, range, isItself: path === `node_modules/${name}` };
  });
  found.sort((one, other) => Number(other.isItself) - Number(one.isItself));
  return found.map(({ isItself: _, ...needs }) => needs);
}

export function withInstallScripts({ tree, isPresent }: InstalledTree): string[] {
  const scripted = Object.entries(tree).filter(
    ([path, entry]) => isRecord(entry) && entry.hasInstallScript === true && isPresent(path),
  );
  return [...new Set(scripted.map(([path]) => nameAt(path)))];
}

/** The name of the package in a folder such as `node_modules/a/node_modules/@scope/b`. */
function nameAt(path: string): string {
  return path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
}
