// The ways in which Trunkline ends a process that runs, and what becomes of the calls.
import { describe, expect, it } from 'vitest';
import { FakeClock } from '../support/fake-clock.js';
import { failureOf, InProcessGateway, type InProcessOptions, textOf } from '../support/in-process-gateway.js';
import { passUntil } from '../support/processes.js';
import { flush, type Message } from '../support/wire.js';

/** `stopGrace` is short because the servers do not heed the end of their stdin. */
const AGAIN = { restart: { firstDelay: '10ms' }, stopGrace: '50ms', args: ['effects=RUN/effects'] };
const STDOUT = 'it closed its stdout and ran on, so it could not answer';
const STDIN = 'it closed its stdin and ran on, so no request could reach it';
const TOO_LARGE = 'it sent 3 oversized or unfinished messages within a minute';
const ENDLESS = 'it wrote more than 16 MiB that is no message to stdout within a minute';

async function start(entry: Message = {}, options: Partial<InProcessOptions> = {}) {
  const gateway = InProcessGateway.start({ ...options, servers: { f: { ...AGAIN, ...entry } } });
  const client = await gateway.connect();
  await gateway.untilState('f', 'ready');
  return { gateway, client };
}

describe('a server that goes silent', () => {
  it('F44: stopped as with SIGSTOP, is suspected, then restarted; another server is not affected', async () => {
    const clock = new FakeClock();
    const gateway = InProcessGateway.start({ clock, servers: { f: AGAIN, n: {} } });
    const client = await gateway.connect();
    for (const key of ['f', 'n']) await gateway.untilState(key, 'ready');
    const calls = [client.call('f__sigstop'), client.call('f__answer'), client.call('f__answer')];
    clock.advance(60_000);
    for (const call of calls) expect(failureOf(await call)).toMatchObject({ reason: 'timeout', outcome: 'unknown' });
    expect(gateway.status('f').state).toBe('suspect');
    const held = client.call('f__answer');
    expect(textOf(await client.call('n__answer', { nonce: 'n' }))).toBe('n');
    await passUntil(clock, 'it is ended', () => gateway.status('f').generation === 2, 1_000);
    expect(failureOf(await held)).toMatchObject({ reason: 'unresponsive', sent: false, outcome: 'not_sent' });
    const lastFailure = 'it answered neither three requests in a row nor a ping nor tools/list';
    expect(await gateway.untilState('f', 'ready')).toMatchObject({ restarts: 1, lastFailure });
    expect(textOf(await client.call('f__answer', { nonce: 'again' }))).toBe('again');
    expect(gateway.status('n')).toMatchObject({ generation: 1, failures: 0 });
  });
});

describe('a server that closes a pipe and lives on', () => {
  it('F65: is restarted at once when it does so in its handshake', async () => {
    const args = ['-e', 'require("fs").closeSync(1); setInterval(() => {}, 1000)'];
    const gateway = InProcessGateway.start({ servers: { f: { command: 'node', args, stopGrace: '50ms' } } });
    await gateway.connect();
    expect((await gateway.untilState('f', 'backoff')).lastFailure).toBe(STDOUT);
  });
});

describe('calls that wait while their process ends', () => {
  it.each([
    ['exits', 'exited', {}, [['exit', 'child_exited']]],
    ['closes its stdout', STDOUT, {}, [['close_stdout', 'child_exited']]],
    ['closes its stdin', STDIN, { stopGrace: '50ms' }, [['close_stdin', undefined]]],
    [
      'writes messages that are too large',
      TOO_LARGE,
      { maxFrame: '1MiB' },
      [
        ['oversized', 'response_too_large'],
        ['oversized', 'response_too_large'],
        ['oversized', 'response_too_large'],
      ],
    ],
    ['writes a line without an end', ENDLESS, { maxFrame: '1MiB' }, [['endless', 'child_exited']]],
  ] as const)('F22, F65, F66 and F68: go to the next process, once, if it %s: %s', async (_, reason, entry, faults) => {
    const clock = new FakeClock();
    const { gateway, client } = await start({ concurrency: 1, ...entry }, { clock });
    const ending = faults.map(([tool]) => client.call(`f__${tool}`, { nonce: tool, bytes: 1024 * 1024 + 1 }));
    const nonces = ['a', 'b', 'c'];
    const waiting = nonces.map((nonce) => client.call('f__answer', { nonce }));
    // The calls wait for some seconds only, in which a busy machine may not start the next process.
    await passUntil(clock, 'it is started again', () => gateway.status('f').generation === 2);
    const reasons = (await Promise.all(ending)).map((result) => result._meta && failureOf(result).reason);
    expect(reasons).toEqual(faults.map(([, reason]) => reason));
    expect((await Promise.all(waiting)).map(textOf)).toEqual(nonces);
    expect(gateway.lines('effects')).toEqual([...faults.map(([tool]) => tool), ...nonces]);
    expect(gateway.status('f')).toMatchObject({ generation: 2, restarts: 1, lastFailure: reason });
  });

  it('F68: go to the next process, once, if they were sent, and no byte of them left for the process that ends', async () => {
    const { gateway, client } = await start();
    const { pid } = gateway.status('f');
    await client.call('f__stop_reading', { nonce: 'stop' });
    const text = 'x'.repeat(100 * 1024);
    const nonces = Array.from({ length: 12 }, (_, index) => `call-${index}`);
    const calls: Promise<Message>[] = [];
    for (const nonce of nonces) {
      calls.push(client.call('f__answer', { nonce, text }));
      await flush();
    }
    expect(gateway.status('f').inFlight).toBe(12);
    process.kill(pid ?? 0, 'SIGKILL');
    const results = await Promise.all(calls);
    const isLost = (result: Message) => result.isError === true;
    const answered = results.filter((result) => !isLost(result)).map(textOf);
    // The system decides how much the pipe holds. It is more than one call here, and less than twelve.
    const lost = results.filter(isLost);
    expect(lost.length).toBeGreaterThan(0);
    for (const result of lost) expect(failureOf(result)).toMatchObject({ sent: true, outcome: 'unknown' });
    expect(answered.length).toBeGreaterThan(0);
    expect(answered).toEqual(nonces.slice(lost.length));
    expect(gateway.lines('effects')).toEqual(['stop', ...answered]);
  });
});
