import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { median } from '../bench/statistics.mjs';
import { worker } from './gateway.mjs';
import { HubPlace, kill } from './hub-place.mjs';
import { until, wait } from './wait.mjs';

const GATE = import.meta.resolve('./start-gate.mjs');
const STARTED_WITHIN_MS = 60_000;
const SERVED_WITHIN_MS = 60_000;
/** So long after all clients were served, no second hub may have come. */
const SETTLE_MS = 300;
/** What dies at the start, by turns: nothing, the hub before it serves, or the attach process that was about to start it. */
const CRASHES = ['none', 'none', 'hub', 'none', 'none', 'starter'];

/** Many clients attach in the same millisecond, while the socket of a dead hub is there. */
export const attachAtOnce = {
  name: 'S-12',
  title: 'many clients attach at once, without a hub',
  full: { rounds: 50, clients: 50 },
  short: { rounds: 6, clients: 12 },
  run,
};

async function run({ rounds, clients, folder }) {
  const results = [];
  for (let round = 0; round < rounds; round += 1) {
    const crash = CRASHES[round % CRASHES.length];
    results.push({ crash, ...(await attachAll({ crash, count: clients, folder })) });
  }
  const bad = results.filter(({ hubs, pids }) => hubs !== 1 || pids.length !== 1);
  const sum = (key) => results.reduce((total, result) => total + result[key], 0);
  const times = (crash) => results.filter((result) => result.crash === crash).map(({ servedAfterMs }) => servedAfterMs);
  const facts = ['none', 'hub', 'starter'].map((crash) => [
    `crash: ${crash}; all served after`,
    times(crash).length === 0 ? '' : `${times(crash).length} rounds, median ${median(times(crash)).toFixed(0)} ms`,
  ]);
  return {
    facts: [['rounds, clients of each', `${rounds}, ${clients}`], ...facts, ['crashes', String(sum('crashed'))]],
    targets: [
      {
        target: 'one hub after each round, and all clients have it',
        measured: [`${bad.length} rounds without`, ...bad.map(told)].join('; '),
        isMet: bad.length === 0,
      },
      {
        target: 'each client served, except that of an attach process that crashed',
        measured: `${sum('unserved')} not${results.flatMap(({ why }) => why)}`,
        isMet: sum('unserved') === 0,
      },
      { target: 'nothing left', measured: String(sum('left')), isMet: sum('left') === 0 },
    ],
  };
}

function told({ crash, hubs, pids }) {
  return `${hubs} hubs, servers ${pids.join(', ')} (crash: ${crash})`;
}

async function attachAll({ crash, count, folder }) {
  const place = new HubPlace(folder, { worker: worker({ args: ['name=worker'] }) });
  await leaveStaleSocket(place);
  const gate = join(place.folder, 'gate');
  mkdirSync(gate);
  const env = { SOAK_GATE: gate, SOAK_CRASH: crash, NODE_OPTIONS: `--import=${GATE}` };
  const attached = Array.from({ length: count }, () => place.attach({ env }));
  if (!(await until(() => readdirSync(gate).length >= count, STARTED_WITHIN_MS))) throw new Error('Not all start');
  const served = attached.map(({ client }) => client.initialize().then(() => client.ask('tools/list')));
  const openedAt = performance.now();
  writeFileSync(join(gate, 'open'), '');
  const hasCrashed = (each) => each.end === 'SIGKILL';
  const ready = attached.map((each, index) => Promise.race([served[index], each.exited]));
  await Promise.race([Promise.all(ready), wait(SERVED_WITHIN_MS)]);
  const servedAfterMs = performance.now() - openedAt;
  const unserved = attached.filter((each) => each.client.unanswered > 0 && !hasCrashed(each));
  await wait(SETTLE_MS);
  const hubs = (await place.hubs()).length;
  const answers = attached.filter((each) => each.client.unanswered === 0).map(({ client }) => pidOfServer(client));
  const pids = [...new Set(await Promise.all(answers))];
  const crashed = Number(existsSync(join(place.folder, 'gate', 'crashed')));
  const left = await place.end();
  return {
    hubs,
    pids,
    servedAfterMs,
    unserved: unserved.length,
    why: unserved.map(({ end, stderr }) => `; ended with ${end}: ${stderr}`),
    crashed,
    left: left.length,
  };
}

/** The server is that of the hub, or of an attach process that serves its client by itself. */
async function pidOfServer(client) {
  let pid;
  // Lists come from the cache before the server runs.
  await until(async () => {
    const { result } = await client.call('trunkline__status', { server: 'worker' });
    pid = result.structuredContent.servers[0].pid;
    return pid !== undefined;
  }, STARTED_WITHIN_MS);
  return pid;
}

async function leaveStaleSocket(place) {
  const { client, process: child, exited } = place.attach();
  await client.initialize();
  await client.ask('tools/list');
  const hubs = await place.hubs();
  child.kill('SIGKILL');
  await exited;
  for (const pid of hubs) kill(pid, 'SIGKILL');
  if (!(await until(async () => (await place.shared()).length === 0, STARTED_WITHIN_MS)))
    throw new Error('The dead hub has left something');
}
