import { median } from '../bench/statistics.mjs';
import { outcomeOf } from './client.mjs';
import { worker } from './gateway.mjs';
import { HubPlace } from './hub-place.mjs';
import { pick, randomFrom } from './random.mjs';
import { until, wait } from './wait.mjs';

const CLIENTS = 8;
const SERVERS = 8;
const CALLS_OF_EACH = 4;
const SERVED_WITHIN_MS = 600;
/** When clients are given up. */
const LOST_AFTER_MS = 30_000;
const GONE_WITHIN_MS = 5_000;
const ANSWERED_WITHIN_MS = 70_000;
/**
 * An attach process whose hubs die within 2 s of each other eight times in a row serves its client by itself. So each
 * fourth hub lives longer than that.
 */
const LONG_LIFE_MS = 2_500;
const LONG_LIFE_EVERY = 4;
/** Fewer kills tell nothing about times. */
const JUDGED_FROM_KILLS = 20;

/** Kills the hub with SIGKILL at a random moment, again and again, while its clients have calls in flight. */
export const killHub = {
  name: 'S-11',
  title: 'the hub killed with SIGKILL while its clients have calls in flight',
  full: { kills: 100, untilMs: 600 },
  short: { kills: 6 },
  run,
};

async function run({ kills, untilMs, seed, folder }) {
  const random = randomFrom(seed);
  const keys = Array.from({ length: SERVERS }, (_, index) => `s${index}`);
  const place = new HubPlace(folder, Object.fromEntries(keys.map((key) => [key, worker({ args: [`name=${key}`] })])));
  const clients = Array.from({ length: CLIENTS }, () => place.attach());
  const load = new Load(clients, keys, random);
  const rounds = [];
  let left;
  try {
    await Promise.all(clients.map((attached) => begin(attached)));
    load.start();
    for (let count = 1; count <= kills; count += 1) {
      // Looked up before the wait: the kill itself must meet calls in flight.
      const victim = { hubs: await place.hubs(), before: new Set((await place.shared()).map(({ pid }) => pid)) };
      await wait(count % LONG_LIFE_EVERY === 0 ? LONG_LIFE_MS : random() * untilMs);
      rounds.push(await killOnce(place, victim, clients, load));
    }
    await load.stop();
  } finally {
    left = await place.end();
  }
  const { outcomes, wrong } = load;
  const unanswered = clients.reduce((sum, { client }) => sum + client.unanswered, 0);
  const strays = clients.reduce((sum, { client }) => sum + client.strays, 0);
  const faults = clients.flatMap(({ client }) => client.faults);
  const lost = clients.filter(({ endedEarly }) => endedEarly).length;
  const alone = clients.filter(({ stderr }) => stderr.includes('does not share its servers')).length;
  const orphans = rounds.reduce((sum, { orphans: count }) => sum + count, 0);
  const listed = rounds.map(({ listedAfterMs }) => listedAfterMs);
  const called = rounds.map(({ calledAfterMs }) => calledAfterMs);
  return {
    facts: [
      ['clients, servers, calls in flight', `${CLIENTS}, ${SERVERS}, ${CLIENTS * CALLS_OF_EACH}`],
      ['hubs killed', String(kills)],
      ['calls', String([...outcomes.values()].reduce((sum, count) => sum + count, 0))],
      ...[...outcomes].map(([outcome, count]) => [`of them ${outcome}`, String(count)]),
      ['all clients listed the tools again after', shownTimes(listed)],
      ['all clients had an answer of a server again after', shownTimes(called)],
      ['everything of the dead hub gone after', shownTimes(rounds.map(({ goneAfterMs }) => goneAfterMs))],
    ],
    targets: [
      {
        target: 'each call answered once, by its server or as a failure',
        measured: `${unanswered} not, ${strays} twice, ${wrong} wrong${faults.map((fault) => `; ${fault}`).join('')}`,
        isMet: unanswered + strays + wrong + faults.length === 0,
      },
      {
        target: 'no session lost, and no client without the hub',
        measured: `${lost} lost, ${alone} alone`,
        isMet: lost + alone === 0,
      },
      {
        target: `all clients list the tools ${SERVED_WITHIN_MS} ms after a kill, in the median`,
        measured: `${median(listed).toFixed(0)} ms`,
        isMet: kills >= JUDGED_FROM_KILLS ? median(listed) <= SERVED_WITHIN_MS : undefined,
      },
      {
        target: `nothing of a dead hub ${GONE_WITHIN_MS / 1_000} s after each kill, and nothing at the end`,
        measured: `${orphans}, ${left.length}`,
        isMet: orphans + left.length === 0,
      },
    ],
  };
}

async function begin({ client }) {
  await client.initialize();
  await client.ask('tools/list');
}

async function killOnce(place, { hubs, before }, clients, load) {
  if (hubs.length !== 1) throw new Error(`${hubs.length} hubs run\n${clients[0].stderr}`);
  process.kill(hubs[0], 'SIGKILL');
  const killedAt = performance.now();
  const gone = whenGone(place, before, killedAt);
  const served = Promise.all([
    Promise.all(clients.map(({ client }) => client.ask('tools/list'))).then(() => performance.now() - killedAt),
    load.allAnswered().then(() => performance.now() - killedAt),
  ]);
  const overdue = wait(LOST_AFTER_MS).then(() => undefined);
  const times = await Promise.race([served, overdue]);
  for (const each of clients) each.endedEarly ||= each.end !== undefined;
  if (times === undefined)
    throw new Error(`Not all clients are served\n${clients.map(({ stderr }) => stderr).join('')}`);
  const [listedAfterMs, calledAfterMs] = times;
  return { listedAfterMs, calledAfterMs, ...(await gone) };
}

/** Waits until nothing runs any more that ran before. */
async function whenGone(place, before, killedAt) {
  const left = async () => (await place.shared()).filter(({ pid }) => before.has(pid));
  await until(async () => (await left()).length === 0, GONE_WITHIN_MS, 50);
  return { goneAfterMs: performance.now() - killedAt, orphans: (await left()).length };
}

/** Several calls of each client in flight, each to any server. */
class Load {
  /** How many calls ended how. */
  outcomes = new Map();
  wrong = 0;
  #clients;
  #keys;
  #random;
  #isOver = false;
  #callers = [];
  /** Called with the client when a server has answered a call of it that began after a kill. */
  #onAnswer = () => {};

  constructor(clients, keys, random) {
    this.#clients = clients;
    this.#keys = keys;
    this.#random = random;
  }

  start() {
    this.#callers = this.#clients.flatMap((attached) =>
      Array.from({ length: CALLS_OF_EACH }, () => this.#callOn(attached.client)),
    );
  }

  /** Resolves when each client has an answer of a server to a call that begins from now on. */
  allAnswered() {
    const since = performance.now();
    const missing = new Set(this.#clients.map(({ client }) => client));
    return new Promise((resolve) => {
      this.#onAnswer = (client, calledAt) => {
        if (calledAt < since) return;
        missing.delete(client);
        if (missing.size === 0) resolve();
      };
    });
  }

  async stop() {
    this.#isOver = true;
    await Promise.race([Promise.all(this.#callers), wait(ANSWERED_WITHIN_MS)]);
  }

  async #callOn(client) {
    while (!this.#isOver) {
      const key = pick(this.#random, this.#keys);
      const nonce = Math.floor(this.#random() * 1e9);
      const calledAt = performance.now();
      const { kind, reason, text } = outcomeOf(
        await client.call(`${key}__echo`, { nonce, delayMs: this.#random() * 20 }),
      );
      const outcome = kind === 'answered' ? kind : `${kind} (${reason})`;
      this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + 1);
      if (kind !== 'answered') continue;
      if (text !== `${key} ${nonce}`) this.wrong += 1;
      this.#onAnswer(client, calledAt);
    }
  }
}

function shownTimes(times) {
  return `median ${median(times).toFixed(0)} ms, longest ${Math.max(...times).toFixed(0)} ms`;
}
