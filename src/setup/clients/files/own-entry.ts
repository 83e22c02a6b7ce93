import { existsSync, realpathSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { configOption, isOwnProgram, launchedBy, programName } from '../../../config/resolve/command-words.js';
import { realPath } from '../../../host/files/whole-file.js';
import type { Shape } from './client-table.js';
import type { ClientEntry, FoundCommand, FoundServer } from './found-server.js';

export const OWN_NAME = 'trunkline';

/** The command that clients start, and a warning if its program may disappear. */
export interface OwnCommand {
  readonly command: string;
  /** The last one is the path of the configuration. */
  readonly args: readonly string[];
  /** A sentence for the user if the program may be gone one day. */
  readonly warning?: string;
}

/**
 * The command to register: the Node.js that runs, Trunkline's program as it was started, and the path of the configuration. Clients have
 * another `PATH` and another folder than a shell, so all paths are absolute. The command is never a script of Windows (`.cmd`), because
 * some clients lose the arguments of one.
 */
export function ownCommand(execPath: string, cliPath: string, config: string): OwnCommand {
  const program = realpathSync(cliPath);
  const args = [program, '--config', config];
  const { command, isStable } = stableNode(execPath);
  const warning = warningFor(command, isStable, program);
  return warning === undefined ? { command, args } : { command, args, warning };
}

/** The configuration that an entry names, in its arguments or its variables. */
export function configIn(run: FoundCommand): string | undefined {
  return configOption(run.args) ?? run.env.TRUNKLINE_CONFIG;
}

export function ownEntry(shape: Shape, { command, args }: OwnCommand): ClientEntry {
  switch (shape) {
    case 'plain':
    case 'codex':
    case 'gemini':
    case 'cline':
      return { command, args };
    case 'claude-code':
    case 'vscode':
      return { type: 'stdio', command, args };
    case 'zed':
      return { source: 'custom', command, args, env: {} };
    case 'opencode':
      return { type: 'local', command: [command, ...args], enabled: true };
    case 'copilot':
      return { type: 'stdio', command, args, tools: ['*'] };
    case 'goose':
      return { name: OWN_NAME, type: 'stdio', cmd: command, args, enabled: true, timeout: 300 };
    case 'continue':
      return { name: OWN_NAME, type: 'stdio', command, args };
    case 'kimi':
      return { transport: 'stdio', command, args };
  }
}

/** Folders in which version managers keep one version of Node.js. An update removes such a folder. */
const MANAGED =
  /[\\/](?:fnm_multishells|node-versions|\.?nvm|\.?volta|\.?asdf|mise|\.nodenv|\.?n[\\/]versions|nodist|scoop[\\/]apps)[\\/]/i;

/** Returns a path to this Node.js that stays valid when another version is installed, if there is such a path. */
function stableNode(execPath: string): { command: string; isStable: boolean } {
  const real = realPath(execPath) ?? execPath;
  const link = linksTo(real).find((path) => existsSync(path) && realPath(path) === real);
  if (link !== undefined) return { command: link, isStable: true };
  // The folder of fnm for one shell is gone when the shell ends.
  const command = /fnm_multishells/.test(execPath) ? real : execPath;
  return { command, isStable: !MANAGED.test(command) && !/[\\/]Cellar[\\/]/.test(real) };
}

function linksTo(real: string): string[] {
  const [, prefix, formula] = /^(.*)\/Cellar\/([^/]+)\/[^/]+\/bin\/node$/.exec(real) ?? [];
  if (prefix !== undefined && formula !== undefined)
    return [join(prefix, 'opt', formula, 'bin', 'node'), join(prefix, 'bin', 'node')];
  const [, fnm] = /^(.*)[\\/]node-versions[\\/]/.exec(real) ?? [];
  if (fnm !== undefined) {
    const folder = join(fnm, 'aliases', 'default');
    return [join(folder, 'bin', 'node'), join(folder, 'node.exe')];
  }
  const [, nvm] = /^(.*)\/versions\/node\/[^/]+\/bin\/node$/.exec(real) ?? [];
  if (nvm !== undefined) return [join(nvm, 'current', 'bin', 'node')];
  const [, installs] = /^(.*\/installs\/node)\/[^/]+\/bin\/node$/.exec(real) ?? [];
  return installs === undefined ? [] : ['lts', 'latest'].map((name) => join(installs, name, 'bin', 'node'));
}

function warningFor(command: string, isStable: boolean, program: string): string | undefined {
  const again = 'run this command again after that';
  if (/[\\/]_npx[\\/]/.test(program))
    return `Trunkline runs from the cache of npx, which npm may clear; install it, and run \`trunkline connect\` again`;
  if (!isStable) return `${command} is gone when you remove this version of Node.js; ${again}`;
  if (MANAGED.test(program)) return `Trunkline is installed for one version of Node.js, and gone with it; ${again}`;
  return undefined;
}

/**
 * The identity of an entry, equal for two entries that run the same server: address, or package or command with arguments. The
 * version of a package does not count. It may hold secrets, since addresses and arguments may: compare it, never show it.
 */
export function identityOf(run: FoundServer['run']): string {
  if (run.kind === 'remote') return addressIdentity(run.url);
  const { command: program, args } = withoutShell(run.command, run.args);
  const launched = launchedBy(program, args);
  if (launched?.isPlain !== true) return ['command', programName(program), ...args].join(' ');
  const { name, rest } = launched;
  if (name === 'mcp-remote' && rest[0] !== undefined) return addressIdentity(rest[0]);
  return ['package', name, ...rest].join(' ');
}

/** Whether an entry starts Trunkline: this installation, whose program is `cliPath`, or another one. */
export function isOurselves(run: FoundServer['run'], cliPath: string): boolean {
  if (run.kind === 'remote') return false;
  const { command: program, args } = withoutShell(run.command, run.args);
  if (programName(program) === 'trunkline') return true;
  return (
    launchedBy(program, args)?.name === 'trunkline' || [program, ...args].some((word) => isOurProgram(word, cliPath))
  );
}

/** Removes `cmd /c` from a command line, because only clients on Windows need it to start scripts. */
export function withoutShell(command: string, args: readonly string[]): { command: string; args: readonly string[] } {
  const [flag = '', program, ...rest] = args;
  const isShell = programName(command) === 'cmd' && flag.toLowerCase() === '/c';
  return isShell && program !== undefined ? { command: program, args: rest } : { command, args };
}

function addressIdentity(address: string): string {
  // An address with variables cannot be parsed.
  if (!URL.canParse(address)) return `url ${address}`;
  const { protocol, host, pathname, search } = new URL(address);
  return `url ${protocol}//${host}${pathname.replace(/\/+$/, '')}${search}`;
}

function isOurProgram(word: string, cliPath: string): boolean {
  if (!/[\\/]cli\.js$/.test(word)) return false;
  const program = isAbsolute(word) ? realPath(word) : undefined;
  // An installation that was removed leaves its entries behind.
  if (program === undefined) return /[\\/]trunkline[\\/]dist[\\/]cli\.js$/.test(word);
  return program === realPath(cliPath) || isOwnProgram(program);
}
