// The programs of the system that the tests of the project `system` start. Names each one that is missing, with the line that
// installs them on Debian, and exits with 1. With `--packages` it prints the packages of Debian that are missing, or all with `--all`.
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
  { name: 'faketime', use: 'a machine that slept' },
  { name: 'nginx', use: 'the files of nginx in `deploy`' },
  { name: 'perl', packages: ['perl-base'], use: 'attempts to leave a sandbox' },
  { name: 'ps', packages: ['procps'], use: 'the memory of processes as the system tells it' },
  { name: 'redis-cli', packages: ['redis-tools'], use: 'the store of a cluster' },
  { name: 'redis-server', use: 'the store of a cluster' },
  { name: 'script', packages: ['bsdutils'], use: 'commands at a terminal' },
  { name: 'systemd-analyze', packages: ['systemd'], use: 'the units of systemd in `deploy`' },
];

const packagesOf = (programs) => [...new Set(programs.flatMap((each) => each.packages ?? [each.name]))].sort();

const isAll = process.argv.includes('--all');
const missing = isAll ? [] : PROGRAMS.filter(({ name, isThere = () => isOnPath(name) }) => !isThere());
const packages = packagesOf(isAll ? PROGRAMS : missing);
if (process.argv.includes('--packages')) process.stdout.write(`${packages.join('\n')}\n`);
else if (missing.length > 0) {
  const width = Math.max(...missing.map(({ name }) => name.length));
  const lines = missing.map(({ name, use }) => `  ${name.padEnd(width)}  ${use}`);
  process.stderr.write(
    [
      'Programs of the system that these tests start are missing:',
      ...lines,
      'This line installs them on Debian:',
      `  sudo apt-get install ${packages.join(' ')}`,
      '',
    ].join('\n'),
  );
  process.exitCode = 1;
}
