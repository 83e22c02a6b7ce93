// Runs the built program on real old versions of Node, from npm. Versions that are too old must say in one line on stderr
// which Node is needed, which one runs and where it is, and exit with 2. The oldest supported versions must start the servers
// of the demo, and those that can keep compiled code must keep it for the next start. Exits with 1 when one of them does something else. Run it with `npm run -w lab old-node`.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installPackage } from '../../scripts/packages.mjs';
import { CLI } from './targets.mjs';

const TOO_OLD = ['14.21.3', '16.20.2', '18.20.8', '20.0.0', '20.18.3', '21.7.3', '22.2.0'];
/** The last one is the oldest that can keep compiled code. */
const OLDEST_SUPPORTED = ['20.19.0', '22.3.0', '22.8.0'];
const DEMO = fileURLToPath(new URL('../../config/demo.yaml', import.meta.url));
const COMMANDS = [['--version'], ['--help'], ['check', '--config', DEMO], []];

const data = mkdtempSync(join(tmpdir(), 'trunkline-old-node-'));
const env = { ...process.env, XDG_DATA_HOME: data };

let failures = 0;
const versions = [...TOO_OLD, ...OLDEST_SUPPORTED];
const folders = await Promise.all(versions.map((version) => installPackage('node', version)));
for (const [index, version] of versions.entries()) {
  const node = join(folders[index], 'bin', 'node');
  const isTooOld = TOO_OLD.includes(version);
  for (const args of isTooOld ? COMMANDS : COMMANDS.slice(0, -1)) {
    const { status, stdout, stderr } = spawnSync(node, [CLI, ...args], { encoding: 'utf8', input: '', env });
    const line = /^trunkline: .* needs Node\.js .* but this is (\S+) \((.+?)\);[^\n]*\n$/.exec(stderr);
    const isRefused = status === 2 && stdout === '' && line?.[1] === version && line[2].endsWith('node');
    const isRight = isTooOld ? isRefused : status === 0 && stdout !== '' && stderr === '';
    if (!isRight) failures += 1;
    const text = isRight ? 'ok' : `exit code ${status}\n${stdout}${stderr}`;
    process.stdout.write(`Node ${version}  trunkline ${args.join(' ')}: ${text}\n`);
  }
}
const code = join(data, 'trunkline', 'code');
// Node 22 puts the files into a folder for its version in that for ours.
const files = existsSync(code) ? readdirSync(code, { recursive: true, withFileTypes: true }) : [];
const isKept = files.some((file) => file.isFile()) && (statSync(code).mode & 0o777) === 0o700;
if (!isKept) failures += 1;
process.stdout.write(`Compiled code is kept: ${isKept ? 'ok' : 'no'}\n`);
rmSync(data, { recursive: true, force: true });

process.stdout.write(failures === 0 ? 'All versions behave as they should.\n' : `${failures} runs went wrong.\n`);
process.exitCode = failures === 0 ? 0 : 1;
