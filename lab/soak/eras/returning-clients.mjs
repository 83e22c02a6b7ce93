import { writeFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { until } from '../wait.mjs';
import { buildFor, comingBack, ModernGateway, tokenOf } from './modern-gateway.mjs';

const ASKS = fileURLToPath(new URL('../servers/asks-first.mjs', import.meta.url));
const KEEPS = fileURLToPath(new URL('../servers/keeps-state.mjs', import.meta.url));
const EXPIRES_MS = 20_000;
const GONE_WITHIN_MS = EXPIRES_MS + 30_000;
/** As many as one user may have suspended, less some for other cases. */
const AT_ONCE = 50;
const INVALID = -32602;

/** What a client gets that comes back in a way of its own, and what the server learns of it. */
const CASES = [
  {
    name: 'never: its connection closes between the rounds',
    promise: 'after its time, the question and the call are canceled at the server',
    together: async (world, count) => {
      const before = await world.report();
      for (let at = 0; at < count; at += 1) {
        const agent = new Agent({ keepAlive: true });
        await world.suspended('asks__ask', { agent });
        agent.destroy();
      }
      if (!(await world.untilNothingIsOpen())) return 0;
      const { told, canceled } = await world.report();
      return Math.min((told.cancel ?? 0) - (before.told.cancel ?? 0), canceled - before.canceled);
    },
  },
  {
    name: 'after its time',
    promise: `${INVALID}; the server learns of nothing more`,
    together: async (world, count) => {
      const calls = [];
      for (let at = 0; at < count; at += 1) calls.push(await world.suspended());
      if (!(await world.untilNothingIsOpen())) return 0;
      const answers = await Promise.all(calls.map((back) => world.comesBack(back)));
      const { told } = await world.report();
      return told.accept === undefined ? answers.filter(isInvalid).length : 0;
    },
  },
  {
    name: 'twice at once',
    promise: 'the same answer twice; the server is told once',
    once: async (world) => {
      const back = await world.suspended();
      const answers = await Promise.all([world.comesBack(back), world.comesBack(back)]);
      return isSame(answers) && (await world.isToldMore(1));
    },
  },
  {
    name: 'again after the answer',
    promise: 'the same answer; the server is told once',
    once: async (world) => {
      const back = await world.suspended();
      const answers = [await world.comesBack(back), await world.comesBack(back)];
      return isSame(answers) && (await world.isToldMore(1));
    },
  },
  {
    name: 'with another state',
    promise: `${INVALID}; the server learns of nothing`,
    once: (world) => world.isRefused((back) => world.comesBack({ ...back, requestState: altered(back.requestState) })),
  },
  {
    name: 'with other arguments',
    promise: `${INVALID}; the server learns of nothing`,
    once: (world) => world.isRefused((back) => world.comesBack({ ...back, arguments: { other: true } })),
  },
  {
    name: 'with the token of another user',
    promise: `${INVALID}; the server learns of nothing`,
    once: (world) => world.isRefused((back) => world.comesBack(back, { token: world.stranger })),
  },
  {
    name: 'to another instance with the same key',
    promise: `${INVALID}, and that another process keeps the call`,
    once: (world) => world.isRefused((back) => world.comesBack(back, { gateway: world.second }), /Another process/),
  },
  {
    name: 'with the state of a modern server, to another instance with the same key',
    promise: 'the answer; the server gets its state byte for byte',
    once: async (world) => {
      const back = await world.suspended('keeps__ask');
      const { result } = await world.comesBack(back, { gateway: world.second, name: 'keeps__ask' });
      return result?.content?.[0]?.text === 'as it was';
    },
  },
  {
    name: 'the same, to an instance with another key',
    promise: INVALID,
    once: (world) => world.isKeptState({ gateway: world.third }),
  },
  {
    name: 'the same, changed',
    promise: INVALID,
    once: (world) => world.isKeptState({}, altered),
  },
  {
    name: 'the same, with the token of another user',
    promise: INVALID,
    once: (world) => world.isKeptState({ gateway: world.second, token: world.stranger }),
  },
];

/** Clients come back late, twice, changed, as somebody else and elsewhere; each gets what `docs/eras.md` promises. */
export async function returnClients({ folder, times }) {
  const tokens = CASES.flatMap((_, index) => [tokenOf(2 * index), tokenOf(2 * index + 1)]);
  const program = buildFor(folder, EXPIRES_MS);
  const servers = {
    // A process for each user, since nothing else tells which of several users a question is for.
    asks: { command: process.execPath, args: [ASKS], sharing: 'isolated', concurrency: 2 * AT_ONCE },
    keeps: { command: process.execPath, args: [KEEPS] },
  };
  const gateways = ['one', 'one', 'two'].map((key) => {
    const sealKeyFile = join(folder, key);
    writeFileSync(sealKeyFile, key.repeat(20), { mode: 0o600 });
    return new ModernGateway({ folder, program, servers, tokens, gateway: { sealKeyFile } });
  });
  await Promise.all(gateways.map((gateway) => gateway.open()));
  const rows = await Promise.all(
    CASES.map(async ({ name, promise, once, together }, index) => {
      const world = new World(gateways, tokens.slice(2 * index, 2 * index + 2));
      await world.warmUp();
      let kept = 0;
      if (together !== undefined) {
        for (let left = times; left > 0; left -= AT_ONCE) kept += await together(world, Math.min(left, AT_ONCE));
      } else {
        for (let at = 0; at < times; at += 1) if (await once(world)) kept += 1;
      }
      return { name, promise: String(promise), kept };
    }),
  );
  const bugs = (await Promise.all(gateways.map((gateway) => gateway.held()))).flatMap(({ bugs }) => bugs);
  const ends = await Promise.all(gateways.map((gateway) => gateway.close()));
  return {
    facts: [],
    tables: [
      {
        head: ['The client comes back', 'What is promised', `Kept, of ${times}`],
        rows: rows.map(({ name, promise, kept }) => [name, promise, String(kept)]),
      },
    ],
    targets: [
      {
        target: `${rows.length} promises are kept, each of them ${times} times`,
        measured: rows.map(({ kept }) => kept).join(', '),
        isMet: rows.every(({ kept }) => kept === times),
      },
      {
        target: 'no fault of the gateways',
        measured: [...bugs, `exit ${ends.join(', ')}`].join('; '),
        isMet: bugs.length === 0 && ends.every((end) => end === 0),
      },
    ],
  };
}

/** One user, another one, and three gateways, of which the first two have one key. */
class World {
  #told = 0;
  #count = 0;
  #arguments;

  constructor([first, second, third], [token, stranger]) {
    Object.assign(this, { first, second, third, token, stranger });
  }

  /** Nobody waits for a process of the servers from now on. */
  async warmUp() {
    for (const gateway of [this.first, this.second, this.third])
      for (const name of ['asks__report', 'keeps__report']) await gateway.call(this.token, name);
  }

  /** Calls, and returns what comes back with the answers. */
  async suspended(name = 'asks__ask', options = {}) {
    this.#count += 1;
    this.#arguments = { count: this.#count };
    const answer = await this.first.call(this.token, name, { arguments: this.#arguments }, options);
    if (answer.result?.resultType !== 'input_required') throw new Error(`Not suspended: ${JSON.stringify(answer)}`);
    return comingBack(answer, this.#arguments);
  }

  comesBack(back, { gateway = this.first, token = this.token, name = 'asks__ask' } = {}) {
    return gateway.call(token, name, back);
  }

  async report() {
    return JSON.parse(await this.first.text(this.token, 'asks__report'));
  }

  async isToldMore(count) {
    const { told } = await this.report();
    const before = this.#told;
    this.#told = told.accept ?? 0;
    return this.#told === before + count;
  }

  async untilNothingIsOpen() {
    return await until(async () => (await this.report()).open === 0, GONE_WITHIN_MS, 500);
  }

  /** Whether that is refused, after which the right client is answered all the same. */
  async isRefused(tryIt, message = /./) {
    const back = await this.suspended();
    const answer = await tryIt(back);
    const isUntold = await this.isToldMore(0);
    const { result } = await this.comesBack(back);
    const isAnswered = /^accept/.test(result?.content?.[0]?.text ?? '') && (await this.isToldMore(1));
    return isInvalid(answer) && message.test(answer.error.message) && isUntold && isAnswered;
  }

  /** Whether the state of a modern server is refused. */
  async isKeptState(where, change = (state) => state) {
    const back = await this.suspended('keeps__ask');
    const requestState = change(back.requestState);
    return isInvalid(await this.comesBack({ ...back, requestState }, { ...where, name: 'keeps__ask' }));
  }
}

function isInvalid({ error }) {
  return error?.code === INVALID;
}

function isSame([one, other]) {
  const text = one.result?.content?.[0]?.text ?? '';
  return /^accept/.test(text) && JSON.stringify(one.result) === JSON.stringify(other.result);
}

/** The same with another last character. */
function altered(state) {
  return `${state.slice(0, -1)}${state.endsWith('a') ? 'b' : 'a'}`;
}
