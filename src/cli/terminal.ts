import { styleText } from 'node:util';

/** How text is to look on a stream. */
export interface Look {
  /** Columns of the terminal. `undefined` for a file or a pipe, whose lines are as long as they have to be. */
  readonly width: number | undefined;
  readonly isColored: boolean;
}

export type Format = Parameters<typeof styleText>[0];

/** Neither a terminal nor colored. */
export const PLAIN: Look = { width: undefined, isColored: false };

/** `FORCE_COLOR` wins over `NO_COLOR` (no-color.org), as in Node itself; without either, a terminal has colors. */
export function lookOf(
  { isTTY, columns }: { readonly isTTY?: boolean; readonly columns?: number },
  { FORCE_COLOR, NO_COLOR, TERM }: NodeJS.ProcessEnv = process.env,
): Look {
  const isTerminal = isTTY === true;
  const width = isTerminal ? columns || DEFAULT_WIDTH : undefined;
  if (FORCE_COLOR !== undefined) return { width, isColored: FORCE_COLOR !== '0' && FORCE_COLOR !== 'false' };
  return { width, isColored: isTerminal && !NO_COLOR && TERM !== 'dumb' };
}

const DEFAULT_WIDTH = 80;

export function paint({ isColored }: Look, format: Format | undefined, text: string): string {
  // The stream was looked at already, which older versions of Node do not do.
  return isColored && format !== undefined && text !== '' ? styleText(format, text, { validateStream: false }) : text;
}

interface StateLook {
  readonly symbol: string;
  readonly format: Format;
}

const GOOD: StateLook = { symbol: '●', format: 'green' };
const BUSY: StateLook = { symbol: '◐', format: 'yellow' };
const BAD: StateLook = { symbol: '✖', format: 'red' };
const RESTING: StateLook = { symbol: '○', format: 'gray' };

const STATES: Readonly<Record<string, StateLook>> = {
  ...{ ready: GOOD, starting: BUSY, installing: BUSY, stopping: BUSY, suspect: BUSY },
  ...{ backoff: BAD, parked: BAD, failed: BAD, misconfigured: BAD },
};

/** The state of a server: with a symbol and a color on a terminal, as one word elsewhere. */
export function stateCell(state: string, { width }: Look): { readonly text: string; readonly format: Format } {
  const { symbol, format } = STATES[state] ?? RESTING;
  return { text: width === undefined ? state : `${symbol} ${state}`, format };
}

/** Colors that can be told apart on dark and on light terminals. */
const SERVER_COLORS = [
  'cyan',
  'magenta',
  'blue',
  'green',
  'yellow',
  'cyanBright',
  'magentaBright',
  'blueBright',
] as const;

/** A color for this name, the same one each time. */
export function colorOf(name: string): Format {
  let hash = 0;
  for (const letter of name) hash = (hash * 31 + (letter.codePointAt(0) ?? 0)) % 65_521;
  return SERVER_COLORS[hash % SERVER_COLORS.length] ?? 'cyan';
}
