// Each row of the table: a quirk of the field with the official SDK directly, and through Trunkline. `npm run field` prints it.
import PQueue from 'p-queue';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Field } from './legs.js';
import { judge, type Row, SOUND, type Verdict } from './row.js';
import { BYTES } from './rows/bytes.js';
import { ENTRIES } from './rows/entries.js';
import { EXCHANGES } from './rows/exchanges.js';
import { FRONT } from './rows/front.js';
import { HANDSHAKES } from './rows/handshakes.js';
import { HTTP } from './rows/http.js';
import { LOGINS } from './rows/logins.js';
import { PAGES } from './rows/pages.js';
import { REFUSALS } from './rows/refusals.js';
import { REMOTE } from './rows/remote.js';
import { RESULTS } from './rows/results.js';
import { REVERSE } from './rows/reverse.js';
import { STRAY } from './rows/stray.js';

/** The rows, by subject. */
const SUBJECTS: Readonly<Record<string, readonly Row[]>> = {
  'entries of lists': ENTRIES,
  'stray messages': STRAY,
  'bytes on stdio': BYTES,
  handshakes: HANDSHAKES,
  'lists and their pages': PAGES,
  'servers behind a URL': HTTP,
  'exchanges over HTTP': EXCHANGES,
  'refusals over HTTP': REFUSALS,
  'results and errors': RESULTS,
  'what servers ask and announce': REVERSE,
  logins: LOGINS,
  'what clients send over HTTP': FRONT,
  'what servers behind a URL send': REMOTE,
};

/** Rows that run at once. */
const AT_ONCE = 24;

const printed: string[] = [];

for (const [subject, rows] of Object.entries(SUBJECTS)) {
  describe(subject, () => {
    const field = new Field(rows);
    const outcomes = new Map<Row, Promise<{ direct: string; through: string }>>();
    beforeAll(async () => {
      await field.start();
      // Many rows at once, because most of them wait for others. All at once, `fetch` would not connect in time on a busy machine.
      const queue = new PQueue({ concurrency: AT_ONCE });
      for (const row of rows) {
        const outcome = queue.add(async () => {
          const throughTrunkline = field.through(row);
          const [direct, through] = await Promise.all([field.direct(row, throughTrunkline), throughTrunkline]);
          return { direct, through };
        });
        outcomes.set(row, outcome);
      }
      await Promise.allSettled(outcomes.values());
    });
    afterAll(() => field.end());

    it.each(rows.map((row) => [nameOf(row), row] as const))('%s', async (_, row) => {
      const outcome = (await outcomes.get(row)) ?? { direct: '', through: '' };
      const verdict = judge({ ...outcome, protects: row.protects });
      print(row, outcome, verdict);
      const { direct = SOUND, through = direct } = row;
      expect(outcome).toEqual({ direct: likeText(direct), through: likeText(through) });
      expect(verdict).not.toBe('worse');
      if (row.status !== undefined) expect(await field.status(row)).toMatch(row.status);
    });
  });
}

function likeText(expected: string | RegExp): unknown {
  return typeof expected === 'string' ? expected : expect.stringMatching(expected);
}

afterAll(() => {
  if (process.env.TRUNKLINE_FIELD === 'print') process.stdout.write(`${printed.join('\n')}\n`);
});

function nameOf({ quirk, sdk }: Row): string {
  return sdk === 2 ? `${quirk} (SDK 2.x)` : quirk;
}

function print(row: Row, { direct, through }: { direct: string; through: string }, verdict: Verdict): void {
  printed.push([nameOf(row), direct, through, verdict, row.right].join(' | '));
}
