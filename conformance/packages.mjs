// What the suites need that is no dependency of ours: kept out of package.json, under `node_modules/.cache`.
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const CACHE = fileURLToPath(new URL('../node_modules/.cache/trunkline-conformance/', import.meta.url));
/** The suites use what came with Node 22; we support Node 20. */
const OLDEST_NODE = 22;
const NODE_TO_BRING = '24.21.0';

const run = promisify(execFile);

/** Returns the path of a `node` that is new enough: ours, or one from npm. */
export async function bringNode() {
  const [major] = process.versions.node.split('.');
  if (Number(major) >= OLDEST_NODE) return process.execPath;
  return join(await installPackage('node', NODE_TO_BRING), 'bin', 'node');
}

/** Returns the folder of the package, which is installed if it is not there yet. */
export async function installPackage(name, version) {
  const prefix = join(CACHE, `${name.replace(/^.*\//, '')}-${version}`);
  // npm writes this list when all else is in place.
  if (!existsSync(join(prefix, 'node_modules', '.package-lock.json'))) {
    process.stderr.write(`Installing ${name}@${version} …\n`);
    mkdirSync(prefix, { recursive: true });
    const flags = ['--save-exact', '--no-audit', '--no-fund', '--ignore-scripts=false', '--loglevel=error'];
    await run('npm', ['install', '--prefix', prefix, ...flags, `${name}@${version}`], { cwd: prefix });
  }
  return join(prefix, 'node_modules', name);
}
