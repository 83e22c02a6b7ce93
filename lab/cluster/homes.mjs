import { setTimeout as sleep } from 'node:timers/promises';
import { LegacyClient, Tally } from './clients.mjs';
import { inGroups, judgedIf, target } from './load.mjs';
import { Place } from './place.mjs';
import { Store } from './store.mjs';

/** Until all gateways know a new one. */
const KNOWN_MS = 5_000;

export const homes = {
  name: 'C14',
  about: 'users of three gateways get a fourth one, more users come, and then the first gateway is ended',
  needs: ['redis-server'],
  run: async ({ isShort, users = isShort ? 120 : 1_000 }) => {
    const early = users * 0.75;
    // Machines have no home of their own, so all users are people here.
    const place = await Place.open({ balance: 'chosen', users, hasMachines: false, store: Store.open, drain: '30s' });
    const clients = place.tokens.map(
      (token, n) => new LegacyClient({ url: place.url, token, name: `home-${n}`, tally: new Tally() }),
    );
    const homesOf = async (some) => {
      const found = [];
      await inGroups(some.length, async (n) => {
        const { instance, detail, reason } = await some[n].callOnce();
        if (instance === undefined) throw new Error(`${some[n].name}: ${detail ?? reason}`);
        found[n] = instance;
      });
      return found;
    };
    const open = async (some) => await inGroups(some.length, async (n) => await some[n].openOnly());
    try {
      await open(clients.slice(0, early));
      const atThree = await homesOf(clients.slice(0, early));
      const fourth = await place.add();
      await fourth.start();
      await sleep(KNOWN_MS);
      const afterStart = await homesOf(clients.slice(0, early));
      await open(clients.slice(early));
      const atFour = await homesOf(clients);
      const [first] = place.instances;
      const code = await first.end('SIGTERM');
      const afterEnd = await homesOf(clients);
      const movedIn = atThree.filter((home, n) => afterStart[n] !== home).length;
      const movedOut = atFour.filter((home, n) => home !== first.number && afterEnd[n] !== home).length;
      const spreads = [atThree, atFour, afterEnd].map((some, step) => spreadOf(some, [3, 4, 3][step]));
      return {
        figures: {
          users,
          'homes at three gateways': countsOf(atThree),
          'with a fourth one, and more users': countsOf(atFour),
          'without the first one': countsOf(afterEnd),
        },
        targets: [
          // Chance counts for more with fewer users.
          ...judgedIf(
            !isShort,
            spreads.map((spread, step) => {
              const text = ['at three', 'at four', 'at three again'][step];
              return target(`most users of a gateway ≤ 1.25 × their mean, ${text}`, spread.toFixed(2), spread <= 1.25);
            }),
          ),
          target('0 users move when a gateway is added', movedIn, movedIn === 0),
          target('only users of the ended gateway move', movedOut, movedOut === 0),
          target('the ended gateway exits with 0', code, code === 0),
        ],
      };
    } finally {
      for (const client of clients) client.abandon();
      await place.close();
    }
  },
};

function spreadOf(homes, gateways) {
  return (Math.max(...countsIn(homes).values()) * gateways) / homes.length;
}

function countsIn(homes) {
  const counts = new Map();
  for (const home of homes) counts.set(home, (counts.get(home) ?? 0) + 1);
  return counts;
}

function countsOf(homes) {
  return [...countsIn(homes)]
    .sort(([one], [other]) => one - other)
    .map(([number, count]) => `gateway ${number}: ${count}`)
    .join(', ');
}
