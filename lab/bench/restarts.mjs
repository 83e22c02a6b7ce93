// Measures how long starting a process holds the event loop, depending on the memory of the gateway, and how much processor
// time a whole restart takes: `npm run -w lab bench:restarts [-- --write]`. A restart must not hold the loop for more than 10 ms at 200 MiB.
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import './plain-node.mjs';
import { bundle } from './inside-bundle.mjs';
import { describeMachine, table, writeSection } from './page.mjs';
import { costOfRestarts } from './restart-cost.mjs';
import { median, quantile } from './statistics.mjs';

const PAGE = fileURLToPath(new URL('../../docs/performance.md', import.meta.url));
const STARTS = 60;
const SIZES_MIB = [100, 200, 400];
const MIB = 1024 * 1024;
const REQUEST = { command: '/bin/true', args: [], cwd: '/', env: {} };

const { values } = parseArgs({ options: { write: { type: 'boolean', default: false } } });

const folder = mkdtempSync(join(realpathSync(tmpdir()), 'trunkline-bench-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
const checkout = fileURLToPath(new URL('../..', import.meta.url));
const file = await bundle(checkout, folder, fileURLToPath(new URL('restarts-program.mjs', import.meta.url)));
const { spawnChild } = await import(pathToFileURL(file).href);

const report = [describeMachine()];
if (process.platform === 'linux') {
  const costs = await costOfRestarts(folder);
  const parts = costs.map(([what, ms]) => `${what}: ${shown(ms)}`);
  report.push(`Processor time of one restart, ms: ${parts.join('; ')}.`);
}
const kept = [];
const rows = [];
for (const mib of SIZES_MIB) {
  while (residentMib() < mib) kept.push(Buffer.alloc(MIB, 1));
  const held = [];
  for (let start = 0; start < STARTS; start += 1) {
    const { longest, child } = await longestHold();
    held.push(longest);
    await child.exit;
  }
  rows.push([`${residentMib()} MiB`, shown(median(held)), shown(quantile(held, 0.99))]);
}
report.push(table(['Resident memory', 'held, ms: p50', 'p99'], rows));
console.log(report.join('\n\n'));
if (values.write) writeSection(PAGE, 'bench-restarts', report.join('\n\n'));

function residentMib() {
  return Math.round(process.memoryUsage.rss() / MIB);
}

/** The longest time without a turn of the event loop while a process is started. */
async function longestHold() {
  let longest = 0;
  let isOver = false;
  let last = performance.now();
  const turn = () => {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  const child = spawnChild(REQUEST, { onExit: () => {}, onSpawnError: () => {} });
  await new Promise(setImmediate);
  isOver = true;
  return { longest, child };
}

function shown(ms) {
  return ms.toFixed(2);
}
