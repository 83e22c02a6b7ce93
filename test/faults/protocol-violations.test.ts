import { afterEach, describe, expect, it } from 'vitest';
import { hurryingClock } from '../support/hurrying-clock.js';
import { failureOf, InProcessGateway, type InProcessOptions, textOf } from '../support/in-process-gateway.js';
import { until } from '../support/processes.js';
import type { Message } from '../support/wire.js';

let gateway: InProcessGateway;
afterEach(() => gateway.end());

async function start(options: InProcessOptions) {
  gateway = new InProcessGateway(options);
  const client = await gateway.connect();
  for (const key of Object.keys(options.servers)) await gateway.untilState(key, 'ready');
  return client;
}

const AGAIN = { restart: { firstDelay: '10ms' } };
const BROKEN = 'it sent 3 broken, oversized or unfinished frames within a minute';

describe('a server that breaks the protocol', () => {
  const third = 'has that request fail, goes on, and is restarted at the third time';

  it(`F21: with bytes that are no UTF-8 ${third}`, () => breaksThreeTimes('invalid_utf8', 'response_malformed'));

  it(`F22: with answers that are too large ${third}`, () =>
    breaksThreeTimes('oversized', 'response_too_large', { bytes: 1024 * 1024 + 1 }));

  it(`F26: with answers that are too deep ${third}`, () => breaksThreeTimes('deep', 'response_malformed'));

  it('F23: is restarted when a line does not end', async () => {
    const client = await start({ servers: { f: { ...AGAIN, maxFrame: '1MiB' } } });
    const result = await client.call('f__endless');
    expect(failureOf(result)).toMatchObject({ reason: 'child_exited', sent: true, outcome: 'unknown' });
    await until('it is restarted', () => gateway.status('f').generation === 2);
    const { lastFailure } = await gateway.untilState('f', 'ready');
    expect(lastFailure).toBe('it wrote more than 16 MiB that is no message to stdout within a minute');
  });

  it('F23: is restarted for more than 16 MiB of other output, and not for less', async () => {
    const client = await start({ servers: { f: AGAIN } });
    const mib = 1024 * 1024;
    expect(textOf(await client.call('f__babble', { bytes: 8 * mib, nonce: 'n' }))).toBe('n');
    expect(gateway.status('f').generation).toBe(1);
    expect(failureOf(await client.call('f__babble', { bytes: 9 * mib })).reason).toBe('child_exited');
    await until('it is restarted', () => gateway.status('f').generation === 2);
  });
});

async function breaksThreeTimes(fault: string, reason: string, args: Message = {}): Promise<void> {
  const client = await start({ servers: { f: { ...AGAIN, maxFrame: '1MiB' } } });
  for (let time = 0; time < 2; time += 1) {
    expect(failureOf(await client.call(`f__${fault}`, args))).toMatchObject({ reason, sent: true, outcome: 'failed' });
    expect(textOf(await client.call('f__answer', { nonce: `n${time}` }))).toBe(`n${time}`);
  }
  expect(gateway.status('f')).toMatchObject({ generation: 1, restarts: 0 });
  expect(failureOf(await client.call(`f__${fault}`, args)).reason).toBe(reason);
  await until('it is restarted', () => gateway.status('f').generation === 2);
  expect(await gateway.untilState('f', 'ready')).toMatchObject({ restarts: 1, lastFailure: BROKEN });
  expect(textOf(await client.call('f__answer', { nonce: 'again' }))).toBe('again');
}

describe('a server that goes silent', () => {
  /** Its own calls may take two seconds, which pass in a tenth of one. */
  const HURRIED = { clock: hurryingClock(20) };

  it('F44: stopped as with SIGSTOP, is suspected, then restarted; another server is not affected', async () => {
    const client = await start({ ...HURRIED, servers: { f: { ...AGAIN, timeout: '2s' }, n: {} } });
    const calls = [client.call('f__sigstop'), client.call('f__answer'), client.call('f__answer')];
    for (const call of calls) expect(failureOf(await call)).toMatchObject({ reason: 'timeout', outcome: 'unknown' });
    expect(gateway.status('f').state).toBe('suspect');
    const held = client.call('f__answer');
    expect(textOf(await client.call('n__answer', { nonce: 'n' }))).toBe('n');
    expect(failureOf(await held)).toMatchObject({ reason: 'unresponsive', sent: false, outcome: 'not_sent' });
    await until('it is restarted', () => gateway.status('f').generation === 2);
    expect(await gateway.untilState('f', 'ready')).toMatchObject({ restarts: 1 });
    expect(textOf(await client.call('f__answer', { nonce: 'again' }))).toBe('again');
    expect(gateway.status('n')).toMatchObject({ generation: 1, failures: 0 });
  });

  it('F45: but only ignores ping and answers list requests, is never restarted', async () => {
    const client = await start({ ...HURRIED, servers: { f: { args: ['ignore=ping'], timeout: '2s' } } });
    const silent = Array.from({ length: 3 }, () => client.call('f__silent'));
    for (const call of silent) expect(failureOf(await call).reason).toBe('timeout');
    expect(gateway.status('f').state).toBe('suspect');
    await gateway.untilState('f', 'ready');
    expect(textOf(await client.call('f__answer', { nonce: 'n' }))).toBe('n');
    expect(gateway.status('f')).toMatchObject({ generation: 1, restarts: 0, lastFailure: null });
  });
});
