import { delimiter, join, resolve } from 'node:path';
import { realPath, statOf } from '../../host/files/whole-file.js';
import type { ChildSpec } from '../../spec/server-spec.js';
import { ServerFault } from '../file/config-error.js';
import { candidateFiles } from '../file/find-config.js';
import { configOption, firstPositional, isOwnProgram, launchedBy, programName } from './command-words.js';
import type { Variables } from './references.js';

interface NestingOptions {
  /** The configuration file that has the server. */
  readonly file: string;
  /** The variables of this process. */
  readonly env: Variables;
  readonly home: string;
  /** Name of the package that the server runs, if it runs one. */
  readonly packageName: string | undefined;
}

/** Variable with the configuration files of the Trunklines above this one, the outermost first. */
const PARENTS = 'TRUNKLINE_PARENTS';

/** The variables for the servers of another file that this configuration file adds, as if this file had started them. */
export function below(file: string, env: Variables): Variables {
  const parents = [...(env[PARENTS] ?? '').split(delimiter).filter(Boolean), realPath(file) ?? file];
  return { ...env, [PARENTS]: parents.join(delimiter) };
}

/**
 * Refuses a server that is Trunkline itself with the configuration file of this Trunkline or of one above it, because each
 * Trunkline would start another one, without end. Throws a `ServerFault` then. With another file, returns the variables that
 * tell the nested Trunkline the files above it. For any other program, returns no variables.
 */
export function checkNesting(
  child: ChildSpec,
  { file, env, home, packageName }: NestingOptions,
): Readonly<Record<string, string>> {
  const path = child.env.PATH ?? env.PATH ?? env.Path ?? '';
  const args = packageName === 'trunkline' ? child.args : ownArguments(child, path);
  // With `--as-server`, Trunkline replays a recording and reads no configuration.
  if (args === undefined || args.some((arg) => /^--as-server(?:=|$)/.test(arg))) return {};
  const own = realPath(file) ?? file;
  const parents = [...(env[PARENTS] ?? '').split(delimiter).filter(Boolean), own];
  const nested = realPath(configOf(args, child, env.HOME ?? env.USERPROFILE ?? home));
  if (nested !== undefined && parents.includes(nested)) {
    throw new ServerFault(
      nested === own
        ? 'this server is Trunkline itself with the same configuration file, so it would start itself without end'
        : 'this server is Trunkline itself with a configuration file that has started this one, so they would start each other without end',
      'remove this server, or give it another configuration file with `--config`',
    );
  }
  return { [PARENTS]: parents.join(delimiter) };
}

/** The arguments for Trunkline in a command line; `undefined` if the command line runs another program. */
function ownArguments({ command, args, cwd }: Parameters<typeof checkNesting>[0], path: string) {
  const name = programName(command);
  if (name === 'trunkline') return args;
  if (/^(?:node|nodejs|bun)$/.test(name) && args[0] !== 'x') {
    const script = firstPositional(args, /^(?:-r|--require|--import|--loader|--experimental-loader|--env-file)$/);
    const isOwn = script >= 0 && isOwnProgram(resolve(cwd, args[script] ?? ''));
    return isOwn ? args.slice(script + 1) : undefined;
  }
  const launched = launchedBy(command, args);
  if (launched !== undefined) return launched.name === 'trunkline' ? launched.rest : undefined;
  return isOwnProgram(locate(command, cwd, path)) ? args : undefined;
}

function locate(command: string, cwd: string, path: string): string {
  if (/[\\/]/.test(command)) return resolve(cwd, command);
  const folders = path.split(delimiter).filter(Boolean);
  return folders.map((folder) => join(folder, command)).find(isFile) ?? '';
}

/** The configuration file that a Trunkline with these arguments reads; '' if it finds none. */
function configOf(args: readonly string[], { cwd, env }: Parameters<typeof checkNesting>[0], home: string): string {
  const named = configOption(args);
  if (named !== undefined) return named === '' ? '' : resolve(cwd, named);
  if (env.TRUNKLINE_CONFIG) return resolve(cwd, env.TRUNKLINE_CONFIG);
  // The current folder counts, because older versions search it. Only the entry's own variables count, because servers do not inherit TRUNKLINE_CONFIG and variables with folders.
  const { platform } = process;
  return candidateFiles({ cwd, env, home: env.HOME ?? home, platform }).find(isFile) ?? '';
}

function isFile(path: string): boolean {
  return statOf(path)?.isFile() === true;
}
