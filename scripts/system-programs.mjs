// The programs of the system that the tests of the project `system` start. Names each one that is missing, with the line that
// installs them on Debian and Ubuntu, and exits with 1. With `--packages` it prints the packages of Debian that are missing.
import { spawnSync } from 'node:child_process';
import { findBrowser } from './chromium.mjs';

const isOnPath = (program) => spawnSync(program, ['--version'], { stdio: 'ignore' }).error?.code !== 'ENOENT';
const hasBrowser = () => {
  try {
    return findBrowser() !== undefined;
  } catch {
    return false;
  }
};

const PROGRAMS = [
  { name: 'bwrap', packages: ['bubblewrap'], use: 'the sandbox of servers' },
  { name: 'chromium-headless-shell', use: 'the page of `trunkline web`', isThere: hasBrowser },
  { name: 'haproxy', use: 'the services of the Compose file' },
  { name: 'nginx', use: 'the services of the Compose file' },
  { name: 'perl', packages: ['perl-base'], use: 'attempts to leave a sandbox' },
  { name: 'ps', packages: ['procps'], use: 'the memory of processes as the system tells it' },
  { name: 'redis-cli', packages: ['redis-tools'], use: 'the store of a cluster' },
  { name: 'redis-server', use: 'the store of a cluster' },
  { name: 'script', packages: ['bsdutils'], use: 'commands at a terminal' },
  { name: 'tini', use: 'the services of the Compose file' },
];

const missing = PROGRAMS.filter(({ name, isThere = () => isOnPath(name) }) => !isThere());
const packages = [...new Set(missing.flatMap((each) => each.packages ?? [each.name]))];
if (process.argv.includes('--packages')) process.stdout.write(`${packages.join('\n')}\n`);
else if (missing.length > 0) {
  const width = Math.max(...missing.map(({ name }) => name.length));
  const lines = missing.map(({ name, use }) => `  ${name.padEnd(width)}  ${use}`);
  process.stderr.write(
    [
      'Programs of the system that these tests start are missing:',
      ...lines,
      'This line installs them on Debian and Ubuntu:',
      `  sudo apt-get install ${packages.join(' ')}`,
      '',
    ].join('\n'),
  );
  process.exitCode = 1;
}
