import { dirname, isAbsolute, join, win32 } from 'node:path';
import type { FoundCommand, FoundServer } from '../clients/files/found-server.js';
import { isOurselves } from '../clients/files/own-entry.js';
import { realPath } from '../files/regular-file.js';
import { readJsonFile } from '../files/whole-file.js';
import { isRecord } from '../json/json-value.js';
import type { Machine } from './machine.js';

/** An entry of a client that runs Trunkline, or connects to one. */
export interface Registration {
  readonly server: FoundServer;
  /** The file of Trunkline's program that the entry names; `undefined` for a name such as `npx`, and for an address. */
  readonly program: string | undefined;
  /** The version of that program; `undefined` if it is unknown. */
  readonly version: string | undefined;
}

/** The entries that are Trunkline, whatever their names are. */
export function findRegistrations(servers: readonly FoundServer[], machine: Pick<Machine, 'program'>): Registration[] {
  return servers.flatMap((server): Registration[] => {
    const { run, name } = server;
    if (run.kind === 'remote') {
      const isOwn = name === 'trunkline' && isLoopback(run.url);
      return isOwn ? [{ server, program: undefined, version: undefined }] : [];
    }
    if (!isOurselves(run, machine.program)) return [];
    const program = programIn(run);
    return [{ server, program, version: program === undefined ? undefined : versionAt(program) }];
  });
}

/** `Claude Code (user, as trunkline)`. */
export function titleOf({ server: { place, name } }: Registration): string {
  return `${place.title} (${place.scope}, as ${name})`;
}

/** The value of an option of Trunkline in the arguments of an entry. */
export function optionIn({ args }: FoundCommand, long: string, short: string): string | undefined {
  const at = args.findIndex((arg) => arg === long || arg === short);
  return at >= 0 ? args[at + 1] : args.find((arg) => arg.startsWith(`${long}=`))?.slice(long.length + 1);
}

/** The file of the program itself, whether it exists or not. */
function programIn({ command, args }: FoundCommand): string | undefined {
  return [command, ...args].find(
    (word) => isAbsolutePath(word) && /[\\/](?:cli\.js|trunkline(?:\.cmd|\.exe)?)$/i.test(word),
  );
}

function versionAt(program: string): string | undefined {
  for (let folder = dirname(realPath(program) ?? program); folder !== dirname(folder); folder = dirname(folder)) {
    const manifest = readJsonFile(join(folder, 'package.json'));
    if (isRecord(manifest) && manifest.name === 'trunkline') return String(manifest.version);
  }
  return undefined;
}

/** Accepts Windows paths on every system, because tests run on another one. */
export function isAbsolutePath(path: string): boolean {
  return isAbsolute(path) || /^[a-z]:[\\/]/i.test(path) || (path.startsWith('\\\\') && win32.isAbsolute(path));
}

export function isLoopback(url: string): boolean {
  return /^https?:\/\/(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?(?:\/|$)/i.test(url);
}
