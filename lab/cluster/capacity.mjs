import { setTimeout as sleep } from 'node:timers/promises';
import { LegacyClient, ModernClient, Tally } from './clients.mjs';
import { judgedIf, show, target } from './load.mjs';
import { Place } from './place.mjs';
import { Store } from './store.mjs';

/** With this time and number of calls at once, a gateway can answer 40 calls a second, which needs little processor time. */
const [WORK_MS, CONCURRENCY] = [200, 8];
/** Users for each gateway: so many that chance leaves none with less than `CONCURRENCY`. */
const USERS = 40;
const [WARM_MS, WINDOW_MS] = [4_000, 10_000];
const BOUNDS = { 3: 2.9, 6: 5.7, 12: 11.2 };

export const capacity = {
  name: 'C13',
  about: `each call of a server takes ${WORK_MS} ms, and a gateway executes ${CONCURRENCY} at once`,
  needs: ['redis-server'],
  run: async ({ isShort }) => {
    const rates = new Map();
    let lost = 0;
    for (const count of isShort ? [1, 3] : [1, 3, 6, 12]) {
      const { rate, failed } = await rateOf(count);
      rates.set(count, rate);
      lost += failed.length;
      show(failed);
    }
    const factors = [...rates].filter(([count]) => count > 1).map(([count, rate]) => [count, rate / rates.get(1)]);
    return {
      figures: Object.fromEntries(
        [...rates].map(([count, rate]) => [`calls a second, gateways: ${count}`, rate.toFixed(1)]),
      ),
      targets: [
        ...judgedIf(
          !isShort,
          factors.map(([count, factor]) =>
            target(`${count} gateways ≥ ${BOUNDS[count]} × one`, factor.toFixed(2), factor >= BOUNDS[count]),
          ),
        ),
        target('0 calls without an answer', lost, lost === 0),
      ],
    };
  },
};

/** Calls a second that gateways answer when more calls wait all the time. */
async function rateOf(count) {
  const slow = { sharing: 'all', concurrency: CONCURRENCY };
  const place = await Place.open({
    count,
    balance: 'chosen',
    users: USERS * count,
    store: Store.open,
    servers: { slow },
  });
  const tally = new Tally();
  const clients = place.tokens.map((token, n) => {
    const Kind = n % 2 === 0 ? LegacyClient : ModernClient;
    return new Kind({ url: place.url, token, name: `slow-${n}`, tally, pauseMs: 0, workMs: WORK_MS, server: 'slow' });
  });
  try {
    for (const client of clients) await client.open({});
    await sleep(WARM_MS);
    const from = performance.now();
    await sleep(WINDOW_MS);
    const elapsed = performance.now() - from;
    await Promise.all(clients.map((client) => client.stop()));
    const answered = tally.calls.filter(({ outcome }) => outcome === 'answered');
    const ended = answered.filter(({ endedAt }) => endedAt >= from && endedAt < from + elapsed);
    const failed = tally.calls.filter(({ outcome }) => outcome !== 'answered');
    return { rate: ended.length / (elapsed / 1_000), failed };
  } finally {
    for (const client of clients) client.abandon();
    await place.close();
  }
}
