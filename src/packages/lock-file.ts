import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { errorCode } from '../errors/error-text.js';
import { replaceFileSync } from '../files/whole-file.js';
import { isRecord } from '../json/is-record.js';

/** What a `package:` of a configuration stands for, once that has been settled. */
export interface LockedPackage {
  readonly version: string;
  /** Of the package itself, as npm writes it. */
  readonly integrity: string;
  /** The package and all that it needs, by folder, each with version and integrity: the `packages` of npm's own lock file. */
  readonly tree: Readonly<Record<string, unknown>>;
}

/** A lock file that is there but cannot be used. It is never ignored: it says which packages may run. */
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
  /** Where the lock of a configuration is kept whose own folder cannot be written. */
  readonly fallbackFolder: string;
}

/** The name of the file beside the configuration. */
const LOCK_FILE_NAME = 'trunkline.lock';

/**
 * Which versions the packages of a configuration stand for: `trunkline.lock`, beside the configuration.
 *
 * It holds no address of a registry, so that it is good wherever the packages can be had. Where the folder cannot be
 * written, what is new is kept in a folder of the user's instead; what stands beside the configuration wins.
 */
export class LockFile {
  readonly #beside: string;
  readonly #fallback: string;

  constructor({ configFile, fallbackFolder }: LockFileOptions) {
    this.#beside = join(dirname(configFile), LOCK_FILE_NAME);
    const digest = createHash('sha256').update(configFile).digest('hex').slice(0, 16);
    this.#fallback = join(fallbackFolder, `${digest}.lock`);
  }

  /** Beside the configuration. */
  get path(): string {
    return this.#beside;
  }

  /** What is locked, by `name` or `name@version` as the configuration asks for it. Throws a `LockFileError`. */
  read(): ReadonlyMap<string, LockedPackage> {
    return new Map([...readLock(this.#fallback), ...readLock(this.#beside)]);
  }

  /**
   * Locks one more package, or anew; nobody else may write meanwhile. Returns the file that says so now, which is
   * another one than `path` where that cannot be written.
   */
  lock(spec: string, locked: LockedPackage): string {
    try {
      writeLock(this.#beside, new Map([...readLock(this.#beside), [spec, locked]]));
      return this.#beside;
    } catch (error) {
      if (!isUnwritable(error) || readLock(this.#beside).has(spec)) throw error;
    }
    writeLock(this.#fallback, new Map([...readLock(this.#fallback), [spec, locked]]));
    return this.#fallback;
  }
}

/** Of the form, not of Trunkline. */
const LOCK_VERSION = 1;

function readLock(file: string): ReadonlyMap<string, LockedPackage> {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (cause) {
    if (errorCode(cause) === 'ENOENT') return new Map();
    throw new LockFileError(`${file} cannot be read (${errorCode(cause) ?? 'unknown'})`, 'mend its permissions', {
      cause,
    });
  }
  const { lockVersion, packages } = parse(text, file);
  if (lockVersion !== LOCK_VERSION) {
    throw new LockFileError(`${file} is of another version of Trunkline`, 'use the version that wrote it');
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
  const hint = 'put back what was there, or remove it to have the newest versions locked anew';
  return new LockFileError(`${file} is no lock file any more`, hint, options);
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

/** Complete or not at all; sorted, so that what changes is seen in a diff. */
function writeLock(file: string, packages: ReadonlyMap<string, LockedPackage>): void {
  const sorted = [...packages].sort(([one], [other]) => (one < other ? -1 : 1));
  const text = JSON.stringify({ lockVersion: LOCK_VERSION, packages: Object.fromEntries(sorted) }, undefined, 1);
  // It holds no secrets, and belongs into version control.
  replaceFileSync(file, `${text}\n`, { mode: 0o666 });
}

function isUnwritable(error: unknown): boolean {
  return ['EACCES', 'EPERM', 'EROFS'].includes(errorCode(error) ?? '');
}
