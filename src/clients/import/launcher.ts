import { literalIn, type Run } from './run.js';

/** Removes `cmd /c` from a command line: clients on Windows need it to start scripts, Trunkline does not. */
export function withoutShell(command: string, args: readonly string[]): { command: string; args: readonly string[] } {
  const [flag = '', program, ...rest] = args;
  const isShell = programName(command) === 'cmd' && flag.toLowerCase() === '/c';
  return isShell && program !== undefined ? { command: program, args: rest } : { command, args };
}

/**
 * The package that `npx` would run, if Trunkline can run it itself: it starts faster then, and without a network. The
 * version is kept if it is exact; a tag stays a tag.
 */
export function packageOf(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Pick<Run, 'program' | 'args'> | undefined {
  if (programName(command) !== 'npx') return undefined;
  // Another registry for this server alone.
  if (Object.keys(env).some((name) => /^npm_config_/i.test(name))) return undefined;
  const at = args.findIndex((arg) => !PLAIN_OPTION.test(arg));
  const spec = literalIn(args[at] ?? '');
  const [, name, version] = SPEC.exec(spec ?? '') ?? [];
  if (name === undefined) return undefined;
  const isKept = version !== undefined && (EXACT.test(version) || (TAG.test(version) && version !== 'latest'));
  return { program: { package: name, ...(isKept && { version }) }, args: args.slice(at + 1) };
}

const PLAIN_OPTION = /^(?:-y|--yes|-q|--quiet|--prefer-online|--prefer-offline|--)$/;
const SPEC = /^((?:@[a-z0-9~][\w.~-]*\/)?[a-z0-9~][\w.~-]*)(?:@([^/:]*))?$/i;
const EXACT = /^\d+\.\d+\.\d+(?:[-+][\w.+-]+)?$/;
const TAG = /^[a-z][\w.-]*$/i;

/** The name of a program without its folder and its ending on Windows. */
export function programName(command: string): string {
  return (command.split(/[\\/]/).at(-1) ?? '').replace(/\.(?:exe|cmd|bat|ps1)$/i, '').toLowerCase();
}
