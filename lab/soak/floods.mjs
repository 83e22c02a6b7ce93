import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { median, quantile } from '../bench/statistics.mjs';
import { outcomeOf } from './client.mjs';
import { Gateway, worker } from './gateway.mjs';
import { randomFrom } from './random.mjs';
import { FLOODS } from './servers/flood-kinds.mjs';
import { wait } from './wait.mjs';

const FLOODER = fileURLToPath(new URL('./servers/flooder.mjs', import.meta.url));
const FLOODERS = [1, 5];
/** Of the calls that warm the gateway up. */
const WARM_UP_MS = 500;
/** A call without an answer for so long ends its round. */
const LOST_AFTER_MS = 20_000;
/** The times and the memory of shorter floods are those of their beginning, and are not judged. */
const JUDGED_FROM_MS = 1_500;
const AIMS = { p50: 1, p99: 25, peakMiB: 128 };
/** A time beyond the aim, but within so many times that of quiet calls, may come from the machine: it is not judged. */
const NOISE = 4;
const KIB_PER_MIB = 1024;
const MIB = 1024 * 1024;

/** Servers that write as fast as they can, and the calls of the sound one beside them. */
export const floods = {
  name: 'S-7',
  title: 'calls of a healthy server beside one and beside five that flood the gateway',
  full: { rounds: 3, windowMs: 2_000, every: 1, only: 0 },
  short: { rounds: 1, windowMs: 600, every: 11, only: 0 },
  run,
};

/** `only` is the number of one kind, from 1; `every` takes the first kind and each so many after it. */
async function run({ rounds, windowMs, every, only, seed, folder }) {
  const random = randomFrom(seed);
  const isChosen = (_, index) => (only > 0 ? index === only - 1 : index % every === 0);
  const chosen = Object.keys(FLOODS).filter(isChosen);
  const results = new Map();
  const broken = [];
  for (let round = 0; round < rounds; round += 1) {
    const order = chosen.flatMap((kind) => FLOODERS.map((flooders) => ({ kind, flooders })));
    // In any order, so that what changes in time hits all alike.
    for (const { kind, flooders } of order.toSorted(() => random() - 0.5)) {
      const name = `${kind} × ${flooders}`;
      const measured = await measureOne({ kind, flooders, windowMs, folder });
      broken.push(...measured.broken.map((what) => `${name}: ${what}`));
      if (!results.has(name)) results.set(name, { kind, flooders, rounds: [] });
      results.get(name).rounds.push(measured);
    }
  }

  const rows = chosen.flatMap((kind) => FLOODERS.map((flooders) => summary(results.get(`${kind} × ${flooders}`))));
  const quiet = rows.flatMap(({ quiets }) => quiets);
  const quietOf = (measure) => median(quiet.map((window) => window[measure]));
  return {
    facts: [
      ['kinds of floods, rounds of each', `${chosen.length}, ${rounds}`],
      ['calls while nothing flooded, and while something did', sumOfCalls(rows)],
      ['p50 while nothing flooded, ms: median of the rounds', quietOf('p50').toFixed(2)],
      ['p99 while nothing flooded, ms: median of the rounds', quietOf('p99').toFixed(2)],
    ],
    tables: [
      {
        head: [
          'Flood',
          'Flooders',
          'Calls',
          'p50 ms',
          'p99 ms',
          'At any moment',
          'Longest ms',
          'Wrong',
          'Peak MiB',
          'Messages',
          '',
        ],
        rows: rows.map((row) => cells(row, windowMs >= JUDGED_FROM_MS)),
      },
    ],
    targets: [
      ...[
        aim('p50', `p50 ≤ ${AIMS.p50} ms beside each flood`, rows, quietOf),
        aim('p99', `p99 ≤ ${AIMS.p99} ms beside each flood`, rows, quietOf),
        aim('peakMiB', `≤ ${AIMS.peakMiB} MiB resident, at most`, rows, () => 0),
      ].map((target) => (windowMs < JUDGED_FROM_MS ? { ...target, isMet: undefined } : target)),
      {
        target: 'every call of the healthy server answered by it, once',
        measured: `${sum(rows.map(({ wrong }) => wrong))} wrong`,
        isMet: rows.every(({ wrong }) => wrong === 0),
      },
      {
        target: 'no fault of the gateway, which ends as asked',
        measured: [`${broken.length} faults`, ...broken.slice(0, 5)].join('; '),
        isMet: broken.length === 0,
      },
    ],
  };
}

/** One gateway: warm-up, quiet calls, and calls from the moment at which the flood begins. */
async function measureOne({ kind, flooders, windowMs, folder }) {
  const own = mkdtempSync(join(folder, 'flood-'));
  const floodWhile = join(own, 'flood-while');
  const flooder = { command: process.execPath, args: [FLOODER, `kind=${kind}`, `flood-while=${floodWhile}`] };
  const gateway = new Gateway(own, {
    sound: worker({ args: ['name=sound'] }),
    ...Object.fromEntries(Array.from({ length: flooders }, (_, number) => [`f${number}`, flooder])),
  });
  const broken = [];
  const result = { broken, peakMiB: 0, messages: 0 };
  try {
    await gateway.whileAlive(async () => {
      await gateway.open();
      await callFor(gateway.client, WARM_UP_MS);
      result.quiet = await callFor(gateway.client, windowMs / 2);
      const before = gateway.client.notifications + gateway.client.questions;
      writeFileSync(floodWhile, '');
      result.flooded = await callFor(gateway.client, windowMs);
      result.messages = gateway.client.notifications + gateway.client.questions - before;
    });
    result.peakMiB = peakMiB(gateway.pid) ?? (await gateway.now()).peakResident / MIB;
    rmSync(floodWhile);
    broken.push(...(await gateway.now()).bugs);
  } catch (error) {
    broken.push(error.message);
  }
  const { faults, strays } = gateway.client;
  const end = await gateway.close();
  broken.push(...faults.slice(0, 3));
  if (strays > 0) broken.push(`${strays} answered twice`);
  if (end !== 0) broken.push(`exit ${end}`);
  return result;
}

/** One call at a time, each as soon as the last one is answered. */
async function callFor(client, ms) {
  const durations = [];
  let wrong = 0;
  const endsAt = performance.now() + ms;
  for (let nonce = 0; performance.now() < endsAt; nonce += 1) {
    const calledAt = performance.now();
    const answer = await Promise.race([client.call('sound__echo', { nonce }), wait(LOST_AFTER_MS)]);
    durations.push(performance.now() - calledAt);
    if (answer === undefined || outcomeOf(answer).text !== `sound ${nonce}`) wrong += 1;
    if (answer === undefined) break;
  }
  return {
    calls: durations.length,
    wrong,
    p50: quantile(durations, 0.5),
    p99: quantile(durations, 0.99),
    anyMoment: anyMoment(durations),
    longest: Math.max(...durations),
  };
}

/**
 * The p99 of calls that had begun every millisecond. While one call waits, the caller makes no others, so that a long
 * wait counts as one call among many fast ones: this counts the calls that would have waited with it.
 */
function anyMoment(durations) {
  const waits = [];
  for (const duration of durations) for (let left = duration; left > 0; left -= 1) waits.push(left);
  return quantile(waits, 0.99);
}

/** The most memory that a process ever held, where the system tells it. */
function peakMiB(pid) {
  try {
    return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / KIB_PER_MIB;
  } catch {
    return undefined;
  }
}

/** Times are the medians of the rounds; memory is the most of them. */
function summary({ kind, flooders, rounds }) {
  const flooded = rounds.map((round) => round.flooded).filter(Boolean);
  const quiets = rounds.map(({ quiet }) => quiet).filter(Boolean);
  const middle = (measure) => (flooded.length === 0 ? Number.POSITIVE_INFINITY : median(flooded.map(measure)));
  return {
    kind,
    flooders,
    quiets,
    calls: sum(flooded.map(({ calls }) => calls)),
    wrong: sum([...flooded, ...quiets].map(({ wrong }) => wrong)),
    p50: middle(({ p50 }) => p50),
    p99: middle(({ p99 }) => p99),
    longest: Math.max(...flooded.map(({ longest }) => longest)),
    anyMoment: middle((window) => window.anyMoment),
    peakMiB: Math.max(...rounds.map((round) => round.peakMiB)),
    messages: sum(rounds.map(({ messages }) => messages)),
  };
}

function cells({ kind, flooders, calls, wrong, p50, p99, anyMoment: moment, longest, peakMiB, messages }, isJudged) {
  const missed = Object.entries({ p50, p99, peakMiB }).filter(([measure, value]) => value > AIMS[measure]);
  const times = [p50, p99, moment].map((ms) => ms.toFixed(2)).concat(longest.toFixed(0));
  const isMissed = wrong > 0 || (isJudged && missed.length > 0);
  const counts = [String(wrong), peakMiB.toFixed(0), String(messages)];
  const verdict = isMissed ? '**not met**' : missed.length > 0 ? 'not judged' : 'met';
  return [kind, String(flooders), String(calls), ...times, ...counts, verdict];
}

function aim(measure, target, rows, quietOf) {
  const missed = rows.filter((row) => row[measure] > AIMS[measure]);
  const worst = rows.reduce((most, row) => (row[measure] > most[measure] ? row : most));
  const isNoise = worst[measure] <= NOISE * quietOf(measure);
  const measured = `${missed.length} of ${rows.length} miss it; worst ${worst[measure].toFixed(1)}: ${worst.kind} × ${worst.flooders}`;
  return { target, measured, isMet: missed.length === 0 ? true : isNoise ? undefined : false };
}

function sumOfCalls(rows) {
  const quiet = rows.flatMap(({ quiets }) => quiets).map(({ calls }) => calls);
  return `${sum(quiet)}, ${sum(rows.map(({ calls }) => calls))}`;
}

function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}
