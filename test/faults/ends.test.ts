// The ways in which Trunkline ends a process that runs, and what becomes of the calls.
import { describe, expect, it } from 'vitest';
import { FakeClock } from '../support/fake-clock.js';
import { failureOf, InProcessGateway, type InProcessOptions, textOf } from '../support/in-process-gateway.js';
import { passUntil, until } from '../support/processes.js';
import { flush, type Message } from '../support/wire.js';

/** `stopGrace` is short because the servers do not heed the end of their stdin. */
const AGAIN = { restart: { firstDelay: '10ms' }, stopGrace: '50ms', args: ['effects=RUN/effects'] };
const STDOUT = 'it closed its stdout and ran on, so it could not answer';
const STDIN = 'it closed its stdin and ran on, so no request could reach it';

async function start(entry: Message = {}, options: Partial<InProcessOptions> = {}) {
  const gateway = InProcessGateway.start({ ...options, servers: { f: { ...AGAIN, ...entry } } });
  const client = await gateway.connect();
  await gateway.untilState('f', 'ready');
  return { gateway, client };
}

describe('a server that closes a pipe and lives on', () => {
  it('F65: is restarted when it closes its stdout, and the calls in flight learn why', async () => {
    const { gateway, client } = await start();
    const other = client.call('f__silent');
    const result = await client.call('f__close_stdout');
    for (const each of [result, await other]) {
      const failure = { reason: 'child_exited', generation: 1, sent: true, outcome: 'unknown', because: STDOUT };
      expect(failureOf(each)).toMatchObject(failure);
      expect(textOf(each)).toContain(`Server "f" was ended during this call, because ${STDOUT}. Trunkline restarts it`);
    }
    expect(textOf(await client.call('f__answer', { nonce: 'n' }))).toBe('n');
    const { lastExit, lastFailure, generation } = await gateway.untilState('f', 'ready');
    expect({ lastFailure, generation }).toEqual({ lastFailure: STDOUT, generation: 2 });
    // The exit is that of Trunkline's own signal. Alone, it would not say why.
    expect(lastExit?.signal).toBe('SIGTERM');
  });

  it('F66: is restarted when it closes its stdin, even if nothing is written to it', async () => {
    const { gateway, client } = await start();
    expect(textOf(await client.call('f__close_stdin', { nonce: 'n' }))).toBe('n');
    await until('it is restarted', () => gateway.status('f').generation === 2);
    expect((await gateway.untilState('f', 'ready')).lastFailure).toBe(STDIN);
  });

  it('F66: gets no call that was made after it closed its stdin: the next process gets it', async () => {
    const { gateway, client } = await start();
    await client.call('f__close_stdin', { nonce: 'close' });
    const nonces = ['a', 'b', 'c'];
    const answers = await Promise.all(nonces.map((nonce) => client.call('f__answer', { nonce })));
    expect(answers.map(textOf)).toEqual(nonces);
    expect(gateway.lines('effects')).toEqual(['close', ...nonces]);
    expect(gateway.status('f')).toMatchObject({ generation: 2, lastFailure: STDIN });
  });

  it('F65: is restarted at once when it does so in its handshake', async () => {
    const args = ['-e', 'require("fs").closeSync(1); setInterval(() => {}, 1000)'];
    const gateway = InProcessGateway.start({ servers: { f: { command: 'node', args, stopGrace: '50ms' } } });
    await gateway.connect();
    expect((await gateway.untilState('f', 'backoff')).lastFailure).toBe(STDOUT);
  });
});

describe('a server that answers nothing and goes on printing', () => {
  it('F67: is restarted after three timeouts in a row and two unanswered probes, whatever it prints', async () => {
    const clock = new FakeClock();
    const { gateway, client } = await start({}, { clock });
    const calls = [client.call('f__rave'), client.call('f__answer'), client.call('f__answer')];
    await until('it prints', () => client.notifications('notifications/message').length > 0);
    clock.advance(60_000);
    for (const call of calls) expect(failureOf(await call).reason).toBe('timeout');
    expect(gateway.status('f').state).toBe('suspect');
    await passUntil(clock, 'it is restarted', () => gateway.status('f').generation === 2);
    const { lastFailure } = await gateway.untilState('f', 'ready');
    expect(lastFailure).toBe('it answered neither three requests in a row nor a ping nor tools/list');
    expect(gateway.times('f', 'ready')).toHaveLength(2);
  });
});

describe('calls that wait while their process ends', () => {
  it.each([
    ['exits', {}, [['exit', 'child_exited']]],
    ['closes its stdout', {}, [['close_stdout', 'child_exited']]],
    ['closes its stdin', {}, [['close_stdin', undefined]]],
    [
      'writes messages that are too large',
      { maxFrame: '1MiB' },
      [
        ['oversized', 'response_too_large'],
        ['oversized', 'response_too_large'],
        ['oversized', 'response_too_large'],
      ],
    ],
    ['writes a line without an end', { maxFrame: '1MiB' }, [['endless', 'child_exited']]],
  ] as const)('F68: go to the next process, once, if it %s', async (_, entry, faults) => {
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
    expect(gateway.status('f').generation).toBe(2);
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
