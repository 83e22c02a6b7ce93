import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { FakeClock } from '../support/fake-clock.js';
import { InProcessGateway, textOf } from '../support/in-process-gateway.js';
import { until } from '../support/processes.js';

describe('a server that cannot start', () => {
  it('F4: fails at once, with the cause, when there is no such command', async () => {
    const clock = new FakeClock();
    const servers = { f: { command: '/nowhere/server' }, good: {} };
    const gateway = InProcessGateway.start({ servers, clock });
    const { lastFailure, pid } = await gateway.untilState('f', 'backoff');
    expect(lastFailure).toContain('ENOENT');
    expect([pid, clock.now()]).toEqual([null, 0]);
    await gateway.connect();
    await gateway.untilState('good', 'ready');
  });
});

describe('a server that does not answer initialize', () => {
  it('F7: is given up after 60 s, and clients are shown the others', async () => {
    const clock = new FakeClock();
    const gateway = InProcessGateway.start({ servers: { mute: { args: ['mute'] }, good: {} }, clock });
    const client = await gateway.connect();
    await gateway.untilState('good', 'ready');
    const firstList = client.listTools();
    // The wait of the first list for servers that start.
    clock.advance(10_000);
    expect(await firstList).toContain('good__answer');
    expect(await client.listTools()).toContain('good__answer');
    expect(textOf(await client.call('good__answer', { nonce: 'n' }))).toBe('n');
    clock.advance(49_999);
    expect(gateway.status('mute')).toMatchObject({ state: 'starting', generation: 1 });
    clock.advance(1);
    expect(gateway.status('mute')).toMatchObject({ state: 'backoff', lastFailure: expect.stringContaining('timeout') });
    await until('its process is gone', () => gateway.status('mute').pid === null);
  });
});

describe('a server that exits when it is asked for its era', () => {
  it('F148: is started again at once, without a failure', async () => {
    const strict = fileURLToPath(new URL('../fixtures/servers/strict.mjs', import.meta.url));
    const clock = new FakeClock();
    const gateway = InProcessGateway.start({ servers: { f: { command: 'node', args: [strict, 'run=RUN'] } }, clock });
    const client = await gateway.connect();
    // The first list waits for that start as for any other.
    expect(await client.listTools()).toContain('f__answer');
    expect(gateway.status('f')).toMatchObject({ generation: 2, restarts: 0, lastFailure: null });
    expect(gateway.lines('heard')).toEqual([
      'server/discover',
      'initialize',
      'notifications/initialized',
      'tools/list',
    ]);
    expect(clock.now()).toBe(0);
  });
});

describe('a server that takes its time', () => {
  it('F8: becomes ready after 45 s, by its first start', async () => {
    const clock = new FakeClock();
    const gateway = InProcessGateway.start({ servers: { f: { args: ['slow-start=300'] } }, clock });
    const client = await gateway.connect();
    expect(gateway.status('f').state).toBe('starting');
    clock.advance(45_000);
    const ready = await gateway.untilState('f', 'ready');
    expect(ready).toMatchObject({ generation: 1, restarts: 0, lastFailure: null });
    expect(textOf(await client.call('f__answer', { nonce: 'n' }))).toBe('n');
  });
});
