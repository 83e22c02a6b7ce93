import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { PackagePlace } from '../support/package-place.js';
import { until } from '../support/processes.js';

vi.setConfig({ testTimeout: 60_000 });

let place: PackagePlace;
beforeEach(async () => {
  place = await PackagePlace.open();
});
afterEach(() => place.dispose());

describe('a server whose package has yet to be installed', () => {
  // Of the 200 s that the row names, `test/supervision/installing.test.ts` lets all pass, on a clock of its own.
  it('F9: is installing for longer than a start may take, then ready, and no restart is counted', async () => {
    place.registry.publish('tool', { version: '1.0.0' });
    place.registry.hold();
    const gateway = await place.start(
      { slow: { package: 'tool', startTimeout: '2s' }, lab: {} },
      { gateway: { startupWait: '100ms' } },
    );
    await gateway.untilState('lab', 'ready');
    const seen = new Set<string>();
    const installingFor = async () => {
      const { state, installing, generation } = await gateway.status('slow');
      seen.add(`${state}, generation ${generation}`);
      return installing?.forSeconds ?? 0;
    };
    await expect.poll(installingFor, { timeout: 20_000, interval: 100 }).toBeGreaterThanOrEqual(3);
    expect([...seen]).toEqual(['installing, generation 0']);
    expect((await gateway.call('lab__answer', {})).message.result).toBeDefined();
    await until('npm downloads', () => place.registry.waiting > 0, 20_000);
    place.registry.release();
    const status = await gateway.untilState('slow', 'ready');
    expect(status).toMatchObject({ generation: 1, restarts: 0, lastFailure: null, lastExit: null });
  });

  it('F10: is one of 20 with the same package and an empty store: one installation, and all become ready', async () => {
    place.registry.publish('dep', { version: '1.0.0' });
    place.registry.publish('tool', { version: '1.0.0', dependencies: { dep: '1.0.0' } });
    const keys = Array.from({ length: 20 }, (_, index) => `s${index}`);
    const servers = Object.fromEntries(keys.map((key) => [key, { package: 'tool' }]));
    const gateway = await place.start(servers, { gateway: { startLimit: 4 } });
    for (const key of keys) {
      expect(await gateway.untilState(key, 'ready')).toMatchObject({ generation: 1, restarts: 0 });
      expect((await gateway.call(`${key}__greet`)).message.result.content[0].text).toBe('1.0.0');
    }
    expect([...place.registry.downloads].sort()).toEqual(['dep@1.0.0', 'tool@1.0.0']);
    expect(place.stored()).toHaveLength(1);
    expect(place.staged()).toEqual([]);
  });
});
