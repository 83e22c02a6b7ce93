import { setTimeout as sleep } from 'node:timers/promises';
import { LegacyClient, Tally } from './clients.mjs';
import { target } from './load.mjs';
import { Place } from './place.mjs';
import { residentBytes } from './store-memory.mjs';

/** The first sessions load what later ones need, and grow the heap to its usual size. */
const WARM = 1_000;
const SETTLE_MS = 3_000;
const KIB = 1_024;

export const resumedMemory = {
  name: 'C15',
  about: 'idle sessions of one gateway are resumed at another one',
  run: async ({ isShort }) => {
    // The heap grows in steps, which count for more with fewer sessions.
    const [count, bound] = isShort ? [2_000, 30] : [4_000, 25];
    const place = await Place.open({ balance: 'none' });
    try {
      const [first, second] = place.instances;
      const ids = [];
      for (let n = 0; n < WARM + count; n += 1) ids.push(await sessionAt(place, first, n));
      const resume = async (some) => {
        for (const id of some) await resumeAt(place, second, id);
        await sleep(SETTLE_MS);
        return residentBytes(second.pid);
      };
      const before = await resume(ids.slice(0, WARM));
      const after = await resume(ids.slice(WARM));
      const kib = (after - before) / count / KIB;
      return {
        figures: { 'sessions resumed': count, 'length of an id': `${ids[0].length} characters` },
        targets: [target(`≤ ${bound} KiB for each resumed session`, `${kib.toFixed(1)} KiB`, kib <= bound)],
      };
    } finally {
      await place.close();
    }
  },
};

async function sessionAt(place, { port }, n) {
  const client = new LegacyClient({
    url: `http://127.0.0.1:${port}/mcp`,
    token: place.token,
    name: `idle-${n}`,
    tally: new Tally(),
  });
  return await client.openOnly();
}

async function resumeAt(place, { port }, id) {
  const response = await fetch(`http://127.0.0.1:${port}/mcp`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${place.token}`,
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      'mcp-session-id': id,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }),
  });
  if (response.status !== 200) throw new Error(`ping: ${response.status} ${await response.text()}`);
  await response.text();
}
