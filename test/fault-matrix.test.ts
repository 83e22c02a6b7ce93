import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

const PROMISE = readFileSync('docs/evidence.md', 'utf8');

/** The rows of the table, each with the files that it names. */
const table = [...PROMISE.matchAll(/^\| F(\d+) \|(.*)\|$/gm)].map(([, number, rest = '']) => {
  const [fault = '', outcome = '', tests = ''] = rest.split('|').map((cell) => cell.trim());
  return { row: Number(number), fault, outcome, files: [...tests.matchAll(/`([^`]+)`/g)].map(([, file = '']) => file) };
});

const promised = table.filter(({ files }) => files.length > 0);
const notPromised = table.filter(({ files }) => files.length === 0);

describe('the fault matrix in docs/evidence.md', () => {
  // A number that is missing belonged to a mechanism that is gone. It is not used again.
  it('has every row once, in order', () => {
    const rows = table.map(({ row }) => row);
    expect(rows.length).toBeGreaterThan(200);
    expect(rows).toEqual([...new Set(rows)].sort((a, b) => a - b));
    for (const { fault, outcome } of table) expect([fault, outcome]).not.toContain('');
  });

  it.each(promised.flatMap(({ row, files }) => files.map((file) => [row, file] as const)))(
    'names a test of F%i in %s that is there',
    (row, file) => {
      expect(testedRows(file)).toContain(row);
    },
  );

  it('names every file with tests of a row', () => {
    const tests = readdirSync('test', { recursive: true, encoding: 'utf8' }).filter((file) =>
      file.endsWith('.test.ts'),
    );
    const unnamed = tests
      .map((file) => join('test', file))
      .flatMap((file) => testedRows(file).map((row) => ({ row, file })))
      .filter(({ row, file }) => !table.some((entry) => entry.row === row && entry.files.includes(file)));
    expect(unnamed).toEqual([]);
  });

  it.each(notPromised.map(({ row, outcome }) => [row, outcome] as const))(
    'says that F%i is not promised, and what happens instead',
    (_, outcome) => {
      expect(outcome).toMatch(/^not promised(?: as a whole)?: ./);
    },
  );
});

/** The rows that names of tests in a file begin with. */
function testedRows(file: string): number[] {
  return [...readFileSync(file, 'utf8').matchAll(/\(\s*['"`]F(\d+): /g)].map(([, row]) => Number(row));
}
