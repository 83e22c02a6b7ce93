// What one way to feed a circuit breaker costs against another: opossum with a `fire` for each call, and Trunkline's
// breaker, which counts outcomes itself and creates an opossum breaker when it opens. See docs/decisions/0029-breaker-outcomes.md.
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'rolldown';
import { describeMachine } from './page.mjs';
import { spread } from './statistics.mjs';

const ROUNDS = 15;
const CALLS = 200_000;
/** Calls that are answered together, as from one chunk of a pipe. */
const IN_FLIGHT = 64;
const POLICY = { minSamples: 5, failurePercentage: 50, windowMs: 30_000, openMs: 30_000, maxOpenMs: 300_000 };
const WINDOW = { timeout: false, rollingCountTimeout: POLICY.windowMs, rollingPercentilesEnabled: false };

const TITLES = { none: 'nothing', fire: 'opossum, a `fire` for each call', own: "Trunkline's breaker" };
const SUCCEED = async () => true;

if (globalThis.gc === undefined) throw new Error('Run this with `node --expose-gc`');
const startedAt = performance.now();
const { default: Opossum } = await import('opossum');
const importMs = performance.now() - startedAt;
const folder = mkdtempSync(join(realpathSync(tmpdir()), 'trunkline-bench-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
const CircuitBreaker = await load();

const ways = { none: () => undefined, fire: fireEach(), own: countEach() };
const nanoseconds = { none: [], fire: [], own: [] };
for (let round = -2; round < ROUNDS; round += 1) {
  for (const [name, record] of Object.entries(ways)) {
    const measured = await measure(record);
    if (round >= 0) nanoseconds[name].push(measured);
  }
}

console.log(describeMachine());
console.log(
  `\n${CALLS} successes a round, ${ROUNDS} rounds, nanoseconds of processor time a call: median (smallest–largest)\n`,
);
for (const [name, values] of Object.entries(nanoseconds)) {
  const { median, min, max } = spread(values);
  console.log(`${TITLES[name]}: ${median.toFixed(1)} (${min.toFixed(1)}–${max.toFixed(1)})`);
}
console.log(`\nHeap that 1,000,000 successes within the window leave in use, in bytes a call\n`);
console.log(`${TITLES.fire}: ${(await heapPerCall(fireEach())).toFixed(2)}`);
console.log(`${TITLES.own}: ${(await heapPerCall(countEach())).toFixed(2)}`);
console.log(`\nTimers of one closed breaker that nobody calls\n`);
console.log(`opossum by default: ${timersOf(() => new Opossum(SUCCEED))}`);
console.log(`opossum with \`enableSnapshots: false\`: ${timersOf(() => newOpossum())}`);
console.log(`${TITLES.own}: ${timersOf(() => newOwn())}`);
console.log(`\nTime to load opossum: ${importMs.toFixed(1)} ms`);
process.exit();

/** Processor time, which other work on the machine disturbs least. The gateway, too, reads the clock once a chunk. */
async function measure(record) {
  const before = process.cpuUsage();
  for (let call = 0; call < CALLS; call += IN_FLIGHT) {
    const now = performance.now();
    for (let each = 0; each < IN_FLIGHT; each += 1) record(now);
    await undefined;
  }
  const { user, system } = process.cpuUsage(before);
  return ((user + system) * 1e3) / CALLS;
}

async function heapPerCall(record) {
  const calls = 1_000_000;
  globalThis.gc();
  const before = process.memoryUsage().heapUsed;
  for (let call = 0; call < calls; call += IN_FLIGHT) {
    const now = performance.now();
    for (let each = 0; each < IN_FLIGHT; each += 1) record(now);
    await new Promise((resolve) => setImmediate(resolve));
  }
  globalThis.gc();
  const after = process.memoryUsage().heapUsed;
  // Still in use, and so is all that hangs on it.
  record(performance.now());
  return (after - before) / calls;
}

function fireEach() {
  const breaker = newOpossum();
  return () => breaker.fire();
}

function countEach() {
  const breaker = newOwn();
  return (now) => breaker.succeeded(now);
}

function newOpossum() {
  return new Opossum(SUCCEED, { ...WINDOW, volumeThreshold: POLICY.minSamples, enableSnapshots: false });
}

function newOwn() {
  const clock = { now: () => performance.now(), schedule: () => () => {} };
  return new CircuitBreaker({ clock, policy: POLICY, trial: SUCCEED });
}

/** How many intervals are set, and how often each of them runs. */
function timersOf(create) {
  const { setInterval: original } = globalThis;
  const periods = [];
  globalThis.setInterval = (task, ms) => {
    periods.push(`every ${ms / 1000} s`);
    return original(task, ms);
  };
  create();
  globalThis.setInterval = original;
  return [periods.length, ...periods].join(', ');
}

async function load() {
  const input = fileURLToPath(new URL('../src/upstream/health/circuit-breaker.ts', import.meta.url));
  await build({
    input,
    platform: 'node',
    external: ['opossum'],
    resolve: { extensionAlias: { '.js': ['.ts', '.js'] } },
    output: { dir: folder, format: 'esm', entryFileNames: 'breaker.mjs' },
    logLevel: 'warn',
  });
  const loaded = await import(pathToFileURL(join(folder, 'breaker.mjs')));
  return loaded.CircuitBreaker;
}
