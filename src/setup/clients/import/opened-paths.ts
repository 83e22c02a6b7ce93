import { statSync } from 'node:fs';
import { basename, dirname, isAbsolute, join, resolve, sep } from 'node:path';
import { expandHome, type Variables } from '../../../config/resolve/references.js';
import { type KeptFile, literalValue } from './kept-file.js';
import type { Run } from './run.js';

/** A file or folder that an argument or a variable of an entry names, or the folder of a file that is to be created. */
export interface OpenedPath {
  /** As `sandbox` has it: with `~` for the home folder. */
  readonly path: string;
  readonly access: 'read' | 'write';
  /** The argument or the variable, for people; without a value. */
  readonly because: string;
}

/** Names of variables and options whose files are read only. */
const READ_ONLY = /cred|cert|key|secret|token|config|_ca|bundle|rules|schema/i;
const SCRIPT = /\.(?:[cm]?[jt]s|[jt]sx|py|pyz|rb|pl|php|lua|sh|jar|wasm)$/i;
const PATH = /^(?:~?\/|\.{1,2}(?:\/|$))/;

/**
 * Finds the files and folders that a confined server needs because its entry names them. Files under a `READ_ONLY` name are for reading,
 * all others for writing. Scripts that it runs are open anyway. Folders that hold much else, such as the home folder, are left out.
 */
export function openedPaths(run: Run, { home, env }: { readonly home: string; readonly env: Variables }): OpenedPath[] {
  const cwd = run.cwd === undefined ? home : resolve(home, expandHome(run.cwd, home));
  const named = [
    ...run.args.map((arg, at): [string, string] => nameAndValue(arg, run.args[at - 1])),
    ...Object.entries(run.env).filter(([name]) => name !== 'PATH' && name !== 'HOME'),
  ];
  const found = named.flatMap(([name, text]): OpenedPath[] => {
    const value = literalValue(text, env);
    if (value === undefined || !PATH.test(value) || SCRIPT.test(value)) return [];
    const path = resolve(cwd, expandHome(value, home));
    const because = name === '' ? 'an argument' : name;
    const access = READ_ONLY.test(name) ? 'read' : 'write';
    const opened = openable(path, access === 'write');
    if (opened === undefined || isBroad(opened, home)) return [];
    return [{ path: shortened(opened, home), access: opened === path && isFile(path) ? access : 'write', because }];
  });
  return found.filter(({ path }, at) => found.findIndex((other) => other.path === path) === at);
}

/** The folder of the server's file in the data folder, because the server may need other files there. */
export function folderOfKeptFile({ file, variable }: KeptFile, home: string): OpenedPath {
  return { path: shortened(dirname(file), home), access: 'write', because: variable };
}

/** The name of the option that an argument belongs to, or '', and its value. */
function nameAndValue(arg: string, previous = ''): [string, string] {
  const [, option = '', value] = /^(--?[\w-]+)=(.*)$/s.exec(arg) ?? [];
  if (value !== undefined) return [option, value];
  return [/^--?[A-Za-z]/.test(previous) && !previous.includes('=') ? previous : '', arg];
}

/** The path if it exists, or else the folder in which it can be created. */
function openable(path: string, isCreated: boolean): string | undefined {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat !== undefined) return stat.isFile() || stat.isDirectory() ? path : undefined;
  const folder = dirname(path);
  return isCreated && statSync(folder, { throwIfNoEntry: false })?.isDirectory() ? folder : undefined;
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

function isBroad(path: string, home: string): boolean {
  const isAbove = home === path || home.startsWith(path.endsWith(sep) ? path : path + sep);
  return isAbove || dirname(path) === sep || ['/tmp', '/var/tmp'].includes(path) || basename(path) === '';
}

function shortened(path: string, home: string): string {
  return isAbsolute(path) && path.startsWith(home + sep) ? join('~', path.slice(home.length)) : path;
}
