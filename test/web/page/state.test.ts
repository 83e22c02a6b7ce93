import { expect, it } from 'vitest';
import {
  callLog,
  cpuOf,
  history,
  hub,
  memoryOfServer,
  needs,
  receive,
  recording,
  replacements,
  revision,
} from '../../../src/web/page/state.js';
import type { CallRow, Frame } from '../../../src/web/server/contract.js';

const HELLO: Frame = { kind: 'hello', isReadOnly: false, configFile: '/one/trunkline.yaml' };

function running(at: number): Frame {
  const processes = [
    { server: 'files', memoryBytes: 100, cpuPercent: 1 },
    { server: 'files', memoryBytes: null, cpuPercent: 2 },
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

it('facts are read again after two changes of the configuration that lead back to the same lists', () => {
  const reloaded = (configReloads: number) => {
    const frame = running(100_000) as Extract<Frame, { kind: 'state' }>;
    receive([{ ...frame, hub: { ...frame.hub, report: { servers: [], configReloads } } } as unknown as Frame]);
    return revision.value;
  };
  expect(reloaded(1)).not.toBe(reloaded(3));
  expect(reloaded(3)).toBe(reloaded(3));
});

it('a server has the memory and the processor of all its processes', () => {
  receive([running(100_000)]);
  expect([memoryOfServer('files'), cpuOf('files'), memoryOfServer('other')]).toEqual([100, 3, null]);
});

it('nothing of a configuration is shown with another one, which nobody has asked about yet', () => {
  receive([HELLO, running(1_000), calls([1_500], 1_000), { kind: 'recording', recording: null }]);
  receive([{ kind: 'history', at: 1_000, servers: [] }]);
  const before = replacements.value;
  receive([HELLO]);
  expect([replacements.value, callLog.value.calls.length]).toEqual([before, 1]);
  receive([{ ...HELLO, configFile: '/other/trunkline.yaml' } as Frame]);
  expect(replacements.value).toBe(before + 1);
  const facts = [hub, needs, recording, history].map(({ value }) => value);
  expect(facts).toEqual([undefined, undefined, undefined, undefined]);
  receive([calls([9_000], 8_990)]);
  expect(callLog.value).toMatchObject({ calls: [{ id: 9_000 }], failed: [], left: 0, since: 8_990, gaps: [] });
});
