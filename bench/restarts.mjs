// How long starting a process holds the event loop, by a fork of our own and by the helper, and how much memory makes of
// that; and how much processor time a whole restart takes: `npm run bench:restarts`. A restart must not delay the calls of
// other servers.
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import './plain-node.mjs';
import { bundle } from './inside-bundle.mjs';
import { describeMachine, table } from './page.mjs';
import { costOfRestarts } from './restart-cost.mjs';
import { median, quantile } from './statistics.mjs';

const STARTS = 60;
const SIZES_MIB = [0, 150, 350];
const MIB = 1024 * 1024;
const REQUEST = { command: '/bin/true', args: [], cwd: '/', env: {} };

const folder = mkdtempSync(join(realpathSync(tmpdir()), 'trunkline-bench-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
const checkout = fileURLToPath(new URL('..', import.meta.url));
const file = await bundle(checkout, folder, fileURLToPath(new URL('restarts-program.mjs', import.meta.url)));
const { SpawnHelper, spawnChild, systemClock } = await import(pathToFileURL(file).href);

console.log(describeMachine());
console.log();
if (process.platform === 'linux') {
  const costs = await costOfRestarts(folder);
  console.log(
    table(
      ['Processor time of one restart', 'ms'],
      costs.map(([what, ms]) => [what, shown(ms)]),
    ),
  );
  console.log();
}
const kept = [];
const rows = [];
const helper = new SpawnHelper(systemClock);
for (const mib of SIZES_MIB) {
  while (kept.length < mib) kept.push(Buffer.alloc(MIB, 1));
  const held = { fork: [], helper: [] };
  const until = { fork: [], helper: [] };
  for (let start = 0; start < STARTS; start += 1) {
    for (const [way, spawn] of [
      ['fork', byFork],
      ['helper', byHelper],
    ]) {
      const begunAt = performance.now();
      const { longest, child } = await longestHold(spawn);
      held[way].push(longest);
      until[way].push(performance.now() - begunAt);
      await child.exit;
    }
  }
  const resident = Math.round(process.memoryUsage.rss() / MIB);
  for (const way of ['fork', 'helper'])
    rows.push([
      `${resident} MiB, ${way}`,
      shown(median(held[way])),
      shown(quantile(held[way], 0.99)),
      shown(median(until[way])),
    ]);
}
console.log(table(['', 'held, ms: p50', 'p99', 'runs after, ms: p50'], rows));
helper.close();

/** The longest time without a turn of the event loop while a process is started. */
async function longestHold(spawn) {
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
  const { child } = await spawn();
  await new Promise(setImmediate);
  isOver = true;
  return { longest, child };
}

async function byFork() {
  return { child: spawnChild(REQUEST, { onExit: () => {}, onSpawnError: () => {} }) };
}

async function byHelper() {
  return { child: await helper.spawn(REQUEST, () => {}) };
}

function shown(ms) {
  return ms.toFixed(2);
}
