import { describe, expect, it } from 'vitest';
import { Supervisor } from '../../../src/servers/supervision/supervisor.js';
import type { ChildSnapshot } from '../../../src/spec/server-state.js';
import { FakeClock } from '../../support/fake-clock.js';
import { sampleSpec } from './sample-spec.js';
import { flush, ScriptedLauncher } from './scripted-launcher.js';

const noHurry = { termAfterMs: 1_000, killAfterMs: 2_500 };

function setUp({ keys = ['files'], startLimit = 4 } = {}) {
  const clock = new FakeClock();
  const launcher = new ScriptedLauncher();
  const changes: [key: string, snapshot: ChildSnapshot][] = [];
  const supervisor = new Supervisor({
    clock,
    random: () => 0.5,
    launcher,
    startLimit,
    onChange: (key, snapshot) => changes.push([key, snapshot]),
  });
  for (const key of keys) supervisor.add(sampleSpec(key));
  const states = () => changes.map(([, { state }]) => state);
  return { clock, launcher, supervisor, changes, states };
}

describe('a child that works', () => {
  it('F8: is published as starting with its pid, then as ready, at its first start', () => {
    const { clock, launcher, supervisor, changes } = setUp();
    supervisor.start('files');
    clock.advance(45_000);
    launcher.latest().events.ready();
    expect(changes.map(([key, { state, pid }]) => [key, state, pid])).toEqual([
      ['files', 'starting', undefined],
      ['files', 'starting', 1_001],
      ['files', 'ready', 1_001],
    ]);
    expect(supervisor.snapshot('files')).toMatchObject({ generation: 1, readySince: 45_000, restarts: 0 });
    expect(supervisor.retryInMs('files')).toBeUndefined();
  });
});

describe('a child that dies', () => {
  it('is no longer ready in the same tick', () => {
    const { launcher, supervisor, states } = setUp();
    supervisor.start('files');
    launcher.latest().events.ready();
    launcher.latest().events.exited({ code: null, signal: 'SIGKILL' });
    expect(states().at(-1)).toBe('backoff');
    expect(supervisor.snapshot('files')).toMatchObject({
      lastFailure: { reason: 'exited', signal: 'SIGKILL' },
      retryAt: 500,
    });
    expect(supervisor.retryInMs('files')).toBe(500);
  });

  it('F1: is launched again only when its old group is gone', async () => {
    const { clock, launcher, supervisor } = setUp();
    supervisor.start('files');
    launcher.latest().events.exited({ code: 0, signal: null });
    clock.advance(4_000);
    expect(launcher.launches).toHaveLength(1);
    expect(launcher.latest().ladders).toEqual([{ termAfterMs: 2_000, killAfterMs: 5_000 }]);
    await launcher.latest().vanish();
    expect(launcher.launches.map(({ generation }) => generation)).toEqual([1, 2]);
    expect(supervisor.snapshot('files').restarts).toBe(1);
  });

  it('F5: is spawned exactly five times on schedule, then parked and probed seldom', async () => {
    const { clock, launcher, supervisor } = setUp();
    const spawnedAt: number[] = [];
    launcher.endsAtOnce = true;
    launcher.onLaunch = ({ events }) => {
      spawnedAt.push(clock.now());
      events.exited({ code: 1, signal: null });
    };
    supervisor.start('files');
    for (const delayMs of [500, 1_000, 2_000, 4_000]) {
      await flush();
      clock.advance(delayMs);
    }
    await flush();
    expect(spawnedAt).toEqual([0, 500, 1_500, 3_500, 7_500]);
    expect(supervisor.snapshot('files')).toMatchObject({ state: 'parked', retryAt: 307_500, pid: undefined });
    clock.advance(299_999);
    expect(spawnedAt).toHaveLength(5);
    clock.advance(1);
    await flush();
    expect(spawnedAt).toHaveLength(6);
    expect(supervisor.retryInMs('files')).toBe(600_000);
  });

  it('F7: is given up when it is not ready within its start timeout', () => {
    const { clock, launcher, supervisor } = setUp();
    supervisor.start('files');
    clock.advance(59_999);
    expect(supervisor.snapshot('files').state).toBe('starting');
    clock.advance(1);
    expect(supervisor.snapshot('files')).toMatchObject({ state: 'backoff', lastFailure: { reason: 'start-timeout' } });
    launcher.latest().events.ready();
    expect(supervisor.snapshot('files').state).toBe('backoff');
  });
});

describe('on request', () => {
  it('a generation that is unfit is ended, and no other', async () => {
    const { clock, launcher, supervisor } = setUp();
    supervisor.start('files');
    launcher.latest().events.ready();
    const first = launcher.latest();
    first.events.unfit('violations');
    await first.vanish();
    clock.advance(500);
    launcher.latest().events.ready();
    first.events.unfit('violations');
    expect(supervisor.snapshot('files')).toMatchObject({ state: 'ready', generation: 2, consecutiveFailures: 1 });
  });

  it('a stop resolves once the group is gone', async () => {
    const { clock, launcher, supervisor } = setUp();
    supervisor.start('files');
    let isStopped = false;
    const stopping = supervisor.stop('files').then(() => {
      isStopped = true;
    });
    launcher.latest().events.exited({ code: 0, signal: null });
    await flush();
    expect(isStopped).toBe(false);
    await launcher.latest().vanish();
    await stopping;
    expect(supervisor.snapshot('files')).toMatchObject({ state: 'stopped', consecutiveFailures: 0, pid: undefined });
    expect(clock.pending).toBe(0);
  });

  it('F18: a stop during backoff leaves nothing that could start the child again', async () => {
    const { clock, launcher, supervisor } = setUp();
    supervisor.start('files');
    launcher.latest().events.exited({ code: 1, signal: null });
    await launcher.latest().vanish();
    await supervisor.stop('files');
    expect(clock.pending).toBe(0);
    clock.advance(10_000_000);
    expect(launcher.launches).toHaveLength(1);
  });

  it('a stop withdraws a launch that still waits for its slot', async () => {
    const { launcher, supervisor, clock } = setUp({ keys: ['slow', 'queued'], startLimit: 1 });
    supervisor.start('slow');
    supervisor.start('queued');
    await supervisor.stop('queued');
    clock.advance(1_000);
    expect(launcher.launches.map(({ key }) => key)).toEqual(['slow']);
  });

  it('a stop that follows a start in the same breath prevents the launch', async () => {
    const clock = new FakeClock();
    const launcher = new ScriptedLauncher();
    const supervisor = new Supervisor({
      clock,
      random: () => 0.5,
      launcher,
      startLimit: 4,
      onChange: (key) => {
        if (key !== 'a') return;
        supervisor.start('b');
        void supervisor.stop('b');
      },
    });
    supervisor.add(sampleSpec('a'));
    supervisor.add(sampleSpec('b'));
    supervisor.start('a');
    await flush();
    expect(launcher.launches.map(({ key }) => key)).toEqual(['a']);
    expect(supervisor.snapshot('b').state).toBe('stopped');
  });

  it('a removed child has no time of a retry, which a late call may ask for', async () => {
    const { launcher, supervisor } = setUp();
    supervisor.start('files');
    launcher.latest().events.exited({ code: 1, signal: null });
    await launcher.latest().vanish();
    expect(supervisor.retryInMs('files')).toBe(500);
    await supervisor.remove('files');
    expect(supervisor.retryInMs('files')).toBeUndefined();
  });

  it('a removed child is forgotten, and its key never reuses a generation', async () => {
    const { launcher, supervisor } = setUp();
    launcher.endsAtOnce = true;
    supervisor.start('files');
    await supervisor.remove('files');
    expect(() => supervisor.snapshot('files')).toThrow('"files" is not supervised');
    supervisor.demand('files');
    supervisor.add(sampleSpec('files'));
    supervisor.start('files');
    expect(launcher.latest().generation).toBe(2);
  });

  it('a key cannot be added twice', () => {
    const { supervisor } = setUp();
    expect(() => supervisor.add(sampleSpec('files'))).toThrow('already supervised');
  });
});

describe('many children', () => {
  it('its start timeout counts from the spawn, not from the wait for a slot', () => {
    const { clock, supervisor } = setUp({ keys: ['a', 'b'], startLimit: 1 });
    supervisor.start('a');
    supervisor.start('b');
    clock.advance(60_000);
    expect(supervisor.snapshot('a').state).toBe('backoff');
    expect(supervisor.snapshot('b').state).toBe('starting');
    clock.advance(1_000);
    expect(supervisor.snapshot('b').state).toBe('backoff');
  });
});

describe('stopAll', () => {
  it('ends every child at once by the given ladder and leaves no timer', async () => {
    const { clock, launcher, supervisor } = setUp({
      keys: ['ready', 'starting', 'failed', 'idle', 'queued'],
      startLimit: 3,
    });
    for (const key of ['ready', 'failed', 'starting']) supervisor.start(key);
    launcher.latest('failed').events.exited({ code: 1, signal: null });
    launcher.latest('ready').events.ready();
    const stopping = supervisor.stopAll(noHurry);
    for (const launch of launcher.launches) expect(launch.ladders.at(-1)).toEqual(noHurry);
    for (const launch of launcher.launches) await launch.vanish();
    await stopping;
    expect(clock.pending).toBe(0);
  });

  it('is hastened by a second call and may be called once more afterwards', async () => {
    const { launcher, supervisor } = setUp();
    supervisor.start('files');
    const first = supervisor.stopAll(noHurry);
    const second = supervisor.stopAll({ termAfterMs: 0, killAfterMs: 0 });
    expect(launcher.latest().ladders).toEqual([noHurry, { termAfterMs: 0, killAfterMs: 0 }]);
    await launcher.latest().vanish();
    await Promise.all([first, second, supervisor.stopAll(noHurry)]);
  });

  it('is final: no request launches anything afterwards', async () => {
    const { clock, launcher, supervisor } = setUp({ keys: ['files', 'idle'] });
    supervisor.start('files');
    const stopping = supervisor.stopAll(noHurry);
    supervisor.start('idle');
    supervisor.restart('files');
    await launcher.latest().vanish();
    await stopping;
    supervisor.demand('files');
    supervisor.start('files');
    clock.advance(10_000_000);
    expect(launcher.launches).toHaveLength(1);
    expect(clock.pending).toBe(0);
  });
});
