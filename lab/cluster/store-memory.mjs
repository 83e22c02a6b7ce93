import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { median } from '../bench/statistics.mjs';
import { LegacyClient, Tally } from './clients.mjs';
import { inGroups, judgedIf, target } from './load.mjs';
import { Place } from './place.mjs';
import { Store } from './store.mjs';

const [KIB, MIB] = [1_024, 1_024 * 1_024];
const IDLE_MS = 5_000;

export const storeMemory = {
  name: 'C15-store',
  about: 'memory of an idle gateway with a store and without, and of the store with sessions that have a subscription',
  needs: ['redis-server'],
  run: async ({ isShort }) => {
    const [rounds, sessions] = isShort ? [1, 200] : [5, 1_000];
    const more = [];
    for (let round = 0; round < rounds; round += 1) more.push((await idleBytes(Store.open)) - (await idleBytes()));
    const kib = (await bytesInStore(sessions)) / sessions / KIB;
    const mib = median(more) / MIB;
    return {
      figures: { 'sessions in the store': sessions },
      targets: [
        ...judgedIf(!isShort, [target('a gateway takes ≤ 8 MiB more with a store', `${mib.toFixed(1)} MiB`, mib <= 8)]),
        target('the store takes ≤ 1 KiB for each session', `${kib.toFixed(2)} KiB`, kib <= 1),
      ],
    };
  },
};

async function idleBytes(store) {
  const place = await Place.open({ count: 1, balance: 'none', store });
  try {
    await sleep(IDLE_MS);
    return residentBytes(place.instances[0].pid);
  } finally {
    await place.close();
  }
}

async function bytesInStore(count) {
  const place = await Place.open({ count: 1, balance: 'none', store: Store.open, users: count });
  const used = async () => Number(/^used_memory:(\d+)/m.exec(await place.store.ask('info', 'memory'))[1]);
  try {
    const url = `${place.instances[0].address}/mcp`;
    const before = await used();
    await inGroups(count, async (n) => {
      const client = new LegacyClient({ url, token: place.tokenOf(n), name: `stored-${n}`, tally: new Tally() });
      await client.openOnly();
      await client.subscribe();
      client.abandon();
    });
    return (await used()) - before;
  } finally {
    await place.close();
  }
}

/** Resident memory of the process itself, without those of its servers. */
export function residentBytes(pid) {
  const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(kib) * KIB;
}
