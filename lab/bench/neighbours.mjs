import { inRounds } from './measure.mjs';
import { table } from './page.mjs';
import { TEXT_KINDS } from './payload.mjs';
import { median, quantile, shownRatio } from './statistics.mjs';
import { IN_FLIGHT, OpenWay, RELAY, TWO_RELAYS, tinyServer } from './ways.mjs';

const MIB = 1024 * 1024;
const WARM_UP_ROUNDS = 1;
const [TEXT] = TEXT_KINDS;

/** What the neighbour does all the time while the other server is called. */
const NEIGHBOURS = [
  { name: 'idle' },
  { name: `asleep, ${IN_FLIGHT} in flight`, tool: 'sleep', args: { ms: 50 }, inFlight: IN_FLIGHT },
  { name: 'streams 1 MiB results', tool: 'produce', args: { kind: TEXT, bytes: MIB }, inFlight: 2 },
];

/**
 * A small call on one server, one at a time, beside another server that is busy: µs, and how much the neighbour gets
 * done meanwhile. Without a gateway each server has a process and a pipe of its own; of byte relays there is one process
 * for both as well.
 */
export async function measureNeighbours(allWays, folder, { rounds, calls }) {
  const ways = allWays.flatMap((way) => (way.name === RELAY ? [way, TWO_RELAYS] : [way]));
  const servers = { near: tinyServer(), far: tinyServer() };
  const opened = [];
  try {
    for (const way of ways) opened.push(await OpenWay.open(way, folder, servers));
    return await inRounds(ways, rounds, WARM_UP_ROUNDS, async (_, index) => {
      const ofRound = {};
      for (const neighbour of NEIGHBOURS) Object.assign(ofRound, await beside(opened[index], neighbour, calls));
      return ofRound;
    });
  } finally {
    await Promise.all(opened.map((way) => way.close()));
  }
}

async function beside(way, { name, tool, args, inFlight }, calls) {
  const near = way.to('near', 'echo');
  const far = tool && way.to('far', tool);
  let isOver = false;
  const check = ({ byteLength = 0, result }) => byteLength > MIB / 2 || result?.content[0].text === 'awake';
  const busy = far?.client.call(far.tool, JSON.stringify(args), { inFlight, isOver: () => isOver, check });
  const { durations } = await near.client.echo(near.tool, { count: calls, inFlight: 1 });
  isOver = true;
  const done = await busy;
  return {
    [`${name} p50`]: quantile(durations, 0.5) * 1000,
    [`${name} p99`]: quantile(durations, 0.99) * 1000,
    [`${name} done`]: done === undefined ? undefined : (done.durations.length / done.elapsed) * 1000,
  };
}

export function neighbourTables(results, { rounds, calls }) {
  const rows = [...results].map(([name, ofWay]) => [
    name,
    ...NEIGHBOURS.flatMap(({ name: neighbour }) => {
      const middle = (measure) => median(ofWay.map((ofRound) => ofRound[`${neighbour} ${measure}`])).toFixed(0);
      return [middle('p50'), middle('p99'), shownRatio(results, name, `${neighbour} p99`, RELAY)];
    }),
  ]);
  const columns = NEIGHBOURS.flatMap(({ name }) => [`${name}: p50`, 'p99', 'p99 ÷ relay']);
  return [
    `A small call on one server while a neighbor is busy, µs; ${rounds} rounds of ${calls} calls:`,
    table(['', ...columns], rows),
  ];
}

export const ASLEEP_P99 = `${NEIGHBOURS[1].name} p99`;
export const STREAMING_P99 = `${NEIGHBOURS[2].name} p99`;
