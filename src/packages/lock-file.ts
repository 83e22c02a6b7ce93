import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { errorCode } from '../errors/error-text.js';
import { replaceFileSync } from '../files/whole-file.js';
import { isRecord } from '../json/is-record.js';

/** The exact version of a `package:` of the configuration, and of everything that it depends on. */
export interface LockedPackage {
  readonly version: string;
  /** Integrity of the package itself, as npm writes it. */
  readonly integrity: string;
  /** The package and its dependencies by folder, each with version and integrity: `packages` of npm's lock file. */
  readonly tree: Readonly<Record<string, unknown>>;
}

/** A lock file that exists and cannot be used. It must not be ignored: it says which packages may run. */
export class LockFileError extends Error {
  override readonly name = 'LockFileError';
  readonly hint: string;

  constructor(message: string, hint: string, options?: ErrorOptions) {
    super(message, options);
    this.hint = hint;
  }
}

export interface LockFileOptions {
  readonly configFile: string;
  /** Folder for the lock file when the folder of the configuration cannot be written. */
  readonly fallbackFolder: string;
}

const LOCK_FILE_NAME = 'trunkline.lock';

/**
 * Locks the versions of the packages of a configuration in `trunkline.lock`, next to the configuration file.
 *
 * The file has no registry addresses, so it works with every registry. When the folder cannot be written, new entries
 * go to a file in the user's data folder; entries next to the configuration win.
 */
export class LockFile {
  readonly #path: string;
  readonly #fallbackPath: string;

  constructor({ configFile, fallbackFolder }: LockFileOptions) {
    this.#path = join(dirname(configFile), LOCK_FILE_NAME);
    const digest = createHash('sha256').update(configFile).digest('hex').slice(0, 16);
    this.#fallbackPath = join(fallbackFolder, `${digest}.lock`);
  }

  /** The file next to the configuration. */
  get path(): string {
    return this.#path;
  }

  /** Reads all entries, by `lockKey`. Throws a `LockFileError`. */
  read(): ReadonlyMap<string, LockedPackage> {
    return new Map([...readLock(this.#fallbackPath), ...readLock(this.#path)]);
  }

  /**
   * Adds or replaces an entry. The caller must hold the store lock. Returns the file that was written, which is not `path`
   * when that cannot be written.
   */
  lock(spec: string, locked: LockedPackage): string {
    try {
      writeLock(this.#path, new Map([...readLock(this.#path), [spec, locked]]));
      return this.#path;
    } catch (error) {
      if (!isUnwritable(error) || readLock(this.#path).has(spec)) throw error;
    }
    writeLock(this.#fallbackPath, new Map([...readLock(this.#fallbackPath), [spec, locked]]));
    return this.#fallbackPath;
  }
}

/** Version of the file format. */
const LOCK_VERSION = 1;

function readLock(file: string): ReadonlyMap<string, LockedPackage> {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (cause) {
    if (errorCode(cause) === 'ENOENT') return new Map();
    throw new LockFileError(`${file} cannot be read (${errorCode(cause) ?? 'unknown'})`, 'correct its permissions', {
      cause,
    });
  }
  const { lockVersion, packages } = parse(text, file);
  if (lockVersion !== LOCK_VERSION) {
    throw new LockFileError(`${file} was written by another version of Trunkline`, 'use that version');
  }
  if (!isRecord(packages)) throw malformed(file);
  return new Map(
    Object.entries(packages).map(([spec, locked]) => {
      if (!isLockedPackage(locked)) throw malformed(file);
      return [spec, locked];
    }),
  );
}

function parse(text: string, file: string): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw malformed(file, { cause });
  }
  if (!isRecord(value)) throw malformed(file);
  return value;
}

function malformed(file: string, options?: ErrorOptions): LockFileError {
  const hint = 'restore it, or remove it to lock the newest versions';
  return new LockFileError(`${file} is not a valid lock file`, hint, options);
}

const EXACT_VERSION = /^\d+\.\d+\.\d+[\w.+-]*$/;
const INTEGRITY = /^sha\d+-[\w+/=]+/;

function isLockedPackage(value: unknown): value is LockedPackage {
  return (
    isRecord(value) &&
    typeof value.version === 'string' &&
    EXACT_VERSION.test(value.version) &&
    typeof value.integrity === 'string' &&
    INTEGRITY.test(value.integrity) &&
    isRecord(value.tree)
  );
}

/** Entries are sorted, so that a diff shows what changed. */
function writeLock(file: string, packages: ReadonlyMap<string, LockedPackage>): void {
  const sorted = [...packages].sort(([one], [other]) => (one < other ? -1 : 1));
  const text = JSON.stringify({ lockVersion: LOCK_VERSION, packages: Object.fromEntries(sorted) }, undefined, 1);
  // It holds no secrets, and belongs into version control.
  replaceFileSync(file, `${text}\n`, { mode: 0o666 });
}

function isUnwritable(error: unknown): boolean {
  return ['EACCES', 'EPERM', 'EROFS'].includes(errorCode(error) ?? '');
}
