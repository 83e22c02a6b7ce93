import { table } from './page.mjs';
import { COUNTS, PARTIAL } from './start-cases.mjs';
import { median, shownRatio, spread } from './statistics.mjs';
import { OTHER_BUILD, TRUNKLINE } from './ways.mjs';

/** Milliseconds above the direct client in the first run, by the number of servers. */
const FIRST_RUN_MARGIN = new Map([
  [1, 150],
  [5, 200],
  [20, 250],
]);
/** Milliseconds above the direct client in the second run, for the list and for each call. */
const SECOND_RUN_MARGIN = { list: 75, call: 80, atOnce: 80 };
/** Milliseconds above a Node that does nothing. */
const INITIALIZE_MARGIN = 20;
/** Of the tools that the servers themselves can deliver while the first list waits, in percent. */
const FIRST_LIST_SHARE = 95;

const MEASURES = [
  { what: 'list', shown: '`tools/list`' },
  { what: 'call', shown: 'first call, after the list' },
  { what: 'atOnce', shown: 'first call, without a list' },
];

/** `results` are lists by round: `compared` by number of servers, `partial` by name, `manyTools` and `idleMemory`. */
export function startReport(results, rounds) {
  return [
    `Milliseconds from the spawn to the answer, median (smallest–largest) of ${rounds} rounds:`,
    table(['', 'direct', 'Trunkline, first run', 'second run'], comparedRows(results)),
    'The first list when a server is missing: ms, and share of the tools in it. 100 % are the tools of all servers that become ready:',
    table(['', 'first run', 'share', 'second run', 'share'], partialRows(results)),
    largeRuns(results),
    'Aims, for medians:',
    table(['Aim', 'Measured', ''], aimRows(results)),
  ];
}

/** The times of this build ÷ those of the other build in the same round. */
export function buildsReport(own, other) {
  const rows = COUNTS.flatMap((count) =>
    [...MEASURES, { what: 'initialize', shown: '`initialize`' }].map(({ what, shown }) => [
      `${servers(count)}: ${shown}`,
      ...['first', 'second'].map((run) => {
        const ofBuild = ({ compared }) => compared.get(count).map((round) => round[run]);
        const results = new Map([
          [TRUNKLINE, ofBuild(own)],
          [OTHER_BUILD, ofBuild(other)],
        ]);
        return shownRatio(results, TRUNKLINE, what, OTHER_BUILD);
      }),
    ]),
  );
  return [`÷ ${OTHER_BUILD}, median (smallest–largest):`, table(['', 'first run', 'second run'], rows)];
}

function comparedRows({ compared }) {
  const rows = COUNTS.flatMap((count) =>
    MEASURES.map(({ what, shown }) => [
      `${servers(count)}: ${shown}`,
      ...['direct', 'first', 'second'].map((way) => cell(compared.get(count).map((round) => round[way][what]))),
    ]),
  );
  const initialized = ['direct', 'first', 'second'].map((way) =>
    cell(compared.get(1).map((round) => round[way].initialize)),
  );
  return [...rows, [`${servers(1)}: \`initialize\`; instead of direct: \`node -e 0\`, to its exit`, ...initialized]];
}

function partialRows({ partial }) {
  return PARTIAL.map(({ name }) => {
    const rounds = partial.get(name);
    const share = (way) => `${(100 * median(rounds.map((round) => round[way].share))).toFixed(0)} %`;
    const time = (way) => cell(rounds.map((round) => round[way].list));
    return [name, time('first'), share('first'), time('second'), share('second')];
  });
}

function largeRuns({ manyTools, idleMemory }) {
  const of = (what) => cell(manyTools.map((round) => round[what]));
  const idle = cell(idleMemory.map(({ peak }) => peak));
  return `First run of 20 servers with 500 tools each: first page ${of('list')} ms, all pages ${of('all')} ms, peak memory ${of('peak')} MiB. First run of 5 servers that nobody calls: peak memory ${idle} MiB.`;
}

function aimRows({ compared, partial, manyTools, idleMemory }) {
  const aboveDirect = (count, way, what) =>
    median(compared.get(count).map((round) => round[way][what] - round.direct[what]));
  const above = (count, way, { what, shown }, margin) =>
    verdict(
      `${RUN[way]}, ${servers(count)}: ${shown} ≤ direct + ${margin} ms`,
      aboveDirect(count, way, what),
      margin,
      '+ ',
    );
  return [
    ...COUNTS.flatMap((count) => MEASURES.map((each) => above(count, 'first', each, FIRST_RUN_MARGIN.get(count)))),
    ...COUNTS.flatMap((count) => MEASURES.map((each) => above(count, 'second', each, SECOND_RUN_MARGIN[each.what]))),
    ...['first', 'second'].map((way) =>
      verdict(
        `${RUN[way]}, 1 server: \`initialize\` ≤ \`node -e 0\` + ${INITIALIZE_MARGIN} ms`,
        aboveDirect(1, way, 'initialize'),
        INITIALIZE_MARGIN,
        '+ ',
      ),
    ),
    ...PARTIAL.flatMap((each) => shareAims(each, partial.get(each.name))),
    verdict(
      'first run, 20 servers with 500 tools each: `tools/list` ≤ 600 ms',
      median(manyTools.map(({ list }) => list)),
      600,
    ),
    verdict('the same: peak memory ≤ 100 MiB', median(manyTools.map(({ peak }) => peak)), 100, '', 'MiB'),
    verdict(
      'first run, 5 servers, idle: peak memory ≤ 60 MiB',
      median(idleMemory.map(({ peak }) => peak)),
      60,
      '',
      'MiB',
    ),
  ];
}

/** The late servers are too late for the first list of the first run. In the second run, that list is the cached one. */
function shareAims({ name, good, late }, rounds) {
  const share = (way) => median(rounds.map((round) => round[way].share));
  const ofThoseInTime = (share('first') * (good + late)) / good;
  const row = (aim, value, atLeast) => [
    `${aim} ≥ ${atLeast} %`,
    `${(100 * value).toFixed(0)} %`,
    100 * value >= atLeast ? 'met' : 'not met',
  ];
  return [
    row(`first run, ${name}: share of the tools that are there within 3 s`, ofThoseInTime, FIRST_LIST_SHARE),
    row(`second run, ${name}: share of all tools`, share('second'), 100),
  ];
}

const RUN = { first: 'first run', second: 'second run' };

function verdict(aim, value, atMost, sign = '', unit = 'ms') {
  const shown = `${value < 0 ? '− ' : sign}${Math.abs(value).toFixed(0)} ${unit}`;
  return [aim, shown, value <= atMost ? 'met' : 'not met'];
}

function cell(values) {
  const { median: middle, min, max } = spread(values);
  return `${middle.toFixed(0)} (${min.toFixed(0)}–${max.toFixed(0)})`;
}

function servers(count) {
  return count === 1 ? '1 server' : `${count} servers`;
}
