// Effects on clients while the store of a cluster is away.
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../soak/wait.mjs';
import { account, extraMs, judgedIf, ms, percentile, show, target, underUsers } from './load.mjs';
import { Store, WatchedStore } from './store.mjs';

/** Calls before the event are compared with those during the event. */
const BEFORE_MS = 5_000;
/** Sessions that begin during the event. */
const JOINING = 5;
const MEMBERS = '{trunkline}:members';
const MEMBERS_WITHIN_MS = 30_000;
/** Calls that waited for the store are ended by then. */
const AFTER_MS = 5_000;

export const storeKilled = {
  name: 'C4',
  about:
    'the store is ended with SIGTERM and started without data, then killed, and started without data after some time',
  needs: ['redis-server'],
  run: async ({ isShort, users }) => {
    const absentMs = isShort ? 8_000 : 30_000;
    const run = await underUsers({ isShort, users, store: Store.open }, async (place, { joinLegacy }) => {
      const { store } = place;
      await sleep(BEFORE_MS);
      const from = performance.now();
      await store.process.end('SIGTERM');
      await sleep(1_000);
      await store.start();
      const backs = [await untilMembers(place)];
      await sleep(1_000);
      await store.process.end('SIGKILL');
      await joinSome(joinLegacy);
      await sleep(absentMs);
      await store.start();
      backs.push(await untilMembers(place));
      return { from, to: performance.now(), backs };
    });
    const back = Math.max(...run.done.backs);
    return judge(run, { isShort, figures: { 'time without the store': ms(absentMs) } }, [
      target('all members are in the store ≤ 5 s after its start', ms(back), back <= 5_000),
    ]);
  },
};

export const storeStopped = {
  name: 'C5',
  about: 'the store is stopped with SIGSTOP, and goes on after some time',
  needs: ['redis-server'],
  run: async ({ isShort, users }) => {
    const stoppedMs = isShort ? 8_000 : 60_000;
    const run = await underUsers({ isShort, users, store: Store.open }, async ({ store }, { joinLegacy }) => {
      await sleep(BEFORE_MS);
      const from = performance.now();
      store.process.signal('SIGSTOP');
      await joinSome(joinLegacy);
      await sleep(stoppedMs);
      store.process.signal('SIGCONT');
      await sleep(AFTER_MS);
      return { from, to: performance.now() };
    });
    return judge(run, { isShort, figures: { 'time of the stop': ms(stoppedMs) } });
  },
};

export const storeFailsOver = {
  name: 'C9',
  about: 'the master of the store is killed, and sentinels name its replica as the master',
  needs: ['redis-server'],
  run: async ({ isShort, users }) => {
    const run = await underUsers({ isShort, users, store: WatchedStore.open }, async (place, { joinLegacy }) => {
      await sleep(BEFORE_MS);
      const from = performance.now();
      const failedOver = place.store.failOver();
      await joinSome(joinLegacy);
      const tookMs = await failedOver;
      // The replica has the members that the master had.
      await place.store.ask('del', MEMBERS);
      const back = await untilMembers(place);
      return { from, to: performance.now(), tookMs, back };
    });
    const { tookMs, back } = run.done;
    return judge(run, { isShort, figures: { 'until the sentinels named the replica': ms(tookMs) } }, [
      target('all members are in the store ≤ 5 s after that', ms(back), back <= 5_000),
    ]);
  },
};

async function joinSome(joinLegacy) {
  for (let n = 0; n < JOINING; n += 1) await joinLegacy('during', n);
}

/** Resolves with the time until the store knows all gateways, in milliseconds. */
async function untilMembers({ store, instances }) {
  const since = performance.now();
  const isDone = async () => Number(await store.ask('hlen', MEMBERS).catch(() => 0)) >= instances.length;
  if (!(await until(isDone, MEMBERS_WITHIN_MS, 100))) throw new Error('The gateways have not come back to the store');
  return performance.now() - since;
}

function judge(run, { isShort, figures }, own = []) {
  const { from, to } = run.done;
  const { figures: common, targets, unknown, unsent } = account(run);
  const lost = [...unknown, ...unsent];
  show(lost);
  const extras = (isMeant) => run.tally.calls.filter(isMeant).map(extraMs);
  const before = extras(({ startedAt }) => startedAt >= from - BEFORE_MS && startedAt < from);
  const during = extras(({ startedAt }) => startedAt >= from && startedAt < to);
  const ratio = percentile(during, 0.99) / percentile(before, 0.99);
  const [longest, usual] = [Math.max(...during), Math.max(...before)];
  const times = [
    ...own,
    target('p99 of the calls ≤ 2 × that before', ratio.toFixed(2), ratio <= 2),
    target('no call takes > 300 ms more than the slowest one before', ms(longest - usual), longest - usual <= 300),
  ];
  return {
    figures: { ...figures, 'event at': ms(from), ...common, 'calls during the event': during.length },
    targets: [
      ...targets,
      target('0 calls unknown or not sent', lost.length, lost.length === 0),
      ...judgedIf(!isShort, times),
    ],
  };
}
