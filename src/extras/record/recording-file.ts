import { randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { errorCode } from '../../host/errors/error-text.js';
import { withFile } from '../../host/errors/file-error.js';
import { type Entry, FORMAT, type Header, parseLine, type RecordingSource } from './format.js';
import type { LineOutput } from './line-queue.js';
import { RotatedFile } from './rotated-file.js';

export const DEFAULT_MAX_BYTES = 100 * 1024 * 1024;

/** Number of files of a recording. Each has half of its size, and together they have the newest messages. */
const PARTS = 2;

/** Limit of a recorded message, because removing the secrets of a larger one would hold the event loop. */
export const MAX_MESSAGE_BYTES = 4 * 1024 * 1024;
/** A message may take a sixteenth of a recording, because JSON turns a byte into up to six, and a line must fit into half of it. */
const SHARE_OF_MESSAGE = 16;

/** Returns the size of the largest message that a recording of `maxBytes` takes. */
export function largestMessage(maxBytes: number): number {
  return Math.min(MAX_MESSAGE_BYTES, Math.floor(maxBytes / SHARE_OF_MESSAGE));
}

/**
 * Begins a recording of at most `maxBytes`. An existing recording becomes `FILE.1`. Rejects if the file cannot be
 * written, or if an existing file is no recording; such a file stays unchanged.
 */
export async function createRecording(file: string, maxBytes: number, about: RecordingSource): Promise<LineOutput> {
  for (const each of [file, `${file}.1`]) {
    if (!(await isFreeFor(each)))
      throw new Error(`${each} is there already and is no recording; name another file, or remove it`);
  }
  const recording = randomUUID();
  const opened = RotatedFile.open({
    file,
    maxFileBytes: Math.floor(maxBytes / PARTS),
    maxFiles: PARTS,
    isShared: false,
    header: (part) =>
      JSON.stringify({
        trunkline: 'recording',
        format: FORMAT,
        recording,
        part,
        ...(part > PARTS && { note: `earlier messages were removed: the recording may have ${maxBytes} bytes` }),
        startedAt: new Date().toISOString(),
        ...about,
      } satisfies Header),
  });
  return await opened.catch((error) => {
    throw withFile(error, file);
  });
}

/** Whether the file is missing, empty or a recording. */
async function isFreeFor(file: string): Promise<boolean> {
  try {
    for await (const line of linesOf(file)) return parseLine(line)?.kind === 'header';
    return true;
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return true;
    if (errorCode(error) === 'EISDIR') return false;
    throw error;
  }
}

export interface Recording {
  readonly header: Header;
  readonly entries: readonly RecordedEntry[];
  /** Number of messages that are missing, because the disk was too slow or could not be written. */
  readonly dropped: number;
}

export interface RecordedEntry extends Entry {
  /** Number of the line in its file. */
  readonly line: number;
}

/** Reads a recording with its earlier part, if there is one. Rejects if the file is missing or no recording. */
export async function readRecording(file: string): Promise<Recording> {
  const last = await readPart(file);
  if (last.header.part === 1) return last;
  const before = await readPart(`${file}.1`).catch(() => undefined);
  const isBefore = before?.header.recording === last.header.recording && before.header.part === last.header.part - 1;
  if (before === undefined || !isBefore) return last;
  return {
    header: before.header,
    entries: [...before.entries, ...last.entries],
    dropped: before.dropped + last.dropped,
  };
}

async function readPart(file: string): Promise<Recording> {
  let header: Header | undefined;
  const entries: RecordedEntry[] = [];
  let dropped = 0;
  let number = 0;
  for await (const line of linesOf(file)) {
    number += 1;
    const parsed = parseLine(line);
    if (number === 1) header = headerIn(parsed, file);
    else if (parsed?.kind === 'entry') entries.push({ ...parsed.entry, line: number });
    else if (parsed?.kind === 'gap') dropped += parsed.dropped;
  }
  return { header: header ?? headerIn(undefined, file), entries, dropped };
}

function headerIn(parsed: ReturnType<typeof parseLine>, file: string): Header {
  if (parsed?.kind !== 'header') throw new Error(`${file} is no recording: its first line is not the header of one`);
  const { header } = parsed;
  if (header.format <= FORMAT) return header;
  throw new Error(`${file} was recorded by Trunkline ${header.version}, in a format that this version does not know`);
}

/** The lines of a file. Closes the file also if its reader leaves early, because `readline` would leave it open. */
async function* linesOf(file: string): AsyncIterable<string> {
  const input = createReadStream(file, 'utf8');
  const closed = new Promise<void>((resolve) => input.once('close', resolve));
  try {
    yield* createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY });
  } finally {
    input.destroy();
    await closed;
  }
}
