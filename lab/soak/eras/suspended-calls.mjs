import { fileURLToPath } from 'node:url';
import { until } from '../wait.mjs';
import { buildFor, comingBack, ModernGateway, tokenOf } from './modern-gateway.mjs';

const ASKS = fileURLToPath(new URL('../servers/asks-first.mjs', import.meta.url));
const PER_USER = 64;
const MAX_CALLS = 1_024;
const USERS = MAX_CALLS / PER_USER;
const MIB = 1024 * 1024;
/** Longer than it takes to suspend all calls on a busy machine. */
const EXPIRES_MS = 30_000;
const GONE_WITHIN_MS = EXPIRES_MS + 30_000;
const MAX_GROWTH_MIB = 1;
/** What watches the configuration may open after the first look. */
const WATCH = 1;
/** A result of the gateway's own. */
const REFUSED = /error -32603/;

/** As many calls as the gateway lets wait for their clients, again and again; nothing may stay of them. */
export async function suspendCalls({ folder, repetitions }) {
  const tokens = Array.from({ length: USERS + 1 }, (_, index) => tokenOf(index));
  const users = tokens.slice(0, USERS);
  // A process for each user, since nothing else tells which of several users a question is for.
  const settings = { sharing: 'isolated', concurrency: 2 * PER_USER, timeout: '10m', maxTimeout: '20m' };
  const servers = { asks: { command: process.execPath, args: [ASKS], ...settings } };
  const gateway = new ModernGateway({ folder, program: buildFor(folder, EXPIRES_MS), servers, tokens });
  await gateway.open();
  // Everybody's process is there, and what is loaded for the first suspended call is loaded.
  await Promise.all(tokens.map((token) => answerOnce(gateway, token)));
  const rows = [];
  const refusals = [];
  const faults = [];
  rows.push(await look('before', gateway, tokens));
  for (let repetition = 1; repetition <= repetitions; repetition += 1) {
    const calls = (await Promise.all(users.map((token) => suspend(gateway, token)))).flat();
    rows.push(await look(`with ${calls.length}, ${repetition}.`, gateway, tokens));
    // One more of a user who has all that one may have, and one of another user.
    for (const token of [users[0], tokens[USERS]]) refusals.push(await gateway.call(token, 'asks__ask'));
    // One half comes back and leaves then; the other never comes back.
    await Promise.all(calls.filter((_, index) => index % 2 === 0).map((call) => comeBackAndLeave(gateway, call)));
    gateway.dropConnections();
    const isGone = await until(async () => (await openCalls(gateway, tokens)) === 0, GONE_WITHIN_MS, 500);
    if (!isGone) faults.push(`calls are open after repetition ${repetition}`);
    gateway.dropConnections();
    rows.push(await look(`after them, ${repetition}.`, gateway, tokens));
  }
  const reports = await reportsOf(gateway, tokens);
  const { bugs } = await gateway.held();
  const end = await gateway.close();

  const afters = rows.filter(({ when }) => when.startsWith('after'));
  const [before] = rows;
  const [first, last] = [afters[0], afters.at(-1)];
  const growth = (last.heapUsed - first.heapUsed) / MIB;
  const withAll = rows.filter(({ when }) => when.startsWith('with'));
  const canceled = reports.reduce((sum, report) => sum + report.canceled, 0);
  const refused = refusals.filter((answer) => REFUSED.test(answer.result?.content?.[0]?.text ?? '')).length;
  const perCall = (withAll.at(-1).heapUsed - last.heapUsed) / MAX_CALLS / 1024;
  return {
    facts: [['memory of one suspended call', `${perCall.toFixed(1)} KiB`]],
    tables: [
      {
        head: ['Suspended calls', 'Heap, MiB', 'Resident, MiB', 'Timers', 'Descriptors', 'Calls open at the servers'],
        rows: rows.map(({ when, heapUsed, resident, timers, descriptors, open }) => [
          when,
          (heapUsed / MIB).toFixed(2),
          (resident / MIB).toFixed(1),
          ...[timers, descriptors, open].map(String),
        ]),
      },
    ],
    targets: [
      {
        target: `${MAX_CALLS} calls suspended at once, ${repetitions} times`,
        measured: withAll.map(({ open }) => open).join(', '),
        isMet: withAll.every(({ open }) => open === MAX_CALLS),
      },
      {
        target: `${refusals.length} questions beyond that fail`,
        measured: String(refused),
        isMet: refused === refusals.length,
      },
      {
        target: `${repetitions * MAX_CALLS} calls canceled at the servers, half of them as their time is over`,
        measured: [String(canceled), ...faults].join('; '),
        isMet: canceled === repetitions * MAX_CALLS && faults.length === 0,
      },
      {
        target: `timers, descriptors as before: ${before.timers}, ${before.descriptors}, or one to watch the configuration`,
        measured: afters.map(({ timers, descriptors }) => `${timers}, ${descriptors}`).join('; '),
        isMet:
          afters.every(({ timers }) => timers <= before.timers) &&
          afters.every(({ descriptors }) => descriptors === first.descriptors) &&
          first.descriptors <= before.descriptors + WATCH,
      },
      {
        target: `heap after the last ≤ ${MAX_GROWTH_MIB} MiB over that after the first`,
        measured: `${growth.toFixed(2)} MiB`,
        isMet: growth <= MAX_GROWTH_MIB,
      },
      {
        target: 'no fault of the gateway',
        measured: [...bugs, `exit ${end}`].join('; '),
        isMet: bugs.length + end === 0,
      },
    ],
  };
}

/** One after the other: of calls that are under way together, nobody can tell which one a question is for. */
async function suspend(gateway, token) {
  const calls = [];
  for (let count = 0; count < PER_USER; count += 1) {
    const args = { hold: true, count };
    const answer = await gateway.call(token, 'asks__ask', { arguments: args });
    if (answer.result?.resultType !== 'input_required') throw new Error(`Not suspended: ${JSON.stringify(answer)}`);
    calls.push({ token, back: comingBack(answer, args) });
  }
  return calls;
}

/** The server gets the answer, and the client closes the connection before the call has its own. */
async function comeBackAndLeave(gateway, { token, back }) {
  const leaving = new AbortController();
  const left = gateway.call(token, 'asks__ask', back, { signal: leaving.signal }).then(
    (answer) => Promise.reject(new Error(`Answered: ${JSON.stringify(answer)}`)),
    () => {},
  );
  // Another request of the same user comes after it, and is answered.
  await gateway.call(token, 'asks__report');
  leaving.abort();
  await left;
}

async function answerOnce(gateway, token) {
  const args = {};
  const answer = await gateway.call(token, 'asks__ask', { arguments: args });
  await gateway.call(token, 'asks__ask', comingBack(answer, args));
}

async function reportsOf(gateway, tokens) {
  const texts = await Promise.all(tokens.map((token) => gateway.text(token, 'asks__report')));
  return texts.map((text) => JSON.parse(text));
}

async function openCalls(gateway, tokens) {
  return (await reportsOf(gateway, tokens)).reduce((sum, { open }) => sum + open, 0);
}

async function look(when, gateway, tokens) {
  const open = await openCalls(gateway, tokens);
  gateway.dropConnections();
  let held = await gateway.held();
  // The sockets that were dropped close in a moment.
  await until(
    async () => {
      const { descriptors } = held;
      held = await gateway.held();
      return held.descriptors === descriptors;
    },
    EXPIRES_MS,
    200,
  );
  return { when, open, timers: held.resources.Timeout ?? 0, ...held };
}
