// The load of a run, and the account of its calls.
import { setTimeout as sleep } from 'node:timers/promises';
import { LegacyClient, ModernClient, Tally } from './clients.mjs';
import { Place } from './place.mjs';

/** Clients with sessions; every third has a GET stream, and every other one calls on event streams. Then those without. */
const [LEGACY, MODERN] = [24, 12];

/**
 * Runs `work` while clients call through nginx. Resolves with the tally, the executions and what `work` has resolved with, when
 * all calls have ended.
 */
export async function underLoad(drain, work) {
  const place = await Place.open(drain);
  const clients = [];
  const tally = new Tally();
  const join = async (Kind, name, options = {}) => {
    const client = new Kind({ url: place.url, token: place.token, name, tally, ...options });
    await client.open(options);
    clients.push(client);
  };
  const joinLegacy = (name, n) => join(LegacyClient, `${name}-${n}`, { streams: n % 2 === 0, listens: n % 3 === 0 });
  try {
    for (let n = 0; n < LEGACY; n += 1) await joinLegacy('legacy', n);
    for (let n = 0; n < MODERN; n += 1) await join(ModernClient, `modern-${n}`);
    await sleep(1_000);
    const done = await work(place, { tally, joinLegacy });
    await sleep(1_000);
    await Promise.all(clients.map((client) => client.stop()));
    return { tally, executions: place.executions(), done };
  } finally {
    await place.close();
  }
}

/** The figures of every run under load, and the targets that hold for all. */
export function account({ tally, executions }) {
  const { calls, faults } = tally;
  const of = (outcome) => calls.filter((call) => call.outcome === outcome);
  const [answered, unknown, unsent, failed] = ['answered', 'unknown', 'not_sent', 'failed'].map(of);
  const times = ({ token }) => executions.get(token) ?? 0;
  const wrong = [
    ...answered.filter((call) => times(call) !== 1),
    ...unsent.filter((call) => times(call) !== 0),
    ...unknown.filter((call) => times(call) > 1),
  ];
  const twice = [...executions.values()].filter((count) => count > 1).length;
  const shown = [
    ...failed.map(({ token, detail }) => `${token}: ${detail}`),
    ...faults,
    ...wrong.map((call) => JSON.stringify(call)),
  ];
  for (const line of shown.slice(0, 10)) process.stdout.write(`  ${line}\n`);
  return {
    unknown,
    figures: {
      'sessions, GET streams opened': `${tally.sessions}, ${tally.streams}`,
      'calls, executed': `${calls.length}, ${[...executions.values()].reduce((sum, count) => sum + count, 0)}`,
      'answered, unknown, not sent': `${answered.length}, ${unknown.length}, ${unsent.length}`,
      'reasons of unknown calls': countsOf(unknown.map(({ reason }) => reason)),
      'unknown calls that were executed': unknown.filter((call) => times(call) === 1).length,
    },
    targets: [
      target('0 calls failed, of which 0 because a session was unknown', failed.length, failed.length === 0),
      target('0 GET streams refused', faults.length, faults.length === 0),
      target('0 calls executed twice', twice, twice === 0),
      target(
        'each call answered and executed once, not sent and not executed, or unknown',
        wrong.length,
        wrong.length === 0,
      ),
    ],
  };
}

/** Such as `3 stopped, 1 timeout`. */
function countsOf(words) {
  const counts = new Map();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  return [...counts].map(([word, count]) => `${count} ${word}`).join(', ') || 'none';
}

export function target(text, measured, isMet) {
  return { target: text, measured, isMet };
}

/** The value below which this share of the values is. */
export function percentile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

export function ms(value) {
  return `${Math.round(value)} ms`;
}
