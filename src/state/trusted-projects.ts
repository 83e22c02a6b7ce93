import { createHash } from 'node:crypto';
import { homedir } from 'node:os';
import { dirname, isAbsolute, relative, sep } from 'node:path';
import { ConfigError } from '../config/file/config-error.js';
import { candidateFiles, currentFolder, findProjectFile, hasUserConfig } from '../config/file/find-config.js';
import { privateFile, readRegularFileSync, realPath, statOf } from '../host/files/whole-file.js';
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

/**
 * Whether the file in the working folder is the configuration. In the folder of a trusted project, or below it, no file is, because it may
 * have come with a pull and nobody has accepted it. The accepted text stands beside the configuration of the user instead. Throws a
 * `ConfigError` if there is a file, but no accepted text in its place.
 */
export function isFolderConfig(cwd = currentFolder()): boolean {
  const user = { env: process.env, home: homedir(), platform: process.platform };
  const ofUser = candidateFiles({ ...user, cwd: '' });
  const found = candidateFiles({ ...user, cwd }).find((file) => statOf(file)?.isFile() === true);
  if (found === undefined || ofUser.includes(found)) return true;
  const projects = readOrRefuse(found);
  // The file may be a link into the folder of a project.
  const folders = [realPath(cwd), dirname(realPath(found) ?? found)];
  const around = projects.find(({ file }) => folders.some((folder) => isWithin(folder, dirname(file))));
  if (around === undefined) return true;
  const nearest = findProjectFile(cwd, user.home);
  if (!projects.some(({ file }) => file === nearest)) {
    const message = `the file is not used, because the project of ${around.file} is trusted, and this file is not`;
    throw unused(
      found,
      message,
      'see what it runs and accept it: `trunkline trust`; or name a file with --config FILE',
    );
  }
  if (hasUserConfig(user)) return false;
  const message = 'the file is trusted to stand beside your own configuration, but you have none';
  throw unused(found, message, 'create one: `trunkline init`; or use the present text of the file: --config FILE');
}

function readOrRefuse(found: string): readonly TrustedProject[] {
  const list = trustedFile();
  try {
    return readTrusted(list);
  } catch (error) {
    if (!(error instanceof TrustedFileError)) throw error;
    const message = `the file is not used, because the list of trusted projects (${list}) cannot be: ${error.message}`;
    throw unused(
      found,
      message,
      'repair or remove the list, then run `trunkline trust`; or name a file with --config FILE',
    );
  }
}

function unused(file: string, message: string, hint: string): ConfigError {
  return new ConfigError('config-unreadable', file, [{ message, hint }]);
}

function isWithin(folder: string | undefined, top: string): boolean {
  if (folder === undefined) return false;
  const [first] = relative(top, folder).split(sep);
  return first !== '..' && !isAbsolute(relative(top, folder));
}

/**
 * The accepted text of the project around a folder; '' if there is none, or if the list cannot be read, because no project counts then.
 * Tells what the text names only, and never decides which file runs.
 */
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
