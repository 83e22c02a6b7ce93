import { createHash } from 'node:crypto';
import { dirname, join } from 'node:path';
import { errorCode } from '../errors/error-text.js';
import { HintedError } from '../errors/usage-error.js';
import { readRegularFileSync, realPath, replaceFileSync } from '../files/whole-file.js';
import { isRecord, parseJson } from '../json/json-value.js';

/** The exact version of a `package:` of the configuration, and of everything that it depends on. */
export interface LockedPackage {
  readonly version: string;
  /** Integrity of the package itself, as npm writes it. */
  readonly integrity: string;
  /** The package and its dependencies by folder, each with version and integrity: `packages` of npm's lock file. */
  readonly tree: Readonly<Record<string, unknown>>;
}

/** A lock file that exists and cannot be used. It must not be ignored: it says which packages may run. */
export class LockFileError extends HintedError {
  override readonly name = 'LockFileError';
}

export interface LockFileOptions {
  readonly configFile: string;
  /** Folder for the lock file when the folder of the configuration cannot be written. */
  readonly locksFolder: string;
  /** Called once with each empty file. */
  readonly onEmpty?: (file: string) => void;
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
  readonly #onEmpty: (file: string) => void;
  readonly #empty = new Set<string>();

  constructor({ configFile, locksFolder, onEmpty = () => {} }: LockFileOptions) {
    this.#onEmpty = onEmpty;
    this.#path = join(dirname(configFile), LOCK_FILE_NAME);
    const digest = createHash('sha256').update(configFile).digest('hex').slice(0, 16);
    this.#fallbackPath = join(locksFolder, `${digest}.lock`);
  }

  /** The file next to the configuration. */
  get path(): string {
    return this.#path;
  }

  /** Reads all entries, by `lockKey`. Throws a `LockFileError`. */
  read(): ReadonlyMap<string, LockedPackage> {
    return new Map([...this.#read(this.#fallbackPath), ...this.#read(this.#path)]);
  }

  /**
   * Adds or replaces an entry. The caller must hold the store lock. Returns the file that was written, which is not `path`
   * when that cannot be written.
   */
  lock(spec: string, locked: LockedPackage): string {
    try {
      writeLock(this.#path, new Map([...this.#read(this.#path), [spec, locked]]));
      return this.#path;
    } catch (error) {
      if (!isUnwritable(error) || this.#read(this.#path).has(spec)) throw error;
    }
    writeLock(this.#fallbackPath, new Map([...this.#read(this.#fallbackPath), [spec, locked]]));
    return this.#fallbackPath;
  }

  /** An empty file locks nothing, just as none. Any other damage may be a conflict of versions, and is for its owner to mend. */
  #read(file: string): ReadonlyMap<string, LockedPackage> {
    const text = readText(file);
    if (text === undefined) return new Map();
    if (!EMPTY.test(text)) return readLock(text, file);
    if (!this.#empty.has(file)) this.#onEmpty(file);
    this.#empty.add(file);
    return new Map();
  }
}

/** Version of the file format. */
const LOCK_VERSION = 1;

/** More than npm's own lock file of a thousand packages. */
const MAX_LOCK_BYTES = 64 * 1024 * 1024;

/** Nothing, or what a file system leaves of a file that was not on the disk yet when the power failed. */
const EMPTY = /^[\s\0]*$/;

/** The text of a lock file; `undefined` if there is none. The file may be a link, as dotfile managers make them. */
function readText(file: string): string | undefined {
  const found = readRegularFileSync(file, { maxBytes: MAX_LOCK_BYTES, followsLinks: true });
  if (found.kind === 'absent') return undefined;
  if (found.kind === 'read') return found.bytes.toString();
  const { fault, reason, cause } = found;
  const hint =
    fault === 'unreadable' ? 'correct its permissions' : 'restore it, or remove it to lock the newest versions';
  throw new LockFileError(`${file} cannot be used: ${reason}`, hint, { cause });
}

function readLock(text: string, file: string): ReadonlyMap<string, LockedPackage> {
  const { lockVersion, packages } = recordOr(parseJson(text), file);
  if (lockVersion !== LOCK_VERSION) {
    throw new LockFileError(`${file} was written by another version of Trunkline`, 'use that version');
  }
  const entries = Object.entries(recordOr(packages, file));
  return new Map(entries.map(([spec, locked]) => [spec, isLockedPackage(locked) ? locked : malformed(file)]));
}

function recordOr(value: unknown, file: string): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : malformed(file);
}

function malformed(file: string): never {
  throw new LockFileError(`${file} is not a valid lock file`, 'restore it, or remove it to lock the newest versions');
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

/** Entries are sorted, so that a diff shows what changed. The target of a link is replaced, not the link. */
function writeLock(file: string, packages: ReadonlyMap<string, LockedPackage>): void {
  const sorted = [...packages].sort(([one], [other]) => (one < other ? -1 : 1));
  const text = JSON.stringify({ lockVersion: LOCK_VERSION, packages: Object.fromEntries(sorted) }, undefined, 1);
  // It holds no secrets, and belongs into version control.
  replaceFileSync(realPath(file) ?? file, `${text}\n`, { mode: 0o666, flush: true });
}

function isUnwritable(error: unknown): boolean {
  return ['EACCES', 'EPERM', 'EROFS'].includes(errorCode(error) ?? '');
}
