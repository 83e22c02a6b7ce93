import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { FakeClock } from '../support/fake-clock.js';
import { failureOf, InProcessGateway, textOf } from '../support/in-process-gateway.js';
import { liveMembers, type ProcessEntry, until } from '../support/processes.js';

const SOON = { restart: { firstDelay: '20ms', maxDelay: '50ms', budget: 1_000 } };

describe('a server that is killed', () => {
  it('F1: is started again when its delay is over, with one living generation at a time', async () => {
    const clock = new FakeClock();
    const gateway = InProcessGateway.start({ servers: { f: {} }, clock });
    const client = await gateway.connect();
    const { pid } = await gateway.untilState('f', 'ready');
    let leftOfFirst: ProcessEntry[] | undefined;
    gateway.onChange = (_, { state, generation }) => {
      if (state === 'starting' && generation === 2) leftOfFirst ??= liveMembers([pid ?? 0]);
    };
    process.kill(pid ?? 0, 'SIGKILL');
    await gateway.untilState('f', 'backoff');
    const failedAt = clock.now();
    const delayMs = (gateway.changes.at(-1)?.snapshot.retryAt ?? 0) - failedAt;
    // The first delay is 500 ms, and varies by a fifth.
    expect(delayMs).toBeLessThanOrEqual(600);
    clock.advance(delayMs - 1);
    expect(gateway.status('f').generation).toBe(1);
    clock.advance(1);
    await until('it is started again', () => gateway.status('f').generation === 2);
    expect(await gateway.untilState('f', 'ready')).toMatchObject({ generation: 2, restarts: 1 });
    expect(leftOfFirst).toEqual([]);
    expect(textOf(await client.call('f__answer', { nonce: 'n' }))).toBe('n');
  });

  it('F33: gets no answer accepted any more, although a process that it started answers under an id of the next one', async () => {
    const args = ['wrapped', 'spawns=RUN/spawns', 'effects=RUN/effects'];
    const gateway = InProcessGateway.start({ servers: { f: { ...SOON, args } } });
    const client = await gateway.connect();
    const { pid } = await gateway.untilState('f', 'ready');
    // Long after the kill, and before the next start, which waits for the end of the whole group.
    const call = client.call('f__late', { nonce: 'old', afterMs: 1_000 });
    await until('the call is in flight', () => gateway.lines('effects').length === 1);
    process.kill(pid ?? 0, 'SIGKILL');
    expect(failureOf(await call)).toMatchObject({ reason: 'child_exited', generation: 1, outcome: 'unknown' });
    // The same id, towards the next process, as that which the old one answers.
    expect(textOf(await client.call('f__answer', { nonce: 'new' }))).toBe('new');
    expect(gateway.status('f').generation).toBe(2);
    expect(gateway.lines('effects')).toEqual(['old', 'new']);
    expect(client.received.lines.filter((line) => line.includes('"old"'))).toEqual([]);
  });
});

describe('a server whose first process ends while a process that it started runs on', () => {
  it('F11: is restarted only when its whole group is gone, so that two generations never run at the same time', async () => {
    const gateway = InProcessGateway.start({
      servers: { f: { ...SOON, args: ['wrapped', 'stubborn', 'spawns=RUN/spawns'], stopGrace: '50ms' } },
    });
    await gateway.connect();
    const { pid } = await gateway.untilState('f', 'ready');
    const [first] = gateway.lines('spawns').map(Number);
    expect(first).not.toBe(pid);
    let livingAtRestart: ProcessEntry[] | undefined;
    gateway.onChange = (_, { state, generation }) => {
      if (state === 'starting' && generation === 2) livingAtRestart ??= liveMembers([pid ?? 0]);
    };
    process.kill(pid ?? 0, 'SIGKILL');
    await until('the other one runs', () => gateway.lines('spawns').length === 2);
    expect(livingAtRestart).toEqual([]);
    expect(isAlive(first ?? 0)).toBe(false);
    // It ends with its stdin, which it does not heed: the end of the test need not wait for that.
    process.kill(Number(gateway.lines('spawns')[1]), 'SIGKILL');
  });
});

describe('a server that ends while it answers', () => {
  it.each([
    ['half a line', 'half_line'],
    ['a whole line without its end', 'no_newline'],
  ])('F25: gives no answer if it leaves %s, and the outcome of the call is unknown', async (_, tool) => {
    const gateway = InProcessGateway.start({ servers: { f: SOON } });
    const client = await gateway.connect();
    await gateway.untilState('f', 'ready');
    const failure = failureOf(await client.call(`f__${tool}`));
    expect(failure).toMatchObject({ reason: 'child_exited', sent: true, outcome: 'unknown', generation: 1 });
    expect(textOf(await client.call('f__answer', { nonce: 'n' }))).toBe('n');
  });
});

function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}
