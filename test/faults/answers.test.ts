import { describe, expect, it } from 'vitest';
import { scriptGateway } from '../support/scripted-gateway.js';
import { Seeded } from '../support/seeded.js';
import { flush } from '../support/wire.js';

describe('an answer', () => {
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
