import { join } from 'node:path';
import type { User } from '../downstream/port.js';
import { readRegularFileSync } from '../files/whole-file.js';

const MAX_VALUE_BYTES = 64 * 1024;
const MAX_FOLDER_NAME = 255;

/**
 * Reads the variables of a user: one file for each, named as the variable. Symbolic links are allowed, because Kubernetes
 * puts secrets in place by them. A line break at the end is not part of the value. A missing file is no fault.
 */
export function readUserVariables(
  folder: string,
  user: Pick<User, 'name' | 'kind'>,
  names: readonly string[],
  onFault: (file: string, reason: string) => void,
): Record<string, string> {
  const own = folderOf(user);
  if (own === undefined) return {};
  const values = names.flatMap((name) => {
    const file = join(folder, ...own, name);
    const found = readRegularFileSync(file, { maxBytes: MAX_VALUE_BYTES, followsLinks: true, isGuarded: true });
    if (found.kind === 'read') return [[name, found.bytes.toString().replace(/\r?\n$/, '')] as const];
    if (found.kind === 'unusable') onFault(file, found.reason);
    return [];
  });
  return Object.fromEntries(values);
}

/** The folder of a user below the folder of all variables; `undefined` if the name is too long for a folder. */
function folderOf({ name, kind }: Pick<User, 'name' | 'kind'>): readonly string[] | undefined {
  const encoded = folderName(name);
  return encoded.length > MAX_FOLDER_NAME ? undefined : [kind === 'machine' ? 'machines' : 'users', encoded];
}

/**
 * The name of a user as the name of a folder. An issuer chooses the name, so it could lead into another folder. All
 * characters but small letters, digits, `_`, `-`, `@` and inner dots become `%` and two digits for each byte. Capital
 * letters do, too, because some file systems do not tell them from small ones.
 */
export function folderName(name: string): string {
  const bytes = [...Buffer.from(name)].map((byte) => {
    const character = String.fromCharCode(byte);
    return /[a-z0-9_@.-]/.test(character) ? character : escaped(byte);
  });
  return bytes.join('').replace(/^\.|\.$/g, escaped(DOT));
}

const DOT = 0x2e;

function escaped(byte: number): string {
  return `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
}
