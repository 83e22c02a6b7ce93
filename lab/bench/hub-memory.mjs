import { setTimeout as wait } from 'node:timers/promises';
import { HubPlace, memoryOf } from './hub-place.mjs';
import { tinyServer } from './ways.mjs';

export const CLIENTS = 16;
export const SERVERS = 8;
/** Until the engine has tidied up after the start. */
const IDLE_MS = 8_000;
const LOAD_MS = 5_000;
/** Clients that start at the same time. */
const AT_ONCE = 4;

/** For each build: what so many equal clients take with a hub and without one, and what an attach process and a hub take. */
export async function measureHubMemory(folder, { builds }) {
  const results = [];
  for (const build of builds) results.push({ build: build.name, ...(await memoryOfBuild(build, folder)) });
  return results;
}

async function memoryOfBuild({ start }, folder) {
  const keys = Array.from({ length: SERVERS }, (_, index) => `s${index}`);
  const servers = Object.fromEntries(keys.map((key) => [key, tinyServer()]));
  const place = new HubPlace(folder, servers, { start });
  const clients = [];
  const pidOf = (kind) => place.processes().find((each) => each.kind === kind).pid;
  const shared = { attach: {}, hub: {} };
  try {
    clients.push(...(await openAll(place, 1)));
    await wait(IDLE_MS);
    shared.attach.idle = memoryOf(pidOf('between')).resident;
    shared.hub.one = memoryOf(pidOf('hub')).resident;
    const first = pidOf('between');
    clients.push(...(await openAll(place, CLIENTS - 1)));
    await wait(IDLE_MS);
    shared.hub.all = memoryOf(pidOf('hub')).resident;
    shared.together = together(place);
    await load(clients[0]);
    const loaded = memoryOf(first);
    shared.attach.loaded = loaded.resident;
    shared.attach.peak = loaded.peak;
    shared.hub.loaded = memoryOf(pidOf('hub')).resident;
  } finally {
    await closeAll(clients, place);
  }
  const single = new HubPlace(folder, servers, { isShared: false, start });
  const singles = [];
  try {
    singles.push(...(await openAll(single, CLIENTS)));
    await wait(IDLE_MS);
    return { shared, single: { together: together(single) } };
  } finally {
    await closeAll(singles, single);
  }
}

async function openAll(place, count) {
  const opened = [];
  for (let begun = 0; begun < count; begun += AT_ONCE) {
    const clients = Array.from({ length: Math.min(AT_ONCE, count - begun) }, () => place.open());
    opened.push(...clients);
    await Promise.all(clients.map((client) => client.initialize().then(() => client.open(4 * SERVERS))));
  }
  return opened;
}

async function closeAll(clients, place) {
  await Promise.all(clients.map((client) => client.close()));
  await place.end();
}

/** The kinds of processes with their numbers and proportional memory. */
function together(place) {
  const kinds = new Map();
  for (const { pid, kind } of place.processes()) {
    const { count, share } = kinds.get(kind) ?? { count: 0, share: 0 };
    kinds.set(kind, { count: count + 1, share: share + memoryOf(pid).share });
  }
  return kinds;
}

/** Small calls, and results of 1 and 10 MiB, of one client. */
async function load(client) {
  let isOver = false;
  const rest = { isOver: () => isOver, check: () => true };
  const produce = client.toolNamed('produce', 's1');
  const results = [1, 10].map((mib) =>
    client.call(produce, JSON.stringify({ kind: 'text', bytes: mib * 1024 * 1024 - 4096 }), rest),
  );
  const small = client.call(client.toolNamed('echo', 's0'), '{"text":"hello"}', { ...rest, inFlight: 32 });
  await wait(LOAD_MS);
  isOver = true;
  await Promise.all([small, ...results]);
}
