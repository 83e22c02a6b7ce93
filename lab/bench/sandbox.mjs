// The cost of a sandbox: the start of a server up to its first answer, its calls and its memory, unconfined, confined, and confined
// with a name of the network, in turns.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Client } from './client.mjs';
import { inRounds } from './measure.mjs';
import { describeMachine, table } from './page.mjs';
import './plain-node.mjs';
import { median, quantile, shownRatio } from './statistics.mjs';
import { tinyServer } from './ways.mjs';

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '12' }, calls: { type: 'string', default: '2000' } },
});
const [rounds, calls] = [Number(values.rounds), Number(values.calls)];
const UNCONFINED = 'unconfined';
const WAYS = [
  { name: UNCONFINED, sandbox: false },
  { name: 'confined', sandbox: true },
  { name: 'confined, with network', sandbox: { network: ['example.com'] } },
];
const MIB = 1024 * 1024;
const CLI = fileURLToPath(import.meta.resolve('../../dist/cli.js'));
const [command, ...args] = tinyServer();

const folder = mkdtempSync(join(tmpdir(), 'trunkline-bench-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
const machine = describeMachine();
const results = await inRounds(WAYS, rounds, 1, measure);
const measures = ['firstCall', 'p50', 'memory'];
const head = [
  '',
  'spawn to the first answer, ms',
  'ratio',
  'call p50, µs',
  'ratio',
  'memory, MiB',
  'ratio',
  'processes',
];
const rows = WAYS.map(({ name }) => [
  name,
  ...measures.flatMap((measure) => [
    median(results.get(name).map((round) => round[measure])).toFixed(measure === 'memory' ? 1 : 0),
    shownRatio(results, name, measure, UNCONFINED),
  ]),
  String(median(results.get(name).map(({ processes }) => processes))),
]);
console.log(`${machine}\n\n${rounds} rounds, ${calls} calls one at a time in each:\n\n${table(head, rows)}`);

async function measure({ name, sandbox }) {
  const place = join(folder, name.replaceAll(/\W/g, '-'));
  process.env.XDG_DATA_HOME = place;
  const config = `${place}.yaml`;
  writeFileSync(config, JSON.stringify({ servers: { tiny: { command, args, sandbox } } }));
  const begun = performance.now();
  const client = new Client([process.execPath, CLI, '--config', config]);
  try {
    await client.initialize();
    await client.open(2);
    const echo = client.toolNamed('echo', 'tiny');
    await client.echo(echo, { count: 1, inFlight: 1 });
    const firstCall = performance.now() - begun;
    const { durations } = await client.echo(echo, { count: calls, inFlight: 1 });
    let pid;
    await client.call('trunkline__status', '{"server":"tiny"}', {
      count: 1,
      check: ({ result }) => {
        [{ pid }] = result.structuredContent.servers;
        return true;
      },
    });
    const memories = membersOf(pid).map(memoryOf);
    const memory = memories.reduce((sum, each) => sum + each, 0) / MIB;
    return { firstCall, p50: quantile(durations, 0.5) * 1000, memory, processes: memories.length };
  } finally {
    await client.close();
  }
}

/** The processes of a group. */
function membersOf(group) {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => readOf(`/proc/${pid}/stat`).split(') ').at(-1).split(' ')[2] === String(group));
}

/** The memory of a process, of which what it shares with others counts in parts. */
function memoryOf(pid) {
  const [, kib = 0] = /^Pss:\s+(\d+)/m.exec(readOf(`/proc/${pid}/smaps_rollup`)) ?? [];
  return Number(kib) * 1024;
}

function readOf(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    // The process has ended.
    return '';
  }
}
