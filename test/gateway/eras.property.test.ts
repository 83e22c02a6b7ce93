import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { repetitions } from '../support/repetitions.js';
import { EVENT, SETTING } from './eras/events.js';
import { expectPromises } from './eras/promises.js';
import { World } from './eras/world.js';

/** For the full number of repetitions, on a busy machine. */
const TIMEOUT_MS = 600_000;

/*
 * Two clients of either era, and a server of each era. The numbers are those of the invariants in the design: what each
 * means is in `eras/promises.ts`, and where the order of messages counts, in `eras/person.ts` and `eras/server-process.ts`.
 */
describe('clients and servers of both eras', () => {
  it(
    'invariants 1-12, 14-25, 30 and 31: hold, whatever happens between a request and its answer',
    async () => {
      await fc.assert(
        fc.asyncProperty(SETTING, fc.array(EVENT, { maxLength: 60, size: 'max' }), async (setting, events) => {
          const world = new World(setting);
          await world.begin();
          for (const event of events) await world.take(event);
          await world.end();
          await world.expectListening();
          expectPromises(world);
          expect(await world.leave(), 'invariant 19').toBe(0);
        }),
        { numRuns: repetitions({ short: 60, full: 2_000 }) },
      );
    },
    TIMEOUT_MS,
  );
});
