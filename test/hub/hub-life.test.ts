import { describe, expect, it } from 'vitest';
import { HubLife } from '../../src/hub/hub-life.js';
import { FakeClock } from '../support/fake-clock.js';
import { flush } from '../support/wire.js';

function living(hubIdleMs = 1_000) {
  const clock = new FakeClock();
  const life = new HubLife(clock);
  const ends: string[] = [];
  void life.over.then(() => ends.push('over'));
  void life.unused.then(() => ends.push('unused'));
  const config = { isThere: true };
  const begin = () => {
    life.begin(
      () => ({ hub: 'auto', hubIdleMs, hubClients: 8 }),
      () => config.isThere,
    );
  };
  return { clock, life, ends, begin, config };
}

describe('the life of a hub', () => {
  it('ends when the last client has been gone for the idle time, and no client is taken from then on', async () => {
    const { clock, life, ends, begin } = living();
    life.clientsChanged(1);
    begin();
    clock.advance(5_000);
    life.clientsChanged(0);
    clock.advance(999);
    life.clientsChanged(1);
    clock.advance(5_000);
    life.clientsChanged(0);
    clock.advance(999);
    await flush();
    expect([ends, life.refusal]).toEqual([[], undefined]);
    clock.advance(1);
    await flush();
    expect([ends, life.refusal]).toEqual([['over'], 'ending']);
  });

  it('has no end without clients if the idle time is 0', async () => {
    const { clock, life, ends, begin } = living(0);
    life.clientsChanged(1);
    begin();
    life.clientsChanged(0);
    clock.advance(10 ** 7);
    await flush();
    expect(ends).toEqual(['unused']);
  });

  it.each([0, 60_000])(
    'F134: ends without its configuration file once it has no client; idle time %i',
    async (hubIdleMs) => {
      const { clock, life, ends, begin, config } = living(hubIdleMs);
      life.clientsChanged(1);
      begin();
      config.isThere = false;
      clock.advance(10_000);
      await flush();
      expect(ends).toEqual([]);
      config.isThere = true;
      life.clientsChanged(0);
      clock.advance(9_000);
      config.isThere = false;
      clock.advance(10_000);
      await flush();
      expect([ends, life.refusal]).toEqual([['over'], 'ending']);
    },
  );

  it('is told if no client comes at all', async () => {
    const { clock, ends } = living();
    clock.advance(30_000);
    await flush();
    expect(ends).toEqual(['unused']);
  });

  it('ends with its last client when another hub takes over, and takes none meanwhile', async () => {
    const { life, ends, begin } = living();
    begin();
    life.clientsChanged(2);
    life.endAfterClients();
    life.clientsChanged(1);
    await flush();
    expect([ends, life.refusal]).toEqual([[], 'ending']);
    life.clientsChanged(0);
    await flush();
    expect(ends).toEqual(['over']);
  });
});
