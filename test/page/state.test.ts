import { expect, it } from 'vitest';
import { callLog, receive, usage } from '../../src/page/state.js';
import type { CallRow, Frame } from '../../src/web/contract.js';

const HELLO: Frame = { kind: 'hello', isReadOnly: false };

function running(at: number, calls = 0): Frame {
  const processes = [
    { server: 'files', memoryBytes: 100, cpuPercent: 1, calls },
    { server: 'files', memoryBytes: null, cpuPercent: 2, calls: 0 },
  ];
  const hub = { kind: 'running', hub: { servers: processes }, report: { servers: [] }, disabled: [] };
  return { kind: 'state', at, hub, needs: [] } as unknown as Frame;
}

function none(at: number): Frame {
  return { kind: 'state', at, hub: { kind: 'none', because: '', remedy: '', servers: [], fault: null }, needs: [] };
}

function calls(ids: readonly number[], since?: number): Frame {
  const rows = ids.map((id) => ({ id, at: id, outcome: 'ok' }) as CallRow);
  return { kind: 'calls', calls: rows, left: {}, ...(since !== undefined && { since }) };
}

it('the time in which calls were not followed begins with the last news of the hub, and ends with the first of the next', () => {
  receive([HELLO, running(1_000), calls([], 1_000)]);
  receive([calls([1_500])]);
  receive([running(2_000)]);
  // A tab that joins begins the stream again.
  receive([HELLO, running(2_100), calls([1_500], 1_000)]);
  expect(callLog.value).toMatchObject({ since: 1_000, gaps: [] });
  receive([none(3_000), running(9_000), calls([], 8_990)]);
  expect(callLog.value.gaps).toEqual([{ after: 1_500, from: 2_000, to: 8_990 }]);
  receive([running(9_500)]);
  // The tab was hidden.
  receive([HELLO, running(60_000), calls([], 59_990)]);
  expect(callLog.value.gaps.at(-1)).toEqual({ after: 1_500, from: 9_500, to: 59_990 });
  expect(callLog.value.calls).toHaveLength(1);
});

it('a server has the memory and the processor of all its processes, and the rate of their calls', () => {
  receive([running(100_000, 10), running(101_000, 11), running(110_000, 15)]);
  const { memory, cpu, callsPerMinute } = usage.value.servers.get('files') ?? {};
  expect(memory?.slice(-2)).toEqual([
    { at: 100_000, value: 100 },
    { at: 110_000, value: 100 },
  ]);
  expect([cpu?.at(-1)?.value, callsPerMinute]).toEqual([3, 30]);
});
