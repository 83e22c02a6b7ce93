// What the comparisons need that is no dependency of ours: kept out of package.json, under `node_modules/.cache`.
import { execFile } from 'node:child_process';
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
  // npm writes this list when all else is in place.
  if (!existsSync(join(prefix, 'node_modules', '.package-lock.json'))) {
    process.stderr.write(`Installing ${name}@${version} …\n`);
    mkdirSync(prefix, { recursive: true });
    const flags = ['--save-exact', '--no-audit', '--no-fund', '--ignore-scripts=false', '--loglevel=error'];
    if (before !== undefined) flags.push(`--before=${before}`);
    await run('npm', ['install', '--prefix', prefix, ...flags, `${name}@${version}`], { cwd: prefix });
  }
  return join(prefix, 'node_modules', name);
}
