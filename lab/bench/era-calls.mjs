import { IN_FLIGHT_FACTOR, measured, WARM_UP_ROUNDS } from './calls.mjs';
import { inRounds } from './measure.mjs';
import { table } from './page.mjs';
import { median, quantile, shownRatio } from './statistics.mjs';
import { caseOf, IN_FLIGHT, OpenWay, TRUNKLINE, tinyServer } from './ways.mjs';

const ERAS = ['legacy', 'modern'];

/** What the other pairs are compared with. */
export const LEGACY_PAIR = pairName('legacy', 'legacy');

/** Each pair of eras with a gateway of its own: `era` is the client's, `serverEra` the server's. */
export function eraPairs(builds) {
  return builds.flatMap((build) =>
    ERAS.flatMap((era) =>
      ERAS.map((serverEra) => ({ ...build, name: pairName(era, serverEra, build.name), era, serverEra })),
    ),
  );
}

export function pairName(era, serverEra, build = TRUNKLINE) {
  return caseOf(build, `${era} client, ${serverEra} server`);
}

/** Small calls: one at a time, and many in flight. By pair and round; times are in µs. */
export async function measureEras(pairs, folder, { rounds, calls }) {
  const opened = [];
  try {
    for (const pair of pairs) {
      const server = pair.serverEra === 'modern' ? tinyServer('--modern') : tinyServer();
      opened.push(await OpenWay.open(pair, folder, { tiny: server }));
    }
    const targets = opened.map((way) => way.to('tiny', 'echo'));
    return await inRounds(pairs, rounds, WARM_UP_ROUNDS, async (_, index) => {
      const alone = await measured(opened[index], targets[index], { count: calls, inFlight: 1 });
      const count = calls * IN_FLIGHT_FACTOR;
      const together = await measured(opened[index], targets[index], { count, inFlight: IN_FLIGHT });
      const apart = await measured(opened[index], targets[index], { count, inFlight: IN_FLIGHT, isApart: true });
      const p50 = quantile(alone.durations, 0.5) * 1000;
      return { p50, cpu: alone.cpu, cpuApart: apart.cpu, cpuTogether: together.cpu };
    });
  } finally {
    await Promise.all(opened.map((way) => way.close()));
  }
}

export function eraTables(results, { rounds, calls }) {
  const measures = [
    ['p50', 0],
    ['cpu', 1],
    ['cpuApart', 1],
    ['cpuTogether', 1],
  ];
  const rows = [...results].map(([name, ofPair]) => [
    name,
    ...measures.flatMap(([measure, digits]) => [
      median(ofPair.map((ofRound) => ofRound[measure])).toFixed(digits),
      shownRatio(results, name, measure, LEGACY_PAIR),
    ]),
  ]);
  const legacy = '÷ legacy pair';
  return [
    `One call at a time, and ${IN_FLIGHT} in flight with a write for each call, or many in one write, µs; ${rounds} rounds of ${calls} and ${calls * IN_FLIGHT_FACTOR} calls:`,
    table(['', 'p50', legacy, 'CPU', legacy, `CPU, ${IN_FLIGHT} in flight`, legacy, 'in one write', legacy], rows),
  ];
}
