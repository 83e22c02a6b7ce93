import { setTimeout as sleep } from 'node:timers/promises';
import { account, judgedIf, ms, percentile, show, target, underLoad, underUsers } from './load.mjs';
import { Store } from './store.mjs';

/** Until the killed gateway is started again, and until the next kill, in milliseconds. */
const [DOWN_MS, PAUSE_MS] = [400, 2_500];
/** Within this time after a kill, a call counts as one of the first. */
const FIRST_MS = 1_000;

const about = 'gateways are killed with SIGKILL, one after another, and started again';

export const kills = { name: 'C2', about, run: ({ isShort }) => killUnder(underLoad, { isShort }) };

export const clusterKills = {
  name: 'C2-store',
  about: `${about}, as a cluster with a store`,
  needs: ['redis-server'],
  run: ({ isShort, users }) => killUnder(underUsers, { isShort, users, store: Store.open }),
};

async function killUnder(load, { isShort, ...settings }) {
  const count = isShort ? 5 : 20;
  const run = await load({ isShort, drain: '60s', ...settings }, async ({ instances }, { tally }) => {
    const killed = [];
    for (let number = 0; number < count; number += 1) {
      const victim = instances[number % instances.length];
      const [at, inFlight] = [performance.now(), tally.inFlight];
      await victim.end('SIGKILL');
      // On a busy machine, the system takes some time to end the process, and connects clients to it until then.
      killed.push({ at, goneAt: performance.now(), inFlight });
      await sleep(DOWN_MS);
      await victim.start();
      await sleep(PAUSE_MS);
    }
    return killed;
  });
  const { figures, targets, unknown } = account(run);
  const { tally, done } = run;
  /** Milliseconds since the gateway that was killed last was gone. Negative while the system was ending it. */
  const sinceEnd = (time) => time - (done.findLast(({ at }) => at <= time)?.goneAt ?? Number.NaN);
  const told = unknown.filter(({ resumedAt }) => resumedAt === undefined);
  const resumed = unknown.filter(({ resumedAt }) => resumedAt !== undefined);
  const untilTold = Math.max(0, ...told.map(({ endedAt }) => sinceEnd(endedAt)));
  const untilResumed = Math.max(0, ...resumed.map(({ endedAt, resumedAt }) => endedAt - resumedAt));
  const first = tally.calls.filter(({ startedAt }) => sinceEnd(startedAt) < FIRST_MS);
  const p99 = percentile(
    first.map(({ startedAt, endedAt }) => endedAt - startedAt),
    0.99,
  );
  const spurious = unknown.filter(
    ({ startedAt, endedAt }) => !done.some(({ at, goneAt }) => startedAt <= goneAt && at <= endedAt),
  );
  show(spurious);
  const times = [
    target(
      'an unknown call without a stream is answered ≤ 1 s after the gateway is gone',
      ms(untilTold),
      untilTold <= 1_000,
    ),
    target(
      'an unknown call on a stream is answered ≤ 1 s after it was resumed',
      ms(untilResumed),
      untilResumed <= 1_000,
    ),
    target('p99 of the calls that began within 1 s after that ≤ 2 s', ms(p99), p99 <= 2_000),
  ];
  // A client whose stream was cut opens it again. The first kill comes when all subscriptions are open.
  const untilUpdated = Math.max(0, ...tally.waits.filter(({ endedAt }) => endedAt > done[0].at).map((wait) => wait.ms));
  if (settings.store !== undefined)
    times.push(target('subscriptions deliver again ≤ 5 s', ms(untilUpdated), untilUpdated <= 5_000));
  return {
    figures: {
      kills: done.length,
      'calls in flight at all gateways at a kill, at most': Math.max(...done.map(({ inFlight }) => inFlight)),
      ...figures,
      'unknown calls without a stream, with one': `${told.length}, ${resumed.length}`,
    },
    targets: [
      ...targets,
      target('no call is unknown that was not in flight at a kill', spurious.length, spurious.length === 0),
      ...judgedIf(!isShort, times),
    ],
  };
}
