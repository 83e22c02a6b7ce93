import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { HubPlace } from './hub-place.mjs';
import { inRounds } from './measure.mjs';
import { StartClient } from './start-client.mjs';
import { tinyServer } from './ways.mjs';

export const BARE = '`node -e 0`, to its exit';
export const WARM = 'attach to a running hub, 1 server';
export const COLD = 'attach without a hub, 20 servers';
export const SINGLE_ONE = 'single process, 1 server';
export const SINGLE_MANY = 'single process, 20 servers';
const MANY = 20;

/** Milliseconds from the spawn to the first answers, with cached catalogues. */
export async function measureHubStarts(folder, { rounds }) {
  const servers = (count) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`s${index}`, tinyServer()]));
  const warm = new HubPlace(folder, servers(1));
  const cold = new HubPlace(folder, servers(MANY));
  const one = new HubPlace(folder, servers(1), { isShared: false });
  const many = new HubPlace(folder, servers(MANY), { isShared: false });
  for (const [place, count] of [
    [cold, MANY],
    [one, 1],
    [many, MANY],
    [warm, 1],
  ]) {
    await start(place, (client) => client.untilReady(count));
    if (place !== warm) await place.end();
  }
  const cases = [
    { name: BARE },
    { name: WARM, place: warm, count: 1 },
    { name: COLD, place: cold, count: MANY, isEnded: true },
    { name: SINGLE_ONE, place: one, count: 1 },
    { name: SINGLE_MANY, place: many, count: MANY },
  ];
  try {
    return await inRounds(cases, rounds, 1, async ({ place, count, isEnded }) => {
      if (place === undefined) return await bare();
      const times = await start(place, (_, list) => {
        if (list.tools !== 4 * count + 1) throw new Error(`${list.tools} tools are listed of ${count} servers`);
      });
      if (isEnded) await place.end();
      return times;
    });
  } finally {
    await warm.end();
  }
}

async function bare() {
  const startedAt = performance.now();
  await once(spawn(process.execPath, ['-e', '0']), 'exit');
  const list = performance.now() - startedAt;
  return { initialize: list, list };
}

async function start(place, then) {
  const client = new StartClient(place.command.slice(1), { env: place.env });
  try {
    const initialize = await client.initialize();
    const list = await client.list();
    const { cpuMs } = client;
    await then(client, list);
    return { initialize, list: list.at, cpuMs };
  } finally {
    await client.close();
  }
}
