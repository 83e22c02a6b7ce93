import { accessSync, closeSync, constants, openSync, readSync, statSync } from 'node:fs';
import { isAbsolute, join, resolve } from 'node:path';
import { type Machine, pathSeparator, variableOf } from './machine.js';

export type FoundProgram =
  | { readonly kind: 'found'; readonly file: string }
  | { readonly kind: 'missing' }
  /** A file or folder is there that cannot be run. */
  | { readonly kind: 'not-executable'; readonly file: string };

type System = Pick<Machine, 'platform' | 'env'>;

/** Finds the program of a command as the system does: a path as it is, and a name in the folders of this PATH. */
export function findCommand(command: string, path: string, cwd: string, system: System): FoundProgram {
  const isPath = command.includes('/') || (system.platform === 'win32' && command.includes('\\'));
  const folders = isPath ? [''] : path.split(pathSeparator(system)).filter(Boolean);
  let unusable: string | undefined;
  for (const folder of folders) {
    for (const suffix of suffixes(command, system)) {
      const file = isAbsolute(command) ? command + suffix : resolve(cwd, join(folder, command + suffix));
      const state = stateOf(file);
      if (state === 'program') return { kind: 'found', file };
      if (state === 'unusable') unusable ??= file;
    }
  }
  return unusable === undefined ? { kind: 'missing' } : { kind: 'not-executable', file: unusable };
}

/** File name extensions that a command may omit: Windows finds `npx.cmd` for `npx`. */
function suffixes(command: string, system: System): readonly string[] {
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
export function interpreterOf(file: string): string | undefined {
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
    // It may be run without being read.
    return undefined;
  }
}
