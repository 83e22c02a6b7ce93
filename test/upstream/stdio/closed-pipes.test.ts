import { describe, expect, it } from 'vitest';
import { watchPipes } from '../../../src/upstream/stdio/stdio-dialer.js';
import { FakeClock } from '../../support/fake-clock.js';

function watching() {
  const clock = new FakeClock();
  const reasons: string[] = [];
  const pipes = watchPipes(clock, (because) => void reasons.push(because));
  return { clock, reasons, pipes };
}

describe('a server that closes a pipe', () => {
  it.each([
    ['stdin', 'it closed its stdin and ran on, so no request could reach it'],
    ['stdout', 'it closed its stdout and ran on, so it could not answer'],
  ] as const)('is of no use if it still runs 0.2 s later: %s', (pipe, reason) => {
    const { clock, reasons, pipes } = watching();
    pipes.closed(pipe);
    clock.advance(199);
    expect(reasons).toEqual([]);
    clock.advance(1);
    expect(reasons).toEqual([reason]);
    expect(clock.pending).toBe(0);
  });

  it('is judged once, by the first pipe that it closed', () => {
    const { clock, reasons, pipes } = watching();
    pipes.closed('stdout');
    clock.advance(100);
    pipes.closed('stdin');
    clock.advance(100);
    pipes.closed('stdin');
    clock.advance(1_000);
    expect(reasons).toHaveLength(1);
    expect(clock.pending).toBe(0);
  });

  it('is not judged if it exits then', () => {
    const { clock, reasons, pipes } = watching();
    pipes.closed('stdin');
    pipes.closed('stdout');
    clock.advance(199);
    pipes.end();
    expect(clock.pending).toBe(0);
    pipes.closed('stdout');
    clock.advance(1_000);
    expect(reasons).toEqual([]);
  });
});
