// What the hub costs and saves: the start of a client, a call through attach process and hub, and the memory of many
// clients. `docs/performance.md` tells how it is measured. Linux only.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { measureHubCalls } from './hub-calls.mjs';
import { measureHubMemory } from './hub-memory.mjs';
import { callTables, hubAims, memoryTables, startTables } from './hub-report.mjs';
import { measureHubStarts } from './hub-starts.mjs';
import './plain-node.mjs';
import { describeMachine, writeSection } from './page.mjs';
import { buildsWith } from './ways.mjs';

const PAGE = fileURLToPath(new URL('../../docs/performance.md', import.meta.url));
const PARTS = {
  starts: { measure: measureHubStarts, tables: startTables },
  calls: { measure: measureHubCalls, tables: callTables },
  memory: { measure: measureHubMemory, tables: memoryTables },
};

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    against: { type: 'string' },
    rounds: { type: 'string', default: '11' },
    write: { type: 'boolean', default: false },
  },
});
const size = { rounds: Number(values.rounds), calls: 2_000, builds: buildsWith(values.against) };
if (!Number.isInteger(size.rounds) || size.rounds < 1) throw new Error('--rounds takes a whole number above 0');
const only = values.only?.split(',') ?? Object.keys(PARTS);
const unknown = only.filter((name) => !Object.hasOwn(PARTS, name));
if (unknown.length > 0) throw new Error(`--only takes ${Object.keys(PARTS)}, not ${unknown}`);
const isWhole = values.only === undefined && values.against === undefined;
if (values.write && !isWhole) throw new Error('--write is for full runs: leave out --only and --against');
if (process.platform !== 'linux') throw new Error('Only Linux tells what is measured here');

const folder = mkdtempSync(join(tmpdir(), 'trunkline-bench-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1));

const machine = describeMachine();
const results = {};
const report = [machine];
console.log(machine);
for (const name of only) {
  const { measure, tables } = PARTS[name];
  results[name] = await measure(folder, size);
  add(...tables(results[name], size));
}
add(...hubAims(results));
if (values.write) writeSection(PAGE, 'bench-hub', report.join('\n\n'));

function add(...paragraphs) {
  for (const paragraph of paragraphs) console.log(`\n${paragraph}`);
  report.push(...paragraphs);
}
