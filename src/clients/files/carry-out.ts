import { isDeepStrictEqual } from 'node:util';
import { FileRefusal } from '../../files/edit/parse-text.js';
import type { ChangeJournal } from './change-journal.js';
import { backUp, dropBackup, hashOf, isAsRead, readClientFile, textOf, writeClientFile } from './client-file.js';
import { programOf } from './client-target.js';
import type { ClientSystem } from './found-server.js';
import { OWN_NAME } from './own-entry.js';
import type { PlannedChange } from './plan-change.js';
import { readEntry } from './read-entry.js';
import { entryIn, withEntry, withoutEntry } from './read-servers.js';

export interface CarryOutOptions {
  readonly system: ClientSystem;
  readonly journal: ChangeJournal;
  /** The same for all changes of one command, which one undo takes back. */
  readonly run: string;
  readonly now: Date;
  /** Runs a client's own program. Returns whether it has succeeded. */
  readonly runProgram: RunProgram;
}

export type RunProgram = (file: string, args: readonly string[]) => Promise<boolean>;

export interface CarriedOut {
  readonly backup: string | undefined;
  /** The client's own program, if it has made the change. */
  readonly program: string | undefined;
  /** Whether `undo` will know of the change. */
  readonly isRecorded: boolean;
}

/** Makes a planned change, with a backup, and remembers it. Throws a `FileRefusal` if that is impossible. */
export async function carryOut(change: PlannedChange, options: CarryOutOptions): Promise<CarriedOut> {
  const { client, place, entries } = change;
  const { journal, run } = options;
  const { backup, program, written } = await makeChange(change, options);
  const record = { run, client: client.client, file: place.file, written: hashOf(written), entries };
  const isRecorded = await journal.add(backup === undefined ? record : { ...record, backup });
  return { backup, program, isRecorded };
}

type Made = Omit<CarriedOut, 'isRecorded'> & { readonly written: Uint8Array };

/** Makes a planned change, with a backup. Throws a `FileRefusal` if that is impossible; then the backup is removed. */
export async function makeChange(
  change: PlannedChange,
  { system, now, runProgram }: Pick<CarryOutOptions, 'system' | 'now' | 'runProgram'>,
): Promise<Made> {
  const { known, content } = change;
  if (!(await isAsRead(known))) throw new FileRefusal('it has changed meanwhile; run this command again');
  const backup = backUp(known, now);
  try {
    const program = canUseProgram(change) ? programOf(change.client, system) : undefined;
    if (program !== undefined) {
      const made = await throughProgram(change, program, { system, runProgram });
      if (made !== undefined) return { backup, ...made };
    }
    const written = Buffer.from(content);
    await writeClientFile(known, written);
    return { backup, program: undefined, written };
  } catch (error) {
    if (backup !== undefined && (await isAsRead(known))) dropBackup(backup);
    throw error;
  }
}

/** The client's program supports one shape of entry. Members that the user has added must not get onto a command line. */
function canUseProgram({ client, entries, entry, kind }: PlannedChange): boolean {
  const isOwn = entries.length === 1 && entries[0]?.name === OWN_NAME;
  const isUser = isDeepStrictEqual(entries[0]?.path, client.path);
  if (entry === undefined) return isOwn && isUser && kind === 'remove';
  return isOwn && isUser && Object.keys(entry).every((member) => ['type', 'command', 'args'].includes(member));
}

/**
 * Has the client's own program change the file: a running client may write the file anew at any time, and its program
 * knows how to get along with that. `undefined` if the program cannot do it and has changed nothing.
 */
async function throughProgram(
  { client, entry, kind, known, place }: PlannedChange,
  program: string,
  { system, runProgram }: Pick<CarryOutOptions, 'system' | 'runProgram'>,
): Promise<Omit<Made, 'backup'> | undefined> {
  const user = client.program === 'claude' ? ['--scope', 'user'] : [];
  // Claude Code refuses to add an entry that exists.
  if (kind !== 'add') await runProgram(program, ['mcp', 'remove', OWN_NAME, ...user]);
  if (entry !== undefined) {
    const { command, args } = entry as { command: string; args: readonly string[] };
    const words = client.program === 'claude' ? [JSON.stringify(entry), ...user] : ['--', command, ...args];
    await runProgram(program, ['mcp', client.program === 'claude' ? 'add-json' : 'add', OWN_NAME, ...words]);
  }
  if (await isAsRead(known)) return undefined;
  const file = await readClientFile(place.file, system.home);
  const text = textOf(file);
  // The content of the file decides, not the output of the program.
  const found = entryIn(text, place, OWN_NAME);
  const run = found && readEntry(place, OWN_NAME, found)?.run;
  const isDone = isDeepStrictEqual(run, entry && readEntry(place, OWN_NAME, entry)?.run);
  if (isDone) return { program, written: file.bytes ?? Buffer.alloc(0) };
  const content = entry === undefined ? withoutEntry(text, place, OWN_NAME) : withEntry(text, place, OWN_NAME, entry);
  const written = Buffer.from(content);
  await writeClientFile(file, written);
  return { program: undefined, written };
}
