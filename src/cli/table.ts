import cliTruncate from 'cli-truncate';
import stringWidth from 'string-width';
import { printable } from '../json/printable.js';
import { type Format, type Look, PLAIN, paint } from './terminal.js';

export type Cell = string | { readonly text: string; readonly format: Format | undefined };

/** No column is cut below this width. */
const MIN_WIDTH = 6;
const GAP = 2;

/** Aligns columns, two spaces apart. On a terminal, the widest columns are cut so that each row fits on one line. */
export function table(rows: readonly (readonly Cell[])[], look: Look = PLAIN): string {
  const texts = rows.map((row) => row.map((cell) => toText(cell, look)));
  const widths = narrowed(naturalWidths(texts), look.width);
  return rows
    .map((row, at) => {
      const head: Format | undefined = at === 0 ? 'bold' : undefined;
      const cells = row.map((cell, column) => {
        const [text, width] = [texts[at]?.[column] ?? '', widths[column] ?? 0];
        const shown = stringWidth(text) > width ? cliTruncate(text, width) : text;
        const isLast = column === row.length - 1;
        const padding = isLast ? '' : ' '.repeat(width - stringWidth(shown));
        return paint(look, typeof cell === 'string' ? head : cell.format, shown) + padding;
      });
      return cells.join(' '.repeat(GAP)).trimEnd();
    })
    .join('\n');
}

/** A file or a pipe gets the text of a server as it is. */
function toText(cell: Cell, { width }: Look): string {
  const text = typeof cell === 'string' ? cell : cell.text;
  return width === undefined ? text : printable(text);
}

function naturalWidths(rows: readonly (readonly string[])[]): number[] {
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((text, column) => {
      widths[column] = Math.max(widths[column] ?? 0, stringWidth(text));
    });
  }
  return widths;
}

/** Cuts the widest columns, which are those of descriptions and paths, until the row fits. */
function narrowed(widths: readonly number[], available: number | undefined): readonly number[] {
  if (available === undefined) return widths;
  const fitted = [...widths];
  let excess = fitted.reduce((sum, width) => sum + width, GAP * (widths.length - 1)) - available;
  for (let widest = Math.max(...fitted); excess > 0 && widest > MIN_WIDTH; widest = Math.max(...fitted)) {
    fitted[fitted.lastIndexOf(widest)] = widest - 1;
    excess -= 1;
  }
  return fitted;
}
