import type { WriteStream } from 'node:tty';
import cliTruncate from 'cli-truncate';
import stringWidth from 'string-width';
import { printable, printableLines } from '../json/printable.js';

/** A line, or several, on stderr: for the person, never for a pipe to read, so whatever is in it is made harmless. */
export function tell(text: string): void {
  process.stderr.write(`${printableLines(text)}\n`);
}

/**
 * Hears the errors of both streams. A reader who has seen enough closes its end, as `head` does, and that is no error;
 * `onFault` is told of any other, such as a full disk.
 */
export function guardOutput(onFault: (error: Error) => void): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') onFault(error);
  });
  // There is nobody left to tell.
  process.stderr.on('error', () => {});
}

/** Text of a server's for stdout: as it is in a file or a pipe, harmless on a terminal. */
export function forStream(text: string, { isTTY }: { readonly isTTY?: boolean }): string {
  return isTTY ? printableLines(text) : text;
}

/** Columns two spaces apart, the last one ragged. */
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

/** One line on a terminal that is written over and over, and gone in the end. Says nothing anywhere else. */
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
