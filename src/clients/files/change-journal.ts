import { privateFile, readRegularFile } from '../../files/regular-file.js';
import { replaceFile } from '../../files/whole-file.js';
import { isRecord, parseJson } from '../../json/json-value.js';

/** One change of one file, with everything that `undo` needs. It contains no values. */
export interface Change {
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
}

export interface TouchedEntry {
  readonly path: readonly string[];
  readonly name: string;
}

const MAX_BYTES = 4 * 1024 * 1024;
/** Older changes are forgotten. */
const MAX_CHANGES = 200;

/** Remembers the changes of clients' files from run to run, the newest last. */
export class ChangeJournal {
  readonly #file: string;

  constructor(file: string) {
    this.#file = file;
  }

  /** A journal that is missing or damaged has no changes. */
  async read(): Promise<readonly Change[]> {
    const found = await readRegularFile(this.#file, privateFile(MAX_BYTES));
    const value = found.kind === 'read' ? parseJson(found.bytes.toString()) : undefined;
    return isRecord(value) && Array.isArray(value.changes) ? value.changes.filter(isChange) : [];
  }

  /** Returns whether the change is recorded: the folder may not be writable. */
  async add(change: Change): Promise<boolean> {
    return await this.#write([...(await this.read()), change]);
  }

  async remove({ run, file, written }: Change): Promise<void> {
    const changes = await this.read();
    const isIt = (change: Change) => change.run === run && change.file === file && change.written === written;
    await this.#write(changes.filter((change) => !isIt(change)));
  }

  async #write(changes: readonly Change[]): Promise<boolean> {
    const text = `${JSON.stringify({ changes: changes.slice(-MAX_CHANGES) }, null, 2)}\n`;
    return await replaceFile(this.#file, text).then(
      () => true,
      () => false,
    );
  }
}

function isChange(value: unknown): value is Change {
  if (!isRecord(value) || !Array.isArray(value.entries)) return false;
  const areTexts = [value.run, value.client, value.file, value.written].every((each) => typeof each === 'string');
  const isBackup = value.backup === undefined || typeof value.backup === 'string';
  return areTexts && isBackup && value.entries.every(isTouchedEntry);
}

function isTouchedEntry(value: unknown): value is TouchedEntry {
  if (!isRecord(value) || typeof value.name !== 'string' || !Array.isArray(value.path)) return false;
  return value.path.every((member: unknown) => typeof member === 'string');
}
