import { readdirSync, readFileSync } from 'node:fs';
import { join, sep } from 'node:path';
import { describe, expect, it } from 'vitest';

const PAGE = join(import.meta.dirname, '../docs/evidence.md');
const page = readFileSync(PAGE, 'utf8');
const ROW = /^\| F(\d+) \|([^|]*)\|([^|]*)\|([^|]*)\|$/gm;

const table = [...page.matchAll(ROW)].map(([, number, fault = '', outcome = '']) => ({
  row: Number(number),
  fault: fault.trim(),
  outcome: outcome.trim(),
}));

/** The files with tests of each row, whose names begin with it, or with several such as `F11 and F12: `. */
const tested = new Map<number, string[]>();
for (const file of readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' }).sort()) {
  if (!file.endsWith('.ts')) continue;
  const text = readFileSync(join(import.meta.dirname, file), 'utf8');
  const names = [...text.matchAll(/\(\s*['"`](F\d+(?:(?:, | and )F\d+)*): /g)].map(([, name = '']) => name);
  const rows = new Set(names.flatMap((name) => name.match(/\d+/g)?.map(Number) ?? []));
  const path = `\`test/${file.replaceAll(sep, '/')}\``;
  for (const row of rows) tested.set(row, [...(tested.get(row) ?? []), path]);
}

describe('the fault matrix in docs/evidence.md', () => {
  // A number that is missing belonged to a mechanism that is gone. It is not used again.
  it('has every row once, in order', () => {
    const rows = table.map(({ row }) => row);
    expect(rows.length).toBeGreaterThan(200);
    expect(rows).toEqual([...new Set(rows)].sort((a, b) => a - b));
    for (const { fault, outcome } of table) expect([fault, outcome]).not.toContain('');
  });

  it('has a row for every fault that a test names', () => {
    const rows = table.map(({ row }) => row);
    expect([...tested.keys()].filter((row) => !rows.includes(row))).toEqual([]);
  });

  it('names the files with tests of each row, as `npm run generate` writes them', async () => {
    const written = page.replace(
      ROW,
      (_, row, fault, outcome) => `| F${row} |${fault}|${outcome}| ${tested.get(Number(row))?.join(', ') ?? ''} |`,
    );
    await expect(written).toMatchFileSnapshot(PAGE);
  });

  it('says of a fault without a test that it is not promised, and what happens instead', () => {
    const untested = table.filter(({ row }) => !tested.has(row));
    for (const { outcome } of untested) expect(outcome).toMatch(/^not promised(?: as a whole)?: ./);
  });
});
