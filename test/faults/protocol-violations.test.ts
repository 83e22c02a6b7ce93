import { afterEach, describe, expect, it } from 'vitest';
import { FakeClock } from '../support/fake-clock.js';
import { failureOf, InProcessGateway, type InProcessOptions, textOf } from '../support/in-process-gateway.js';
import { passUntil, until } from '../support/processes.js';

let gateway: InProcessGateway;
afterEach(() => gateway.end());

async function start(options: InProcessOptions) {
  gateway = new InProcessGateway(options);
  const client = await gateway.connect();
  for (const key of Object.keys(options.servers)) await gateway.untilState(key, 'ready');
  return client;
}

/** The timeout of calls, and that of a ping of Trunkline's. */
const [MINUTE_MS, PING_MS] = [60_000, 10_000];
const AGAIN = { restart: { firstDelay: '10ms' } };
const EXCESSIVE = 'it sent 3 oversized or unfinished messages within a minute';

describe('a server whose messages are too large', () => {
  it('F22: has those requests fail and goes on, and is restarted at the third one within a minute', async () => {
    const client = await start({ servers: { f: { ...AGAIN, maxFrame: '1MiB' } } });
    for (const at of [1, 2, 3]) {
      expect(gateway.status('f')).toMatchObject({ generation: 1, restarts: 0 });
      const result = await client.call('f__oversized', { bytes: 1024 * 1024 + 1 });
      expect(failureOf(result)).toMatchObject({ reason: 'response_too_large', sent: true, outcome: 'failed' });
      if (at < 3) expect(textOf(await client.call('f__answer', { nonce: `n${at}` }))).toBe(`n${at}`);
    }
    await until('it is restarted', () => gateway.status('f').generation === 2);
    expect(await gateway.untilState('f', 'ready')).toMatchObject({ restarts: 1, lastFailure: EXCESSIVE });
  });
});

describe('a server that goes silent', () => {
  it('F44: stopped as with SIGSTOP, is suspected, then restarted; another server is not affected', async () => {
    const clock = new FakeClock();
    const client = await start({ clock, servers: { f: AGAIN, n: {} } });
    const calls = [client.call('f__sigstop'), client.call('f__answer'), client.call('f__answer')];
    clock.advance(MINUTE_MS);
    for (const call of calls) expect(failureOf(await call)).toMatchObject({ reason: 'timeout', outcome: 'unknown' });
    expect(gateway.status('f').state).toBe('suspect');
    const held = client.call('f__answer');
    expect(textOf(await client.call('n__answer', { nonce: 'n' }))).toBe('n');
    await passUntil(clock, 'it is ended', () => gateway.status('f').generation === 2);
    expect(failureOf(await held)).toMatchObject({ reason: 'unresponsive', sent: false, outcome: 'not_sent' });
    expect(await gateway.untilState('f', 'ready')).toMatchObject({ restarts: 1 });
    expect(textOf(await client.call('f__answer', { nonce: 'again' }))).toBe('again');
    expect(gateway.status('n')).toMatchObject({ generation: 1, failures: 0 });
  });

  it('F45: but only ignores ping and answers list requests, is never restarted', async () => {
    const clock = new FakeClock();
    const client = await start({ clock, servers: { f: { args: ['ignore=ping'] } } });
    const silent = Array.from({ length: 3 }, () => client.call('f__silent'));
    clock.advance(MINUTE_MS);
    for (const call of silent) expect(failureOf(await call).reason).toBe('timeout');
    expect(gateway.status('f').state).toBe('suspect');
    clock.advance(PING_MS);
    await gateway.untilState('f', 'ready');
    expect(textOf(await client.call('f__answer', { nonce: 'n' }))).toBe('n');
    expect(gateway.status('f')).toMatchObject({ generation: 1, restarts: 0, lastFailure: null });
  });
});
