import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { describe, expect, it, onTestFinished } from 'vitest';
import { endGroup, type GroupEnd, isGroupAlive, signalGroup } from '../../src/servers/process/end-group.js';
import { processTrees } from '../../src/servers/process/process-trees.js';
import type { SpawnedChild } from '../../src/servers/process/spawn-child.js';
import type { StopLadder } from '../../src/spec/launch.js';
import { FakeClock } from '../support/fake-clock.js';
import { exitBy, IS_MAC, IS_WINDOWS, SHOWS_VARIABLES } from '../support/platform.js';
import { fixture, processesWith, until } from '../support/processes.js';
import { flush } from '../support/wire.js';
import { observe, spawnFixture } from './spawned.js';

const LADDER = { termAfterMs: 20_000, killAfterMs: 40_000 };
const AT_ONCE = { termAfterMs: 0, killAfterMs: 0 };

/** The end of a group on a clock that only the test moves. */
class Ending {
  readonly clock = new FakeClock();
  readonly #result: Promise<GroupEnd>;
  #isOver = false;

  constructor(child: SpawnedChild, ladder: StopLadder = LADDER) {
    this.#result = endGroup(child, ladder, this.clock);
    void this.#result.then(() => {
      this.#isOver = true;
    });
  }

  /** The time becomes `ms`; resolves when everything that is due by then has been done. */
  async reach(ms: number): Promise<void> {
    this.clock.advance(ms - this.clock.now());
    await flush();
  }

  /** Resolves with the result. A group whose leader has gone is looked at again and again, which takes some time. */
  async result(): Promise<GroupEnd> {
    await until('the end is over', () => {
      this.clock.advance(10);
      return this.#isOver;
    });
    return await this.#result;
  }
}

describe('endGroup', () => {
  it('needs no signal for a child that ends on end-of-file, and reads its last words', async () => {
    const { child, stdout, events, says, live } = spawnFixture('end-on-eof.mjs');
    await says('up');
    expect(await new Ending(child).result()).toEqual({ gone: true });
    expect(events.exit).toEqual({ code: 0, signal: null });
    expect(stdout()).toBe('up\nbye\n');
    expect(live()).toEqual([]);
  });

  it('closes the stdin of a child two seconds later, also if the processes are not listed by then', async () => {
    const { child, says, live } = spawnFixture('end-on-eof.mjs');
    await says('up');
    processTrees.follow('mark', child.pid ?? 0);
    onTestFinished(() => processTrees.forget('mark'));
    const ending = new Ending(child);
    expect(child.stdin.writableEnded).toBe(false);
    ending.clock.advance(2_000);
    // The list needs turns of the event loop.
    for (let step = 0; step < 10; step += 1) await Promise.resolve();
    expect(child.stdin.writableEnded).toBe(true);
    expect(await ending.result()).toEqual({ gone: true });
    expect(live()).toEqual([]);
  });

  it('sends SIGTERM to a child that ignores end-of-file, and not before it is time', async () => {
    const { child, events, says, live } = spawnFixture('ignore-eof.mjs');
    await says('up');
    const ending = new Ending(child);
    await ending.reach(LADDER.termAfterMs - 1);
    expect(live()).toHaveLength(1);
    await ending.reach(LADDER.termAfterMs);
    expect(await ending.result()).toEqual({ gone: true });
    expect(events.exit).toEqual(exitBy('SIGTERM'));
    expect(live()).toEqual([]);
  });

  // On Windows, no program can ignore the end, those below it end with it, and all of them are found as its family.
  it.skipIf(IS_WINDOWS)('sends SIGKILL to a child that ignores SIGTERM too, which it gets once', async () => {
    const { child, events, stdout, says, live } = spawnFixture('ignore-sigterm.mjs');
    await says('up');
    const ending = new Ending(child);
    await ending.reach(LADDER.termAfterMs);
    await says('SIGTERM ignored');
    await ending.reach(LADDER.killAfterMs - 1);
    expect(live()).toHaveLength(1);
    await ending.reach(LADDER.killAfterMs);
    expect(await ending.result()).toEqual({ gone: true });
    expect(events.exit).toEqual({ code: null, signal: 'SIGKILL' });
    expect(stdout()).toBe('up\nSIGTERM ignored\n');
    expect(live()).toEqual([]);
  });

  it.skipIf(IS_WINDOWS)('ends a grandchild too that ignores everything and holds stdout', async () => {
    const { child, says, live } = spawnFixture('grandchild.mjs', fixture('ignore-sigterm.mjs'), '--stay');
    await says('up');
    expect(live()).toHaveLength(2);
    const ending = new Ending(child);
    await ending.reach(LADDER.termAfterMs);
    await ending.reach(LADDER.killAfterMs);
    expect(await ending.result()).toEqual({ gone: true });
    expect(live()).toEqual([]);
    expect(child.stdout.destroyed).toBe(true);
  });

  it.skipIf(IS_WINDOWS)('climbs the same ladder for a group whose leader has left', async () => {
    const { child, says, live } = spawnFixture('grandchild.mjs', fixture('ignore-sigterm.mjs'));
    await child.exit;
    await says('up');
    const ending = new Ending(child);
    await ending.reach(LADDER.termAfterMs);
    await says('SIGTERM ignored');
    await ending.reach(LADDER.killAfterMs - 1);
    expect(live()).toHaveLength(1);
    await ending.reach(LADDER.killAfterMs);
    expect(await ending.result()).toEqual({ gone: true });
    expect(live()).toEqual([]);
  });

  it('waits for nothing when the child has exited', async () => {
    const { child, live } = spawnFixture('exit-at-once.mjs');
    await child.exit;
    expect(await endGroup(child, LADDER, new FakeClock())).toEqual({ gone: true });
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
    const ending = endGroup({ pid: undefined, stdin, stdout, stderr, exit }, LADDER, new FakeClock());
    setImmediate(() => stdout.end('last words'));
    expect(await ending).toEqual({ gone: true });
    expect(heard).toBe('last words');
  });

  it('gives up on the pipes when a process that left the group holds them', async () => {
    const { child, stdout, says, live } = spawnFixture('grandchild.mjs', fixture('print-pid.mjs'), '--escape');
    await says('\n');
    const escaped = Number(stdout());
    const ending = new Ending(child);
    expect(await ending.result()).toEqual({ gone: true });
    expect(ending.clock.now()).toBeLessThan(LADDER.termAfterMs);
    expect(child.stdout.destroyed).toBe(true);
    process.kill(escaped, 'SIGKILL');
    expect(live()).toEqual([]);
  });

  it('can be called again, and joins the end that has begun', async () => {
    const { child, says, live } = spawnFixture('ignore-eof.mjs');
    await says('up');
    const clock = new FakeClock();
    const first = endGroup(child, LADDER, clock);
    expect(endGroup(child, { termAfterMs: 50_000, killAfterMs: 60_000 }, clock)).toBe(first);
    clock.advance(LADDER.termAfterMs);
    expect(await first).toEqual({ gone: true });
    expect(await endGroup(child, LADDER, clock)).toEqual({ gone: true });
    expect(live()).toEqual([]);
  });

  it('is hastened by a shorter ladder', async () => {
    const { child, events, says, live } = spawnFixture('ignore-sigterm.mjs');
    await says('up');
    const clock = new FakeClock();
    const first = endGroup(child, LADDER, clock);
    expect(endGroup(child, AT_ONCE, clock)).toBe(first);
    expect(await first).toEqual({ gone: true });
    expect(events.exit).toEqual(exitBy('SIGKILL'));
    expect(live()).toEqual([]);
  });

  it('has nothing to do for a child that never started', async () => {
    const { child } = observe({ command: 'no-such-command', args: [], cwd: process.cwd(), env: {} });
    expect(await endGroup(child, LADDER, new FakeClock())).toEqual({ gone: true });
  });

  it('admits defeat a second after SIGKILL, and tries again when called again', async () => {
    const { child, says, live } = spawnFixture('end-on-eof.mjs');
    await says('up');
    // As with a process that is stuck in the kernel, the exit is never reported.
    const stuck = { ...child, exit: new Promise<never>(() => {}) };
    const clock = new FakeClock();
    const ending = endGroup(stuck, AT_ONCE, clock);
    await flush();
    clock.advance(1_000);
    expect(await ending).toEqual({ gone: false });
    expect(clock.now()).toBe(1_000);
    const unstuck = endGroup(Object.assign(stuck, { exit: child.exit }), AT_ONCE, clock);
    expect(await unstuck).toEqual({ gone: true });
    await until('nothing is left', () => live().length === 0);
  });
});

describe('a process group', () => {
  it.skipIf(IS_WINDOWS)('is alive until its last member has gone, and gets signals as one', async () => {
    const { child, says, live } = spawnFixture('grandchild.mjs', fixture('ignore-eof.mjs'));
    const pgid = child.pid ?? 0;
    await child.exit;
    await says('up');
    expect(isGroupAlive(pgid)).toBe(true);
    signalGroup(pgid, 'SIGTERM');
    await until('the group is gone', () => !isGroupAlive(pgid));
    expect(live()).toEqual([]);
  });

  it('that is gone may be signaled without an error', async () => {
    const { child, live } = spawnFixture('exit-at-once.mjs');
    await child.exit;
    expect(() => signalGroup(child.pid ?? 0, 'SIGKILL')).not.toThrow();
    expect(live()).toEqual([]);
  });

  it.runIf(SHOWS_VARIABLES)('of nothing but zombies counts as gone', async () => {
    // `cat` gets a group of its own, and becomes the child of `sleep`, which never asks how it ended.
    const negligent = spawn('bash', ['-c', 'set -m; exec 3<&0; cat <&3 & echo $!; exec sleep 60']);
    const [line] = await once(negligent.stdout, 'data');
    const pgid = Number(String(line));
    await until('the shell is gone', () => processesWith('sleep 60').some(({ pid }) => pid === negligent.pid));
    await until('the group exists', () => isGroupAlive(pgid));
    negligent.stdin.end();
    await until('the zombie counts as gone', () => !isGroupAlive(pgid));
    // The system still has the group.
    const signaling = () => process.kill(-pgid, 0);
    if (IS_MAC) expect(signaling).toThrow('EPERM');
    else expect(signaling).not.toThrow();
    negligent.kill('SIGKILL');
    await once(negligent, 'exit');
  });
});
