import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { median, quantile } from '../bench/statistics.mjs';
import { LegacyClient, Tally } from './clients.mjs';
import { target } from './load.mjs';
import { Place } from './place.mjs';
import { Store } from './store.mjs';

const SETTINGS = { balance: 'chosen', users: 16, hasMachines: false };
const TICKS_PER_SECOND = 100;

export const cost = {
  name: 'C1',
  about: 'calls through one gateway, and through three as a cluster: at the home of the user, and forwarded to it',
  needs: ['redis-server'],
  run: async ({ isShort }) => {
    const [rounds, calls, idleMs] = isShort ? [2, 200, 4_000] : [15, 1_000, 20_000];
    const one = await Place.open({ ...SETTINGS, count: 1 });
    const three = await Place.open({ ...SETTINGS, store: Store.open }).catch(async (error) => {
      await one.close();
      throw error;
    });
    try {
      const ways = { one: await openAt(one, () => 1), home: await openAt(three, (home) => home) };
      ways.forwarded = await openAt(three, (home) => (home % three.instances.length) + 1);
      const places = { one, home: three, forwarded: three };
      const results = Object.fromEntries(Object.keys(ways).map((way) => [way, []]));
      const commandsBefore = await three.store.commands();
      const since = performance.now();
      for (let round = 0; round <= rounds; round += 1) {
        for (const [way, clients] of Object.entries(ways)) {
          const result = await measure(places[way], clients, calls);
          // The first round loads code, and fills caches.
          if (round > 0) results[way].push(result);
        }
      }
      const elapsedMs = performance.now() - since;
      const commands = (await three.store.commands()) - commandsBefore;
      const idleBefore = await three.store.commands();
      await sleep(idleMs);
      const idle = (((await three.store.commands()) - idleBefore) / idleMs) * elapsedMs;
      return judge(results, (commands - idle) / (rounds + 1) / calls / 4, idle / elapsedMs, isShort);
    } finally {
      await Promise.all([one.close(), three.close()]);
    }
  },
};

/** Opens a session of each person at the gateway that `chosen` names for the person's home. */
async function openAt(place, chosen) {
  const clients = [];
  for (const [n, token] of place.tokens.entries()) {
    const options = { url: place.url, token, name: `cost-${n}`, tally: new Tally() };
    const first = new LegacyClient({ ...options, to: 1 });
    await first.openOnly();
    const { instance, detail } = await first.callOnce();
    if (instance === undefined) throw new Error(detail);
    await first.stop();
    const client = new LegacyClient({ ...options, to: chosen(instance) });
    await client.openOnly();
    clients.push(client);
  }
  return clients;
}

/** Calls one after another, and then as many with one in flight for each client. */
async function measure(place, clients, count) {
  const alone = [];
  for (let n = 0; n < count; n += 1) alone.push(await timeOf(clients[n % clients.length]));
  const before = processorMs(place);
  await Promise.all(
    clients.map(async (client) => {
      for (let n = 0; n < count / clients.length; n += 1) await timeOf(client);
    }),
  );
  const each = Math.ceil(count / clients.length) * clients.length;
  return { p50: quantile(alone, 0.5), p99: quantile(alone, 0.99), cpu: (processorMs(place) - before) / each };
}

async function timeOf(client) {
  const { outcome, startedAt, endedAt, detail } = await client.callOnce();
  client.tally.calls.length = 0;
  if (outcome !== 'answered') throw new Error(`${outcome}: ${detail}`);
  return endedAt - startedAt;
}

/** Processor time of the gateways themselves, without their servers. */
function processorMs({ instances }) {
  return instances.reduce((sum, { pid }) => {
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1].split(' ');
    return sum + ((Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND) * 1_000;
  }, 0);
}

function judge(results, commandsPerCall, idlePerMs, isShort) {
  const of = (way, figure) => results[way].map((each) => each[figure]);
  const ratio = (way, figure) => median(of(way, figure).map((value, round) => value / results.one[round][figure]));
  const total = (way) => of(way, 'cpu').reduce((sum, value) => sum + value, 0);
  const later = median(of('forwarded', 'p50').map((value, round) => value - results.one[round].p50));
  const cpu = (way) => total(way) / total('one');
  const shown = (figure) =>
    Object.keys(results)
      .map((way) => median(of(way, figure)).toFixed(2))
      .join(', ');
  const within = (text, value, bound) => target(text, value.toFixed(3), isShort ? undefined : value <= bound);
  return {
    figures: {
      rounds: results.one.length,
      'p50 of one gateway, at home, forwarded, ms': shown('p50'),
      'p99 of the same, ms': shown('p99'),
      'processor time of a call of the same, ms': shown('cpu'),
      'commands a second to the store without calls': (idlePerMs * 1_000).toFixed(1),
    },
    targets: [
      within('p50 at home ≤ 1.05 × that of one gateway', ratio('home', 'p50'), 1.05),
      within('p99 at home ≤ 1.25 ×', ratio('home', 'p99'), 1.25),
      within('p50 forwarded ≤ 0.5 ms more', later, 0.5),
      within('p99 forwarded ≤ 1.6 ×', ratio('forwarded', 'p99'), 1.6),
      within('processor time of a call at home ≤ 1.1 ×', cpu('home'), 1.1),
      within('processor time of a call forwarded ≤ 1.9 ×', cpu('forwarded'), 1.9),
      within('≤ 0.01 commands to the store for each call', commandsPerCall, 0.01),
    ],
  };
}
