import { createHash } from 'node:crypto';
import { homedir } from 'node:os';
import { findProjectFile } from '../config/file/find-config.js';
import { privateFile, readRegularFileSync } from '../host/files/whole-file.js';
import { isRecord, parseJson } from '../wire/json/json-value.js';

import { trustedFile } from './user-files.js';

/** The configuration file of a project, with the text that a person has accepted. */
export interface TrustedProject {
  /** Absolute, behind all symbolic links. */
  readonly file: string;
  /** SHA-256 of the text. */
  readonly digest: string;
  /** The accepted text. It stays in use when the file changes, because a changed file must not run. */
  readonly text: string;
}

/** Thrown for a list that cannot be used. No project is trusted then, because the list may be somebody else's. */
export class TrustedFileError extends Error {
  override readonly name = 'TrustedFileError';
}

const FORMAT = 1;
/** Limit of the list: more than a dozen files of the largest size. */
const MAX_BYTES = 16 * 1024 * 1024;

export function trustedProject(file: string, text: string): TrustedProject {
  return { file, digest: createHash('sha256').update(text).digest('hex'), text };
}

/** Reads the list of trusted projects, which only this user may read or write. Throws a `TrustedFileError`. */
export function readTrusted(path: string): readonly TrustedProject[] {
  const found = readRegularFileSync(path, privateFile(MAX_BYTES));
  if (found.kind === 'absent') return [];
  if (found.kind === 'unusable') throw new TrustedFileError(found.reason);
  const value = parseJson(found.bytes.toString());
  const { format, projects } = isRecord(value) ? value : {};
  if (format === FORMAT && Array.isArray(projects) && projects.every(isTrusted)) return projects;
  throw new TrustedFileError('it is damaged, or of another version');
}

/** The accepted text of the project around a folder; '' if there is none, or if the list cannot be read. */
export function trustedTextAround(folder: string): string {
  try {
    const trusted = folder === '' ? [] : readTrusted(trustedFile());
    const file = trusted.length === 0 ? undefined : findProjectFile(folder, homedir());
    return trusted.find((each) => each.file === file)?.text ?? '';
  } catch {
    return '';
  }
}

function isTrusted(value: unknown): value is TrustedProject {
  if (!isRecord(value)) return false;
  const { file, text, digest } = value;
  return typeof file === 'string' && typeof text === 'string' && trustedProject(file, text).digest === digest;
}

/** The text of a list. Throws a `RangeError` if the list would be too large to be read again. */
export function trustedList(projects: readonly TrustedProject[]): string {
  const text = `${JSON.stringify({ format: FORMAT, projects })}\n`;
  if (Buffer.byteLength(text) > MAX_BYTES) throw new RangeError('The list of trusted projects is too large');
  return text;
}
