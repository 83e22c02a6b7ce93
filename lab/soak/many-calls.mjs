import { Gateway, worker } from './gateway.mjs';
import { MixedCalls } from './mixed-calls.mjs';
import { randomFrom } from './random.mjs';
import { until } from './wait.mjs';

const SERVERS = ['w0', 'w1', 'w2', 'w3'];
const IN_FLIGHT = 64;
const TIMEOUT = '500ms';
const SETTLED_WITHIN_MS = 30_000;
const MAX_HEAP_MIB_PER_MILLION = 1;
const MAX_RESIDENT_GROWTH = 0.05;
const MIB = 1024 * 1024;
const MILLION = 1e6;

/** As many calls as a busy day has, at full speed, with all that goes wrong now and then; nothing may pile up. */
export const manyCalls = {
  name: 'S-3',
  title: 'many calls at full speed, with timeouts, cancellations and restarts among them',
  // What is held is looked at so often; the first look is the end of the warm-up.
  full: { calls: 5_000_000, looks: 10 },
  short: { calls: 100_000, looks: 2 },
  run,
};

async function run({ calls, looks: lookCount, seed, folder }) {
  const random = randomFrom(seed);
  const settings = {
    concurrency: IN_FLIGHT,
    timeout: TIMEOUT,
    listTimeout: '2s',
    restart: { firstDelay: '20ms', maxDelay: '50ms', stableAfter: '500ms', budget: 1000 },
  };
  const servers = SERVERS.map((key) => [key, worker({ args: [`name=${key}`], ...settings })]);
  const gateway = new Gateway(folder, Object.fromEntries(servers));
  await gateway.open();
  const load = new MixedCalls({ client: gateway.client, random, keys: SERVERS, inFlight: IN_FLIGHT });
  const looks = [];
  // From its second launch on, a server is started by a helper, which holds pipes of its own.
  for (const { pid } of await gateway.statusOfAll()) process.kill(pid, 'SIGKILL');
  await until(async () => (await gateway.statusOfAll()).every(({ restarts }) => restarts > 0), SETTLED_WITHIN_MS, 500);
  const start = await settled(gateway);
  const startedAt = performance.now();
  for (let look = 1; look <= lookCount; look += 1) {
    await gateway.whileAlive(() => load.callUntil(Math.round((calls * look) / lookCount)));
    looks.push({ calls: load.made, ...(await settled(gateway, start)) });
  }
  const elapsedMs = performance.now() - startedAt;
  const reports = await gateway.statusOfAll();
  const { strays, faults, unanswered, answersAfterCancel } = gateway.client;
  const { bugs } = await gateway.now();
  const end = await gateway.close();

  const [first] = looks;
  const last = looks.at(-1);
  const heapSlope = slopeOf(looks.map((look) => [look.calls / MILLION, look.heapUsed / MIB]));
  const growth = last.resident / first.resident - 1;
  const restarts = reports.reduce((sum, report) => sum + report.restarts, 0);
  const isJudged = calls >= MILLION;
  return {
    facts: [
      ['calls', `${load.made} in ${(elapsedMs / 1000).toFixed(0)} s`],
      ['calls/s', ((load.made / load.busyMs) * 1000).toFixed(0)],
      ...[...load.ends].sort().map(([kind, times]) => [kind, String(times)]),
      ['answers that crossed a cancellation', String(answersAfterCancel)],
      ['restarts', String(restarts)],
      ['held before the first call', describe(start)],
      ...looks.map((look) => [`held after ${look.calls} calls`, describe(look)]),
    ],
    targets: [
      {
        target: 'every call ends as it has to, once',
        measured: ends(load, strays, unanswered),
        isMet: load.wrong.length + strays + unanswered === 0,
      },
      {
        target: `heap ≤ ${MAX_HEAP_MIB_PER_MILLION} MiB more per million calls`,
        measured: `${heapSlope.toFixed(2)} MiB`,
        isMet: isJudged ? heapSlope <= MAX_HEAP_MIB_PER_MILLION : undefined,
      },
      {
        target: `resident ≤ ${MAX_RESIDENT_GROWTH * 100} % more`,
        measured: `${(growth * 100).toFixed(1)} %`,
        isMet: isJudged ? growth <= MAX_RESIDENT_GROWTH : undefined,
      },
      same('descriptors', start.descriptors, last.descriptors),
      same('timers', timersOf(start), timersOf(last)),
      same('other resources', others(start), others(last)),
      same('listeners', start.listeners, last.listeners),
      same('calls pending', start.pending, last.pending),
      {
        target: 'no fault of the gateway, which ends as asked',
        measured: [...faults, ...bugs, `exit ${end}`].join('; '),
        isMet: faults.length + bugs.length === 0 && end === 0,
      },
    ],
  };
}

/** What is held once nothing is under way, and as little as at the start is still to come. */
async function settled(gateway, start) {
  let held;
  await until(
    async () => {
      const reports = await gateway.statusOfAll();
      const pending = reports.reduce((sum, { inFlight, queued }) => sum + inFlight + queued, 0);
      const isQuiet = pending === 0 && reports.every(({ state }) => state === 'ready');
      held = { ...(await gateway.held()), pending };
      return isQuiet && timersOf(held) <= (start === undefined ? 0 : timersOf(start));
    },
    SETTLED_WITHIN_MS,
    500,
  );
  return held;
}

function timersOf({ resources }) {
  return resources.Timeout ?? 0;
}

function ends({ wrong }, strays, unanswered) {
  return [`${wrong.length} wrong, ${strays} twice, ${unanswered} never`, ...wrong].join('; ');
}

function same(what, before, after) {
  return { target: `${what} as at the start: ${before}`, measured: String(after), isMet: before === after };
}

function others({ resources }) {
  const names = Object.keys(resources).filter((name) => name !== 'Timeout');
  return names
    .sort()
    .map((name) => `${resources[name]} ${name}`)
    .join(', ');
}

function describe(held) {
  const { heapUsed, resident, descriptors, listeners, pending } = held;
  const memory = `heap ${(heapUsed / MIB).toFixed(2)} MiB, resident ${(resident / MIB).toFixed(1)} MiB`;
  return `${memory}, ${descriptors} descriptors, ${timersOf(held)} timers, ${listeners} listeners, ${pending} pending`;
}

/** Of the straight line that fits best: how much y grows with x. */
function slopeOf(points) {
  const mean = (index) => points.reduce((sum, point) => sum + point[index], 0) / points.length;
  const [x, y] = [mean(0), mean(1)];
  const rise = points.reduce((sum, point) => sum + (point[0] - x) * (point[1] - y), 0);
  return rise / points.reduce((sum, point) => sum + (point[0] - x) ** 2, 0);
}
