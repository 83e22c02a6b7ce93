import { type FileHandle, open } from 'node:fs/promises';

export interface LogLinesOptions {
  /** The newest file. `FILE.1` is the one before it, and so on. */
  readonly file: string;
  /** How many files there may be, the newest included. */
  readonly maxFiles: number;
  /** Goes on with what is written from now on, also when the file is rotated. */
  readonly isFollowed: boolean;
}

const READ_BYTES = 64 * 1024;
/** Time between two looks at a file that is followed. */
const LOOK_EVERY_MS = 250;

/**
 * Yields the lines of a log file and of its rotated predecessors, the oldest first. Yields nothing if there is none. The
 * files are closed when the caller takes no more lines.
 */
export async function* logLines(options: LogLinesOptions): AsyncGenerator<string> {
  let [current, ...later] = await openAll(options);
  try {
    while (current !== undefined || options.isFollowed) {
      if (current !== undefined) {
        // A file that is read is done once there is a later one: nothing is written to it any more.
        yield* current.lines();
        later = later.length > 0 ? later : await openLater(options, current);
      } else {
        later = await openAll(options);
      }
      if (later.length > 0) {
        if (current !== undefined) {
          yield* current.lines();
          await current.close();
        }
        [current, ...later] = later;
      } else if (options.isFollowed) {
        await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
      } else {
        return;
      }
    }
  } finally {
    for (const each of [current, ...later]) await each?.close();
  }
}

/** The files, the oldest first. They stay the same files when they are renamed. */
async function openAll({ file, maxFiles }: LogLinesOptions): Promise<OpenFile[]> {
  const names = [file, ...Array.from({ length: maxFiles - 1 }, (_, at) => `${file}.${at + 1}`)];
  const opened = await Promise.all(names.map(OpenFile.at));
  const all = opened.flatMap((each) => each ?? []);
  // Two names of one file: it was renamed between the two looks.
  const known = new Set<string>();
  for (const each of all) {
    if (known.has(each.id)) await each.close();
    known.add(each.id);
  }
  return all.filter(({ isOpen }) => isOpen).reverse();
}

/** The files that were begun after this one. If it is gone, all of them. */
async function openLater(options: LogLinesOptions, { id }: OpenFile): Promise<OpenFile[]> {
  const all = await openAll(options);
  const at = all.findIndex((each) => each.id === id);
  for (const each of all.slice(0, at + 1)) await each.close();
  return all.slice(at + 1);
}

class OpenFile {
  readonly id: string;
  isOpen = true;
  readonly #handle: FileHandle;
  readonly #decoder = new TextDecoder();
  #position = 0;
  #unfinished = '';

  private constructor(handle: FileHandle, id: string) {
    this.#handle = handle;
    this.id = id;
  }

  /** `undefined` if there is no file. */
  static async at(this: void, file: string): Promise<OpenFile | undefined> {
    const handle = await open(file, 'r').catch(() => undefined);
    if (handle === undefined) return undefined;
    const { dev, ino } = await handle.stat();
    return new OpenFile(handle, `${dev} ${ino}`);
  }

  /** The lines that were written since the last call. */
  async *lines(): AsyncGenerator<string> {
    const buffer = new Uint8Array(READ_BYTES);
    for (;;) {
      const { bytesRead } = await this.#handle.read(buffer, 0, READ_BYTES, this.#position);
      if (bytesRead === 0) return;
      this.#position += bytesRead;
      const text = this.#unfinished + this.#decoder.decode(buffer.subarray(0, bytesRead), { stream: true });
      const lines = text.split('\n');
      this.#unfinished = lines.pop() ?? '';
      yield* lines;
    }
  }

  async close(): Promise<void> {
    if (!this.isOpen) return;
    this.isOpen = false;
    await this.#handle.close();
  }
}
