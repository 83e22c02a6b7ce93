import { accessSync, constants, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import type { Code } from '../../host/errors/codes.js';
import { type SpawnRequest, spawnChild } from '../process/spawn-child.js';
import { hasFilter, syscallFilter } from './syscall-filter.js';

/** Functions for the paths of Linux, because only Linux has the sandbox. */
const { delimiter, isAbsolute, join } = posix;

/** Whether servers can be confined on this machine. */
export type Confinement =
  | { readonly isAvailable: true /** Absolute path of bubblewrap. */; readonly program: string }
  | { readonly isAvailable: false; readonly fault: ConfinementFault };

export interface ConfinementFault {
  readonly code: Code;
  /** A clause. */
  readonly reason: string;
  /** The remedy, as a clause. */
  readonly remedy: string;
}

/** The facts about a machine that decide whether servers can be confined. Tests pass those of other machines. */
export interface SandboxMachine {
  /** As in `process.platform` and `process.arch`. */
  readonly platform: string;
  readonly arch: string;
  readonly path: string | undefined;
  readonly isProgram: (path: string) => boolean;
  /** The text of a file; '' if it cannot be read. */
  readonly read: (path: string) => string;
  /** Runs bubblewrap around a program that does nothing. Resolves with the output of bubblewrap if it fails. */
  readonly tryIt: (program: string) => Promise<string | undefined>;
}

/** Finds bubblewrap and tries it, because many systems have it and forbid its namespaces. */
export async function findConfinement(machine: SandboxMachine = thisMachine()): Promise<Confinement> {
  const { platform, arch, path = '', isProgram, read, tryIt } = machine;
  if (platform !== 'linux' || !hasFilter(arch)) return { isAvailable: false, fault: unsupported(platform, arch) };
  const folders = [
    ...path.split(delimiter).filter(isAbsolute),
    '/usr/bin',
    '/usr/local/bin',
    '/run/current-system/sw/bin',
  ];
  const program = folders.map((folder) => join(folder, 'bwrap')).find(isProgram);
  if (program === undefined) return { isAvailable: false, fault: missing(read('/etc/os-release')) };
  const output = await tryIt(program);
  return output === undefined
    ? { isAvailable: true, program }
    : { isAvailable: false, fault: forbidden(output, program, read) };
}

let found: Promise<Confinement> | undefined;

/** Runs `findConfinement` for this machine. A success is remembered, a failure is not, because the user may mend it. */
export async function confinement(): Promise<Confinement> {
  found ??= findConfinement();
  const result = await found;
  if (!result.isAvailable) found = undefined;
  return result;
}

function thisMachine(): SandboxMachine {
  const { platform, arch, env } = process;
  return { platform, arch, path: env.PATH, isProgram, read: readText, tryIt };
}

const SYSTEM_NAMES: Readonly<Record<string, string>> = { darwin: 'macOS', win32: 'Windows', linux: 'Linux' };

function unsupported(platform: string, arch: string): ConfinementFault {
  const system = `${SYSTEM_NAMES[platform] ?? platform} on ${arch === 'x64' ? 'x86-64' : arch}`;
  return {
    code: 'TL-SANDBOX-UNSUPPORTED',
    reason: `Trunkline confines servers on Linux on x86-64 only, and this is ${system}`,
    remedy: 'run Trunkline on such a machine, or set `sandbox: false` to run the server unconfined',
  };
}

/** Commands that install bubblewrap, by the ids in `/etc/os-release`. */
const INSTALL: readonly (readonly [ids: RegExp, command: string])[] = [
  [/\b(?:debian|ubuntu)\b/, 'sudo apt install bubblewrap'],
  [/\b(?:fedora|rhel|centos)\b/, 'sudo dnf install bubblewrap'],
  [/\b(?:arch|manjaro)\b/, 'sudo pacman -S bubblewrap'],
  [/\b(?:suse|opensuse[\w-]*)\b/, 'sudo zypper install bubblewrap'],
  [/\balpine\b/, 'sudo apk add bubblewrap'],
  [/\bvoid\b/, 'sudo xbps-install bubblewrap'],
  [/\bgentoo\b/, 'sudo emerge sys-apps/bubblewrap'],
  [/\bnixos\b/, 'nix-env -iA nixos.bubblewrap'],
];

function missing(release: string): ConfinementFault {
  const ids = [...release.matchAll(/^ID(?:_LIKE)?="?([^"\n]*)"?$/gm)].map(([, id]) => id).join(' ');
  const command = INSTALL.find(([known]) => known.test(ids))?.[1];
  const how = command === undefined ? 'install the package `bubblewrap` of your system' : `install it: \`${command}\``;
  return {
    code: 'TL-SANDBOX-MISSING',
    reason: 'bubblewrap is not installed, because there is no program `bwrap`',
    remedy: how,
  };
}

function forbidden(output: string, program: string, read: SandboxMachine['read']): ConfinementFault {
  const reason = `the system does not let bubblewrap make its namespaces (${output})`;
  return { code: 'TL-SANDBOX-FORBIDDEN', reason, remedy: remedyOf(program, read) };
}

/** The remedy for the setting of the system that forbids user namespaces, as far as that can be found. */
function remedyOf(program: string, read: SandboxMachine['read']): string {
  const settingOf = (name: string) => read(`/proc/sys/${name}`).trim();
  if (settingOf('user/max_user_namespaces') === '0')
    return 'allow user namespaces: `sudo sysctl user.max_user_namespaces=15000`';
  if (settingOf('kernel/unprivileged_userns_clone') === '0')
    return 'allow user namespaces: `sudo sysctl kernel.unprivileged_userns_clone=1`';
  if (settingOf('kernel/apparmor_restrict_unprivileged_userns') === '1')
    return `allow them for bubblewrap with a profile of AppArmor, /etc/apparmor.d/bwrap: \`abi <abi/4.0>, include <tunables/global> profile bwrap ${program} flags=(unconfined) { userns, }\`, then \`sudo systemctl reload apparmor\``;
  return 'in a container, allow user namespaces and a new /proc, for Docker with `--security-opt seccomp=unconfined --security-opt systempaths=unconfined`; elsewhere, ask the administrator';
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    // Missing, or not for this user.
    return false;
  }
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // The setting, or the file, does not exist on this system.
    return '';
  }
}

/** The namespaces and mounts of `bubblewrapCommand` that a system may forbid, around a program that does nothing. */
const TRIED = [
  ...['--unshare-user', '--unshare-pid', '--unshare-net', '--unshare-ipc', '--unshare-uts', '--cap-drop', 'ALL'],
  ...['--ro-bind', '/', '/', '--proc', '/proc', '--dev', '/dev', '--remount-ro', '/proc', '--seccomp', '3'],
  ...['--', '/bin/sh', '-c', ':'],
];
const MAX_OUTPUT = 300;

function tryIt(program: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const inputs = [syscallFilter({ unixSockets: false })];
    const request: SpawnRequest = { command: program, args: TRIED, cwd: '/', env: { PATH: '/usr/bin:/bin' }, inputs };
    let output = '';
    const fail = (text: string) => resolve(text.trim().slice(0, MAX_OUTPUT) || 'it says nothing');
    const child = spawnChild(request, {
      onSpawnError: ({ message }) => fail(message),
      // Waits a turn after a failure, because the pipe may have more to read.
      onExit: ({ code }) => (code === 0 ? resolve(undefined) : setImmediate(() => fail(output))),
    });
    child.stdin.end();
    child.stdout.resume();
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(0, MAX_OUTPUT);
    });
  });
}
