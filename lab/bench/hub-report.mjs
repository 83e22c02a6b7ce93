import { HUB, SINGLE, TWO_RELAYS } from './hub-calls.mjs';
import { CLIENTS, SERVERS } from './hub-memory.mjs';
import { BARE, COLD, WARM } from './hub-starts.mjs';
import { table } from './page.mjs';
import { median, shownRatio, spread } from './statistics.mjs';
import { caseOf, RELAY } from './ways.mjs';

export function startTables(results, { rounds }) {
  const cell = (values) => {
    if (!values.every(Number.isFinite)) return '';
    const { median: middle, min, max } = spread(values);
    return `${middle.toFixed(0)} (${min.toFixed(0)}–${max.toFixed(0)})`;
  };
  const rows = [...results].map(([name, all]) => [
    name,
    ...['initialize', 'list', 'cpuMs'].map((what) =>
      name === BARE && what !== 'list' ? '' : cell(all.map((each) => each[what])),
    ),
  ]);
  return [
    `From the spawn to the first answers, ms; cached catalogues, ${rounds} rounds. The last column is the processor time of the main thread of what the client has started:`,
    table(['', '`initialize`', 'whole list', 'processor'], rows),
  ];
}

export function callTables({ alone, apart, together, large }, { rounds, calls }) {
  const cells = (of, name, what, digits) => [
    median(of.get(name).map((each) => each[what])).toFixed(digits),
    shownRatio(of, name, what, RELAY),
  ];
  const rows = [...alone.keys()].map((name) => [
    name,
    ...cells(alone, name, 'p50', 0),
    ...cells(apart, name, 'callsPerSecond', 0),
    ...cells(together, name, 'callsPerSecond', 0),
    ...cells(large, name, 'ms', 1),
    shownRatio(large, name, 'ms', TWO_RELAYS),
  ]);
  return [
    `One call at a time, µs, all processes on one core; 64 in flight, with a write for each call or many in one; results of 10 MiB, ms; ${rounds} rounds of ${calls}, ${calls * 4} and 5 calls:`,
    table(
      [
        ...['', 'p50', '÷ relay', 'calls/s', '÷ relay', 'one write: calls/s', '÷ relay', '10 MiB', '÷ relay'],
        '÷ two relays',
      ],
      rows,
    ),
  ];
}

/** `results` are those of each build. */
export function memoryTables(results) {
  return results.flatMap(memoryTablesOf);
}

function memoryTablesOf({ build, shared, single }) {
  const { attach, hub } = shared;
  const kinds = [...new Set([...shared.together.keys(), ...single.together.keys()])];
  const cells = (of, kind) => {
    const { count = 0, share = 0 } = of.together.get(kind) ?? {};
    return [String(count), share.toFixed(0)];
  };
  return [
    `${caseOf(build, 'Resident memory')} with ${SERVERS} servers, MiB: attach process ${attach.idle.toFixed(0)} idle, ${attach.loaded.toFixed(0)} after load, ${attach.peak.toFixed(0)} at most; hub ${hub.one.toFixed(0)} idle, ${hub.all.toFixed(0)} idle with ${CLIENTS} clients, ${hub.loaded.toFixed(0)} after load.`,
    `${CLIENTS} equal clients of ${SERVERS} servers, idle: processes, and proportional memory in MiB, in which shared memory counts once:`,
    table(
      ['', 'with a hub', 'MiB', 'without', 'MiB'],
      [
        ...kinds.map((kind) => [KINDS[kind], ...cells(shared, kind), ...cells(single, kind)]),
        ['all', ...all(shared), ...all(single)],
      ],
    ),
  ];
}

const KINDS = {
  between: 'attach process; single Trunkline',
  hub: 'hub',
  server: 'server',
  guardian: 'guardian',
  helper: 'spawn helper',
};

function all({ together }) {
  const kinds = [...together.values()];
  return [
    String(kinds.reduce((sum, { count }) => sum + count, 0)),
    kinds.reduce((sum, { share }) => sum + share, 0).toFixed(0),
  ];
}

/** `results` are those of the parts that were measured. */
export function hubAims({ starts, calls, memory }) {
  const rows = [];
  const aim = (text, value, { atMost, atLeast, unit = '×', digits = 2 }) => {
    const isMet = atMost === undefined ? value >= atLeast : value <= atMost;
    const bound = atMost === undefined ? `≥ ${atLeast}` : `≤ ${atMost}`;
    rows.push([`${text} ${bound} ${unit}`, `${value.toFixed(digits)} ${unit}`, isMet ? 'met' : 'not met']);
  };
  if (starts !== undefined) {
    const ms = { unit: 'ms', digits: 0 };
    const above = (what) => median(starts.get(WARM).map((each, round) => each[what] - starts.get(BARE)[round].list));
    aim('attach to a running hub: `initialize` above Node itself', above('initialize'), { ...ms, atMost: 12 });
    aim('attach to a running hub: whole list above Node itself', above('list'), { ...ms, atMost: 12 });
    aim(`${COLD}: whole list`, median(starts.get(COLD).map(({ list }) => list)), { ...ms, atMost: 120 });
  }
  if (calls !== undefined) {
    const ratio = (of, what, to) => median(of.get(HUB).map((each, round) => each[what] / of.get(to)[round][what]));
    aim('p50 of a call ÷ byte relay', ratio(calls.alone, 'p50', RELAY), { atMost: 1.6 });
    aim('p50 of a call ÷ two byte relays', ratio(calls.alone, 'p50', TWO_RELAYS), { atMost: 1.1 });
    const many = (of) => ratio(of, 'callsPerSecond', RELAY);
    aim('calls/s with 64 in flight, a write for each call ÷ byte relay', many(calls.apart), { atLeast: 0.65 });
    aim('the same, many calls in one write', many(calls.together), { atLeast: 0.65 });
    aim('10 MiB result ÷ two byte relays', ratio(calls.large, 'ms', TWO_RELAYS), { atMost: 0.8 });
    const added = median(calls.alone.get(HUB).map(({ p50 }, round) => p50 - calls.alone.get(SINGLE)[round].p50));
    rows.push(['p50 of a call above the single process', `${added.toFixed(0)} µs`, 'no aim']);
  }
  if (memory !== undefined) {
    const { attach, hub } = memory[0].shared;
    const mib = { unit: 'MiB', digits: 0 };
    aim('attach process, idle', attach.idle, { ...mib, atMost: 43 });
    aim('attach process, loaded', attach.peak, { ...mib, atMost: 55 });
    aim(`hub, idle, ${CLIENTS} clients`, hub.all, { ...mib, atMost: 68 + Math.round(0.2 * CLIENTS) });
  }
  return ['Aims, for medians:', table(['Aim', 'Measured', ''], rows)];
}
