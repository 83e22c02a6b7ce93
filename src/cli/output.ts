import type { WriteStream } from 'node:tty';
import cliTruncate from 'cli-truncate';
import stringWidth from 'string-width';
import { printable, printableLines } from '../json/printable.js';

/** Writes lines for the user to stderr. Control and invisible characters are escaped. */
export function tell(text: string): void {
  process.stderr.write(`${printableLines(text)}\n`);
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
export function print(text: string): Promise<void> {
  return new Promise((resolve) => {
    // A reader may close its end early.
    const over = () => {
      process.stdout.off('error', over);
      resolve();
    };
    process.stdout.once('error', over);
    process.stdout.write(`${text}\n`, over);
  });
}

/** Resolves when stdout has taken everything that was written. */
export function flushed(): Promise<void> {
  return new Promise((resolve) => {
    process.stdout.once('error', () => resolve());
    process.stdout.write('', () => resolve());
  });
}

/** Text from a server for stdout: unchanged for a file or a pipe, escaped for a terminal. */
export function forStream(text: string, { isTTY }: { readonly isTTY?: boolean }): string {
  return isTTY ? printableLines(text) : text;
}

/** Aligns columns, two spaces apart. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((cell, column) => {
      widths[column] = Math.max(widths[column] ?? 0, stringWidth(cell));
    });
  }
  return rows.map((row) => formatRow(row, widths)).join('\n');
}

function formatRow(row: readonly string[], widths: readonly number[]): string {
  return row
    .map((cell, column) => cell + ' '.repeat((widths[column] ?? 0) - stringWidth(cell)))
    .join('  ')
    .trimEnd();
}

/** A line on a terminal that is overwritten with each update and cleared at the end. Does nothing without a terminal. */
export class ProgressLine {
  readonly #stream: WriteStream | undefined;
  #isShown = false;

  constructor(stream: NodeJS.WriteStream & { isTTY?: boolean }) {
    this.#stream = stream.isTTY ? stream : undefined;
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
