import type { WriteStream } from 'node:tty';
import { styleText } from 'node:util';
import cliTruncate from 'cli-truncate';
import stringWidth from 'string-width';
import { printable } from '../wire/json/printable.js';
import { elapsed, folded, isQuietWanted, terminalWidth } from './output.js';

export interface Look {
  /** Columns of the terminal. `undefined` for a file or a pipe, whose lines are as long as they have to be. */
  readonly width: number | undefined;
  readonly isColored: boolean;
}

type Format = Parameters<typeof styleText>[0];

/** The look of a file or a pipe without colors. */
export const PLAIN: Look = { width: undefined, isColored: false };

/** The look for a stream. `FORCE_COLOR` wins over `NO_COLOR` (no-color.org), as in Node; without either, a terminal has colors. */
export function lookOf(
  stream: { readonly isTTY?: boolean; readonly columns?: number },
  { FORCE_COLOR, NO_COLOR, TERM }: NodeJS.ProcessEnv = process.env,
): Look {
  const width = terminalWidth(stream);
  if (FORCE_COLOR !== undefined) return { width, isColored: FORCE_COLOR !== '0' && FORCE_COLOR !== 'false' };
  return { width, isColored: width !== undefined && !NO_COLOR && TERM !== 'dumb' };
}

export function paint({ isColored }: Look, format: Format | undefined, text: string): string {
  // `isColored` already accounts for the stream, which older versions of Node do not check.
  return isColored && format !== undefined && text !== '' ? styleText(format, text, { validateStream: false }) : text;
}

const GOOD = { symbol: '●', format: 'green' } as const;
const BUSY = { symbol: '◐', format: 'yellow' } as const;
const BAD = { symbol: '✖', format: 'red' } as const;
const RESTING = { symbol: '○', format: 'gray' } as const;

const STATES: Readonly<Record<string, { readonly symbol: string; readonly format: Format }>> = {
  ready: GOOD,
  starting: BUSY,
  installing: BUSY,
  stopping: BUSY,
  suspect: BUSY,
  draining: BUSY,
  backoff: BAD,
  parked: BAD,
  failed: BAD,
  misconfigured: BAD,
  unreachable: BAD,
};

/** The state of a server: with a symbol and a color on a terminal, as one word elsewhere. */
export function stateCell(state: string, { width }: Look) {
  const { symbol, format } = STATES[state] ?? RESTING;
  return { text: width === undefined ? state : `${symbol}\u00a0${state}`, format };
}

/** Colors that differ clearly on dark and on light terminals. */
const SERVER_COLORS = [
  ...(['cyan', 'magenta', 'blue', 'green', 'yellow'] as const),
  ...(['cyanBright', 'magentaBright', 'blueBright'] as const),
];

/** A color for this name, the same one each time. */
export function colorOf(name: string): Format {
  let hash = 0;
  for (const letter of name) hash = (hash * 31 + (letter.codePointAt(0) ?? 0)) % 65_521;
  return SERVER_COLORS[hash % SERVER_COLORS.length] ?? 'cyan';
}

/** Cuts a line to the width of a terminal; elsewhere it stays whole. */
export function fitted(text: string, { isTTY, columns = 80 }: { isTTY?: boolean; columns?: number }): string {
  return isTTY ? cliTruncate(text, columns) : text;
}

export type Cell = string | { readonly text: string; readonly format: Format | undefined };

/** No column is cut below this width. */
const MIN_WIDTH = 6;
/** A column of short cells, such as states and times, is not wrapped below this width while others can give way. */
const SHORT_WIDTH = 16;
const GAP = 2;
/** Cells that say nothing about their row. */
const NO_VALUE: ReadonlySet<string> = new Set(['', '-', '0']);

/**
 * Aligns columns, two spaces apart. On a terminal, the text of the widest columns wraps at spaces so that each row fits. No word is
 * cut, because a person types names, packages and versions, or consents to them: where the words of a row do not fit beside each other,
 * each row becomes a list of its values. The columns from `cutFrom` on are cut instead of wrapped. A table that is too wide loses the
 * columns in which no row has a value, because they only push the others apart.
 */
export function table(
  rows: readonly (readonly Cell[])[],
  look: Look = PLAIN,
  cutFrom = Number.POSITIVE_INFINITY,
): string {
  const texts = rows.map((row) => row.map((cell) => toText(cell, look)));
  const columns = texts[0]?.map((_, column) => texts.map((row) => row[column] ?? '')) ?? [];
  const natural = columns.map(widthOf);
  const excessOf = (widths: readonly number[]) => {
    return widths.reduce((sum, width) => sum + width + GAP, -GAP) - (look.width ?? Number.POSITIVE_INFINITY);
  };
  const isWide = excessOf(natural) > 0 && rows.length > 1;
  const isUseful = columns.map(([, ...cells]) => cells.some((text) => !NO_VALUE.has(text)));
  if (isWide && isUseful.includes(false) && cutFrom > columns.length) {
    const kept = rows.map((row) => row.filter((_, at) => isUseful[at]));
    return table(kept, look);
  }
  const least = columns.map((column, at) => {
    const longest = widthOf(column.flatMap((text) => text.split(' ')));
    return at >= cutFrom ? MIN_WIDTH : Math.max(Math.min(natural[at] ?? 0, SHORT_WIDTH), longest);
  });
  if (isWide && cutFrom > 0 && excessOf(least) > 0) return lists(texts, look);
  const widths = isWide ? narrowed(natural, least, excessOf(natural)) : natural;
  return rows
    .flatMap((row, at) => rowLines(row, texts[at] ?? [], { look, widths, cutFrom, isHead: at === 0 }))
    .join('\n');
}

/** The values of each row below each other, with the names of their columns. */
function lists([head = [], ...rows]: readonly (readonly string[])[], look: Look): string {
  const listOf = (row: readonly string[]) => {
    const lines = head.flatMap((name, at) => {
      const text = row[at] ?? '';
      return NO_VALUE.has(text) ? [] : [folded(`${paint(look, 'bold', `${name}:`)} ${text}`, look.width)];
    });
    return lines.join('\n');
  };
  return rows.map(listOf).join('\n\n');
}

interface RowPlan {
  readonly look: Look;
  readonly widths: readonly number[];
  readonly cutFrom: number;
  readonly isHead: boolean;
}

function rowLines(
  row: readonly Cell[],
  texts: readonly string[],
  { look, widths, cutFrom, isHead }: RowPlan,
): readonly string[] {
  const cells = texts.map((text, column) => {
    const width = widths[column] ?? 0;
    return column < cutFrom ? wrapped(text, width) : [stringWidth(text) > width ? cliTruncate(text, width) : text];
  });
  const height = Math.max(...cells.map(({ length }) => length));
  return Array.from({ length: height }, (_, line) => {
    const parts = row.map((cell, column) => {
      const part = cells[column]?.[line] ?? '';
      const format: Format | undefined = typeof cell === 'string' ? (isHead ? 'bold' : undefined) : cell.format;
      return paint(look, format, part) + ' '.repeat((widths[column] ?? 0) - stringWidth(part) + GAP);
    });
    return parts.join('').trimEnd();
  });
}

function widthOf(texts: readonly string[]): number {
  return Math.max(0, ...texts.map((text) => stringWidth(text)));
}

/** The text in lines of at most this width, without a cut in a word. */
function wrapped(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    const longer = `${last} ${word}`;
    if (last !== undefined && stringWidth(longer) <= width) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

/** Escapes the text of a cell for a terminal. A file or a pipe gets the text of a server as it is. */
function toText(cell: Cell, { width }: Look): string {
  const text = typeof cell === 'string' ? cell : cell.text;
  return width === undefined ? text : printable(text);
}

/** Narrows the widest columns, usually descriptions, by `excess` characters in all, or until none can be narrower. */
function narrowed(widths: readonly number[], least: readonly number[], excess: number): readonly number[] {
  const narrow = [...widths];
  for (let left = excess; left > 0; left -= 1) {
    const widest = Math.max(...narrow.filter((width, column) => width > (least[column] ?? 0)));
    const at = narrow.findLastIndex((width, column) => width === widest && width > (least[column] ?? 0));
    if (at === -1) break;
    narrow[at] = widest - 1;
  }
  return narrow;
}

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
