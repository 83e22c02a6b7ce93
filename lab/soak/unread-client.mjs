import { median, quantile } from '../bench/statistics.mjs';
import { outcomeOf } from './client.mjs';
import { worker } from './gateway.mjs';
import { HubPlace } from './hub-place.mjs';
import { randomFrom } from './random.mjs';
import { until, wait } from './wait.mjs';

const CALLERS = 3;
const PAUSE_MS = 2;
const ROUND_MS = 1_000;
/** What the client that does not read asks for: after some seconds its answers fill every buffer on their way. */
const TEXT = 'unread '.repeat(1_200);
const ASK_EVERY_MS = 10;
const READ_WITHIN_MS = 30_000;
const SECOND_MS = 1_000;
/** Of each place: fewer tell nothing about 20 %. */
const JUDGED_FROM_ROUNDS = 20;
const MAX_RATIO = 1.2;

/** Two hubs with the same clients and the same calls. One client of one hub does not read its answers for a while. */
export const unreadClient = {
  name: 'S-13',
  title: 'a client that reads nothing, beside others of the same server',
  full: { seconds: 60 },
  short: { seconds: 8 },
  run,
};

async function run({ seconds, seed, folder }) {
  const random = randomFrom(seed);
  const [unread, other] = [open(folder), open(folder)];
  const left = [];
  const rounds = { unread: [], other: [] };
  let wrong = 0;
  let answers;
  try {
    for (const { clients } of [unread, other])
      await Promise.all(clients.map(({ client }) => client.initialize().then(() => client.ask('tools/list'))));
    await measure(unread, random);
    await measure(other, random);
    unread.quiet.process.stdout.pause();
    const asking = [unread, other].map(({ quiet }) => askOn(quiet.client));
    const endsAt = performance.now() + seconds * SECOND_MS;
    while (performance.now() < endsAt) {
      for (const [name, place] of [
        ['unread', unread],
        ['other', other],
      ].toSorted(() => random() - 0.5)) {
        const round = await measure(place, random);
        rounds[name].push(round);
        wrong += round.wrong;
      }
    }
    for (const each of asking) each.stop();
    unread.quiet.process.stdout.resume();
    await until(() => [unread, other].every(({ quiet }) => quiet.client.unanswered === 0), READ_WITHIN_MS);
    answers = asking.map(({ outcomes }) => outcomes);
  } finally {
    for (const { place } of [unread, other]) left.push(...(await place.end()));
  }
  const all = [unread, other].flatMap(({ clients }) => clients);
  const [ofUnread] = answers;
  const unanswered = all.reduce((sum, { client }) => sum + client.unanswered, 0);
  const strays = all.reduce((sum, { client }) => sum + client.strays, 0);
  const faults = all.flatMap(({ client }) => client.faults);
  const p99 = (name) => median(rounds[name].map((round) => round.p99));
  const ratio = p99('unread') / p99('other');
  const isJudged = rounds.unread.length >= JUDGED_FROM_ROUNDS;
  return {
    facts: [
      ['rounds of each hub, of 1 s each', String(rounds.unread.length)],
      ['calls of the client that did not read', String(ofUnread.length)],
      ['how they ended', counts(ofUnread)],
      ['p99 of the others beside it, ms: median of the rounds', p99('unread').toFixed(2)],
      ['the same where all clients read', p99('other').toFixed(2)],
    ],
    targets: [
      {
        target: `p99 beside it ≤ ${MAX_RATIO} × p99 where all clients read`,
        measured: `${ratio.toFixed(2)} ×`,
        isMet: isJudged ? ratio <= MAX_RATIO : undefined,
      },
      {
        target: 'every call answered once, those of the client that did not read as well',
        measured: `${unanswered} not, ${strays} twice, ${wrong} wrong${faults.map((fault) => `; ${fault}`).join('')}`,
        isMet: unanswered + strays + wrong + faults.length === 0,
      },
      { target: 'nothing left', measured: String(left.length), isMet: left.length === 0 },
    ],
  };
}

function open(folder) {
  const place = new HubPlace(folder, { worker: worker({ args: ['name=worker'] }) });
  const clients = Array.from({ length: CALLERS + 1 }, () => place.attach());
  const [quiet, ...callers] = clients;
  return { place, clients, quiet, callers };
}

/** Asks again and again, whether there are answers or not. */
function askOn(client) {
  const outcomes = [];
  const timer = setInterval(() => {
    client.request('tools/call', { name: 'worker__echo', arguments: { nonce: 0, text: TEXT } }, (answer) => {
      const { kind, reason } = outcomeOf(answer);
      outcomes.push(kind === 'answered' ? kind : `${kind} (${reason})`);
    });
  }, ASK_EVERY_MS);
  return { outcomes, stop: () => clearInterval(timer) };
}

/** One round of the others, each with a short pause after each answer. */
async function measure({ callers }, random) {
  const durations = [];
  let wrong = 0;
  const endsAt = performance.now() + ROUND_MS;
  const callOn = async ({ client }) => {
    while (performance.now() < endsAt) {
      const nonce = Math.floor(random() * 1e9);
      const calledAt = performance.now();
      const { text } = outcomeOf(await client.call('worker__echo', { nonce }));
      durations.push(performance.now() - calledAt);
      if (text !== `worker ${nonce}`) wrong += 1;
      await wait(random() * 2 * PAUSE_MS);
    }
  };
  await Promise.all(callers.map(callOn));
  return { p99: quantile(durations, 0.99), wrong };
}

function counts(outcomes) {
  const kinds = [...new Set(outcomes)];
  return kinds.map((kind) => `${outcomes.filter((each) => each === kind).length} ${kind}`).join(', ');
}
