import { describe, expect, it } from 'vitest';
import { failureOf, InProcessGateway, textOf } from '../support/in-process-gateway.js';
import { isRunning, liveMembers, type ProcessEntry, until } from '../support/processes.js';

const SOON = { restart: { firstDelay: '20ms', maxDelay: '50ms', budget: 1_000 } };

describe('a server that is killed', () => {
  it('F12 and F33: has no late answer of its helper taken for one of the next process', async () => {
    const args = ['wrapped', 'spawns=RUN/spawns', 'effects=RUN/effects'];
    const gateway = InProcessGateway.start({ servers: { f: { ...SOON, args } } });
    const client = await gateway.connect();
    const { pid } = await gateway.untilState('f', 'ready');
    // Long after the kill, and before the next start, which waits for the end of the whole group. That holds stdout open.
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
  it('F11 and F12: is restarted only when its whole group is gone, whatever that ignores', async () => {
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
    expect(isRunning(first ?? 0)).toBe(false);
    // It ends with its stdin, which it does not heed: the end of the test need not wait for that.
    process.kill(Number(gateway.lines('spawns')[1]), 'SIGKILL');
  });
});
