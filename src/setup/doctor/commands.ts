import { spawn } from 'node:child_process';
import { accessSync, closeSync, constants, existsSync, openSync, readSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import type { ServerConfig } from '../../config/resolve/config.js';
import { type ChildSpec, programOf } from '../../spec/server-spec.js';
import { type Finding, finding } from './finding.js';
import { type Machine, type OperatingSystem, pathSeparator, variableOf } from './machine.js';

/** The PATH of programs that the desktop starts, and the PATH of the login shell, if it is known. */
interface SearchPaths {
  readonly desktop: string;
  readonly shell: string | undefined;
}

/** Whether the commands of the servers can be run, also by a gateway that a desktop program starts. */
export function checkCommands(servers: readonly ServerConfig[], paths: SearchPaths, machine: Machine): Finding[] {
  return servers.flatMap((server) => {
    const { key } = server;
    const spec = programOf(server);
    if (spec === undefined) return [];
    const onCommand = server.package === undefined ? checkCommand(key, spec, paths, machine) : [];
    return [...onCommand, ...checkArguments(key, spec, machine)];
  });
}

function checkCommand(key: string, spec: ChildSpec, { desktop, shell }: SearchPaths, machine: Machine): Finding[] {
  const { command, label = command, cwd, env } = spec;
  const separator = pathSeparator(machine);
  // A server finds the Node that runs Trunkline first; `PATH` of its entry replaces the rest.
  const withNode = (path: string) => [dirname(machine.node.path), path].join(separator);
  const onDesktop = findCommand(command, withNode(env.PATH ?? desktop), cwd, machine);
  const of = `the command of server \`${key}\`, \`${label}\`,`;
  if (onDesktop.kind === 'found') {
    const path = withNode(env.PATH ?? desktop);
    return [...checkInterpreter(key, onDesktop.file, path, spec, machine), ...checkBorder(key, spec, machine)];
  }
  for (const path of env.PATH === undefined ? [shell, machine.env.PATH] : []) {
    const inShell = path === undefined ? undefined : findCommand(command, withNode(path), cwd, machine);
    if (inShell?.kind !== 'found') continue;
    const remedy = `Write its absolute path: \`command: ${inShell.file}\`.`;
    const text = `${of} is found by your shell, and not by programs of the desktop`;
    return [finding('TL-PATH-SHELL-ONLY', text, [inShell.file], { remedy })];
  }
  if (onDesktop.kind === 'not-executable')
    return [finding('TL-COMMAND-NOT-EXECUTABLE', `${of} cannot be run`, [onDesktop.file])];
  if (/\s/.test(command)) return [finding('TL-COMMAND-LINE', `${of} is a whole command line`)];
  return [finding('TL-COMMAND-NOT-FOUND', `${of} does not exist`)];
}

/** Finds a script whose interpreter does not exist. A script without a first line is no mistake, because the system runs it by `sh`. */
function checkInterpreter(key: string, file: string, path: string, { cwd }: ChildSpec, machine: Machine): Finding[] {
  const interpreter = machine.platform === 'win32' ? undefined : interpreterOf(file);
  if (interpreter === undefined) return [];
  if (findCommand(interpreter, path, cwd, machine).kind === 'found') return [];
  const needed = interpreter.endsWith('\r') ? `${interpreter.trim()} with a Windows line end` : interpreter;
  const text = `the script of server \`${key}\` needs ${needed}, which does not exist`;
  return [finding('TL-COMMAND-INTERPRETER', text, [file])];
}

function checkBorder(key: string, { command }: ChildSpec, { platform, env }: OperatingSystem): Finding[] {
  const crosses = platform === 'win32' ? /(?:^|[\\/])(?:wsl|bash)(?:\.exe)?$/i : /^\/mnt\/[a-z]\/.*|\.exe$/i;
  if (!crosses.test(command) || (platform !== 'win32' && !env.WSL_DISTRO_NAME)) return [];
  return [finding('TL-WSL-MIXED', `server \`${key}\` runs on the other side of the border between Windows and WSL`)];
}

/** Text that can only be a path: neither a URL nor an option. */
const PATH_LIKE = /^(?:~|\.{1,2})?[\\/](?![\\/])[^\s*?{}|<>]*$|^[a-z]:[\\/][^*?|<>]*$/i;

function checkArguments(key: string, { args, cwd }: ChildSpec, { home }: Machine): Finding[] {
  return args.flatMap((arg, index) => {
    if (!PATH_LIKE.test(arg)) return [];
    const path = /^~[\\/]/.test(arg) ? join(home, arg.slice(2)) : resolve(cwd, arg);
    if (existsSync(path)) return [];
    const remedy = arg.startsWith('~') ? 'Write the whole path: `~` is not replaced in arguments.' : undefined;
    const text = `args[${index}] of server \`${key}\` looks like a path that does not exist`;
    return [finding('TL-ARG-PATH-MISSING', text, [path], { remedy })];
  });
}

interface UserSystem extends OperatingSystem {
  readonly home: string;
}

/** The PATH of programs that the Dock or the Finder starts. Only shells read `/etc/paths`. */
const PATH_OF_DOCK = '/usr/bin:/bin:/usr/sbin:/sbin';
/** The PATH of programs that no shell has started, on Debian and systems derived from it. */
const USUAL_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
/** Time limit of a login shell, which may be slow, or wait for input that never comes. */
const SHELL_WITHIN_MS = 2_000;
const TOOL_WITHIN_MS = 1_000;

/**
 * The PATH of a desktop program, without the additions of a shell.
 *
 * On macOS, `launchctl` names the PATH of the session if one is set, otherwise it is that of the Dock. A test has another `launchctl`.
 */
export async function desktopPath(machine: UserSystem, launchctl = '/bin/launchctl'): Promise<string> {
  switch (machine.platform) {
    // Programs of the desktop and of a console have the same variables.
    case 'win32':
      return variableOf(machine, 'PATH') ?? '';
    case 'darwin':
      return (await outputOf(launchctl, ['getenv', 'PATH'], machine, TOOL_WITHIN_MS)).trim() || PATH_OF_DOCK;
    case 'linux': {
      const session = await outputOf('systemctl', ['--user', 'show-environment'], machine, TOOL_WITHIN_MS);
      const inSession = /^PATH=(.*)$/m.exec(session)?.[1];
      const everywhere = await readFile('/etc/environment', 'utf8').catch(() => '');
      return inSession ?? /^PATH="?([^"\n]*)"?$/m.exec(everywhere)?.[1] ?? USUAL_PATH;
    }
  }
}

/** The PATH of the user's login shell; `undefined` if the shell does not print it in time. Windows has no such shell. */
export async function shellPath(machine: UserSystem): Promise<string | undefined> {
  const { SHELL } = machine.env;
  if (machine.platform === 'win32' || !SHELL) return undefined;
  // The shell's profile may print text before the mark.
  const words = ['-ilc', 'printf "<trunkline>%s</trunkline>" "$PATH"'];
  const output = await outputOf(SHELL, words, machine, SHELL_WITHIN_MS);
  return /<trunkline>(.*)<\/trunkline>/.exec(output)?.[1];
}

/** Runs a program without terminal and input, and returns its stdout; empty if it fails or exceeds the time limit. */
async function outputOf(
  command: string,
  args: readonly string[],
  { env, home }: UserSystem,
  limitMs: number,
): Promise<string> {
  return await new Promise((resolve) => {
    let output = '';
    // A session of its own, so that an interactive shell cannot stop this process by asking for the terminal.
    const child = spawn(command, args, { env, cwd: home, stdio: ['ignore', 'pipe', 'ignore'], detached: true });
    const timer = setTimeout(() => end(), limitMs);
    const end = () => {
      clearTimeout(timer);
      child.stdout.destroy();
      try {
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      } catch {
        // The process group has ended.
      }
      resolve(output);
    };
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk;
    });
    child.stdout.on('error', () => {});
    child.on('error', end);
    child.on('close', end);
  });
}

/**
 * Finds the program of a command as the system does: a path as it is, and a name in the folders of this PATH. A file or
 * folder that cannot be run is `not-executable`.
 */
function findCommand(command: string, path: string, cwd: string, system: OperatingSystem) {
  const isPath = command.includes('/') || (system.platform === 'win32' && command.includes('\\'));
  const folders = isPath ? [''] : path.split(pathSeparator(system)).filter(Boolean);
  let unusable: string | undefined;
  for (const folder of folders) {
    for (const suffix of suffixes(command, system)) {
      const file = isAbsolute(command) ? command + suffix : resolve(cwd, join(folder, command + suffix));
      const state = stateOf(file);
      if (state === 'program') return { kind: 'found', file } as const;
      if (state === 'unusable') unusable ??= file;
    }
  }
  if (unusable === undefined) return { kind: 'missing' } as const;
  return { kind: 'not-executable', file: unusable } as const;
}

/** File name extensions that a command may omit: Windows finds `npx.cmd` for `npx`. */
function suffixes(command: string, system: OperatingSystem): readonly string[] {
  if (system.platform !== 'win32' || /\.[a-z]{3}$/i.test(command)) return [''];
  return (variableOf(system, 'PATHEXT') ?? '.COM;.EXE;.BAT;.CMD').split(';');
}

function stateOf(file: string): 'program' | 'unusable' | 'missing' {
  try {
    if (statSync(file).isDirectory()) return 'unusable';
  } catch {
    return 'missing';
  }
  try {
    accessSync(file, constants.X_OK);
    return 'program';
  } catch {
    return 'unusable';
  }
}

/** The interpreter that the first line of a script names; `undefined` for other programs. */
function interpreterOf(file: string): string | undefined {
  const bytes = Buffer.alloc(256);
  try {
    const descriptor = openSync(file, 'r');
    const length = readSync(descriptor, bytes, 0, bytes.length, 0);
    closeSync(descriptor);
    const [, first = '', second] =
      /^#![ \t]*([^ \t\n]+)(?:[ \t]+([^ \t\n]+))?/.exec(bytes.toString('utf8', 0, length)) ?? [];
    if (first === '') return undefined;
    return /[\\/]env$/.test(first) && second !== undefined && !second.startsWith('-') ? second : first;
  } catch {
    // A program that cannot be read may still run.
    return undefined;
  }
}
