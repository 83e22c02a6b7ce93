import { existsSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { explain } from '../../../host/errors/file-error.js';
import { FileRefusal } from '../../../host/files/edit/parse-text.js';
import {
  missingFolders,
  privateFile,
  readRegularFile,
  removeEmpty,
  replaceFile,
} from '../../../host/files/whole-file.js';
import { isRecord, parseJson } from '../../../wire/json/json-value.js';
import {
  backUp,
  type ClientFile,
  dropBackup,
  hashOf,
  isAsRead,
  MAX_FILE_BYTES,
  readClientFile,
  removeClientFile,
  textOfFile,
  writeClientFile,
} from './client-file.js';
import { isInstalled, locationIn, programOfClient, targetFile, targetLocation, userFiles } from './client-locations.js';
import { clientNamed, type KnownClient } from './client-table.js';
import type { ClientEntry, ClientLocation, ClientSystem, FoundServer } from './found-server.js';
import { configIn, isOurselves, OWN_NAME, type OwnCommand, ownEntry } from './own-entry.js';
import { entryIn, readEntry, withEntry, withoutEntry } from './read-servers.js';

/** The plan for one file of a client: a change, or the reason for none. */
export type Plan = PlannedChange | NoChange;

interface PlannedChange extends FileContentChange {
  readonly client: KnownClient;
  /** The file as it was read for the plan. It is written only if it still has this content. */
  readonly known: ClientFile;
}

interface FileContentChange {
  readonly kind: 'add' | 'replace' | 'remove';
  readonly place: ClientLocation;
  readonly content: string;
  readonly entries: readonly TouchedEntry[];
  readonly entry?: ClientEntry;
}

interface NoChange {
  readonly kind: 'unchanged' | 'refused';
  readonly client: KnownClient;
  readonly file?: string;
  /** A part of a sentence that shows nothing of the file. */
  readonly because: string;
}

interface PlanOptions {
  readonly system: ClientSystem;
  readonly cliPath: string;
}

interface ConnectOptions extends PlanOptions {
  /** Whether the user has named the client, and not just all of them. */
  readonly isNamed: boolean;
  /** Whether an entry keeps its own configuration, if the path is absolute and the file exists. */
  readonly keepsConfig: boolean;
}

export async function planConnect(
  client: KnownClient,
  own: OwnCommand,
  { system, cliPath, isNamed, keepsConfig }: ConnectOptions,
): Promise<Plan[]> {
  if (!isInstalled(client, system) && !(client.isCreatedByUsers === true && isNamed)) {
    return [{ kind: 'refused', client, because: `${client.title} is not installed here` }];
  }
  let file: string;
  try {
    file = targetFile(client, system);
  } catch (error) {
    return [refused(client, error)];
  }
  const plan = await planFile(client, file, system, (text, isThere) => {
    if (!isThere && client.needsFile === true) {
      throw new FileRefusal(`${client.title} has no ${file} yet; start ${client.title} once`);
    }
    const place = targetLocation(client, file, text);
    const existing = ownIn(text, place, cliPath);
    const kept = keepsConfig && existing !== undefined ? configOf(existing, place) : undefined;
    const args = kept === undefined ? own.args : own.args.with(-1, kept);
    const fresh = ownEntry(client.shape, { ...own, args });
    if (existing !== undefined && isSame(existing, place, fresh)) return 'Trunkline is already registered there';
    const entry = existing === undefined ? fresh : { ...enabled(existing), ...fresh };
    const content = withEntry(text, place, OWN_NAME, entry);
    const entries = [{ path: place.path, name: OWN_NAME }];
    return { kind: existing === undefined ? 'add' : 'replace', place, content, entry, entries };
  });
  // An entry in a file that the client ignores only misleads.
  const stale = plan.kind === 'refused' ? [] : await planDisconnect(client, { system, cliPath });
  return [plan, ...stale.filter((each) => each.kind === 'remove' && each.place.file !== file)];
}

/** Plans to remove Trunkline from all files of the user that a client has. */
export async function planDisconnect(client: KnownClient, { system, cliPath }: PlanOptions): Promise<Plan[]> {
  const plans: Plan[] = [];
  for (const file of userFiles(client, system, 'written')) {
    const plan = await planFile(client, file, system, (text) => {
      const place = targetLocation(client, file, text);
      if (ownIn(text, place, cliPath) === undefined) return NOTHING;
      const content = withoutEntry(text, place, OWN_NAME);
      return { kind: 'remove', place, content, entries: [{ path: place.path, name: OWN_NAME }] };
    });
    if (plan.kind !== 'unchanged') plans.push(plan);
  }
  return plans.length > 0 ? plans : [{ kind: 'unchanged', client, because: 'Trunkline is not registered there' }];
}

/** Plans to remove servers that Trunkline has taken over: all those of one file in one change. */
export async function planTakeOut(taken: readonly FoundServer[], system: ClientSystem): Promise<Plan[]> {
  const plans: Plan[] = [];
  for (const file of new Set(taken.map(({ place }) => place.file))) {
    const ofFile = taken.filter(({ place }) => place.file === file);
    const [place] = ofFile.map((each) => each.place);
    const client = place && clientNamed(place.client);
    if (place === undefined || client === undefined) continue;
    const plan = await planFile(client, file, system, (text) => {
      const there = ofFile.filter((each) => entryIn(text, each.place, each.name) !== undefined);
      if (there.length === 0) return NOTHING;
      const content = there.reduce((shorter, each) => withoutEntry(shorter, each.place, each.name), text);
      return { kind: 'remove', place, content, entries: there.map(({ place: { path }, name }) => ({ path, name })) };
    });
    plans.push(plan);
  }
  return plans;
}

const NOTHING = 'there is nothing to change';

/** Reads a file and plans its change, or gives the reason for none. A `FileRefusal` becomes a refused plan. */
async function planFile(
  client: KnownClient,
  file: string,
  { home }: ClientSystem,
  decide: (text: string, isThere: boolean) => FileContentChange | string,
): Promise<Plan> {
  try {
    const known = await readClientFile(file, home);
    const decision = decide(textOfFile(known), known.bytes !== undefined);
    if (typeof decision === 'string') return { kind: 'unchanged', client, file, because: decision };
    return { ...decision, client, known };
  } catch (error) {
    return { ...refused(client, error), file };
  }
}

function refused(client: KnownClient, error: unknown): NoChange {
  if (error instanceof FileRefusal) return { kind: 'refused', client, because: error.message };
  throw error;
}

/** Trunkline's entry; `undefined` if there is none. Throws a `FileRefusal` if the entry of this name is another server. */
function ownIn(text: string, place: ClientLocation, cliPath: string): ClientEntry | undefined {
  const entry = entryIn(text, place, OWN_NAME);
  if (entry === undefined || isOwn(entry, place, cliPath)) return entry;
  throw new FileRefusal(`its entry \`${OWN_NAME}\` is another server; rename or remove that entry first`);
}

function isOwn(entry: ClientEntry, place: ClientLocation, cliPath: string): boolean {
  const found = readEntry(place, OWN_NAME, entry);
  return found !== undefined && isOurselves(found.run, cliPath);
}

/** Whether an entry starts the same program with the same arguments. The user may have added other members. */
function isSame(existing: ClientEntry, place: ClientLocation, fresh: ClientEntry): boolean {
  const [one, other] = [existing, fresh].map((entry) => readEntry(place, OWN_NAME, entry));
  if (one?.run.kind !== 'command' || other?.run.kind !== 'command' || one.isDisabled) return false;
  return one.run.command === other.run.command && isDeepStrictEqual(one.run.args, other.run.args);
}

/** The existing configuration file that an entry names with an absolute path. */
function configOf(entry: ClientEntry, place: ClientLocation): string | undefined {
  const found = readEntry(place, OWN_NAME, entry);
  const config = found?.run.kind === 'command' ? configIn(found.run) : undefined;
  return config !== undefined && isAbsolute(config) && existsSync(config) ? config : undefined;
}

function enabled(entry: ClientEntry): ClientEntry {
  const { disabled, enabled: isEnabled } = entry;
  return { ...entry, ...(disabled === true && { disabled: false }), ...(isEnabled === false && { enabled: true }) };
}

interface CarryOutOptions extends ChangingParts {
  /** The same for all changes of one command, which one undo takes back. */
  readonly run: string;
}

interface ChangingParts {
  readonly system: ClientSystem;
  readonly journal: ChangeJournal;
  readonly now: Date;
  /** Runs a client's own program. Returns whether it has succeeded. */
  readonly runProgram: RunProgram;
}

export type RunProgram = (file: string, args: readonly string[]) => Promise<boolean>;

export interface CarriedOut {
  readonly backup: string | undefined;
  /** The client's own program, if it has made the change. */
  readonly program: string | undefined;
  /** The reason why the journal of `undo` lacks the change, if it does. */
  readonly unrecorded: string | undefined;
}

/** Makes a planned change, with a backup, and records it. Throws a `FileRefusal` if that is impossible. */
export async function carryOut(change: PlannedChange, options: CarryOutOptions): Promise<CarriedOut> {
  const { client, place, entries } = change;
  const { journal, run } = options;
  const folders = missingFolders(place.file);
  const { backup, program, written } = await makeChange(change, options);
  const record = { run, client: client.client, file: place.file, written: hashOf(written), entries, folders };
  const unrecorded = await journal.add(backup === undefined ? record : { ...record, backup });
  return { backup, program, unrecorded };
}

interface Made extends MadeByProgram {
  readonly backup: string | undefined;
}

interface MadeByProgram {
  readonly program: string | undefined;
  readonly written: Uint8Array;
}

/** Makes a planned change, with a backup. Throws a `FileRefusal` if that is impossible; then the backup is removed. */
async function makeChange(change: PlannedChange, options: ChangingParts): Promise<Made> {
  const { system, now } = options;
  const { known, content } = change;
  if (!(await isAsRead(known))) throw new FileRefusal('it has changed meanwhile; run this command again');
  const backup = backUp(known, now);
  try {
    const program = canUseProgram(change) ? programOfClient(change.client, system) : undefined;
    if (program !== undefined) {
      const made = await throughProgram(change, program, options);
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

/** Whether the client's own program can make the change. Members that the user has added must not get onto its command line. */
function canUseProgram({ client, entries, entry, kind }: PlannedChange): boolean {
  const isOwn = entries.length === 1 && entries[0]?.name === OWN_NAME;
  const isUser = isDeepStrictEqual(entries[0]?.path, client.path);
  if (entry === undefined) return isOwn && isUser && kind === 'remove';
  return isOwn && isUser && Object.keys(entry).every((member) => ['type', 'command', 'args'].includes(member));
}

/**
 * Lets the client's own program change the file, because a running client may rewrite the file at any time, and its program
 * allows for that. `undefined` if the program cannot do it and has changed nothing.
 */
async function throughProgram(
  { client, entry, kind, known, place }: PlannedChange,
  program: string,
  { system, runProgram }: ChangingParts,
): Promise<MadeByProgram | undefined> {
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
  const text = textOfFile(file);
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

interface UndoOptions extends ChangingParts {
  readonly cliPath: string;
}

export type Undone =
  /** The file has its earlier content, byte for byte. */
  | 'restored'
  /** The file, which Trunkline had created, is removed. */
  | 'deleted'
  /** Another program changed the file since, so only the entries were put back. */
  | 'entries'
  /** There is nothing left to take back. */
  | 'nothing';

/** The changes to take back, the newest first: of the last command, or of the last command for each of these clients. */
export async function changesToUndo(
  journal: ChangeJournal,
  clients: readonly string[] | undefined,
): Promise<FileChange[]> {
  const newestFirst = [...(await journal.read())].reverse();
  if (clients === undefined) return newestFirst.filter(({ run }) => run === newestFirst[0]?.run);
  return clients.flatMap((client) => {
    const own = newestFirst.filter((change) => change.client === client);
    return own.filter(({ run }) => run === own[0]?.run);
  });
}

/** Takes one change back. Throws a `FileRefusal` if that is impossible. */
export async function undoChange(change: FileChange, options: UndoOptions): Promise<Undone> {
  const { backup, file, written } = change;
  const client = clientNamed(change.client);
  if (client === undefined) throw new FileRefusal(`this version of Trunkline does not know ${change.client}`);
  const known = await readClientFile(file, options.system.home);
  const found = backup === undefined ? undefined : await readRegularFile(backup, { maxBytes: MAX_FILE_BYTES });
  const before = found?.kind === 'read' ? found.bytes : undefined;
  const isOurs = known.bytes !== undefined && hashOf(known.bytes) === written;
  const isComplete = (backup === undefined) === (before === undefined);
  let undone: Undone = 'nothing';
  if (isOurs && isComplete) undone = await restore(known, backup, before);
  else if (known.bytes !== undefined) undone = await putEntriesBack(client, change, known, before, options);
  if (undone === 'deleted') removeEmpty(change.folders ?? []);
  await options.journal.remove(change);
  return undone;
}

/** Restores the earlier content of a file that no other program has changed since Trunkline wrote it. */
async function restore(known: ClientFile, backup: string | undefined, before: Buffer | undefined): Promise<Undone> {
  if (backup === undefined || before === undefined) {
    await removeClientFile(known);
    return 'deleted';
  }
  await writeClientFile(known, before);
  dropBackup(backup);
  return 'restored';
}

/** Restores each entry from the backup, except for entries that were changed since. */
async function putEntriesBack(
  client: KnownClient,
  { file, backup, entries }: FileChange,
  known: ClientFile,
  bytesBefore: Buffer | undefined,
  options: UndoOptions,
): Promise<Undone> {
  const before = bytesBefore?.toString();
  const text = textOfFile(known);
  const at = (path: readonly string[]): ClientLocation => ({ ...locationIn(client, 'user', file), path });
  const wasIn = ({ path, name }: TouchedEntry) => (before === undefined ? undefined : entryIn(before, at(path), name));
  const content = entries.reduce((edited, touched) => {
    const { path, name } = touched;
    const place = at(path);
    const is = entryIn(edited, place, name);
    const was = wasIn(touched);
    const isOwnNow = is !== undefined && name === OWN_NAME && isOwn(is, place, options.cliPath);
    if (was !== undefined) return is === undefined || isOwnNow ? withEntry(edited, place, name, was) : edited;
    if (isOwnNow) return withoutEntry(edited, place, name);
    if (before === undefined && backup !== undefined) throw new FileRefusal(`its backup ${backup} is gone`);
    return edited;
  }, text);
  if (content === text) return 'nothing';
  // Only a removal can be left to the client's own program.
  const kind = entries.some((entry) => wasIn(entry) !== undefined) ? 'replace' : 'remove';
  await makeChange({ kind, client, place: at(client.path), known, content, entries }, options);
  return 'entries';
}

/** One change of one file, with everything that `undo` needs. It contains no values. */
export interface FileChange {
  /** The same for all changes of one command. */
  readonly run: string;
  readonly client: string;
  readonly file: string;
  /** The backup; absent if there was no file before. */
  readonly backup?: string;
  /** SHA-256 of the written content. */
  readonly written: string;
  /** The entries that were added, replaced or removed. */
  readonly entries: readonly TouchedEntry[];
  /** The folders that were made for the file, the inner ones first. */
  readonly folders?: readonly string[];
}

export interface TouchedEntry {
  readonly path: readonly string[];
  readonly name: string;
}

const MAX_BYTES = 4 * 1024 * 1024;
/** Most changes in the journal. The oldest are forgotten. */
const MAX_CHANGES = 200;

/** Remembers the changes of clients' files from run to run, the newest last. */
export class ChangeJournal {
  readonly #file: string;

  constructor(file: string) {
    this.#file = file;
  }

  /** Reads the changes. A journal that is missing or damaged has none. */
  async read(): Promise<readonly FileChange[]> {
    const found = await readRegularFile(this.#file, privateFile(MAX_BYTES));
    const value = found.kind === 'read' ? parseJson(found.bytes.toString()) : undefined;
    return isRecord(value) && Array.isArray(value.changes) ? value.changes.filter(isChange) : [];
  }

  /** Records a change. Returns the reason if it cannot be recorded. */
  async add(change: FileChange): Promise<string | undefined> {
    return await this.#write([...(await this.read()), change]);
  }

  async remove({ run, file, written }: FileChange): Promise<void> {
    const changes = await this.read();
    const isIt = (change: FileChange) => change.run === run && change.file === file && change.written === written;
    await this.#write(changes.filter((change) => !isIt(change)));
  }

  async #write(changes: readonly FileChange[]): Promise<string | undefined> {
    const text = `${JSON.stringify({ changes: changes.slice(-MAX_CHANGES) }, null, 2)}\n`;
    return await replaceFile(this.#file, text).then(() => undefined, explain);
  }
}

function isChange(value: unknown): value is FileChange {
  if (!isRecord(value) || !Array.isArray(value.entries)) return false;
  const areTexts = [value.run, value.client, value.file, value.written].every((each) => typeof each === 'string');
  const isBackup = value.backup === undefined || typeof value.backup === 'string';
  const areFolders = value.folders === undefined || isTexts(value.folders);
  return areTexts && isBackup && areFolders && value.entries.every(isTouchedEntry);
}

function isTouchedEntry(value: unknown): value is TouchedEntry {
  return isRecord(value) && typeof value.name === 'string' && isTexts(value.path);
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((each: unknown) => typeof each === 'string');
}
