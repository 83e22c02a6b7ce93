import { table } from './page.mjs';
import { median, shownRatio, spread } from './statistics.mjs';
import { OTHER_BUILD, TRUNKLINE } from './ways.mjs';

const MIB = 1024 * 1024;
/** Times are in nanoseconds. */
const UNITS = { ns: 1, µs: 1_000, ms: 1_000_000, bytes: 1 };

/**
 * What one part has measured: of each run the shortest round, which the machine disturbed least, and the median one,
 * which has its share of the garbage collector's work. `byBuild` holds the rows of each run.
 */
export function insideTables(title, byBuild) {
  const names = [...byBuild.keys()];
  const rows = byBuild.get(TRUNKLINE)[0];
  const hasRates = rows.some(({ byteLength }) => byteLength !== undefined);
  const isCompared = names.includes(OTHER_BUILD);
  const head = [
    '',
    ...names.flatMap((name) => [`${name}, shortest round`, 'median round']),
    ...(hasRates ? ['MiB/s, shortest'] : []),
    ...(isCompared ? ['÷ other build, shortest', 'median'] : []),
  ];
  const cells = rows.map(({ name, unit, byteLength }, index) => {
    const results = new Map(names.map((build) => [build, byBuild.get(build).map((run) => summed(run[index]))]));
    return [
      `${name}, ${unit}`,
      ...names.flatMap((build) => ['shortest', 'middle'].map((measure) => shown(results.get(build), measure, unit))),
      ...(hasRates ? [rate(results.get(TRUNKLINE), byteLength)] : []),
      ...(isCompared ? ['shortest', 'middle'].map((measure) => ratio(results, measure)) : []),
    ];
  });
  return [title, table(head, cells)];
}

/** The rows that the page shows: the shortest round of all runs, with the part that is measured and without it. */
export function pageTable(measured) {
  const shortest = (part, row, unit) => {
    const runs = measured.get(part).get(TRUNKLINE);
    const values = runs.flatMap((rows) => rows.find(({ name }) => name === row).rounds);
    return (Math.min(...values) / UNITS[unit]).toFixed(unit === 'bytes' ? 0 : 2);
  };
  const call = (title, row, unit) => [
    `${title}, ${unit} (without: client and server alone)`,
    shortest('calls', `${row}, inside the gateway`, unit),
    shortest('calls', `${row}, client and server alone`, unit),
  ];
  const scan = (row) => [
    `scan of 1 MiB of ${row}, ms (without: no WebAssembly)`,
    shortest('scan', row, 'ms'),
    shortest('plainScan', row, 'ms'),
  ];
  return table(
    ['Shortest round', 'Trunkline', 'without'],
    [
      call('a call', 'a call', 'µs'),
      call('allocated for it', 'allocated for it', 'bytes'),
      ...['text', 'non-Latin text', 'JSON'].map(scan),
    ],
  );
}

function summed({ rounds }) {
  return { shortest: Math.min(...rounds), middle: median(rounds) };
}

function shown(runs, measure, unit) {
  const { median: middle, min, max } = spread(runs.map((run) => run[measure] / UNITS[unit]));
  const digits = middle >= 100 ? 0 : middle >= 10 ? 1 : 2;
  const range = runs.length === 1 ? '' : ` (${min.toFixed(digits)}–${max.toFixed(digits)})`;
  return middle.toFixed(digits) + range;
}

function rate(runs, byteLength) {
  if (byteLength === undefined) return '';
  return (byteLength / MIB / (median(runs.map(({ shortest }) => shortest)) / 1e9)).toFixed(0);
}

function ratio(results, measure) {
  return shownRatio(results, TRUNKLINE, measure, OTHER_BUILD);
}
