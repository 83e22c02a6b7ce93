import { table } from './page.mjs';
import { spread } from './statistics.mjs';

/** `results` are milliseconds by path. */
export function startTables(results, { rounds }) {
  const rows = [...results].map(([name, times]) => {
    const { median: middle, min, max } = spread(times);
    return [name, middle.toFixed(0), `${min.toFixed(0)}–${max.toFixed(0)}`];
  });
  return [
    `From spawn to the answer to \`initialize\`, ms; ${rounds} starts of each:`,
    table(['', 'median', 'min–max'], rows),
  ];
}
