import { describe, expect, it } from 'vitest';
import { FakeClock } from '../support/fake-clock.js';
import { failureOf, InProcessGateway, textOf } from '../support/in-process-gateway.js';
import { until } from '../support/processes.js';
import { scriptGateway } from '../support/scripted-gateway.js';
import { Seeded } from '../support/seeded.js';
import { flush } from '../support/wire.js';

async function serving(entry: Record<string, unknown> = {}, clock?: FakeClock) {
  const gateway = InProcessGateway.start({ servers: { f: entry }, ...(clock === undefined ? {} : { clock }) });
  const client = await gateway.connect();
  await gateway.untilState('f', 'ready');
  return { gateway, client };
}

describe('an answer', () => {
  it('F29: counts the first time, and is dropped when it comes again', async () => {
    const { gateway, client } = await serving();
    expect(textOf(await client.call('f__twice', { nonce: 'first' }))).toBe('first');
    expect(textOf(await client.call('f__answer', { nonce: 'next' }))).toBe('next');
    expect(gateway.status('f').dropped).toMatchObject({ duplicate: 1, unknown: 0, late: 0 });
    expect(client.received.lines.join('')).not.toContain('the second answer');
  });

  it('F30: under an id that is unknown, null, or of another kind belongs to no call, and is counted', async () => {
    const { gateway, client } = await serving();
    expect(textOf(await client.call('f__stray_ids', { nonce: 'mine' }))).toBe('mine');
    const { dropped } = gateway.status('f');
    expect(dropped).toMatchObject({ unknown: 5, junk: 2 });
    expect(client.received.lines.join('')).not.toContain('stray"');
  });

  it('F31: that comes after the timeout is late, and the only end of the call was the timeout', async () => {
    const clock = new FakeClock();
    const { gateway, client } = await serving({ args: ['effects=RUN/effects'] }, clock);
    // The answer must not come before the clock is advanced, also on a busy machine.
    const call = client.call('f__late', { nonce: 'late', afterMs: 500 });
    await until('the call is in flight', () => gateway.lines('effects').length === 1);
    clock.advance(60_000);
    expect(failureOf(await call)).toMatchObject({ reason: 'timeout', sent: true, outcome: 'unknown' });
    await until('the answer came', () => gateway.status('f').dropped.late === 1);
    expect(client.received.lines.join('')).not.toContain('"late"');
    expect(gateway.status('f')).toMatchObject({ calls: 1, failures: 1, errors: 0 });
  });

  it('F32: races its cancellation in 1,000 ways: it comes or there is silence, and no id is used again', async () => {
    const random = new Seeded(32);
    const { server, startAll, connect, clock } = scriptGateway({
      servers: { a: { tools: ['read'], hasBridge: true } },
    });
    await startAll();
    const { child } = server('a');
    const client = connect();
    client.initialize();
    let silent = 0;
    for (let round = 0; round < 1_000; round += 1) {
      const id = `r${round}`;
      client.call(id, 'a__read', { _meta: { progressToken: round } });
      const asked = child.received.last.id;
      let isCancelled = false;
      const steps = random.shuffle([
        () => child.say({ jsonrpc: '2.0', id: asked, result: { id } }),
        () => {
          isCancelled = client.answerTo(id) === undefined;
          client.cancel(id);
        },
        () => {
          const params = { progressToken: asked, progress: 1 };
          child.say({ jsonrpc: '2.0', method: 'notifications/progress', params });
        },
        () => clock.advance(random.below(8)),
      ]);
      for (const step of steps) {
        step();
        if (random.chance(0.5)) await flush();
      }
      await flush();
      clock.advance(10);
      expect(client.answerTo(id)?.result?.id).toBe(isCancelled ? undefined : id);
      silent += isCancelled ? 1 : 0;
      client.received.take();
    }
    expect(silent).toBe(648);
    expect(new Set(child.calls.map(({ id }) => id)).size).toBe(1_000);
    expect([
      client.session.inFlight,
      child.connection.inFlight,
      server('a').backend.dispatcher.admission.queued,
    ]).toEqual([0, 0, 0]);
  });
});

describe('progress', () => {
  it('F35: under an unknown token, or after the answer, reaches no client', async () => {
    const { gateway, client } = await serving();
    expect(textOf(await client.call('f__stale_progress', { nonce: 'n' }, 'mine'))).toBe('n');
    await client.call('f__answer');
    expect(client.notifications('notifications/progress')).toEqual([]);
    expect(gateway.status('f').dropped.staleProgress).toBe(3);
  });
});
