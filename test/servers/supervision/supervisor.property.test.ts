import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Supervisor } from '../../../src/servers/supervision/supervisor.js';
import { FakeClock } from '../../support/fake-clock.js';
import { sampleSpec } from './sample-spec.js';
import { flush, ScriptedLauncher } from './scripted-launcher.js';

const keys = ['a', 'b', 'c'];

const key = fc.constantFrom(...keys);
const action = fc.oneof(
  fc.record({ do: fc.constantFrom('start', 'restart', 'demand', 'stop'), key }),
  fc.record({
    do: fc.constantFrom('ready', 'fail', 'host-fault', 'suspected', 'cleared', 'unfit', 'exit', 'vanish'),
    key,
    age: fc.nat(2),
  }),
  fc.record({ do: fc.constant('wait'), ms: fc.constantFrom(1, 500, 5_000, 60_000, 300_000) }),
);

type Action = typeof action extends fc.Arbitrary<infer T> ? T : never;

/** Plays one action; what was launched long ago may still speak up. */
async function play(one: Action, supervisor: Supervisor, launcher: ScriptedLauncher, clock: FakeClock): Promise<void> {
  if ('ms' in one) {
    clock.advance(one.ms);
  } else if ('age' in one) {
    const launch = launcher.launches.filter((each) => each.key === one.key).at(-1 - one.age);
    if (launch === undefined) return;
    if (one.do === 'ready') launch.events.ready();
    if (one.do === 'fail') launch.events.failed({ reason: 'handshake' });
    if (one.do === 'host-fault') launch.events.failed({ reason: 'EAGAIN', fault: 'host' });
    if (one.do === 'suspected') launch.events.suspected();
    if (one.do === 'cleared') launch.events.cleared();
    if (one.do === 'unfit') launch.events.unfit('violations');
    if (one.do === 'exit') launch.events.exited({ code: 0, signal: null });
    // A group that nobody ends is not reported as gone.
    if (one.do === 'vanish' && launch.ladders.length > 0) await launch.vanish();
  } else {
    if (one.do === 'start') supervisor.start(one.key);
    if (one.do === 'restart') supervisor.restart(one.key);
    if (one.do === 'demand') supervisor.demand(one.key);
    if (one.do === 'stop') void supervisor.stop(one.key);
  }
}

describe('a supervisor, with any events in any order', () => {
  it('has one live generation per child, ever new ones, and none after a stop', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(action, { maxLength: 60 }), async (actions) => {
        const clock = new FakeClock();
        const launcher = new ScriptedLauncher();
        launcher.onLaunch = (launch) => {
          const own = launcher.launches.filter((each) => each.key === launch.key);
          expect(own.filter((each) => !each.isGone)).toEqual([launch]);
          expect(launch.generation).toBeGreaterThan(own.at(-2)?.generation ?? 0);
        };
        const supervisor = new Supervisor({ clock, random: () => 0.5, launcher, startLimit: 2, onChange: () => {} });
        for (const each of keys) supervisor.add(sampleSpec(each));
        for (const one of actions) await play(one, supervisor, launcher, clock);

        const stopped = supervisor.stopAll({ termAfterMs: 1_000, killAfterMs: 2_500 });
        const { length } = launcher.launches;
        for (const launch of launcher.live) {
          expect(launch.ladders.length).toBeGreaterThan(0);
          await launch.vanish();
        }
        await stopped;
        for (const each of keys) supervisor.start(each);
        clock.advance(10_000_000);
        await flush();
        expect(launcher.launches).toHaveLength(length);
        expect(clock.pending).toBe(0);
      }),
      { numRuns: 300 },
    );
  });
});
