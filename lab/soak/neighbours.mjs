import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { median, quantile } from '../bench/statistics.mjs';
import { Beside } from './beside.mjs';
import { outcomeOf } from './client.mjs';
import { Gateway, worker } from './gateway.mjs';
import { randomFrom } from './random.mjs';
import { wait } from './wait.mjs';

const HEALTHY = ['h0', 'h1'];
const CALLERS_OF_EACH = 2;
const PAUSE_MS = 2;
const ROUND_MS = 2_000;
/** After a change of the neighbours, so that the change itself and what it leaves are not measured. */
const SETTLE_MS = 700;
const READY_WITHIN_MS = 10_000;
const WARM_UP_ROUNDS = 1;
const RESTART_MS = 800;
/** Of rounds of each kind: fewer tell nothing about 10 %. */
const JUDGED_FROM_ROUNDS = 20;
const MAX_RATIO = 2;
const MINUTE_MS = 60_000;

/**
 * A neighbour that talks all the time and one that ends again and again: in a third of the rounds behind the gateway, in
 * a third beside it, and in a third not at all.
 */
export const neighbours = {
  name: 'S-6',
  title: 'calls of healthy servers with and without a chatty and a crashing neighbour',
  full: { minutes: 10 },
  short: { minutes: 0.1 },
  run,
};

async function run({ minutes, seed, folder }) {
  const random = randomFrom(seed);
  const crashWhile = join(folder, 'crash-while');
  // It ends about once a second for as long as it is told to, and is never given up.
  const restart = { firstDelay: `${RESTART_MS}ms`, maxDelay: `${RESTART_MS}ms`, stableAfter: '50ms', budget: 1000 };
  const servers = {
    ...Object.fromEntries(HEALTHY.map((key) => [key, worker({ args: [`name=${key}`] })])),
    chatty: worker({ args: ['name=chatty'] }),
    crashing: worker({ args: ['name=crashing', `crash-while=${crashWhile}`], restart }),
  };
  const gateway = new Gateway(folder, servers);
  await gateway.open();

  const beside = new Beside({ crashWhile: join(folder, 'crash-while-beside'), restartMs: RESTART_MS });

  const { rounds, calls, wrong } = await gateway
    .whileAlive(() => alternate({ gateway, beside, crashWhile, minutes, random }))
    .finally(() => beside.close());
  const crashing = await gateway.status('crashing');
  const { faults, strays, notifications } = gateway.client;
  const { bugs } = await gateway.now();
  const end = await gateway.close();

  const count = rounds.quiet.length;
  const isJudged = count >= JUDGED_FROM_ROUNDS;
  const p99 = (way) => median(p99s(rounds[way]));
  const [toNone, toBeside] = [p99('behind') / p99('quiet'), p99('behind') / p99('beside')];
  return {
    facts: [
      ['rounds of each kind, of 2 s each', String(count)],
      ['calls', String(calls)],
      ['ends of the crashing neighbour', String(crashing.restarts)],
      ['notifications of the chatty one at the client', String(notifications)],
      ['p50 without them, ms: median of the rounds', median(rounds.quiet.map(({ p50 }) => p50)).toFixed(2)],
      ['p50 with them behind the gateway', median(rounds.behind.map(({ p50 }) => p50)).toFixed(2)],
      ['p50 with them beside it', median(rounds.beside.map(({ p50 }) => p50)).toFixed(2)],
      ['p99 without them, ms: median of the rounds, quarter to three quarters', shown(p99s(rounds.quiet))],
      ['p99 with them behind the gateway', shown(p99s(rounds.behind))],
      ['p99 with them beside it', shown(p99s(rounds.beside))],
      ['p99 with them behind ÷ p99 without', `${toNone.toFixed(2)} ×`],
      ['the noise: without ÷ without one round before', shown(p99s(rounds.quiet).map(overLast).slice(1))],
    ],
    targets: [
      {
        target: `p99 with them behind the gateway ≤ ${MAX_RATIO} × p99 with them beside it`,
        measured: `${toBeside.toFixed(2)} ×`,
        isMet: isJudged ? toBeside <= MAX_RATIO : undefined,
      },
      {
        target: 'every call of a healthy server answered by it, once',
        measured: `${wrong} wrong, ${strays} twice`,
        isMet: wrong + strays === 0,
      },
      {
        target: 'no fault of the gateway, which ends as asked',
        measured: [...faults, ...bugs, `exit ${end}`].join('; '),
        isMet: faults.length + bugs.length === 0 && end === 0,
      },
    ],
  };
}

/** Rounds of all kinds by turns; the first ones are not counted. */
async function alternate({ gateway, beside, crashWhile, minutes, random }) {
  const silence = async () => {
    rmSync(crashWhile, { force: true });
    beside.quiet();
    await gateway.client.call('chatty__quiet', {});
    await gateway.becomesReady(READY_WITHIN_MS, ['crashing']);
  };
  const ways = {
    quiet: async () => {},
    beside: async () => beside.loud(),
    behind: async () => {
      writeFileSync(crashWhile, '');
      await gateway.client.call('chatty__loud', {});
      await gateway.client.call('crashing__die', {});
    },
  };
  const rounds = { quiet: [], beside: [], behind: [] };
  let calls = 0;
  let wrong = 0;
  const endsAt = performance.now() + minutes * MINUTE_MS;
  for (let count = -WARM_UP_ROUNDS; count < 1 || performance.now() < endsAt; count += 1) {
    // In any order, so that what changes in time hits all alike.
    for (const way of Object.keys(ways).toSorted(() => random() - 0.5)) {
      await silence();
      await ways[way]();
      await wait(SETTLE_MS);
      const round = await measure(gateway.client, random);
      calls += round.calls;
      wrong += round.wrong;
      if (count >= 0) rounds[way].push(round);
    }
  }
  await silence();
  return { rounds, calls, wrong };
}

/** One round: several callers, each with a short pause after each answer. */
async function measure(client, random) {
  const durations = [];
  let wrong = 0;
  const endsAt = performance.now() + ROUND_MS;
  const callOn = async (key) => {
    while (performance.now() < endsAt) {
      const nonce = Math.floor(random() * 1e9);
      const calledAt = performance.now();
      const { text } = outcomeOf(await client.call(`${key}__echo`, { nonce }));
      durations.push(performance.now() - calledAt);
      if (text !== `${key} ${nonce}`) wrong += 1;
      await wait(random() * 2 * PAUSE_MS);
    }
  };
  await Promise.all(HEALTHY.flatMap((key) => Array.from({ length: CALLERS_OF_EACH }, () => callOn(key))));
  return { p50: quantile(durations, 0.5), p99: quantile(durations, 0.99), calls: durations.length, wrong };
}

function p99s(rounds) {
  return rounds.map(({ p99 }) => p99);
}

function overLast(value, index, values) {
  return value / values[index - 1];
}

function shown(values) {
  if (values.length === 0) return '';
  const [low, high] = [quantile(values, 0.25), quantile(values, 0.75)];
  return `${median(values).toFixed(2)} (${low.toFixed(2)}–${high.toFixed(2)})`;
}
