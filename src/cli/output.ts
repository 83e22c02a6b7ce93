import type { WriteStream } from 'node:tty';
import cliTruncate from 'cli-truncate';
import { printable, printableLines } from '../json/printable.js';

/** Writes lines for the user to stderr. Control and invisible characters are escaped. */
export function tell(text: string): void {
  process.stderr.write(`${printableLines(text)}\n`);
}

let isQuiet = false;

/** With `--quiet`, only results, warnings and failures are written. Set once, before a command runs. */
export function setQuiet(quiet: boolean): void {
  isQuiet = quiet;
}

/** Tells the user that all went well, unless that is not wanted. */
export function note(text: string): void {
  if (!isQuiet) tell(text);
}

/**
 * Handles errors of stdout and stderr. A reader that closes its end early, as `head` does, is not an error; `onFault` is
 * called for every other one, such as a full disk.
 */
export function guardOutput(onFault: (error: Error) => void): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') onFault(error);
  });
  // There is no other stream to report it to.
  process.stderr.on('error', () => {});
}

/** Prints text, and resolves when stdout has taken it: an exit before that would cut it off. */
export async function print(text: string): Promise<void> {
  await write(`${text}\n`);
}

/** Resolves when stdout has taken everything that was written. */
export async function flushed(): Promise<void> {
  await write('');
}

function write(text: string): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      process.stdout.off('error', done);
      resolve();
    };
    // A reader may close its end early.
    process.stdout.once('error', done);
    process.stdout.write(text, done);
  });
}

/** Text from a server for stdout: unchanged for a file or a pipe, escaped for a terminal. */
export function forStream(text: string, { isTTY }: { readonly isTTY?: boolean }): string {
  return isTTY ? printableLines(text) : text;
}

/** A line on a terminal that is overwritten with each update and cleared at the end. Does nothing without a terminal. */
export class ProgressLine {
  readonly #stream: WriteStream | undefined;
  #isShown = false;

  constructor(stream: NodeJS.WriteStream & { isTTY?: boolean }) {
    this.#stream = stream.isTTY && !isQuiet ? stream : undefined;
  }

  get isVisible(): boolean {
    return this.#stream !== undefined;
  }

  show(text: string): void {
    if (this.#stream === undefined) return;
    this.#isShown = true;
    this.#stream.write(`\r\x1b[K${cliTruncate(printable(text), (this.#stream.columns || 80) - 1)}`);
  }

  clear(): void {
    if (this.#isShown) this.#stream?.write('\r\x1b[K');
    this.#isShown = false;
  }
}

/** Shows on a terminal what is being waited for, and for how long, from the first second on. */
export async function waiting<T>(what: string, work: Promise<T>, line = new ProgressLine(process.stderr)): Promise<T> {
  const since = performance.now();
  const timer = setInterval(() => line.show(`${what}, ${elapsed(since)}`), 1_000);
  try {
    return await work;
  } finally {
    clearInterval(timer);
    line.clear();
  }
}

/** The time since `since`, as `12 s`. */
export function elapsed(since: number): string {
  return `${Math.round((performance.now() - since) / 1_000)} s`;
}
