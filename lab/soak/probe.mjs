// Loaded into a gateway before its own code (`node --expose-gc --import`): tells whoever started it what the process
// holds, over a channel beside stdin and stdout.
import { readdirSync } from 'node:fs';
import { createHistogram, monitorEventLoopDelay } from 'node:perf_hooks';

const DELAY_RESOLUTION_MS = 5;
const NS_PER_MS = 1e6;
const US_PER_MS = 1e3;
const KIB = 1024;

const bugs = [];
process.on('uncaughtExceptionMonitor', (error) => bugs.push(String(error?.stack ?? error)));
process.on('unhandledRejection', (reason) => bugs.push(String(reason?.stack ?? reason)));

const delay = monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS });
delay.enable();

// A machine that is busy with other things delays the loop, too: this is what the process itself has spent meanwhile.
const work = createHistogram();
let lastCpu = process.cpuUsage();
setInterval(() => {
  const { user, system } = process.cpuUsage(lastCpu);
  lastCpu = process.cpuUsage();
  work.record(Math.max(1, user + system));
}, DELAY_RESOLUTION_MS).unref();

process.on('message', async (what) => {
  if (what === 'held') {
    // Once for what is garbage, and once for what its finalizers let go.
    globalThis.gc();
    await new Promise((resolve) => setImmediate(resolve));
    globalThis.gc();
  }
  process.send({ ...held(), ...peaks(), bugs });
});
process.channel.unref();

function held() {
  const { heapUsed, external, rss } = process.memoryUsage();
  const resources = {};
  for (const kind of process.getActiveResourcesInfo()) resources[kind] = (resources[kind] ?? 0) + 1;
  return { heapUsed, external, resident: rss, descriptors: descriptors(), resources, listeners: listeners() };
}

/** Since the start. Delays are those between two looks, the time between looks included. */
function peaks() {
  const { maxRSS } = process.resourceUsage();
  return { peakResident: maxRSS * KIB, loopDelayMs: inMs(delay, NS_PER_MS), loopWorkMs: inMs(work, US_PER_MS) };
}

function inMs(histogram, unitsPerMs) {
  const [p50, p99] = [histogram.percentile(50), histogram.percentile(99)];
  return { p50: p50 / unitsPerMs, p99: p99 / unitsPerMs, max: histogram.max / unitsPerMs };
}

/** `undefined` where the system does not show them. */
function descriptors() {
  return process.platform === 'win32' ? undefined : readdirSync('/dev/fd').length;
}

/** On the process and on every pipe and child that is open. */
function listeners() {
  const emitters = new Set([process, process.stdin, process.stdout, process.stderr, ...process._getActiveHandles()]);
  let count = 0;
  for (const emitter of emitters) {
    for (const name of emitter.eventNames?.() ?? []) count += emitter.listenerCount(name);
  }
  return count;
}
