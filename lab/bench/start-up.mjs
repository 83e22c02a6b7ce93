// How soon a client has its first answers after the spawn: in the first run, in which nothing is cached, in the second,
// and without Trunkline. `docs/performance.md` tells how it is measured.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import './plain-node.mjs';
import { describeMachine, writeSection } from './page.mjs';
import { COUNTS, PARTIAL, StartCases } from './start-cases.mjs';
import { buildsReport, startReport } from './start-report.mjs';
import { buildsWith } from './ways.mjs';

const PAGE = fileURLToPath(new URL('../../docs/performance.md', import.meta.url));

const { values } = parseArgs({
  options: {
    rounds: { type: 'string' },
    against: { type: 'string' },
    short: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
  },
});
const rounds = Number(values.rounds ?? (values.short ? 3 : 7));
if (!Number.isInteger(rounds) || rounds < 1) throw new Error('--rounds takes a whole number above 0');
const isWhole = !values.short && values.against === undefined;
if (values.write && !isWhole) throw new Error('--write is for full runs: leave out --short and --against');

const folder = mkdtempSync(join(tmpdir(), 'trunkline-bench-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1));

const machine = describeMachine();
const builds = buildsWith(values.against).map(({ start }, index) => ({
  cases: new StartCases(mkdtempSync(join(folder, `${index}-`)), start),
  results: {
    compared: new Map(COUNTS.map((count) => [count, []])),
    partial: new Map(PARTIAL.map(({ name }) => [name, []])),
    manyTools: [],
    idleMemory: [],
  },
}));
const steps = [
  ...COUNTS.map((count) => async ({ cases, results }) => {
    results.compared.get(count).push(await cases.compared(count));
  }),
  async ({ cases, results }) => results.manyTools.push(await cases.manyTools()),
  async ({ cases, results }) => results.idleMemory.push(await cases.idleMemory()),
  ...PARTIAL.map((each) => async ({ cases, results }) => {
    results.partial.get(each.name).push(await cases.partial(each));
  }),
];
// Each round begins with another step and another build, because load on the machine must not always meet the same one.
for (let round = 0; round < rounds; round += 1) {
  for (let turn = 0; turn < steps.length; turn += 1) {
    const step = steps[(round + turn) % steps.length];
    for (let build = 0; build < builds.length; build += 1) await step(builds[(round + build) % builds.length]);
  }
}

const [own, other] = builds.map(({ results }) => results);
const compared = other === undefined ? [] : buildsReport(own, other);
const report = [machine, ...startReport(own, rounds), ...compared].join('\n\n');
console.log(report);
if (values.write) writeSection(PAGE, 'bench-start', report);
