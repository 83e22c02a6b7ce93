import { inRounds } from './measure.mjs';
import { table } from './page.mjs';
import { median, quantile, shownRatio } from './statistics.mjs';
import { DIRECT, IN_FLIGHT, LIMITED, LOGGED, OpenWay, RELAY, TRUNKLINE, tinyServer } from './ways.mjs';

/** The first rounds find code that is not compiled yet; they are not counted. */
export const WARM_UP_ROUNDS = 2;
/** Calls in flight together take a fraction of the time each, so there can be more of them. */
export const IN_FLIGHT_FACTOR = 4;

/**
 * Small calls: one at a time, and many in flight. By way and round; times are in µs. Trunkline is measured without and with
 * its call log, and with a concurrency limit.
 */
export async function measureCalls(allWays, folder, { rounds, calls }) {
  const ways = allWays.flatMap((way) => (way.name === TRUNKLINE ? [way, LOGGED, LIMITED] : [way]));
  const opened = [];
  try {
    for (const way of ways) opened.push(await OpenWay.open(way, folder, { tiny: tinyServer() }));
    const targets = opened.map((way) => way.to('tiny', 'echo'));
    return await inRounds(ways, rounds, WARM_UP_ROUNDS, async (_, index) => {
      const alone = await measured(opened[index], targets[index], { count: calls, inFlight: 1 });
      const count = calls * IN_FLIGHT_FACTOR;
      const together = await measured(opened[index], targets[index], { count, inFlight: IN_FLIGHT });
      const apart = await measured(opened[index], targets[index], { count, inFlight: IN_FLIGHT, isApart: true });
      return {
        p50: quantile(alone.durations, 0.5) * 1000,
        p95: quantile(alone.durations, 0.95) * 1000,
        p99: quantile(alone.durations, 0.99) * 1000,
        cpu: alone.cpu,
        callsPerSecond: (count / together.elapsed) * 1000,
        cpuTogether: together.cpu,
        callsPerSecondApart: (count / apart.elapsed) * 1000,
        cpuApart: apart.cpu,
      };
    });
  } finally {
    await Promise.all(opened.map((way) => way.close()));
  }
}

/** With the CPU time of what stands between, in µs a call. */
export async function measured(way, { client, tool }, options) {
  const before = await way.ask('cpu');
  const result = await client.echo(tool, options);
  const after = await way.ask('cpu');
  return { ...result, cpu: before === undefined ? undefined : (after - before) / options.count };
}

export function callTables(results, { rounds, calls }) {
  return [
    `One call at a time, µs; ${rounds} rounds of ${calls} calls:`,
    aloneTable(results),
    `${IN_FLIGHT} calls in flight, a write for each call or many calls in one write; ${rounds} rounds of ${calls * IN_FLIGHT_FACTOR} calls; CPU in µs a call:`,
    inFlightTable(results),
  ];
}

function aloneTable(results) {
  const rows = [...results].map(([name, rounds]) => [
    name,
    shown(rounds, 'p50'),
    shownRatio(results, name, 'p50', RELAY),
    name === DIRECT ? '' : added(results, name),
    shown(rounds, 'p95'),
    shown(rounds, 'p99'),
    shownRatio(results, name, 'p99', RELAY),
    shown(rounds, 'cpu', 1),
    shownRatio(results, name, 'cpu', RELAY),
  ]);
  return table(['', 'p50', '÷ relay', 'p50 − direct', 'p95', 'p99', '÷ relay', 'CPU', '÷ relay'], rows);
}

function inFlightTable(results) {
  const written = [
    { callsPerSecond: 'callsPerSecondApart', cpu: 'cpuApart' },
    { callsPerSecond: 'callsPerSecond', cpu: 'cpuTogether' },
  ];
  const rows = [...results].map(([name, rounds]) => [
    name,
    ...written.flatMap(({ callsPerSecond, cpu }) => [
      shown(rounds, callsPerSecond),
      shownRatio(results, name, callsPerSecond, RELAY),
      shown(rounds, cpu, 1),
      shownRatio(results, name, cpu, RELAY),
    ]),
  ]);
  const columns = ['calls/s', '÷ relay', 'CPU', '÷ relay'];
  return table(['', ...columns, ...columns.map((column) => `one write: ${column}`)], rows);
}

function shown(rounds, measure, digits = 0) {
  const values = rounds.map((ofRound) => ofRound[measure]);
  return values.includes(undefined) ? '' : median(values).toFixed(digits);
}

function added(results, name) {
  const direct = results.get(DIRECT);
  return median(results.get(name).map(({ p50 }, round) => p50 - direct[round].p50)).toFixed(0);
}
