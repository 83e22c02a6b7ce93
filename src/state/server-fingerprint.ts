import { createHmac } from 'node:crypto';
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { ServerConfig } from '../config/resolve/config.js';
import type { ChildSpec } from '../supervision/launcher.js';

/** What tells the program of a server from others, and from its own other versions. */
export function programOf(server: ServerConfig, { command, args, cwd, env, missing }: ChildSpec): readonly unknown[] {
  const variables = Object.entries(env).sort(([a], [b]) => (a < b ? -1 : 1));
  // The program of a package that is not installed yet is not among the arguments.
  const version = missing === undefined ? (server.package?.found?.version ?? null) : [missing.name, missing.version];
  return [command, args, cwd, variables, version, filesOf(command, args, cwd)];
}

/**
 * The name of the file that caches something about a server. Values of the configuration reach the disk only as an HMAC
 * under the secret.
 */
export function fileNameOf({ key }: ServerConfig, kind: 'catalogue' | 'era', what: unknown, secret: string): string {
  const fingerprint = createHmac('sha256', secret)
    .update(`trunkline ${kind}\0${JSON.stringify(what)}`)
    .digest('hex');
  return `${key}-${fingerprint.slice(0, FINGERPRINT_LENGTH)}${kind === 'era' ? '-era' : ''}`;
}

const FINGERPRINT_LENGTH = 32;

/** The first argument counts as a program when it has such an extension; other arguments may be data of the server. */
const PROGRAM = /\.(?:[cm]?[jt]s|py|rb|sh|jar)$/;

/** Size and time of the program's files: an updated program may have another catalogue. */
function filesOf(command: string, args: readonly string[], cwd: string): readonly unknown[] {
  const [first = ''] = args;
  return [command, ...(PROGRAM.test(first) ? [first] : [])].map((file) => stateOf(resolve(cwd, file)));
}

function stateOf(file: string): unknown {
  try {
    const stats = statSync(file);
    return stats.isFile() ? [stats.size, stats.mtimeMs] : null;
  } catch {
    // The command is looked up in PATH, or the file cannot be read.
    return null;
  }
}
