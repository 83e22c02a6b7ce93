import { describe, expect, it } from 'vitest';
import { syscallFilter } from '../../../src/servers/sandbox/syscall-filter.js';

const X64 = 0xc000_003e;
const ALLOWED = 0x7fff_0000;
const EPERM = 0x0005_0001;
const ENOSYS = 0x0005_0026;

/** Runs a filter as the kernel does. Fails if it ends without a result or jumps out of itself. */
function judge(filter: Buffer, call: { arch?: number; number: number; argument?: number }): number {
  const data = new Map([
    [0, call.number],
    [4, call.arch ?? X64],
    [16, call.argument ?? 0],
  ]);
  let loaded = 0;
  for (let at = 0; at < filter.length / 8; at += 1) {
    const [code, yes, no] = [filter.readUInt16LE(at * 8), filter.readUInt8(at * 8 + 2), filter.readUInt8(at * 8 + 3)];
    const operand = filter.readUInt32LE(at * 8 + 4);
    const holds = { 21: loaded === operand, 53: loaded >= operand, 69: (loaded & operand) !== 0 }[code];
    if (code === 0x06) return operand;
    if (code === 0x20) loaded = data.get(operand) ?? Number.NaN;
    else at += holds ? yes : no;
  }
  throw new Error('the filter has no result');
}

describe('the filter for system calls', () => {
  const filter = syscallFilter({ unixSockets: false });
  const result = (number: number, argument?: number) =>
    judge(filter, { number, ...(argument !== undefined && { argument }) });

  it('allows sockets of IPv4 and IPv6 and the list of devices, and refuses all others', () => {
    for (const family of [2, 10, 16]) expect(result(41, family)).toBe(ALLOWED);
    for (const family of [1, 17, 38, 40]) expect(result(41, family)).toBe(EPERM);
  });

  it('allows local sockets if the entry opens them', () => {
    expect(judge(syscallFilter({ unixSockets: true }), { number: 41, argument: 1 })).toBe(ALLOWED);
    expect(judge(syscallFilter({ unixSockets: true }), { number: 41, argument: 40 })).toBe(EPERM);
  });

  it('allows processes and threads, and refuses those with namespaces of their own', () => {
    for (const call of [56, 272]) {
      expect(result(call, 0x0120_0011)).toBe(ALLOWED);
      expect(result(call, 0x1000_0011)).toBe(EPERM);
      expect(result(call, 0x0002_0000)).toBe(EPERM);
    }
  });

  it('hides calls that programs can do without, so that they use others', () => {
    for (const call of [435, 425]) expect(result(call)).toBe(ENOSYS);
  });

  it('hides calls that are newer than its list', () => {
    for (const call of [463, 467, 1_000]) expect(result(call)).toBe(ENOSYS);
  });

  it('refuses calls that reach other processes, mounts, keys and the kernel', () => {
    for (const call of [101, 310, 165, 250, 321, 304, 457, 458]) expect(result(call)).toBe(EPERM);
  });

  it('refuses the numbers of x32, ends programs of another processor, and allows the rest', () => {
    expect(result(0x4000_0000 + 41, 1)).toBe(EPERM);
    expect(judge(filter, { arch: 0x4000_0003, number: 1 })).toBe(0x8000_0000);
    for (const call of [0, 1, 59, 257, 53]) expect(result(call)).toBe(ALLOWED);
  });
});
