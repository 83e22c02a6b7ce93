import { describe, expect, it } from 'vitest';
import { type Result, remarksBelow } from '../../../../src/cli/commands/config/check.js';
import type { Fault } from '../../../../src/status/verdict.js';

/** A server that failed, with one line of output. */
function failed(server: string, fault: Partial<Fault>, line: string): Result {
  const report = { server, cause: [line], log: [] };
  return { report, fault, packageRemarks: [] } as unknown as Result;
}

const OFFLINE = { reason: 'it ended', remedy: 'check the network', trouble: 'no network' };

describe('the lines below the table of `check`', () => {
  it('name all servers that fail for the same reason once, with the output of the first', () => {
    const servers = ['one', 'two', 'three'].map((name) => failed(name, OFFLINE, `npm error network ${name}`));
    expect(remarksBelow(servers)).toEqual([
      '',
      'one, two, three: it ended',
      '  | npm error network one',
      '  check the network',
    ]);
  });

  it('keep servers apart that fail for different reasons, or without a known trouble with different output', () => {
    const other = { reason: 'it ended', remedy: 'look at its output' };
    const lines = remarksBelow([failed('one', OFFLINE, 'x'), failed('two', other, 'a'), failed('three', other, 'b')]);
    expect(lines.filter((line) => line.includes(': '))).toEqual(['one: it ended', 'two: it ended', 'three: it ended']);
  });
});
