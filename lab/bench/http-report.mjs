import { table } from './page.mjs';
import { median, shownRatio } from './statistics.mjs';
import { IN_FLIGHT } from './ways.mjs';

export const FEW_SESSIONS = 10;

/** The ways that are compared. */
export const STDIO = 'stdio';
export const BARE = 'bare HTTP';
export const FEW = `HTTP, ${FEW_SESSIONS} sessions`;
export const MANY = 'HTTP, all sessions';

const KIB = 1024;
const MIB = 1024 * KIB;

/** The results as Markdown. */
export function toHttpReport({ machine, sessions, rounds, calls, inFlightCalls, callResults, memory }) {
  const results = new Map([...callResults].map(([name, ofWay]) => [named(name, sessions), ofWay]));
  return [
    machine,
    `One call at a time, µs, each on the next session; ${IN_FLIGHT} calls in flight, ms; ${rounds} rounds of ${calls} and ${inFlightCalls} calls:`,
    callTable(results),
    'Memory of the gateway:',
    memoryTable(memory, sessions),
  ].join('\n\n');
}

function named(name, sessions) {
  return name === MANY ? `HTTP, ${sessions} sessions` : name;
}

function callTable(results) {
  const middle = (ofWay, measure, digits) => median(ofWay.map((ofRound) => ofRound[measure])).toFixed(digits);
  const rows = [...results].map(([name, ofWay]) => [
    name,
    middle(ofWay, 'p50', 0),
    shownRatio(results, name, 'p50', FEW),
    middle(ofWay, 'p99', 0),
    shownRatio(results, name, 'p99', FEW),
    middle(ofWay, 'p50Together', 1),
    middle(ofWay, 'p99Together', 1),
    middle(ofWay, 'callsPerSecond', 0),
    shownRatio(results, name, 'callsPerSecond', FEW),
  ]);
  return table(['', 'p50', RATIO, 'p99', RATIO, 'in flight: p50', 'p99', 'calls/s', RATIO], rows);
}

const RATIO = `÷ ${FEW_SESSIONS} sessions`;

/** What a session takes is what is in use more than with none. */
function memoryTable(stages, sessions) {
  const [none] = stages;
  const rows = stages.map(({ stage, resident, inUse }) => [
    stage,
    (resident / MIB).toFixed(0),
    inUse === undefined ? '' : (inUse / MIB).toFixed(1),
    inUse === undefined || inUse === none.inUse ? '' : ((inUse - none.inUse) / sessions / KIB).toFixed(1),
  ]);
  return table(['', 'resident, MiB', 'in use, MiB', 'in use more, KiB a session'], rows);
}
