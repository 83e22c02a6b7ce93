// What many clients over HTTP cost: time of a call and calls a second with 10 sessions and with many, next to stdio and
// to a bare HTTP server, and the memory of a session. `docs/performance.md` tells how it is measured.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { HttpServerProcess } from './http-gateway.mjs';
import { HttpLoad } from './http-load.mjs';
import { BARE, FEW, FEW_SESSIONS, MANY, STDIO, toHttpReport } from './http-report.mjs';
import { inRounds } from './measure.mjs';
import './plain-node.mjs';
import { describeMachine, writeSection } from './page.mjs';
import { quantile } from './statistics.mjs';
import { IN_FLIGHT, OpenWay, tinyServer, trunkline } from './ways.mjs';

const PAGE = fileURLToPath(new URL('../../docs/performance.md', import.meta.url));
const WARM_UP_ROUNDS = 2;
const WARM_UP_CALLS = 2_000;
/** Calls in flight together take a fraction of the time each, so there can be more of them. */
const IN_FLIGHT_FACTOR = 8;

const { values } = parseArgs({
  options: {
    sessions: { type: 'string' },
    rounds: { type: 'string' },
    calls: { type: 'string' },
    streams: { type: 'boolean', default: true },
    short: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
  },
  allowNegative: true,
});
const sessions = count('sessions', values.short ? 100 : 1000);
const rounds = count('rounds', values.short ? 3 : 20);
const calls = count('calls', values.short ? 300 : 1000);
if (values.write && values.short) throw new Error('--write is for full runs: leave out --short');

const folder = mkdtempSync(join(tmpdir(), 'trunkline-bench-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1));

const machine = describeMachine();
const { callResults, memory } = await measure();
const inFlightCalls = calls * IN_FLIGHT_FACTOR;
const report = toHttpReport({ machine, sessions, rounds, calls, inFlightCalls, callResults, memory });
console.log(report);
if (values.write) writeSection(PAGE, 'bench-http', report);

async function measure() {
  // With the same limit as over HTTP.
  const stdio = await OpenWay.open({ ...trunkline, limits: { concurrency: IN_FLIGHT } }, folder, {
    tiny: tinyServer(),
  });
  const { client, tool } = stdio.to('tiny', 'echo');
  const bare = await HttpServerProcess.bare();
  const ofFew = await HttpServerProcess.trunkline(folder, { sessions: FEW_SESSIONS });
  const ofMany = await HttpServerProcess.trunkline(folder, { sessions });
  try {
    const few = new HttpLoad(ofFew, { sessions: FEW_SESSIONS, tool });
    await few.open(IN_FLIGHT);
    const atBare = new HttpLoad(bare, { sessions, tool });
    await atBare.open(IN_FLIGHT);
    const memory = [];
    const many = await openMany(ofMany, tool, memory);

    const peak = { resident: 0 };
    const ways = [
      { name: STDIO, call: (options) => client.echo(tool, options) },
      { name: BARE, call: (options) => atBare.call(options) },
      { name: FEW, call: (options) => few.call(options) },
      { name: MANY, call: (options) => many.call(options), after: () => notePeak(ofMany, peak) },
    ];
    const callResults = await inRounds(ways, rounds, WARM_UP_ROUNDS, measureRound);
    memory.push({ stage: 'under load, at most', ...peak });
    memory.push({ stage: 'after the load', ...(await ofMany.memory()) });
    await many.end();
    memory.push({ stage: 'all sessions ended', ...(await ofMany.memory()) });
    for (const load of [few, atBare]) load.close();
    return { callResults, memory };
  } finally {
    await Promise.all([stdio, bare, ofFew, ofMany].map((started) => started.close()));
  }
}

/** Opens the sessions, and notes the gateway's memory on the way; before that, code that is loaded late is loaded. */
async function openMany(server, tool, memory) {
  const first = new HttpLoad(server, { sessions: FEW_SESSIONS, tool });
  await first.open(IN_FLIGHT);
  await first.listen();
  await first.call({ count: WARM_UP_CALLS, inFlight: IN_FLIGHT });
  await first.end();
  memory.push({ stage: 'no session', ...(await server.memory()) });
  const many = new HttpLoad(server, { sessions, tool });
  await many.open(Math.max(sessions, IN_FLIGHT));
  memory.push({ stage: `${sessions} sessions, idle, a connection each`, ...(await server.memory()) });
  if (values.streams) {
    await many.listen();
    memory.push({ stage: 'and each with a GET stream', ...(await server.memory()) });
  }
  return many;
}

async function measureRound({ call, after }) {
  const alone = await call({ count: calls, inFlight: 1 });
  const many = calls * IN_FLIGHT_FACTOR;
  const together = await call({ count: many, inFlight: IN_FLIGHT });
  await after?.();
  return {
    p50: quantile(alone.durations, 0.5) * 1000,
    p99: quantile(alone.durations, 0.99) * 1000,
    p50Together: quantile(together.durations, 0.5),
    p99Together: quantile(together.durations, 0.99),
    callsPerSecond: (many / together.elapsed) * 1000,
  };
}

async function notePeak(server, peak) {
  peak.resident = Math.max(peak.resident, await server.residentBytes());
}

function count(option, byDefault) {
  const value = Number(values[option] ?? byDefault);
  if (!Number.isInteger(value) || value < 1) throw new Error(`--${option} takes a whole number above 0`);
  return value;
}
