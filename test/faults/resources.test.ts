import { describe, expect, it } from 'vitest';
import { FakeClock } from '../support/fake-clock.js';
import { failureOf, InProcessGateway, textOf } from '../support/in-process-gateway.js';
import { IS_WINDOWS } from '../support/platform.js';
import { passUntil } from '../support/processes.js';

const SOON = { restart: { firstDelay: '20ms', maxDelay: '50ms', budget: 1_000 }, startTimeout: '300s' };

describe.skipIf(IS_WINDOWS)('a server that uses more than it may', () => {
  it('F69: is restarted for its memory, which its log and the status say, and its calls in flight fail', async () => {
    const servers = { f: { ...SOON, limits: { memory: '300MiB' } }, other: {} };
    const clock = new FakeClock();
    const gateway = InProcessGateway.start({ servers, clock });
    const client = await gateway.connect();
    await gateway.untilState('f', 'ready');
    const { pid: other } = await gateway.untilState('other', 'ready');
    const silent = client.call('f__silent');
    await client.call('f__eat', { mib: 400 });
    await passUntil(clock, 'it is started again', () => gateway.status('f').generation === 2, 1_000);
    expect(failureOf(await silent)).toMatchObject({ reason: 'child_exited', outcome: 'unknown' });
    await gateway.untilState('f', 'ready');
    const reason = expect.stringMatching(/^it used [34]\d\d(\.\d)? MiB of memory, limit 300 MiB$/);
    expect(gateway.status('f')).toMatchObject({ generation: 2, restarts: 1, lastFailure: reason });
    const logged = gateway.log.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'server backoff');
    expect(logged).toMatchObject([{ level: 40, server: 'f', reason }]);
    expect(textOf(await client.call('f__answer', { nonce: 'n' }))).toBe('n');
    expect(gateway.status('other')).toMatchObject({ pid: other, restarts: 0, lastFailure: null });
  });
});

describe('work that holds the event loop', () => {
  it('F82: is in the log', () => {
    const gateway = InProcessGateway.start({ servers: { f: { start: 'lazy' } } });
    gateway.composition.platform.events.emit({ kind: 'loop.held', ms: 700 });
    const logged = gateway.log.map((line) => JSON.parse(line));
    expect(logged).toMatchObject([{ level: 40, ms: 700, msg: 'one piece of work held up all servers and clients' }]);
  });
});
