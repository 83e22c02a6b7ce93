import { satisfies } from 'semver';
import { findNpm } from '../packages/npm-client.js';
import { type Finding, finding } from './finding.js';
import type { Machine } from './machine.js';

/** As in `engines` of our package.json. */
const NEEDED = '^20.19.0 || >=22.3.0';

/** Folders of version managers that are removed some day, each with the cause of the removal. */
const VANISHING: readonly (readonly [sign: RegExp, why: string])[] = [
  [/[\\/]fnm_multishells[\\/]/, 'fnm removes this folder when the shell ends'],
  [/[\\/]nvm[\\/](?:versions[\\/]node[\\/])?v?\d/, 'nvm removes this folder when you uninstall the version'],
  [/[\\/]Cellar[\\/]node(?:@\d+)?[\\/]/, 'Homebrew removes this folder with the next version'],
  [/[\\/]\.?(?:asdf|mise)[\\/]installs[\\/]/, 'the version manager removes this folder with the version'],
];

/** Whether this Node can run Trunkline, now and tomorrow. */
export function checkNode({ node }: Pick<Machine, 'node'>): Finding[] {
  const evidence = [node.path];
  const found: Finding[] = [];
  if (!satisfies(node.version, NEEDED)) {
    found.push(finding('TL-NODE-OLD', `Node ${node.version} is too old; Trunkline needs ${NEEDED}`, { evidence }));
  }
  if (node.isElectron) {
    found.push(finding('TL-NODE-ELECTRON', `Node ${node.version} is a part of a desktop program`, { evidence }));
  }
  const why = whyVanishing(node.path);
  if (why !== undefined) found.push(finding('TL-NODE-VANISHING', `the path of Node may vanish: ${why}`, { evidence }));
  return found.length > 0 ? found : [finding('TL-NODE-OK', `Node ${node.version} fits`, { evidence })];
}

/** Why the program at this path may disappear; `undefined` if there is no sign of it. */
export function whyVanishing(path: string): string | undefined {
  return VANISHING.find(([sign]) => sign.test(path))?.[1];
}

export interface NpmFacts {
  /** The file of npm; `undefined` if there is none. */
  readonly file: string | undefined;
  /** Asks npm whether it reaches its registry. Resolves with its errors, none if it does. */
  readonly ping: () => Promise<readonly string[]>;
  /** Whether the configuration has servers with a package. */
  readonly isNeeded: boolean;
}

/** Whether packages can be installed. Asks the registry only if packages are used, and never offline. */
export async function checkNpm(machine: Pick<Machine, 'isOffline'>, npm: NpmFacts): Promise<Finding[]> {
  if (npm.file === undefined) return [finding('TL-NPM-MISSING', 'no npm next to this Node or in PATH')];
  const evidence = [npm.file];
  if (machine.isOffline || !npm.isNeeded) return [finding('TL-NPM-OK', 'npm is there', { evidence })];
  const errors = await npm.ping();
  if (errors.length === 0) return [finding('TL-NPM-OK', 'npm is there and reaches its registry', { evidence })];
  return [finding('TL-NPM-UNREACHABLE', 'npm does not reach its registry', { evidence: errors.slice(0, 3) })];
}

/** The npm that would install packages. */
export function npmOf({ node, env }: Pick<Machine, 'node' | 'env'>): string | undefined {
  return findNpm(node.path, env.PATH ?? env.Path);
}
