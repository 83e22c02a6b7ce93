import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { ServerConfig } from '../config/resolve/config.js';
import type { ChildSpec } from '../supervision/child-spec.js';
import { findCommand, interpreterOf } from './find-command.js';
import { type Finding, finding } from './finding.js';
import { type Machine, pathSeparator } from './machine.js';

/** Where commands are looked for. */
export interface SearchPaths {
  /** Of a program that the desktop has started. */
  readonly desktop: string;
  /** Of the user's login shell, if it is known. */
  readonly shell: string | undefined;
}

type Asked = Pick<Machine, 'platform' | 'env' | 'home' | 'node'>;

/** Whether the commands of the servers can be run, also by a gateway that a desktop program starts. */
export function checkCommands(servers: readonly ServerConfig[], paths: SearchPaths, machine: Asked): Finding[] {
  return servers.flatMap((server) => {
    const { key, child } = server;
    if (child === undefined) return [];
    const onCommand = server.package === undefined ? checkCommand(key, child, paths, machine) : [];
    return [...onCommand, ...checkArguments(key, child, machine)];
  });
}

function checkCommand(key: string, child: ChildSpec, { desktop, shell }: SearchPaths, machine: Asked): Finding[] {
  const { command, label = command, cwd, env } = child;
  const separator = pathSeparator(machine);
  // A server finds the Node that runs Trunkline first; `PATH` of its entry replaces the rest.
  const withNode = (path: string) => [dirname(machine.node.path), path].join(separator);
  const onDesktop = findCommand(command, withNode(env.PATH ?? desktop), cwd, machine);
  const of = `the command of server \`${key}\`, \`${label}\`,`;
  if (onDesktop.kind === 'found')
    return [
      ...checkInterpreter(key, onDesktop.file, env.PATH ?? desktop, child, machine),
      ...checkBorder(key, child, machine),
    ];
  const others = [shell, machine.env.PATH].filter((path) => path !== undefined && env.PATH === undefined);
  for (const path of others) {
    const inShell = findCommand(command, withNode(path ?? ''), cwd, machine);
    if (inShell.kind !== 'found') continue;
    const remedy = `Write its absolute path: \`command: ${inShell.file}\`.`;
    const text = `${of} is found by your shell, and not by programs of the desktop`;
    return [finding('TL-PATH-SHELL-ONLY', text, { evidence: [inShell.file], remedy })];
  }
  if (onDesktop.kind === 'not-executable')
    return [finding('TL-COMMAND-NOT-EXECUTABLE', `${of} cannot be run`, { evidence: [onDesktop.file] })];
  if (/\s/.test(command)) return [finding('TL-COMMAND-LINE', `${of} is a whole command line`)];
  return [finding('TL-COMMAND-NOT-FOUND', `${of} does not exist`)];
}

/** The system runs a script without a first line by `sh`, so only an interpreter that does not exist is a mistake. */
function checkInterpreter(key: string, file: string, path: string, { cwd }: ChildSpec, machine: Asked): Finding[] {
  const interpreter = machine.platform === 'win32' ? undefined : interpreterOf(file);
  if (interpreter === undefined) return [];
  const whole = [dirname(machine.node.path), path].join(pathSeparator(machine));
  if (findCommand(interpreter, whole, cwd, machine).kind === 'found') return [];
  const isWindowsText = interpreter.endsWith('\r');
  const text = `the script of server \`${key}\` needs ${isWindowsText ? `${interpreter.trim()} with a Windows line end` : interpreter}, which does not exist`;
  return [finding('TL-COMMAND-INTERPRETER', text, { evidence: [file] })];
}

function checkBorder(key: string, { command }: ChildSpec, { platform, env }: Asked): Finding[] {
  const crosses = platform === 'win32' ? /(?:^|[\\/])(?:wsl|bash)(?:\.exe)?$/i : /^\/mnt\/[a-z]\/.*|\.exe$/i;
  if (!crosses.test(command) || (platform === 'linux' && !env.WSL_DISTRO_NAME)) return [];
  return [finding('TL-WSL-MIXED', `server \`${key}\` runs on the other side of the border between Windows and WSL`)];
}

/** Text that can only be a path: neither a URL nor an option. */
const PATH_LIKE = /^(?:~|\.{1,2})?[\\/](?![\\/])[^\s*?{}|<>]*$|^[a-z]:[\\/][^*?|<>]*$/i;

function checkArguments(key: string, { args, cwd }: ChildSpec, { home }: Asked): Finding[] {
  return args.flatMap((arg, index) => {
    if (!PATH_LIKE.test(arg)) return [];
    const path = /^~[\\/]/.test(arg) ? join(home, arg.slice(2)) : resolve(cwd, arg);
    if (existsSync(path)) return [];
    const isHome = arg.startsWith('~');
    const remedy = isHome ? 'Write the whole path: nobody replaces `~` in arguments.' : undefined;
    const text = `args[${index}] of server \`${key}\` looks like a path that does not exist`;
    return [finding('TL-ARG-PATH-MISSING', text, { evidence: [path], remedy })];
  });
}
