import { describe, expect, it } from 'vitest';
import { CallFeed } from '../../src/gateway/call-feed.js';
import { EventBus } from '../../src/host/observe/events/events.js';
import type { ChildSnapshot } from '../../src/spec/server-state.js';
import { HISTORY_MINUTES, UsageHistory } from '../../src/status/usage-history.js';
import { FakeClock } from '../support/fake-clock.js';
import { flush } from '../support/wire.js';

const MINUTE_MS = 60_000;
const MIB = 1024 * 1024;
/** Half a minute after a full hour. */
const BEGIN_MS = 1_790_000 * 3_600_000 + MINUTE_MS / 2;

/** A history whose processes are those of `processes`, by pid. */
function begin() {
  const clock = new FakeClock();
  const processes = new Map<number, { server: string; memoryBytes: number; cpuMs: number }>();
  const events = new EventBus();
  let skewMs = 0;
  const history = new UsageHistory({
    now: () => BEGIN_MS + clock.now() + skewMs,
    schedule: clock.schedule.bind(clock),
    processes: () => [...processes].map(([pid, { server }]) => ({ server, pid })),
    readUsage: async () => new Map(processes),
    ...{ events, calls: new CallFeed(clock) },
  });
  const run = (pid: number, server: string, memoryMib: number, cpuMs = 0) => {
    processes.set(pid, { server, memoryBytes: memoryMib * MIB, cpuMs });
    events.emit({ kind: 'server.changed', instance: server, snapshot: {} as ChildSnapshot });
  };
  return {
    clock,
    processes,
    history,
    run,
    call: (server?: string) => history.begin().ended({ server }),
    pass: (ms: number) => clock.advanceSlowly(ms, flush),
    setBack: (ms: number) => {
      skewMs -= ms;
    },
    of: (server: string) => history.report([server]).servers[0],
  };
}

describe('the history of the usage', () => {
  it('counts the calls of each server by minute, and none of no server', async () => {
    const { call, pass, of } = begin();
    call('files');
    call('files');
    call(undefined);
    await pass(2 * MINUTE_MS);
    call('files');
    call('web');
    expect(of('files')).toEqual({
      server: 'files',
      calls: [2, 0, 1],
      memory: [null, null, null],
      cpu: [null, null, null],
    });
    expect(of('other')?.calls).toEqual([0, 0, 0]);
  });

  it('has the memory and the share of the processor of all processes of a server together', async () => {
    const { run, pass, of } = begin();
    run(1, 'files', 40);
    run(2, 'files', 60, 500);
    await pass(MINUTE_MS);
    run(1, 'files', 50, 15_000);
    run(2, 'files', 60, 500 + 30_000);
    await pass(MINUTE_MS);
    expect(of('files')).toMatchObject({ memory: [null, 100 * MIB, 110 * MIB], cpu: [null, null, 75] });
  });

  it('keeps an hour, and nothing of servers that are configured no more', async () => {
    const { call, pass, of, history } = begin();
    call('files');
    call('gone');
    await pass((HISTORY_MINUTES - 1) * MINUTE_MS);
    expect(of('files')?.calls).toHaveLength(HISTORY_MINUTES);
    expect(of('files')?.calls[0]).toBe(1);
    await pass(MINUTE_MS);
    call('files');
    expect(of('files')?.calls).toEqual([...Array(HISTORY_MINUTES - 1).fill(0), 1]);
    expect(history.report(['gone']).servers[0]?.calls).not.toContain(1);
  });

  it('measures at the start of each minute while a process runs, and has no timer without one', async () => {
    const { clock, run, pass, processes, history } = begin();
    expect(clock.pending).toBe(0);
    run(1, 'files', 40);
    run(2, 'web', 40);
    expect(clock.pending).toBe(1);
    await pass(MINUTE_MS);
    expect(clock.pending).toBe(1);
    processes.clear();
    await pass(MINUTE_MS);
    expect(clock.pending).toBe(0);
    run(3, 'files', 40);
    expect(clock.pending).toBe(1);
    history.close();
    expect(clock.pending).toBe(0);
  });

  it('leaves the minutes empty in which the machine slept', async () => {
    const { clock, run, pass, of } = begin();
    run(1, 'files', 40);
    await pass(MINUTE_MS);
    clock.jump(3 * MINUTE_MS);
    await flush();
    expect(of('files')?.memory).toEqual([null, 40 * MIB, null, null, 40 * MIB]);
  });

  it('goes on if the clock of the machine is set back', async () => {
    const { call, pass, setBack, of } = begin();
    await pass(5 * MINUTE_MS);
    call('files');
    setBack(HISTORY_MINUTES * MINUTE_MS);
    call('files');
    expect(of('files')?.calls).toEqual([1]);
  });
});
