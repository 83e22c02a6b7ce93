// How soon a client has its first answers after the spawn: in the first run, which has to wait for the servers, and in
// the second, which lists what was kept. `docs/performance.md` tells how it is measured.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import './plain-node.mjs';
import { describeMachine, table, writeSection } from './page.mjs';
import { StartClient } from './start-client.mjs';
import { median, spread } from './statistics.mjs';

const path = (file) => fileURLToPath(new URL(file, import.meta.url));
const PAGE = path('../docs/performance.md');
const CLI = path('../dist/cli.js');
const TINY = path('tiny-server.mjs');
/** Of each server. */
const TOOLS = 4;
const RELAY = path('byte-relay.mjs');
const SLOW_MS = 3_000;
const AIMS = { initialize: 80, list: 120 };

const { values } = parseArgs({
  options: {
    rounds: { type: 'string' },
    quick: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
  },
});
const rounds = Number(values.rounds ?? (values.quick ? 2 : 9));
if (!Number.isInteger(rounds) || rounds < 1) throw new Error('--rounds takes a whole number above 0');
if (values.write && values.quick) throw new Error('--write is for full runs: leave out --quick');

const folder = mkdtempSync(join(tmpdir(), 'trunkline-bench-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1));

const machine = describeMachine();
const cases = [
  { name: '1 server', count: 1 },
  { name: '5 servers', count: 5 },
  { name: '20 servers', count: 20 },
  { name: `20 servers, each ${SLOW_MS / 1_000} s slow`, count: 20, slowMs: SLOW_MS },
];
const results = new Map(
  ['relay', 'node', ...cases.flatMap(({ name }) => [`${name} 1`, `${name} 2`])].map((of) => [of, []]),
);
for (let round = 0; round < rounds; round += 1) {
  results.get('node').push(await measure([TINY], { calls: 'echo' }));
  results.get('relay').push(await measure([RELAY, process.execPath, TINY], { calls: 'echo' }));
  for (const { name, count, slowMs } of cases) {
    const data = join(folder, `${name} ${round}`);
    const config = join(folder, `${count}-${slowMs ?? 0}.yaml`);
    writeFileSync(config, JSON.stringify({ servers: serversOf(count, slowMs) }));
    for (const run of [1, 2]) {
      const started = await measure([CLI, '--config', config], { data, calls: 's0__echo', ready: count });
      if (started.tools !== count * TOOLS + 1) throw new Error(`${started.tools} tools in run ${run} of ${name}`);
      results.get(`${name} ${run}`).push(started);
    }
    rmSync(data, { recursive: true });
  }
}

const report = toReport();
console.log(report);
if (values.write) writeSection(PAGE, 'bench-start', report);

function serversOf(count, slowMs) {
  const args = slowMs === undefined ? [TINY] : [path('slow-server.mjs'), String(slowMs)];
  const entries = Array.from({ length: count }, (_, index) => [`s${index}`, { command: process.execPath, args }]);
  return Object.fromEntries(entries);
}

/** Milliseconds from the spawn to the answers. Ends when all servers are ready, as what they offer is kept then. */
async function measure(args, { data, calls, ready = 0 }) {
  const client = new StartClient(args, data === undefined ? {} : { XDG_DATA_HOME: data });
  try {
    const initialize = await client.initialize();
    const initializeCpu = client.cpuMs;
    const { at: list, tools } = await client.list();
    const listCpu = client.cpuMs;
    const call = await client.call(calls);
    if (ready > 0) await client.untilReady(ready);
    return { initialize, initializeCpu, list, listCpu, call, tools };
  } finally {
    await client.close();
  }
}

function toReport() {
  const rows = cases.map(({ name }) => [
    name,
    ...['initialize', 'list', 'call'].flatMap((what) => [1, 2].map((run) => cell(`${name} ${run}`, what))),
  ]);
  const yardsticks = [
    ['a server of bare Node', ...['initialize', 'list', 'call'].flatMap((what) => [cell('node', what), ''])],
    ['the same behind the byte relay', ...['initialize', 'list', 'call'].flatMap((what) => [cell('relay', what), ''])],
  ];
  const head = [
    '',
    ...['`initialize`', '`tools/list`', 'first call'].flatMap((what) => [`${what}, first run`, 'second']),
  ];
  return [
    machine,
    `Milliseconds from the spawn to the answer, median (smallest–largest) of ${rounds} rounds:`,
    table(head, [...rows, ...yardsticks]),
    'The same as time that the main thread was at work, which another load on the machine lengthens less:',
    table(['', '`initialize`, first run', 'second', '`tools/list`, first run', 'second'], cpuRows()),
    'Aims, with twenty servers in the second run, however slow they are:',
    table(
      ['Aim', 'Measured, median', 'smallest', ''],
      [aim('initialize', '`initialize`'), aim('list', 'the complete `tools/list`')],
    ),
  ].join('\n\n');
}

function cpuRows() {
  const ofCases = cases.map(({ name }) => [
    name,
    ...['initializeCpu', 'listCpu'].flatMap((what) => [1, 2].map((run) => cell(`${name} ${run}`, what))),
  ]);
  return [...ofCases, ['a server of bare Node', cell('node', 'initializeCpu'), '', cell('node', 'listCpu'), '']];
}

function cell(of, what) {
  const { median: middle, min, max } = spread(results.get(of).map((result) => result[what]));
  return `${middle.toFixed(0)} (${min.toFixed(0)}–${max.toFixed(0)})`;
}

function aim(what, shown) {
  const ofTwenty = cases
    .filter(({ count }) => count === 20)
    .map(({ name }) => results.get(`${name} 2`).map((result) => result[what]));
  const slowest = Math.max(...ofTwenty.map(median));
  const smallest = Math.max(...ofTwenty.map((times) => Math.min(...times)));
  const verdict = slowest <= AIMS[what] ? 'met' : 'not met';
  return [`${shown} ≤ ${AIMS[what]} ms`, `${slowest.toFixed(0)} ms`, `${smallest.toFixed(0)} ms`, verdict];
}
