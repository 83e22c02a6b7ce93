import { FileRefusal } from '../../files/edit/parse-text.js';
import { readRegularFile } from '../../files/regular-file.js';
import { type CarryOutOptions, makeChange } from './carry-out.js';
import type { Change, ChangeJournal, TouchedEntry } from './change-journal.js';
import {
  dropBackup,
  hashOf,
  MAX_FILE_BYTES,
  readClientFile,
  removeClientFile,
  textOf,
  writeClientFile,
} from './client-file.js';
import { type Client, clientNamed } from './client-table.js';
import { isOurselves } from './identity.js';
import { OWN_NAME } from './own-entry.js';
import { placeAt } from './plan-change.js';
import { readEntry } from './read-entry.js';
import { entryIn, withEntry, withoutEntry } from './read-servers.js';

export interface UndoOptions extends Pick<CarryOutOptions, 'system' | 'journal' | 'now' | 'runProgram'> {
  readonly cliPath: string;
}

/** What an undo has done with a file. */
export type Undone =
  /** It is byte for byte what it was. */
  | 'restored'
  /** Trunkline had created it. */
  | 'deleted'
  /** It has changed since, so only the entries were put back. */
  | 'entries'
  /** There is nothing left to take back. */
  | 'nothing';

/** The changes to take back, the newest first: of the last command, or of the last command for each of these clients. */
export async function changesToUndo(journal: ChangeJournal, clients: readonly string[] | undefined): Promise<Change[]> {
  const newestFirst = [...(await journal.read())].reverse();
  if (clients === undefined) return newestFirst.filter(({ run }) => run === newestFirst[0]?.run);
  return clients.flatMap((client) => {
    const own = newestFirst.filter((change) => change.client === client);
    return own.filter(({ run }) => run === own[0]?.run);
  });
}

/** Takes one change back. Throws a `FileRefusal` if that is impossible. */
export async function undoChange(change: Change, options: UndoOptions): Promise<Undone> {
  const client = clientNamed(change.client);
  if (client === undefined) throw new FileRefusal(`this version of Trunkline does not know ${change.client}`);
  const undone = (await restore(change, options)) ?? (await putEntriesBack(client, change, options));
  await options.journal.remove(change);
  return undone;
}

/** Restores the file if it still has the content that Trunkline wrote; otherwise, or without a backup, `undefined`. */
async function restore({ file, backup, written }: Change, { system }: UndoOptions): Promise<Undone | undefined> {
  const known = await readClientFile(file, system.home);
  if (known.bytes === undefined) return 'nothing';
  if (hashOf(known.bytes) !== written) return undefined;
  if (backup === undefined) {
    await removeClientFile(known);
    return 'deleted';
  }
  const before = await readRegularFile(backup, { maxBytes: MAX_FILE_BYTES });
  if (before.kind !== 'read') return undefined;
  await writeClientFile(known, before.bytes);
  dropBackup(backup);
  return 'restored';
}

/** Restores each entry from the backup, except for entries that were changed since. */
async function putEntriesBack(client: Client, change: Change, options: UndoOptions): Promise<Undone> {
  const known = await readClientFile(change.file, options.system.home);
  const before = await backupText(change);
  const text = textOf(known);
  const content = change.entries.reduce((edited, entry) => {
    return putBack(edited, before, { client, change, entry, cliPath: options.cliPath });
  }, text);
  if (content === text) return 'nothing';
  const place = placeAt(client, change.file, client.path);
  // Only a removal can be left to the client's own program.
  const kind =
    before !== undefined && change.entries.some((each) => hasEntry(before, client, change, each))
      ? 'replace'
      : 'remove';
  await makeChange({ kind, client, place, known, content, entries: change.entries }, options);
  return 'entries';
}

interface EntryToPutBack {
  readonly client: Client;
  readonly change: Change;
  readonly entry: TouchedEntry;
  readonly cliPath: string;
}

function putBack(text: string, before: string | undefined, { client, change, entry, cliPath }: EntryToPutBack): string {
  const { path, name } = entry;
  const place = placeAt(client, change.file, path);
  const is = entryIn(text, place, name);
  const was = before === undefined ? undefined : entryIn(before, place, name);
  const isOwn = is !== undefined && name === OWN_NAME && isOwnEntry();
  if (was !== undefined) return is === undefined || isOwn ? withEntry(text, place, name, was) : text;
  if (before === undefined && change.backup !== undefined && !isOwn) {
    throw new FileRefusal(`its backup ${change.backup} is gone`);
  }
  return isOwn ? withoutEntry(text, place, name) : text;

  function isOwnEntry(): boolean {
    const found = is && readEntry(place, name, is);
    return found !== undefined && isOurselves(found.run, cliPath);
  }
}

function hasEntry(text: string, client: Client, { file }: Change, { path, name }: TouchedEntry): boolean {
  return entryIn(text, placeAt(client, file, path), name) !== undefined;
}

async function backupText({ backup }: Change): Promise<string | undefined> {
  if (backup === undefined) return undefined;
  const found = await readRegularFile(backup, { maxBytes: MAX_FILE_BYTES });
  return found.kind === 'read' ? found.bytes.toString() : undefined;
}
