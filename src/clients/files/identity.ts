import { realpathSync } from 'node:fs';
import { basename, dirname, isAbsolute, join } from 'node:path';
import { readJsonFile } from '../../files/json-file.js';
import { isRecord } from '../../json/is-record.js';
import type { FoundCommand, FoundServer } from './found-server.js';

/**
 * The identity of an entry, equal for two entries that run the same server: address, or package or command with arguments. The
 * version of a package does not count. It may hold secrets, since addresses and arguments may: compare it, never show it.
 */
export function identityOf(run: FoundServer['run']): string {
  if (run.kind === 'remote') return addressIdentity(run.url);
  const [program = '', ...args] = wordsOf(run);
  const { launched, rest } = launchedPackage(program, args);
  if (launched === undefined) return ['command', nameOf(program), ...args].join(' ');
  if (launched === 'mcp-remote' && rest[0] !== undefined) return addressIdentity(rest[0]);
  return ['package', launched, ...rest].join(' ');
}

/** Whether an entry starts Trunkline: this installation, whose program is `cliPath`, or another one. */
export function isOurselves(run: FoundServer['run'], cliPath: string): boolean {
  if (run.kind === 'remote') return false;
  const [program = '', ...args] = wordsOf(run);
  if (nameOf(program) === 'trunkline') return true;
  const { launched } = launchedPackage(program, args);
  return launched === 'trunkline' || [program, ...args].some((word) => isOurProgram(word, cliPath));
}

/** Command and arguments without the shell of Windows, which clients need there to start scripts. */
function wordsOf({ command, args }: FoundCommand): string[] {
  const isShell = nameOf(command) === 'cmd' && args[0]?.toLowerCase() === '/c';
  return isShell ? args.slice(1) : [command, ...args];
}

function nameOf(program: string): string {
  const name = program.split(/[\\/]/).at(-1) ?? program;
  return name.replace(/\.(?:exe|cmd|bat|ps1)$/i, '');
}

/** The npm package that a launcher such as `npx` runs, without its version. */
function launchedPackage(program: string, args: readonly string[]): { launched?: string; rest: readonly string[] } {
  const name = nameOf(program);
  const words = /^(?:exec|x|dlx)$/.test(args[0] ?? '') ? args.slice(1) : args;
  const isLauncher = /^(?:npx|pnpx|bunx)$/.test(name) || (/^(?:npm|pnpm|yarn|bun)$/.test(name) && words !== args);
  if (!isLauncher) return { rest: args };
  const at = words.findIndex((word) => !word.startsWith('-'));
  const before = words.slice(0, Math.max(at, 0));
  // With another option, the first word may be the value of the option.
  if (at < 0 || before.some((word) => !/^(?:-y|--yes|-q|--quiet|--)$/.test(word))) return { rest: args };
  return { launched: (words[at] ?? '').replace(/(?<=.)@[^@/]*$/, ''), rest: words.slice(at + 1) };
}

function addressIdentity(address: string): string {
  try {
    const { protocol, host, pathname, search } = new URL(address);
    return `url ${protocol}//${host}${pathname.replace(/\/+$/, '')}${search}`;
  } catch {
    // It has variables, for example.
    return `url ${address}`;
  }
}

function isOurProgram(word: string, cliPath: string): boolean {
  if (!/[\\/]/.test(word) || basename(word.replaceAll('\\', '/')) !== 'cli.js') return false;
  const program = isAbsolute(word) ? realPath(word) : undefined;
  // An installation that was removed leaves its entries behind.
  if (program === undefined) return /[\\/]trunkline[\\/]dist[\\/]cli\.js$/.test(word);
  if (program === realPath(cliPath)) return true;
  const about = readJsonFile(join(dirname(program), '..', 'package.json'));
  return isRecord(about) && about.name === 'trunkline';
}

function realPath(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}
