import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { endGroup } from '../../src/process/end-group.js';
import { fixture, realClock, until } from '../support/processes.js';
import { observe, spawnFixture } from './spawned.js';

/** Long enough to be told apart, short enough to wait for. */
const ladder = { termAfterMs: 200, killAfterMs: 400 };
const patient = { termAfterMs: 20_000, killAfterMs: 40_000 };
const atOnce = { termAfterMs: 0, killAfterMs: 0 };

async function timed<Result>(task: Promise<Result>): Promise<{ result: Result; tookMs: number }> {
  const startedAt = performance.now();
  const result = await task;
  return { result, tookMs: performance.now() - startedAt };
}

describe('endGroup', () => {
  it('needs no signal for a child that ends on end-of-file, and reads its last words', async () => {
    const { child, stdout, events, says, live } = spawnFixture('end-on-eof.mjs');
    await says('up');
    expect(await endGroup(child, patient, realClock)).toEqual({ gone: true });
    expect(events.exit).toEqual({ code: 0, signal: null });
    expect(stdout()).toBe('up\nbye\n');
    expect(live()).toEqual([]);
  });

  it('sends SIGTERM to a child that ignores end-of-file', async () => {
    const { child, events, says, live } = spawnFixture('ignore-eof.mjs');
    await says('up');
    const { result, tookMs } = await timed(endGroup(child, { ...patient, termAfterMs: 200 }, realClock));
    expect(result).toEqual({ gone: true });
    expect(events.exit).toEqual({ code: null, signal: 'SIGTERM' });
    expect(tookMs).toBeGreaterThanOrEqual(199);
    expect(live()).toEqual([]);
  });

  it('sends SIGKILL to a child that ignores SIGTERM too, which it gets once', async () => {
    const { child, events, stdout, says, live } = spawnFixture('ignore-sigterm.mjs');
    await says('up');
    const { result, tookMs } = await timed(endGroup(child, ladder, realClock));
    expect(result).toEqual({ gone: true });
    expect(events.exit).toEqual({ code: null, signal: 'SIGKILL' });
    expect(stdout()).toBe('up\nSIGTERM ignored\n');
    expect(tookMs).toBeGreaterThanOrEqual(399);
    expect(live()).toEqual([]);
  });

  it('takes a grandchild along that ignores everything and holds stdout', async () => {
    const { child, says, live } = spawnFixture('grandchild.mjs', fixture('ignore-sigterm.mjs'), '--stay');
    await says('up');
    expect(live()).toHaveLength(2);
    expect(await endGroup(child, ladder, realClock)).toEqual({ gone: true });
    expect(live()).toEqual([]);
    expect(child.stdout.destroyed).toBe(true);
  });

  it('climbs the same ladder for a group whose leader has left', async () => {
    const { child, says, live } = spawnFixture('grandchild.mjs', fixture('ignore-sigterm.mjs'));
    await child.exit;
    await says('up');
    const { result, tookMs } = await timed(endGroup(child, ladder, realClock));
    expect(result).toEqual({ gone: true });
    expect(tookMs).toBeGreaterThanOrEqual(399);
    expect(live()).toEqual([]);
  });

  it('is quick about a child that has exited', async () => {
    const { child, live } = spawnFixture('exit-at-once.mjs');
    await child.exit;
    const { result, tookMs } = await timed(endGroup(child, patient, realClock));
    expect(result).toEqual({ gone: true });
    expect(tookMs).toBeLessThan(200);
    expect(live()).toEqual([]);
  });

  it('lets last words be read that arrive after the group has gone', async () => {
    const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
    let heard = '';
    stdout.on('data', (chunk) => {
      heard += chunk;
    });
    stderr.resume().end();
    const exit = Promise.resolve({ code: 0, signal: null });
    const ending = endGroup({ pid: undefined, stdin, stdout, stderr, exit }, patient, realClock);
    setImmediate(() => stdout.end('last words'));
    expect(await ending).toEqual({ gone: true });
    expect(heard).toBe('last words');
  });

  it('gives up on the pipes when a process that left the group holds them', async () => {
    const { child, stdout, says, live } = spawnFixture('grandchild.mjs', fixture('print-pid.mjs'), '--escape');
    await says('\n');
    const escaped = Number(stdout());
    const { result, tookMs } = await timed(endGroup(child, patient, realClock));
    expect(result).toEqual({ gone: true });
    expect(tookMs).toBeLessThan(1_000);
    expect(child.stdout.destroyed).toBe(true);
    process.kill(escaped, 'SIGKILL');
    expect(live()).toEqual([]);
  });

  it('can be called again, and joins the end under way', async () => {
    const { child, says, live } = spawnFixture('ignore-eof.mjs');
    await says('up');
    const first = endGroup(child, ladder, realClock);
    expect(endGroup(child, patient, realClock)).toBe(first);
    await first;
    expect(await endGroup(child, ladder, realClock)).toEqual({ gone: true });
    expect(live()).toEqual([]);
  });

  it('is hastened by a shorter ladder', async () => {
    const { child, events, says, live } = spawnFixture('ignore-sigterm.mjs');
    await says('up');
    const first = endGroup(child, patient, realClock);
    const { tookMs } = await timed(endGroup(child, atOnce, realClock));
    expect(await first).toEqual({ gone: true });
    expect(events.exit).toEqual({ code: null, signal: 'SIGKILL' });
    expect(tookMs).toBeLessThan(1_000);
    expect(live()).toEqual([]);
  });

  it('has nothing to do for a child that never started', async () => {
    const { child } = observe({ command: 'no-such-command', args: [], cwd: process.cwd(), env: {} });
    expect(await endGroup(child, patient, realClock)).toEqual({ gone: true });
  });

  it('admits defeat a second after SIGKILL, and tries again when called again', async () => {
    const { child, says, live } = spawnFixture('end-on-eof.mjs');
    await says('up');
    // As with a process that is stuck in the kernel, the exit is never reported.
    const stuck = { ...child, exit: new Promise<never>(() => {}) };
    const { result, tookMs } = await timed(endGroup(stuck, atOnce, realClock));
    expect(result).toEqual({ gone: false });
    expect(tookMs).toBeLessThan(1_500);
    const unstuck = endGroup(Object.assign(stuck, { exit: child.exit }), atOnce, realClock);
    expect(await unstuck).toEqual({ gone: true });
    await until('nothing is left', () => live().length === 0);
  });
});
