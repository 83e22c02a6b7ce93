import { HubPlace } from './hub-place.mjs';
import { inRounds } from './measure.mjs';
import { msOfNodeAlone, StartClient } from './start-client.mjs';
import { caseOf, tinyServer } from './ways.mjs';

export const BARE = '`node -e 0`, to its exit';
export const WARM = 'attach to a running hub, 1 server';
export const COLD = 'attach without a hub, 20 servers';
export const SINGLE_ONE = 'single process, 1 server';
export const SINGLE_MANY = 'single process, 20 servers';
const MANY = 20;

/** Milliseconds from the spawn to the first answers, with cached catalogues. */
export async function measureHubStarts(folder, { rounds, builds }) {
  const cases = builds.flatMap((build) => casesOf(build, folder));
  for (const { place, count, isKept } of cases) {
    await start(place, (client) => client.untilReady(count));
    if (!isKept) await place.end();
  }
  try {
    return await inRounds([{ name: BARE }, ...cases], rounds, 1, async ({ place, count, isEnded }) => {
      if (place === undefined) return await bare();
      const times = await start(place, (_, list) => {
        if (list.tools !== 4 * count + 1) throw new Error(`${list.tools} tools are listed of ${count} servers`);
      });
      if (isEnded) await place.end();
      return times;
    });
  } finally {
    for (const { place, isKept } of cases) if (isKept) await place.end();
  }
}

function casesOf({ name: build, start }, folder) {
  const servers = (count) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`s${index}`, tinyServer()]));
  const of = (name, count, options) => ({
    name: caseOf(build, name),
    place: new HubPlace(folder, servers(count), { start, ...options }),
    count,
  });
  return [
    { ...of(WARM, 1), isKept: true },
    { ...of(COLD, MANY), isEnded: true },
    of(SINGLE_ONE, 1, { isShared: false }),
    of(SINGLE_MANY, MANY, { isShared: false }),
  ];
}

async function bare() {
  const list = await msOfNodeAlone();
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
