// Packages that scripts need and that are no dependencies of ours: kept out of package.json, under `node_modules/.cache`.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const CACHE = fileURLToPath(new URL('../node_modules/.cache/trunkline-conformance/', import.meta.url));
const NODE_TO_BRING = '24.21.0';

const run = promisify(execFile);

/** Returns the path of a `node` of at least this major version: ours, or one from npm. */
export async function bringNode(oldest) {
  const [major] = process.versions.node.split('.');
  if (Number(major) >= oldest) return process.execPath;
  return join(await installPackage('node', NODE_TO_BRING), 'bin', 'node');
}

/**
 * Returns the folder of the package, which is installed if it is not there yet. With a day, what it depends on is no
 * newer than that: a package of then, as it was used then.
 */
export async function installPackage(name, version, { before } = {}) {
  const prefix = join(CACHE, [name.replace(/^.*\//, ''), version, ...(before === undefined ? [] : [before])].join('-'));
  await install(prefix, [`${name}@${version}`], ['--ignore-scripts=false', ...beforeFlag(before)]);
  return join(prefix, 'node_modules', name);
}

/**
 * Returns the folder in whose `node_modules` all these packages are, as `name@version`. Their install scripts do not run,
 * because some download browsers.
 */
export async function installTogether(title, specs, { before } = {}) {
  const hash = createHash('sha256').update(specs.join(' ')).digest('hex').slice(0, 8);
  const prefix = join(CACHE, [title, hash, ...(before === undefined ? [] : [before])].join('-'));
  await install(prefix, specs, ['--ignore-scripts', ...beforeFlag(before)]);
  return prefix;
}

function beforeFlag(before) {
  return before === undefined ? [] : [`--before=${before}`];
}

async function install(prefix, specs, flags) {
  // npm writes this list when all else is in place.
  if (existsSync(join(prefix, 'node_modules', '.package-lock.json'))) return;
  process.stderr.write(`Installing ${specs.length > 1 ? `${specs.length} packages` : specs[0]} …\n`);
  mkdirSync(prefix, { recursive: true });
  const usual = ['--save-exact', '--no-audit', '--no-fund', '--loglevel=error'];
  await run('npm', ['install', '--prefix', prefix, ...usual, ...flags, ...specs], { cwd: prefix });
}
