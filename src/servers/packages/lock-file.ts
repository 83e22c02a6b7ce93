import { createHash } from 'node:crypto';
import { dirname, join } from 'node:path';
import { errorCode } from '../../host/errors/error-text.js';
import { systemFault } from '../../host/errors/file-error.js';
import { HintedError } from '../../host/errors/usage-error.js';
import { readRegularFileSync, realPath, replaceFileSync } from '../../host/files/whole-file.js';
import { isRecord, parseJson } from '../../wire/json/json-value.js';

/** The exact versions of a `package:` of the configuration and of its dependencies. */
export interface LockedPackage {
  readonly version: string;
  /** Integrity of the package itself, as npm writes it. */
  readonly integrity: string;
  /** `packages` of npm's lock file: the package and its dependencies by folder, each with version and integrity. */
  readonly tree: Readonly<Record<string, unknown>>;
}

/** Thrown for a lock file that cannot be used. The file must not be ignored, because it lists the packages that may run. */
export class LockFileError extends HintedError {
  override readonly name = 'LockFileError';
}

export interface LockFileOptions {
  readonly configFile: string;
  /** Folder for the lock file when the folder of the configuration cannot be written. */
  readonly locksFolder: string;
  /** Called once for each empty file. */
  readonly onEmpty?: (file: string) => void;
}

const LOCK_FILE_NAME = 'trunkline.lock';

/**
 * Locks the versions of a configuration's packages in `trunkline.lock`, next to the configuration file.
 *
 * The file works with every registry, because it contains no registry addresses. If the folder cannot be written, new entries
 * go to a file in the user's data folder. Entries next to the configuration override those entries.
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

  /** Adds or replaces the entry of a `lockKey`. The caller must hold the store lock. Returns the written file, `path` or the fallback. */
  lock(spec: string, locked: LockedPackage): string {
    try {
      writeLock(this.#path, new Map([...this.#read(this.#path), [spec, locked]]));
      return this.#path;
    } catch (error) {
      if (!['EACCES', 'EPERM', 'EROFS'].includes(errorCode(error) ?? '') || this.#read(this.#path).has(spec))
        throw error;
    }
    writeLock(this.#fallbackPath, new Map([...this.#read(this.#fallbackPath), [spec, locked]]));
    return this.#fallbackPath;
  }

  /** Reads a file. An empty file counts as missing. Any other damage throws, because the owner may have to resolve a conflict. */
  #read(file: string): ReadonlyMap<string, LockedPackage> {
    const text = readText(file);
    if (text === undefined) return new Map();
    if (!EMPTY.test(text)) return readLock(text, file);
    if (!this.#empty.has(file)) this.#onEmpty(file);
    this.#empty.add(file);
    return new Map();
  }
}

const LOCK_VERSION = 1;

/** Size limit, above npm's own lock file of a thousand packages. */
const MAX_LOCK_BYTES = 64 * 1024 * 1024;

/** An empty text, or the zeros of a file whose content was not on the disk yet at a power failure. */
const EMPTY = /^[\s\0]*$/;

/** The text of a lock file; `undefined` if the file is missing. Allows symbolic links, because dotfile managers create them. */
function readText(file: string): string | undefined {
  const found = readRegularFileSync(file, { maxBytes: MAX_LOCK_BYTES, followsLinks: true });
  if (found.kind === 'absent') return undefined;
  if (found.kind === 'read') return found.bytes.toString();
  const { fault, reason, cause } = found;
  const hint =
    fault === 'unreadable' ? systemFault(cause).hint : 'restore it, or remove it to lock the newest versions';
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

/** A version as registries have it. Names of folders contain it, so it has no separator of a path. */
export const REGISTRY_VERSION = /^\d+\.\d+\.\d+[\w.+-]*$/;
export const INTEGRITY = /^sha\d+-[\w+/=]+/;

function isLockedPackage(value: unknown): value is LockedPackage {
  return (
    isRecord(value) &&
    typeof value.version === 'string' &&
    REGISTRY_VERSION.test(value.version) &&
    typeof value.integrity === 'string' &&
    INTEGRITY.test(value.integrity) &&
    isRecord(value.tree)
  );
}

/** Writes a lock file, with sorted entries for readable diffs. A symbolic link stays a link. */
function writeLock(file: string, packages: ReadonlyMap<string, LockedPackage>): void {
  const sorted = [...packages].sort(([one], [other]) => (one < other ? -1 : 1));
  const text = JSON.stringify({ lockVersion: LOCK_VERSION, packages: Object.fromEntries(sorted) }, undefined, 1);
  if (Buffer.byteLength(text) >= MAX_LOCK_BYTES)
    throw new LockFileError(`${file} would be too large to be read again`, 'remove the package that was added last');
  // Readable for others, because the file has no secrets and belongs in version control.
  replaceFileSync(realPath(file) ?? file, `${text}\n`, { mode: 0o666, flush: true });
}
