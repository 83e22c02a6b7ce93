import { randomBytes } from 'node:crypto';
import { linkSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { link, mkdir, rename, unlink, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { errorCode } from '../errors/error-text.js';
import { parseJson } from '../json/json-value.js';
import { readRegularFileSync } from './regular-file.js';

/*
 * Files that are written completely or not at all: into a draft in the same folder, which a rename or a link then puts
 * in place. The drafts have random names, since gateways in different containers can share a folder and have the same
 * pid. Folders that are missing are created for the owner alone.
 */

/** The end of the names of drafts. A gateway that is killed while it writes leaves one behind. */
export const DRAFT_SUFFIX = '.tmp';

interface WriteOptions {
  /** Permissions of the file; only the owner can read and write it by default. */
  readonly mode?: number;
  /** Waits until the disk has the content, so that a power failure does not leave an empty file. */
  readonly flush?: boolean;
}

/** Creates the file or replaces its content. */
export async function replaceFile(file: string, content: string | Uint8Array, options?: WriteOptions): Promise<void> {
  await withDraft(file, content, options, (draft) => rename(draft, file));
}

/** Creates the file. Returns false, and changes nothing, when there is one already. */
export async function createFile(file: string, content: string | Uint8Array, options?: WriteOptions): Promise<boolean> {
  // A rename would replace a file that another process created meanwhile; a link fails.
  return await withDraft(file, content, options, async (draft) => {
    const isCreated = await link(draft, file).then(() => true, unlessTaken);
    await removeDraft(draft);
    return isCreated;
  });
}

/** `replaceFile`, for callers that must know the outcome at once. */
export function replaceFileSync(file: string, content: string | Uint8Array, options?: WriteOptions): void {
  withDraftSync(file, content, options, (draft) => renameSync(draft, file));
}

/** `createFile`, for callers that must know the outcome at once. */
export function createFileSync(file: string, content: string | Uint8Array, options?: WriteOptions): boolean {
  return withDraftSync(file, content, options, (draft) => {
    try {
      linkSync(draft, file);
      return true;
    } catch (error) {
      return unlessTaken(error);
    }
  });
}

/** Returns false when the error says that the name is taken; throws every other error. */
function unlessTaken(error: unknown): false {
  if (errorCode(error) === 'EEXIST') return false;
  throw error;
}

/** `publish` must leave no draft behind, unless it rejects. Each step is a round trip through a thread, so none is done in vain. */
async function withDraft<T>(
  file: string,
  content: string | Uint8Array,
  { mode = 0o600, flush = false }: WriteOptions = {},
  publish: (draft: string) => Promise<T>,
): Promise<T> {
  const draft = draftOf(file);
  const write = () => writeFile(draft, content, { mode, flush, flag: 'wx' });
  try {
    await write().catch(async (error) => {
      if (errorCode(error) !== 'ENOENT') throw error;
      await mkdir(dirname(file), { recursive: true, mode: 0o700 });
      await write();
    });
    return await publish(draft);
  } catch (error) {
    // The first error says what is wrong. Where the folder is none, the draft cannot be removed, either.
    await removeDraft(draft).catch(() => {});
    throw error;
  }
}

function withDraftSync<T>(
  file: string,
  content: string | Uint8Array,
  { mode = 0o600, flush = false }: WriteOptions = {},
  publish: (draft: string) => T,
): T {
  const draft = draftOf(file);
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  try {
    writeFileSync(draft, content, { mode, flush, flag: 'wx' });
    return publish(draft);
  } finally {
    rmSync(draft, { force: true });
  }
}

/** Mostly there is none left. `rm` would load more code, and look for the file first. */
async function removeDraft(draft: string): Promise<void> {
  await unlink(draft).catch((error: unknown) => {
    if (errorCode(error) !== 'ENOENT') throw error;
  });
}

function draftOf(file: string): string {
  return `${file}.${randomBytes(6).toString('hex')}${DRAFT_SUFFIX}`;
}

/** More than npm ever writes. */
const MAX_BYTES = 64 * 1024 * 1024;

/** Reads JSON that another program has written, such as npm. `undefined` if it is missing, damaged or not a regular file. */
export function readJsonFile(file: string): unknown {
  const found = readRegularFileSync(file, { maxBytes: MAX_BYTES, followsLinks: true });
  return found.kind === 'read' ? parseJson(found.bytes.toString()) : undefined;
}
