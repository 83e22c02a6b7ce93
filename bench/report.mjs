import { IN_FLIGHT, IN_FLIGHT_FACTOR } from './measure.mjs';
import { table } from './page.mjs';
import { median, ratios, shownRatio, spread } from './statistics.mjs';

const MAX_RATIO = 1.3;
const MAX_START_MS = 150;

const BASELINE = 'byte relay';

/** The results as Markdown. */
export function toReport({ machine, rounds, calls, starts, callResults, startResults }) {
  return [
    machine,
    `One call at a time, µs; ${rounds} rounds of ${calls} calls:`,
    callTable(callResults),
    `${IN_FLIGHT} calls in flight; ${rounds} rounds of ${calls * IN_FLIGHT_FACTOR} calls:`,
    throughputTable(callResults),
    `From spawn to the answer to \`initialize\`, ms; ${starts} starts of each:`,
    startTable(startResults),
    'Aims:',
    aims(callResults, startResults),
  ].join('\n\n');
}

function callTable(results) {
  const rows = [...results].map(([name, ofPath]) => [
    name,
    median(ofPath.map(({ p50 }) => p50)).toFixed(0),
    shownRatio(results, name, 'p50', BASELINE),
    added(results, name),
    median(ofPath.map(({ p99 }) => p99)).toFixed(0),
    shownRatio(results, name, 'p99', BASELINE),
  ]);
  return table(['', 'p50', '÷ relay', 'p50 − direct', 'p99', '÷ relay'], rows);
}

function throughputTable(results) {
  const rows = [...results].map(([name, ofPath]) => [
    name,
    median(ofPath.map(({ callsPerSecond }) => callsPerSecond)).toFixed(0),
    shownRatio(results, name, 'callsPerSecond', BASELINE),
  ]);
  return table(['', 'calls/s', '÷ relay'], rows);
}

function startTable(results) {
  const rows = [...results].map(([name, times]) => {
    const { median: middle, min, max } = spread(times);
    return [name, middle.toFixed(0), `${min.toFixed(0)}–${max.toFixed(0)}`];
  });
  return table(['', 'median', 'min–max'], rows);
}

function aims(callResults, startResults) {
  const ratio = median(ratios(callResults, 'Trunkline', 'p50', BASELINE));
  const starts = [...startResults].filter(([name]) => name.startsWith('Trunkline'));
  const slowest = Math.max(...starts.map(([, times]) => median(times)));
  return table(
    ['Aim', 'Measured', ''],
    [
      [`p50 of a call ≤ ${MAX_RATIO} × byte relay`, `${ratio.toFixed(2)} ×`, verdict(ratio <= MAX_RATIO)],
      [`\`initialize\` answered in ≤ ${MAX_START_MS} ms`, `${slowest.toFixed(0)} ms`, verdict(slowest <= MAX_START_MS)],
    ],
  );
}

function verdict(isMet) {
  return isMet ? 'met' : 'not met';
}

function added(results, name) {
  if (name === 'direct') return '';
  const direct = results.get('direct');
  return median(results.get(name).map(({ p50 }, round) => p50 - direct[round].p50)).toFixed(0);
}
