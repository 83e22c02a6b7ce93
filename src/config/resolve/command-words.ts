import { basename, dirname, join } from 'node:path';
import { readJsonFile, realPath } from '../../host/files/whole-file.js';
import { isRecord } from '../../wire/json/json-value.js';

/** The name of a program without its folder and its ending on Windows. */
export function programName(command: string): string {
  return (command.split(/[\\/]/).at(-1) ?? '').replace(/\.(?:exe|cmd|bat|ps1)$/i, '').toLowerCase();
}

/** An npm package that a launcher such as `npx` runs. */
interface Launched {
  /** The word that names it, with its version. */
  readonly spec: string;
  readonly name: string;
  readonly rest: readonly string[];
  /** Whether only options that change nothing stand before the package, so that `rest` has all arguments of its program. */
  readonly isPlain: boolean;
}

/** The package that a command line launches; `undefined` if it runs another program. */
export function launchedBy(command: string, args: readonly string[]): Launched | undefined {
  const launcher = programName(command);
  if (!/^(?:npx|pnpx|bunx|npm|pnpm|yarn|bun)$/.test(launcher)) return undefined;
  const words = /^(?:exec|x|dlx)$/.test(args[0] ?? '') ? args.slice(1) : args;
  const at = firstPositional(words, /^(?:-p|--package|-c|--call)$/);
  const isRun = launcher.endsWith('x') || words !== args;
  const isPlain = isRun && at >= 0 && words.slice(0, at).every((word) => PLAIN_OPTION.test(word));
  const spec = words[at] ?? '';
  return { spec, name: withoutVersion(spec), rest: words.slice(at + 1), isPlain };
}

const PLAIN_OPTION = /^(?:-y|--yes|-q|--quiet|--prefer-online|--prefer-offline|--)$/;

/** The name of a package in a text such as `name@1.2.3`. */
export function withoutVersion(spec: string): string {
  return spec.replace(/(?<=.)@[^@/]*$/, '');
}

/** Index of the first argument that is neither an option nor the value of one of these options; -1 if there is none. */
export function firstPositional(args: readonly string[], withValue: RegExp): number {
  return args.findIndex((arg, at) => !arg.startsWith('-') && !withValue.test(args[at - 1] ?? ''));
}

/** The npm package in whose folder a file is; `undefined` if it is in none. */
export function packageIn(file: string): string | undefined {
  const [, name] = /^.*[\\/]node_modules[\\/]((?:@[^\\/]+[\\/])?[^.\\/][^\\/]*)[\\/]/.exec(file) ?? [];
  return name?.replaceAll('\\', '/');
}

/** Whether a file is the program of an installed Trunkline, also through symbolic links. */
export function isOwnProgram(file: string): boolean {
  const program = realPath(file);
  if (program === undefined || basename(program) !== 'cli.js') return false;
  const about = readJsonFile(join(dirname(program), '..', 'package.json'));
  return isRecord(about) && about.name === 'trunkline';
}

/** The configuration that arguments of Trunkline name; '' if the value of the option is missing. */
export function configOption(args: readonly string[]): string | undefined {
  const at = args.findIndex((arg) => /^(?:--config(?:=|$)|-c)/.test(arg));
  if (at < 0) return undefined;
  const attached = (args[at] ?? '').replace(/^(?:--config=?|-c)/, '');
  return attached === '' ? (args[at + 1] ?? '') : attached;
}
