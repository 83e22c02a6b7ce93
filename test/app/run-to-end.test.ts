import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { FINAL_LADDER, type RunToEndOptions, runToEnd } from '../../src/app/run-to-end.js';
import { createLogger } from '../../src/host/observe/logger.js';
import type { StopLadder } from '../../src/spec/launch.js';

const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP', 'uncaughtException', 'unhandledRejection'] as const;
const AT_ONCE = { termAfterMs: 0, killAfterMs: 0 };

/** The listeners of the test runner, which get back their places after each test. */
const before = new Map(SIGNALS.map((name) => [name, process.listeners(name as 'SIGTERM')]));
beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
  for (const [name, listeners] of before) {
    process.removeAllListeners(name);
    for (const listener of listeners) process.on(name as 'SIGTERM', listener);
  }
});

/** A run whose work ends when the test says so, and whose servers never end. */
function running({ isOutputAwaited = false, drain }: Pick<Partial<RunToEndOptions>, 'isOutputAwaited' | 'drain'> = {}) {
  const ladders: StopLadder[] = [];
  let finish = (_code: number) => {};
  let endServers = () => {};
  const ended = new Promise<void>((resolve) => {
    endServers = resolve;
  });
  let code: number | undefined;
  void runToEnd({
    composition: {
      stop: (ladder) => {
        ladders.push(ladder);
        return ended;
      },
    },
    logger: createLogger({ verbosity: 0, redact: (text) => text }),
    work: () =>
      new Promise((resolve) => {
        finish = resolve;
      }),
    onSignal: () => 7,
    ...(drain && { drain }),
    isOutputAwaited,
  }).then((exitCode) => {
    code = exitCode;
  });
  return { ladders, finish: (exitCode: number) => finish(exitCode), endServers: () => endServers(), code: () => code };
}

describe('the end of a run', () => {
  it('F15: comes three seconds after a signal, although servers never end, which get SIGTERM after 1 s and SIGKILL after 2.5 s', async () => {
    const run = running();
    process.emit('SIGTERM');
    await vi.advanceTimersByTimeAsync(2_999);
    expect([run.ladders, run.code()]).toEqual([[FINAL_LADDER], undefined]);
    expect(FINAL_LADDER).toEqual({ termAfterMs: 1_000, killAfterMs: 2_500 });
    await vi.advanceTimersByTimeAsync(1);
    expect(run.code()).toBe(7);
  });

  it('comes at once when the servers have ended', async () => {
    const run = running();
    process.emit('SIGTERM');
    run.endServers();
    await vi.advanceTimersByTimeAsync(0);
    expect(run.code()).toBe(7);
  });

  it('gives servers no time any more at a second signal', async () => {
    const run = running();
    process.emit('SIGTERM');
    await vi.advanceTimersByTimeAsync(10);
    expect(run.ladders).toEqual([FINAL_LADDER]);
    process.emit('SIGINT');
    await vi.advanceTimersByTimeAsync(0);
    expect(run.ladders).toEqual([FINAL_LADDER, AT_ONCE]);
  });

  it('gives servers their time at the end of the work and a signal together, as hosts send them', async () => {
    const run = running();
    run.finish(0);
    await vi.advanceTimersByTimeAsync(10);
    process.emit('SIGTERM');
    await vi.advanceTimersByTimeAsync(2_980);
    expect([run.ladders, run.code()]).toEqual([[FINAL_LADDER], undefined]);
    await vi.advanceTimersByTimeAsync(10);
    expect(run.code()).toBe(0);
  });

  describe('after a drain', () => {
    function draining() {
      let drained = () => {};
      const drain = () =>
        new Promise<void>((resolve) => {
          drained = resolve;
        });
      return { ...running({ drain }), drained: () => drained() };
    }

    it('stops the servers when the drain is over, and not before', async () => {
      const run = draining();
      process.emit('SIGTERM');
      await vi.advanceTimersByTimeAsync(60_000);
      expect(run.ladders).toEqual([]);
      run.drained();
      run.endServers();
      await vi.advanceTimersByTimeAsync(0);
      expect([run.ladders, run.code()]).toEqual([[FINAL_LADDER], 7]);
    });

    it.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)('comes at once at a second signal: %s', async (second) => {
      const run = draining();
      process.emit('SIGTERM');
      await vi.advanceTimersByTimeAsync(10);
      process.emit(second);
      await vi.advanceTimersByTimeAsync(0);
      expect(run.ladders).toEqual([FINAL_LADDER, AT_ONCE]);
      run.endServers();
      await vi.advanceTimersByTimeAsync(0);
      expect(run.code()).toBe(7);
    });

    it.each(['SIGINT', 'SIGHUP'] as const)('is not what a person asks for: %s', async (signal) => {
      const run = draining();
      process.emit(signal);
      await vi.advanceTimersByTimeAsync(0);
      expect(run.ladders).toEqual([FINAL_LADDER]);
    });
  });
});
