import { execFileSync } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { cpuOf, HubPlace } from './hub-place.mjs';
import { inRounds } from './measure.mjs';
import { textOf } from './payload.mjs';
import { median, quantile } from './statistics.mjs';
import { caseOf, DIRECT, IN_FLIGHT, RELAY, TRUNKLINE, tinyServer } from './ways.mjs';

export const TWO_RELAYS = 'two byte relays';
export const SINGLE = `${TRUNKLINE}, single process`;
export const HUB = `${TRUNKLINE}, attach and hub`;

const relay = [process.execPath, fileURLToPath(import.meta.resolve('./byte-relay.mjs'))];
const WAYS = [
  { name: DIRECT, command: tinyServer() },
  { name: RELAY, command: [...relay, ...tinyServer()] },
  { name: TWO_RELAYS, command: [...relay, ...relay, ...tinyServer()] },
];
const waysOf = ({ name, start }) => [
  { name: caseOf(name, SINGLE), isShared: false, start },
  { name: caseOf(name, HUB), isShared: true, start },
];
const WARM_UP_ROUNDS = 2;
const IN_FLIGHT_FACTOR = 4;
const RESULT_BYTES = 10 * 1024 * 1024 - 4096;
const TEXT = 'text';

/**
 * Calls by way and round: one at a time with all processes on one core, so that the figures do not depend on which core a
 * process wakes up on; then many in flight, with a write for each call or many in one write, and large results, on all cores.
 */
export async function measureHubCalls(folder, { rounds, calls, builds }) {
  const ways = [];
  try {
    for (const way of [...WAYS, ...builds.flatMap(waysOf)]) ways.push(await open(way, folder));
    const pin = (cores) => {
      const pids = [process.pid, ...ways.flatMap(({ place }) => place.processes().map(({ pid }) => pid))];
      for (const pid of pids) execFileSync('taskset', ['-acp', cores, String(pid)], { stdio: 'ignore' });
    };
    pin('0');
    const alone = await inRounds(ways, rounds, WARM_UP_ROUNDS, async (way) => {
      const { durations, cpu } = await way.echo({ count: calls, inFlight: 1 });
      return { p50: quantile(durations, 0.5) * 1e3, cpu };
    });
    pin(`0-${availableParallelism() - 1}`);
    const count = calls * IN_FLIGHT_FACTOR;
    const many = (isApart) =>
      inRounds(ways, rounds, WARM_UP_ROUNDS, async (way) => {
        const { elapsed, cpu } = await way.echo({ count, inFlight: IN_FLIGHT, isApart });
        return { callsPerSecond: (count / elapsed) * 1e3, cpu };
      });
    const apart = await many(true);
    const together = await many(false);
    const large = await inRounds(ways, rounds, WARM_UP_ROUNDS, async (way) => ({ ms: await way.result() }));
    return { alone, apart, together, large };
  } finally {
    for (const { client, place } of ways) {
      await client.close();
      await place.end();
    }
  }
}

async function open({ name, command, isShared, start }, folder) {
  const place = new HubPlace(folder, { tiny: tinyServer() }, { isShared, start });
  const client = place.open(command);
  await client.initialize();
  await client.open(4);
  const [echo, produce] = ['echo', 'produce'].map((tool) => client.toolNamed(tool, 'tiny'));
  const between = () => place.processes().filter(({ kind }) => kind === 'between' || kind === 'hub');
  const cpu = () => between().reduce((sum, { pid }) => sum + cpuOf(pid), 0);
  return {
    name,
    client,
    place,
    echo: async (options) => {
      const before = cpu();
      const result = await client.echo(echo, options);
      return { ...result, cpu: (cpu() - before) / options.count };
    },
    result: async () => {
      const text = textOf(TEXT, RESULT_BYTES);
      const check = ({ byteLength }) => byteLength > text.length;
      const args = JSON.stringify({ kind: TEXT, bytes: RESULT_BYTES });
      return median((await client.call(produce, args, { count: 5, check })).durations);
    },
  };
}
