// Runs tests of processes on Linux where it stands for macOS. `preload.cjs` says what differs, and `stand-ins` has the programs of macOS; they
// alone read /proc. Exits with 1 if a test fails, or if Trunkline read /proc. `npm run test:macos` runs the project `process`, `-- --short` the
// tests whose subject is the system, and `-- FILE…` the tests of these files or folders. A test that needs Linux says so itself.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

/** The tests of processes, and of what is left when Trunkline or a server is killed. */
const SHORT = [
  'test/process',
  ...['daemons', 'killed'].map((name) => `test/e2e/${name}.test.ts`),
  ...['crashes', 'host', 'nothing-left', 'resources'].map((name) => `test/faults/${name}.test.ts`),
];

const { values, positionals } = parseArgs({ options: { short: { type: 'boolean' } }, allowPositionals: true });
const repository = join(import.meta.dirname, '..', '..');
const folder = mkdtempSync(join(tmpdir(), 'trunkline-macos-'));
try {
  cpSync(import.meta.dirname, folder, { recursive: true });
  // Data that a test does not keep in a folder of its own would be in the home folder.
  const home = join(folder, 'home');
  mkdirSync(home);
  const chosen = positionals.length > 0 ? positionals : ['--project', 'process', ...(values.short ? SHORT : [])];
  const program = join(repository, 'node_modules', 'vitest', 'vitest.mjs');
  const { status } = spawnSync(process.execPath, [program, 'run', ...chosen], {
    cwd: repository,
    env: {
      ...process.env,
      HOME: home,
      PATH: `${join(folder, 'stand-ins')}:${process.env.PATH}`,
      NODE_OPTIONS: `--require=${join(folder, 'preload.cjs')}`,
    },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  process.exitCode = status === 0 ? 0 : 1;
  const reads = join(folder, 'proc-reads');
  if (existsSync(reads)) {
    const distinct = new Set(readFileSync(reads, 'utf8').trimEnd().split('\n'));
    process.stderr.write(`Trunkline read files that macOS does not have:\n${[...distinct].join('\n')}\n`);
    process.exitCode = 1;
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
