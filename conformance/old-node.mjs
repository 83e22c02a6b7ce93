// Runs the built program on real old versions of Node, from npm. Versions that are too old must say in one line on stderr
// which Node is needed, which one runs and where it is, and exit with 2. The oldest supported versions must start the servers
// of the demo. Exits with 1 when one of them does something else. Run it with `npm run old-node`.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installPackage } from './packages.mjs';
import { CLI } from './targets.mjs';

const TOO_OLD = ['14.21.3', '16.20.2', '18.20.8', '20.0.0', '20.18.3', '21.7.3', '22.2.0'];
const OLDEST_SUPPORTED = ['20.19.0', '22.3.0'];
const DEMO = fileURLToPath(new URL('../config/demo.yaml', import.meta.url));
const COMMANDS = [['--version'], ['--help'], ['check', '--config', DEMO], []];

let failures = 0;
for (const version of [...TOO_OLD, ...OLDEST_SUPPORTED]) {
  const node = join(await installPackage('node', version), 'bin', 'node');
  const isTooOld = TOO_OLD.includes(version);
  for (const args of isTooOld ? COMMANDS : COMMANDS.slice(0, -1)) {
    const { status, stdout, stderr } = spawnSync(node, [CLI, ...args], { encoding: 'utf8', input: '' });
    const line = /^trunkline: .* needs Node\.js .* but this is (\S+) \((.+?)\);[^\n]*\n$/.exec(stderr);
    const isRefused = status === 2 && stdout === '' && line?.[1] === version && line[2].endsWith('node');
    const isRight = isTooOld ? isRefused : status === 0 && stdout !== '' && stderr === '';
    if (!isRight) failures += 1;
    const text = isRight ? 'ok' : `exit code ${status}\n${stdout}${stderr}`;
    process.stdout.write(`Node ${version}  trunkline ${args.join(' ')}: ${text}\n`);
  }
}
process.stdout.write(failures === 0 ? 'All versions behave as they should.\n' : `${failures} runs went wrong.\n`);
process.exitCode = failures === 0 ? 0 : 1;
