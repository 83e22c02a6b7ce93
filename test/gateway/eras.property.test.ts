import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { repetitions } from '../support/repetitions.js';
import { EVENT, SETTING } from './eras/events.js';
import { expectInvariants } from './eras/invariants.js';
import { World } from './eras/world.js';

/** Enough for the full number of repetitions on a busy machine. */
const TIMEOUT_MS = 3_600_000;

/*
 * Two clients of either era, and a server of each era, as processes or behind URLs. The tests check numbered invariants.
 * `eras/invariants.ts` has their meanings; `eras/person.ts` and `eras/server-process.ts` check those that depend on the order of messages.
 */
describe('clients and servers of both eras', () => {
  it(
    'invariants 1-12, 14-25, 28 and 30-32: hold, whatever happens between a request and its answer',
    async () => {
      await fc.assert(
        fc.asyncProperty(SETTING, fc.array(EVENT, { maxLength: 60, size: 'max' }), async (setting, events) => {
          const world = new World(setting);
          await world.begin();
          for (const event of events) await world.take(event);
          await world.end();
          await world.expectListening();
          expectInvariants(world);
          expect(await world.leave(), 'invariant 19').toBe(0);
        }),
        { numRuns: repetitions({ short: 15, full: 2_000 }) },
      );
    },
    TIMEOUT_MS,
  );
});
