import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../soak/wait.mjs';
import { account, judgedIf, ms, percentile, target, underUsers } from './load.mjs';
import { Store } from './store.mjs';

const AFTER_MS = 3_000;
/** HAProxy sends no more requests to a gateway that has failed its checks; other gateways have given it up after the second time. */
const [UNSEEN_MS, GIVEN_UP_MS] = [5_000, 12_000];
const ENDED_WITHIN_MS = 20_000;

export const pausedGateway = {
  name: 'C6',
  about: 'a gateway behind HAProxy is stopped with SIGSTOP, and goes on after some time',
  needs: ['redis-server', 'haproxy'],
  run: async ({ isShort, users }) => {
    const pausedMs = isShort ? 20_000 : 30_000;
    const run = await underUsers(
      { isShort, users, store: Store.open, balance: 'haproxy' },
      async ({ instances, homes }) => {
        await sleep(AFTER_MS);
        const usersOf = ({ number }) => homes.live.filter(({ instance }) => instance === number).length;
        const [paused] = [...instances].sort((one, other) => usersOf(other) - usersOf(one));
        const at = performance.now();
        paused.process.signal('SIGSTOP');
        await sleep(pausedMs);
        const live = homes.live;
        const isElsewhere = (user) => live.some((each) => each.user === user && each.instance !== paused.number);
        const old = live.filter(({ user, instance }) => instance === paused.number && isElsewhere(user));
        const goesOnAt = performance.now();
        paused.process.signal('SIGCONT');
        const isOver = () => !homes.live.some(({ pid }) => old.some((each) => each.pid === pid));
        const isGone = await until(isOver, ENDED_WITHIN_MS, 50);
        const goneMs = isGone ? performance.now() - goesOnAt : Number.POSITIVE_INFINITY;
        await sleep(AFTER_MS);
        return { at, goesOnAt, goneMs, old };
      },
    );
    const { at, goesOnAt, goneMs, old } = run.done;
    /** HAProxy may have sent these to the stopped gateway. It cannot say that they are lost, and waits for their answers. */
    const isAtPaused = ({ startedAt, endedAt }) => startedAt < at + UNSEEN_MS && endedAt > at;
    const { figures, targets, unknown } = account({ ...run, twoHomesMs: undefined }, isAtPaused);
    const { calls } = run.tally;
    const lost = unknown.filter((call) => call.startedAt >= at + GIVEN_UP_MS || call.endedAt < at);
    const late = calls.filter(({ startedAt, endedAt }) => {
      const givenUpAt = Math.max(startedAt, at) + GIVEN_UP_MS;
      return startedAt > at + UNSEEN_MS && startedAt < goesOnAt && endedAt > givenUpAt;
    });
    const later = calls.filter(({ startedAt }) => startedAt > at + GIVEN_UP_MS && startedAt < goesOnAt);
    const p99 = percentile(
      later.map(({ startedAt, endedAt }) => endedAt - startedAt),
      0.99,
    );
    const pids = new Set(old.map(({ pid }) => pid));
    const stale = calls.filter(({ pid, endedAt }) => pids.has(pid) && endedAt > goesOnAt).length;
    return {
      figures: {
        'time of the stop': ms(goesOnAt - at),
        ...figures,
        'users who moved, with a process of their own': old.length,
      },
      targets: [
        ...targets,
        target('users moved', old.length, old.length > 0),
        target('no call is unknown that began 12 s after the stop', lost.length, lost.length === 0),
        target('0 answers of the old processes after it goes on', stale, stale === 0),
        ...judgedIf(!isShort, [
          target('a call that began > 5 s after the stop ends ≤ 12 s later', late.length, late.length === 0),
          target('p99 of the calls that began > 12 s after the stop ≤ 1 s', ms(p99), p99 <= 1_000),
          target('the old processes are gone ≤ 2 s after it goes on', ms(goneMs), goneMs <= 2_000),
        ]),
      ],
    };
  },
};
