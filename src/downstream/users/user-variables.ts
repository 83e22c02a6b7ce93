import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { asUserVariables, userVariable } from '../../config/resolve/references.js';
import { readRegularFileSync } from '../../host/files/whole-file.js';
import { NewestMap } from '../../wire/io/newest-map.js';
import type { ClientOrigin, User } from '../port.js';

interface UserVariablesOptions {
  /** The folder of all variables. Absent if users have none. */
  readonly folder: string | undefined;
  /** The variables that the configuration refers to, those of users and of the environment. */
  readonly names: () => readonly string[];
  /** The variables of this process, which are the same for all users. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The working folder of all users; absolute. */
  readonly workingFolder: string;
  /** Milliseconds on the clock. */
  readonly now: () => number;
  readonly onFault: (file: string, reason: string) => void;
}

/** Shortest time in milliseconds between two readings of the variables of a user. */
const READ_EVERY_MS = 1_000;
const MAX_VALUE_BYTES = 64 * 1024;
const MAX_FOLDER_NAME = 255;
/** Limits of the users whose variables are remembered, and of the faults that are reported once. */
const MAX_USERS = 10_000;
const MAX_FAULTS = 1_000;

/**
 * The variables of users: one file for each, named as the variable. Symbolic links are allowed, because Kubernetes mounts
 * secrets with them. A line break at the end is not part of the value. A missing file is no fault.
 */
export class UserVariables {
  readonly #options: UserVariablesOptions;
  readonly #environment: Readonly<Record<string, string>>;
  /** By principal, the least recently used first. */
  readonly #read = new NewestMap<string, { readonly origin: ClientOrigin; readonly at: number }>(MAX_USERS);
  readonly #reported = new Set<string>();

  constructor(options: UserVariablesOptions) {
    this.#options = options;
    // Leaves out variables of this process that have the name of a user's variable.
    const own = Object.entries(options.environment).filter(([name]) => userVariable(name) === undefined);
    this.#environment = Object.fromEntries(
      own.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
    );
  }

  /** The origin of the clients of a user. The same object as before unless a variable has changed. */
  originOf(user: User): ClientOrigin {
    const now = this.#options.now();
    const known = this.#read.get(user.principal);
    const isNew = known === undefined || now - known.at >= READ_EVERY_MS;
    const entry = isNew ? { origin: this.#changed(user, known?.origin), at: now } : known;
    this.#read.set(user.principal, entry);
    return entry.origin;
  }

  #changed(user: User, before: ClientOrigin | undefined): ClientOrigin {
    const environment = { ...this.#environment, ...asUserVariables(this.#valuesOf(user)) };
    const { principal, name: userName, kind } = user;
    const folder = this.#options.workingFolder;
    const now = { environment, folder, user: principal, userName, isMachine: kind === 'machine' };
    return before !== undefined && isDeepStrictEqual(before, now) ? before : now;
  }

  #valuesOf(user: User): Record<string, string> {
    const { folder, names } = this.#options;
    const own = folder === undefined ? undefined : folderOf(user);
    if (folder === undefined || own === undefined) return {};
    const values = new Set(names().flatMap((name) => userVariable(name) ?? []));
    return Object.fromEntries([...values].flatMap((name) => this.#valueIn(join(folder, ...own, name), name)));
  }

  #valueIn(file: string, name: string): [name: string, value: string][] {
    const found = readRegularFileSync(file, { maxBytes: MAX_VALUE_BYTES, followsLinks: true, isGuarded: true });
    if (found.kind === 'read') return [[name, found.bytes.toString().replace(/\r?\n$/, '')]];
    if (found.kind === 'unusable') this.#report(file, found.reason);
    return [];
  }

  #report(file: string, reason: string): void {
    const fault = `${file}\0${reason}`;
    if (this.#reported.has(fault) || this.#reported.size >= MAX_FAULTS) return;
    this.#reported.add(fault);
    this.#options.onFault(file, reason);
  }
}

/** The users and machines with a folder below the folder of all variables, and the names of their variables. */
export function storedVariables(folder: string): (Pick<User, 'name' | 'kind'> & { variables: string[] })[] {
  const filesIn = (path: string) => (existsSync(path) ? readdirSync(path).filter((name) => !name.startsWith('.')) : []);
  return (['user', 'machine'] as const).flatMap((kind) =>
    filesIn(join(folder, `${kind}s`)).map((own) => {
      const name = Buffer.from(
        own.replaceAll(/%([0-9A-F]{2})/g, (_, byte) => String.fromCharCode(Number.parseInt(byte, 16))),
        'latin1',
      );
      return { name: name.toString(), kind, variables: filesIn(join(folder, `${kind}s`, own)).sort() };
    }),
  );
}

/** The folder of a user below the folder of all variables; `undefined` if the name is too long for a folder. */
export function folderOf({ name, kind }: Pick<User, 'name' | 'kind'>): readonly string[] | undefined {
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
