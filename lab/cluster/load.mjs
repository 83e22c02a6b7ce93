// The load of a run, and the account of its calls.
import { setTimeout as sleep } from 'node:timers/promises';
import { LegacyClient, ModernClient, Tally } from './clients.mjs';
import { Place } from './place.mjs';

/** Clients with one token: with sessions, and without. */
const SMALL = { legacy: 24, modern: 12, pauseMs: 250 };
/** Users of a cluster, of whom every fifth is a machine. Those of `own` call the server that has processes for each user. */
const USERS = {
  full: { count: 1_000, own: (n) => n % 15 === 0, callsPerSecond: 400 },
  short: { count: 40, own: (n) => n % 5 < 2, callsPerSecond: 80 },
};
/** Clients that begin at the same time. */
const OPENING = 20;
const SETTLE_MS = 1_000;

/**
 * Runs `work` while clients call through the proxy of a place. Resolves with the tally, the executions, the longest time in which a
 * user had two homes and what `work` has resolved with, when all calls have ended.
 */
export async function underLoad({ isShort, ...settings }, work) {
  return await withClients(settings, isShort ? { ...SMALL, pauseMs: 2 * SMALL.pauseMs } : SMALL, work);
}

/** The same with users of a cluster, half of them without sessions. `users` is their number, if it is not the usual one. */
export async function underUsers({ isShort, users, ...settings }, work) {
  const usual = isShort ? USERS.short : USERS.full;
  const { own } = usual;
  const count = users ?? usual.count;
  const pauseMs = (2_000 * usual.count) / usual.callsPerSecond;
  const load = { legacy: count / 2, modern: count / 2, pauseMs, own };
  return { isShort, ...(await withClients({ ...settings, users: count, own }, load, work)) };
}

async function withClients(settings, { legacy, modern, pauseMs, own }, work) {
  const place = await Place.open(settings);
  const clients = [];
  const tally = new Tally();
  const join = async (Kind, name, n, options) => {
    const user = own?.(n) ? `user-${n}` : undefined;
    const client = new Kind({ url: place.url, token: place.tokenOf(n), name, tally, pauseMs, user, ...options });
    clients.push(client);
    await client.open(options);
  };
  const joinLegacy = async (name, n) => {
    const options = { streams: n % 2 === 0, listens: n % 5 < 3, subscribes: n % 5 === 0 };
    await join(LegacyClient, `${name}-${n}`, n, options);
  };
  const joinModern = async (n) => await join(ModernClient, `modern-${n}`, n, { listens: n % 5 === 0 });
  try {
    await inGroups(legacy, (n) => joinLegacy('legacy', n));
    await inGroups(modern, (n) => joinModern(legacy + n));
    // Each client has called, so that the processes of users run.
    await sleep(pauseMs + SETTLE_MS);
    const done = await work(place, { tally, joinLegacy });
    await sleep(SETTLE_MS);
    await Promise.all(clients.map((client) => client.stop()));
    return { tally, executions: place.executions(), twoHomesMs: own && place.homes.longest, done };
  } finally {
    for (const client of clients) client.abandon();
    await place.close();
  }
}

/** Acts on numbers from 0 on, some at the same time. */
export async function inGroups(count, act) {
  for (let from = 0; from < count; from += OPENING) {
    const group = Array.from({ length: Math.min(OPENING, count - from) }, (_, index) => act(from + index));
    await Promise.all(group);
  }
}

/**
 * The figures of every run under load, and the targets that hold for all. A call that failed is no fault if `isExcused` says so,
 * because the proxy alone could answer it.
 */
export function account({ tally, executions, twoHomesMs, isShort }, isExcused = () => false) {
  const { calls, faults } = tally;
  const of = (outcome) => calls.filter((call) => call.outcome === outcome);
  const [answered, unknown, unsent, ended] = ['answered', 'unknown', 'not_sent', 'failed'].map(of);
  const failed = ended.filter((call) => !isExcused(call));
  const excused = ended.length - failed.length;
  const times = ({ token }) => executions.get(token) ?? 0;
  const wrong = [
    ...answered.filter((call) => times(call) !== 1),
    ...unsent.filter((call) => times(call) !== 0),
    ...[...unknown, ...ended].filter((call) => times(call) > 1),
  ];
  const twice = [...executions.values()].filter((count) => count > 1).length;
  // Short runs are for busy machines.
  const twoHomes = isShort ? 15 : 10;
  const shown = [...failed.map(({ token, detail }) => `${token}: ${detail}`), ...faults, ...wrong];
  show(shown);
  return {
    unknown,
    unsent,
    figures: {
      'sessions, streams opened': `${tally.sessions}, ${tally.streams}`,
      'calls, executed': `${calls.length}, ${[...executions.values()].reduce((sum, count) => sum + count, 0)}`,
      'answered, unknown, not sent': `${answered.length}, ${unknown.length}, ${unsent.length}`,
      'reasons of unknown calls': countsOf(unknown.map(({ reason }) => reason)),
      'unknown calls that were executed': unknown.filter((call) => times(call) === 1).length,
      ...(excused > 0 && { 'calls that the proxy ended': excused }),
    },
    targets: [
      target('0 calls failed, of which 0 because a session was unknown', failed.length, failed.length === 0),
      target('0 streams refused', faults.length, faults.length === 0),
      target('0 calls executed twice', twice, twice === 0),
      target(
        'each call answered and executed once, not sent and not executed, or unknown',
        wrong.length,
        wrong.length === 0,
      ),
      ...(twoHomesMs === undefined
        ? []
        : [
            target(
              `no user has processes at two gateways for > ${twoHomes} s`,
              ms(twoHomesMs),
              twoHomesMs <= twoHomes * 1_000,
            ),
          ]),
    ],
  };
}

/** Prints the first of the calls or lines that should not be. */
export function show(some) {
  for (const each of some.slice(0, 10))
    process.stdout.write(`  ${typeof each === 'string' ? each : JSON.stringify(each)}\n`);
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

/** Milliseconds of a call besides the work itself. */
export function extraMs({ startedAt, endedAt, ms: worked }) {
  return endedAt - startedAt - worked;
}

/** Times are judged in the full form only, because the short one runs on machines that do other work, too. */
export function judgedIf(isJudged, targets) {
  return isJudged ? targets : targets.map((each) => ({ ...each, isMet: undefined }));
}
