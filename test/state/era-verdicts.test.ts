import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cachedVerdicts } from '../../src/state/era-verdicts.js';

const HOUR_MS = 60 * 60 * 1_000;
const DAY_MS = 24 * HOUR_MS;

/** Verdicts in a folder that the test has, and a clock that it moves. */
function caching() {
  const files = new Map<string, Uint8Array>();
  let now = 1_000;
  let sealed = 0;
  const verdicts = cachedVerdicts({
    folder: { read: (name) => files.get(name), write: (name, bytes) => void files.set(name, bytes) },
    name: () => 'files-era',
    onCached: () => {
      sealed += 1;
    },
    now: () => now,
  });
  return {
    ...{ files, verdicts },
    sealed: () => sealed,
    wait: (ms: number) => {
      now += ms;
    },
  };
}

describe('the cached era of a server', () => {
  it('is what the last start found out, with the version of the server', () => {
    const { verdicts, sealed } = caching();
    expect(verdicts.find()).toBeUndefined();
    verdicts.put({ era: 'legacy', version: '1.2' });
    const until = new Date(1_000 + DAY_MS).toISOString();
    expect(verdicts.find()).toEqual({ era: 'legacy', version: '1.2', until });
    verdicts.put({ era: 'modern', version: undefined });
    expect(verdicts.find()).toEqual({ era: 'modern', version: undefined });
    expect(sealed()).toBe(2);
    verdicts.forget();
    expect(verdicts.find()).toBeUndefined();
  });

  it('counts for a day if it is legacy, and for ever if it is modern', () => {
    const { verdicts, wait } = caching();
    verdicts.put({ era: 'legacy', version: '1' });
    wait(DAY_MS - 1);
    expect(verdicts.find()?.era).toBe('legacy');
    wait(1);
    expect(verdicts.find()).toBeUndefined();
    verdicts.put({ era: 'modern', version: '1' });
    wait(1_000 * DAY_MS);
    expect(verdicts.find()?.era).toBe('modern');
  });

  it('invariant 32: is asked anew as soon as a day is over, whatever was found out and however the clock is set', () => {
    const hours = fc.constantFrom(-30, -1, 0, 1, 12, 23, 24, 48);
    const found = fc.constantFrom<'legacy' | 'modern' | undefined>('legacy', 'modern', undefined);
    fc.assert(
      fc.property(fc.array(fc.tuple(found, hours)), (steps) => {
        const { verdicts, wait } = caching();
        let last: { readonly era: 'legacy' | 'modern'; ageMs: number } | undefined;
        for (const [era, passed] of steps) {
          if (era !== undefined) {
            verdicts.put({ era, version: '1' });
            last = { era, ageMs: 0 };
          }
          wait(passed * HOUR_MS);
          if (last !== undefined) last.ageMs += passed * HOUR_MS;
          const counts = last?.era === 'modern' || (last !== undefined && last.ageMs >= 0 && last.ageMs < DAY_MS);
          expect(verdicts.find()?.era).toBe(counts ? last?.era : undefined);
        }
      }),
    );
  });

  it('does not count if it is of a time to come', () => {
    const { verdicts, wait } = caching();
    verdicts.put({ era: 'legacy', version: '1' });
    wait(-1);
    expect(verdicts.find()).toBeUndefined();
  });

  it.each(['', '{', '[]', '{"era":"old","at":1000}', '{"era":"legacy"}', '{"era":"legacy","at":"now"}'])(
    'is unknown if the file says %j',
    (text) => {
      const { files, verdicts } = caching();
      files.set('files-era', Buffer.from(text));
      expect(verdicts.find()).toBeUndefined();
    },
  );
});
