import { setTimeout as sleep } from 'node:timers/promises';
import { account, extraMs, judgedIf, ms, percentile, show, target, underUsers } from './load.mjs';
import { Store } from './store.mjs';

const SETTLE_MS = 4_000;
/** A cut takes some time. */
const SLACK_MS = 50;

export const cutLinks = {
  name: 'C7',
  about: 'a gateway is cut off from the store, another one from its peers, and then all from their peers',
  needs: ['redis-server'],
  run: async ({ isShort, users }) => {
    const cutMs = isShort ? 5_000 : 30_000;
    const run = await underUsers({ isShort, users, store: Store.open, hasLinks: true }, async ({ instances }) => {
      const [first, second] = instances;
      const steps = [[first.storeLink], [second.peerLink], instances.map(({ peerLink }) => peerLink)];
      const cuts = [];
      await sleep(SETTLE_MS);
      for (const links of steps) {
        cuts.push(performance.now());
        await Promise.all(links.map((link) => link.cut()));
        await sleep(cutMs);
        await Promise.all(links.map((link) => link.restore()));
        await sleep(SETTLE_MS);
      }
      return cuts;
    });
    const { figures, targets, unknown, unsent } = account(run);
    const [fromStore, ...fromPeers] = run.done;
    const lost = [...unknown, ...unsent];
    const early = lost.filter(({ endedAt }) => endedAt < fromPeers[0]);
    show(early);
    // A cut breaks the hops that are open. Later, a gateway ends what it does for users who have another home by then.
    const atCuts = lost.filter(({ startedAt, endedAt }) =>
      fromPeers.some((at) => startedAt <= at + SLACK_MS && at <= endedAt),
    );
    const extras = (isMeant) => run.tally.calls.filter(isMeant).map(extraMs);
    const before = extras(({ startedAt }) => startedAt >= fromStore - SETTLE_MS && startedAt < fromStore);
    const during = extras(({ startedAt }) => startedAt >= fromStore && startedAt < fromPeers[0]);
    const ratio = percentile(during, 0.99) / percentile(before, 0.99);
    return {
      figures: {
        'time of each cut': ms(cutMs),
        ...figures,
        'unknown calls that were in flight when peers were cut off': atCuts.length,
      },
      targets: [
        ...targets,
        target('0 calls unknown or not sent while the store is cut off', early.length, early.length === 0),
        ...judgedIf(!isShort, [
          target('p99 of the calls without the store ≤ 2 × that before', ratio.toFixed(2), ratio <= 2),
        ]),
      ],
    };
  },
};
