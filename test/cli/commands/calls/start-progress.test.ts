import { afterEach, describe, expect, it, vi } from 'vitest';
import { FirstStarts, progressBar, StartProgress } from '../../../../src/cli/commands/calls/run-once.js';
import { ProgressLine } from '../../../../src/cli/terminal.js';

afterEach(() => {
  vi.useRealTimers();
});

function setUp(isTTY: boolean) {
  const written: string[] = [];
  const stream = { isTTY, columns: 100, write: (text: string) => written.push(text) };
  const line = new ProgressLine(stream as unknown as NodeJS.WriteStream);
  const shown = () => written.map((text) => text.replace('\r\x1b[K', ''));
  return { progress: new StartProgress(line, ['a', 'b']), line, written, shown };
}

/** The report of a supervisor about a child that installs. */
function installing() {
  return { missing: 'pkg', installingSince: performance.now() };
}

describe('the progress of starts', () => {
  it('tells on a terminal how many have started, and what is being installed for how long', () => {
    vi.useFakeTimers();
    const { progress, shown } = setUp(true);
    progress.remaining(['a', 'b']);
    progress.moved('a', installing());
    vi.advanceTimersByTime(2_000);
    progress.remaining(['a']);
    progress.end();
    expect(shown()).toEqual([
      '[--------------------] 0 of 2 started; waiting for a, b, 0 s',
      '[--------------------] 0 of 2 started; installing pkg, 0 s',
      '[--------------------] 0 of 2 started; installing pkg, 1 s',
      '[--------------------] 0 of 2 started; installing pkg, 2 s',
      '[##########----------] 1 of 2 started; installing pkg, 2 s',
      '',
    ]);
    vi.advanceTimersByTime(5_000);
    expect(shown()).toHaveLength(6);
  });

  it('names three and counts the rest, so that the time stays on the line, and takes another word than started', () => {
    const { line, shown } = setUp(true);
    const keys = ['a', 'b', 'c', 'd', 'e'];
    const progress = new StartProgress(line, keys, { done: 'done' });
    progress.remaining(keys.slice(0, 4));
    progress.end();
    expect(shown()).toEqual(['[####----------------] 1 of 5 done; waiting for a, b, c and 1 more, 0 s', '']);
  });

  it('tells nothing where nobody watches', () => {
    const { progress, written } = setUp(false);
    progress.moved('a', installing());
    progress.end();
    expect(written).toEqual([]);
  });

  it.each([
    [0, 3, 0],
    [1, 3, 6],
    [3, 3, 20],
    [0, 0, 20],
  ])('%i of %i fill %i of 20 columns', (done, total, filled) => {
    expect(progressBar(done, total)).toBe(`[${'#'.repeat(filled)}${'-'.repeat(20 - filled)}]`);
  });
});

describe('the first starts', () => {
  it('are over when every server is ready or has failed with nothing left of it', async () => {
    vi.useFakeTimers();
    const pending: (readonly string[])[] = [];
    const starts = new FirstStarts(['a', 'b'], (keys) => pending.push(keys));
    starts.moved('a', { state: 'starting', pid: undefined });
    vi.advanceTimersByTime(10);
    starts.moved('a', { state: 'starting', pid: 7 });
    vi.advanceTimersByTime(25);
    starts.moved('a', { state: 'ready', pid: 7 });
    starts.moved('b', { state: 'parked', pid: 8 });
    expect(pending).toEqual([['b']]);
    starts.moved('b', { state: 'parked', pid: undefined });
    await starts.settled;
    expect(pending).toEqual([['b'], []]);
    expect([starts.readyAfterMs('a'), starts.readyAfterMs('b')]).toEqual([25, undefined]);
  });

  it('are over at once when there are none', async () => {
    await new FirstStarts([]).settled;
  });
});
