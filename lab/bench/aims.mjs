import { LEGACY_PAIR, pairName } from './era-calls.mjs';
import { ASLEEP_P99, STREAMING_P99 } from './neighbours.mjs';
import { table } from './page.mjs';
import { worstPayloadRatio } from './payloads.mjs';
import { median, ratios } from './statistics.mjs';
import { LIMITED, RELAY, TRUNKLINE } from './ways.mjs';

/**
 * What is aimed at. `wide` is what even a busy machine must keep to: beyond that something is broken, and a short run
 * fails. What is no ratio has none, nor has a p99, in which a busy machine shows first.
 */
const AIMS = [
  { aim: 'p50 of a call ÷ byte relay', of: ofCalls('p50'), atMost: 1.2, wide: 2.5 },
  { aim: 'p99 of a call ÷ byte relay', of: ofCalls('p99'), atMost: 1.25 },
  ...ofManyCalls('a write for each call', 'callsPerSecondApart', 'cpuApart'),
  ...ofManyCalls('many calls in one write', 'callsPerSecond', 'cpuTogether'),
  { aim: '10 MiB result ÷ byte relay', of: ofPayloads('10 MiB result'), atMost: 1.2, wide: 15 },
  { aim: '1 MiB argument ÷ byte relay', of: ofPayloads('1 MiB argument'), atMost: 1.4, wide: 15 },
  { aim: 'p99 beside a streaming neighbour ÷ byte relay', of: beside(STREAMING_P99), atMost: 1 },
  { aim: 'p99 beside 64 sleeping calls ÷ byte relay', of: beside(ASLEEP_P99), atMost: 3 },
  { aim: 'Resident memory, idle', of: ofMemory(({ idle }) => idle), unit: 'MiB', atMost: 60 },
  { aim: 'Resident memory under load', of: ofMemory(({ peak }) => peak), unit: 'MiB', atMost: 160 },
  { aim: 'Resident memory after it ÷ idle', of: ofMemory(({ after, idle }) => after / idle), atMost: 1.2 },
  { aim: '`tools/list` of 10,000 tools, slowest page', of: ofManyTools, unit: 'ms', atMost: 3 },
  ...ofEras('modern', 'modern', 1.15),
  ...ofEras('modern', 'legacy', 1.3),
];

/** The aims that something was measured for, and whether they are met. */
export function aimsTable(measured) {
  const rows = judged(measured).map(({ aim, value, unit = '×', atMost, atLeast, isMet }) => [
    `${aim} ${atMost === undefined ? `≥ ${atLeast}` : `≤ ${atMost}`} ${unit}`,
    `${value.toFixed(unit === 'MiB' || value > 20 ? 0 : 2)} ${unit}`,
    isMet ? 'met' : 'not met',
  ]);
  return ['Aims:', table(['Aim', 'Measured', ''], rows)];
}

/** What no machine explains. */
export function brokenAims(measured) {
  return judged(measured)
    .filter(({ value, atLeast, wide }) => wide !== undefined && (atLeast === undefined ? value > wide : value < wide))
    .map(({ aim, value, wide }) => `${aim}: ${value.toFixed(2)}, beyond ${wide}`);
}

function judged(measured) {
  return AIMS.map((aim) => ({ ...aim, value: aim.of(measured) }))
    .filter(({ value }) => value !== undefined)
    .map((aim) => ({ ...aim, isMet: aim.atMost === undefined ? aim.value >= aim.atLeast : aim.value <= aim.atMost }));
}

function ofCalls(measure, way = TRUNKLINE) {
  return ({ calls }) => calls && median(ratios(calls, way, measure, RELAY));
}

/** Clients made of an SDK write each call by itself. Of many calls in one write, the byte relay makes one copy. */
function ofManyCalls(written, callsPerSecond, cpu) {
  const limited = '`concurrency: 16`';
  return [
    { aim: `calls/s with 64 in flight, ${written} ÷ byte relay`, of: ofCalls(callsPerSecond), atLeast: 0.8, wide: 0.1 },
    { aim: `CPU of a call, ${written} ÷ byte relay`, of: ofCalls(cpu), atMost: 2.2, wide: 40 },
    { aim: `calls/s, ${limited}, ${written} ÷ byte relay`, of: ofCalls(callsPerSecond, LIMITED.name), atLeast: 0.4 },
    { aim: `CPU of a call, ${limited}, ${written} ÷ byte relay`, of: ofCalls(cpu, LIMITED.name), atMost: 5 },
  ];
}

function ofPayloads(beginning) {
  return ({ payloads }) => payloads && worstPayloadRatio(payloads, TRUNKLINE, beginning);
}

function beside(measure) {
  return ({ neighbours }) => neighbours && median(ratios(neighbours, TRUNKLINE, measure, RELAY));
}

function ofEras(era, serverEra, atMost) {
  const pair = pairName(era, serverEra);
  return [
    ['p50', 'p50 of a call', 4],
    // Wider, because the divisor is a few microseconds. On machines with two cores, medians from 2.0 to 4.3 were seen.
    ['cpuApart', 'CPU of a call with 64 in flight, a write for each call', 12],
    ['cpuTogether', 'CPU of a call with 64 in flight, many calls in one write', 12],
  ].map(([measure, shown, wide]) => ({
    aim: `${shown}, ${pair} ÷ legacy pair`,
    of: ({ eras }) => eras && median(ratios(eras, pair, measure, LEGACY_PAIR)),
    atMost,
    wide,
  }));
}

function ofManyTools({ manyTools }) {
  return manyTools && median(manyTools.get(TRUNKLINE).map(({ slowest }) => slowest));
}

function ofMemory(pick) {
  return ({ memory }) => memory && pick(memory.get(TRUNKLINE));
}
