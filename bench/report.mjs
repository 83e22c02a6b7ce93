import { readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, loadavg } from 'node:os';
import { IN_FLIGHT, IN_FLIGHT_FACTOR } from './measure.mjs';
import { median, spread } from './statistics.mjs';

const MAX_RATIO = 1.3;
const MAX_START_MS = 150;

const BEGIN = '<!-- bench: begin -->';
const END = '<!-- bench: end -->';

/** The circumstances of a run; taken before it, since a run is a load itself. */
export function describeMachine() {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  const cores = availableParallelism();
  return [
    `Trunkline ${version}, Node ${process.version}, ${process.platform} ${process.arch}`,
    `${cpus()[0]?.model.trim() ?? 'unknown processor'}, ${cores} cores, load before the run ${loadavg()[0].toFixed(1)}`,
    new Date().toISOString().slice(0, 10),
  ].join('; ');
}

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

/** Replaces what the last run left between the two markers of a page. */
export function writeReport(file, report) {
  const page = readFileSync(file, 'utf8');
  const from = page.indexOf(BEGIN);
  const to = page.indexOf(END);
  if (from < 0 || to < from) throw new Error(`${file} has no ${BEGIN} before ${END}`);
  writeFileSync(file, `${page.slice(0, from + BEGIN.length)}\n\n${report}\n\n${page.slice(to)}`);
}

function callTable(results) {
  const rows = [...results].map(([name, ofPath]) => [
    name,
    median(ofPath.map(({ p50 }) => p50)).toFixed(0),
    againstRelay(results, name, 'p50'),
    added(results, name),
    median(ofPath.map(({ p99 }) => p99)).toFixed(0),
    againstRelay(results, name, 'p99'),
  ]);
  return table(['', 'p50', '÷ relay', 'p50 − direct', 'p99', '÷ relay'], rows);
}

function throughputTable(results) {
  const rows = [...results].map(([name, ofPath]) => [
    name,
    median(ofPath.map(({ callsPerSecond }) => callsPerSecond)).toFixed(0),
    againstRelay(results, name, 'callsPerSecond'),
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
  const ratio = median(ratios(callResults, 'Trunkline', 'p50'));
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

/** Each round against the byte relay in the same round, so that a busy machine counts on both sides. */
function ratios(results, name, measure) {
  const relay = results.get('byte relay');
  return results.get(name).map((ofRound, round) => ofRound[measure] / relay[round][measure]);
}

function added(results, name) {
  if (name === 'direct') return '';
  const direct = results.get('direct');
  return median(results.get(name).map(({ p50 }, round) => p50 - direct[round].p50)).toFixed(0);
}

function againstRelay(results, name, measure) {
  if (name === 'byte relay') return '1';
  const { median: middle, min, max } = spread(ratios(results, name, measure));
  return `${middle.toFixed(2)} (${min.toFixed(2)}–${max.toFixed(2)})`;
}

function table(head, rows) {
  const rule = head.map((_, column) => (column === 0 ? '---' : '---:'));
  return [head, rule, ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}
