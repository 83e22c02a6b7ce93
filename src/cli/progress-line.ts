import type { WriteStream } from 'node:tty';
import cliTruncate from 'cli-truncate';
import { printable } from '../json/printable.js';
import { isQuietWanted } from './output.js';

/** A line on a terminal that is overwritten with each update and cleared at the end. Does nothing without a terminal. */
export class ProgressLine {
  readonly #stream: WriteStream | undefined;
  #isShown = false;

  constructor(stream: NodeJS.WriteStream & { isTTY?: boolean }) {
    this.#stream = stream.isTTY && !isQuietWanted() ? stream : undefined;
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

/** Waits for `work`. After a second, a terminal shows its name and the time since the start. */
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
