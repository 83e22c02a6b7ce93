import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { quantile } from '../bench/statistics.mjs';
import { outcomeOf } from './client.mjs';
import { Gateway, worker } from './gateway.mjs';
import { pick, randomFrom } from './random.mjs';
import { SORTS } from './servers/garbage-lines.mjs';
import { until, wait } from './wait.mjs';

const GARBAGE = fileURLToPath(new URL('./servers/garbage.mjs', import.meta.url));
/** The second one may say less at once, so that more of what it says is too much. */
const GARBAGE_SERVERS = { g0: {}, g1: { maxFrame: '1MiB' } };
const SOUND_CALLERS = 4;
const GARBAGE_CALLERS = 2;
const PAUSE_MS = 2;
const TIMEOUT = '1s';
const MAX_RESIDENT_MIB = 256;
const MAX_LOOP_DELAY_MS = 50;
const STRICT_FROM_LINES = 1_000_000;
const MIB = 1024 * 1024;
const LOOK_EVERY_MS = 250;
/** Without a line more, something hangs. */
const STALLED_AFTER_MS = 120_000;
const TEXTS = ['plain', 'Zürich 🦊', '\u2028"\\', 'x'.repeat(3_000)];

/** Servers that write what no server should, and a sound one beside them. */
export const garbage = {
  name: 'S-4',
  title: 'servers that write garbage, beside a sound one',
  full: { lines: 1_000_000 },
  short: { lines: 100_000 },
  run,
};

async function run({ lines, seed, folder }) {
  const random = randomFrom(seed);
  const restart = { firstDelay: '10ms', maxDelay: '20ms', stableAfter: '5ms', budget: 1000 };
  const keys = Object.keys(GARBAGE_SERVERS);
  const tallies = keys.map((key) => join(folder, `${key}.tally`));
  const goal = Math.ceil(lines / keys.length);
  const garbageServers = Object.entries(GARBAGE_SERVERS).map(([key, settings], index) => {
    const args = [GARBAGE, `seed=${seed + index}`, `tally=${tallies[index]}`, `lines=${goal}`];
    return [
      key,
      {
        command: process.execPath,
        args,
        timeout: TIMEOUT,
        maxTimeout: TIMEOUT,
        stopGrace: '100ms',
        restart,
        ...settings,
      },
    ];
  });
  const gateway = new Gateway(folder, {
    sound: worker({ args: ['name=sound'] }),
    ...Object.fromEntries(garbageServers),
  });
  await gateway.open();

  const calls = new Calls(gateway, keys, random);
  const startedAt = performance.now();
  const isRead = await gateway.whileAlive(() => allRead(tallies, lines));
  const elapsedMs = performance.now() - startedAt;
  calls.stop();
  await until(() => gateway.client.unanswered === 0, STALLED_AFTER_MS);
  const { strays, faults, unanswered, notifications, questions } = gateway.client;
  const { bugs, peakResident, loopDelayMs, loopWorkMs } = await gateway.now();
  const end = await gateway.close();

  const tally = sum(tallies);
  return {
    facts: [
      ['lines read', `${tally.read} in ${(elapsedMs / 1000).toFixed(0)} s`],
      ...SORTS.map((sort) => [`of which ${sort}`, String(tally[sort])]),
      ['processes that wrote them', String(tally.processes)],
      ['notifications and questions that reached the client', `${notifications}, ${questions}`],
      ['calls of the sound server', `${calls.sound}, p99 ${quantile(calls.durations, 0.99).toFixed(1)} ms`],
      [
        'calls of the others',
        [...calls.ends]
          .sort()
          .map(([kind, times]) => `${kind} ${times}`)
          .join(', '),
      ],
      ['event loop delay', shown(loopDelayMs)],
      ['of which the gateway was at work, all threads', shown(loopWorkMs)],
    ],
    targets: [
      { target: `${lines} lines read`, measured: String(tally.read), isMet: isRead },
      {
        target: 'no crash, no unhandled rejection',
        measured: [...bugs, `exit ${end}`].join('; '),
        isMet: bugs.length === 0 && end === 0,
      },
      {
        target: `≤ ${MAX_RESIDENT_MIB} MiB resident`,
        measured: `${(peakResident / MIB).toFixed(0)} MiB at most`,
        isMet: peakResident <= MAX_RESIDENT_MIB * MIB,
      },
      {
        target: `event loop delay p99 < ${MAX_LOOP_DELAY_MS} ms`,
        measured: `${loopDelayMs.p99.toFixed(1)} ms`,
        isMet: isLoopFree({ lines, loopDelayMs, loopWorkMs }),
      },
      {
        target: 'every call of the sound server answered by it',
        measured: [`${calls.wrong.length} were not`, ...calls.wrong].join('; '),
        isMet: calls.wrong.length === 0,
      },
      {
        target: 'every call ends, once',
        measured: `${unanswered} never, ${strays} twice`,
        isMet: unanswered + strays === 0,
      },
      {
        target: 'the client reads nothing but messages',
        measured: [`${faults.length} faults`, ...faults.slice(0, 5)].join('; '),
        isMet: faults.length === 0,
      },
    ],
  };
}

/** A loop that waited for the machine, not for the gateway, says nothing about the gateway; in a full run it counts. */
function isLoopFree({ lines, loopDelayMs, loopWorkMs }) {
  if (loopDelayMs.p99 < MAX_LOOP_DELAY_MS) return true;
  return lines < STRICT_FROM_LINES && loopWorkMs.p99 < MAX_LOOP_DELAY_MS ? undefined : false;
}

function shown({ p50, p99, max }) {
  return `p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms, longest ${max.toFixed(0)} ms`;
}

/** Resolves with whether so many lines were read before it went no further. */
async function allRead(tallies, lines) {
  let read = 0;
  let progressAt = performance.now();
  while (read < lines) {
    await wait(LOOK_EVERY_MS);
    const now = sum(tallies).read;
    if (now > read) progressAt = performance.now();
    read = now;
    if (performance.now() - progressAt > STALLED_AFTER_MS) return false;
  }
  return true;
}

/** What the servers noted. */
function sum(tallies) {
  const total = { read: 0, processes: 0, ...Object.fromEntries(SORTS.map((sort) => [sort, 0])) };
  for (const file of tallies) {
    for (const line of existsSync(file) ? readFileSync(file, 'utf8').split('\n') : []) {
      const [sort, lines] = line.split(' ');
      if (sort === 'start') total.processes += 1;
      if (lines === undefined) continue;
      total[sort] += Number(lines);
      total.read += Number(lines);
    }
  }
  return total;
}

/** Of the sound server each answer has to be right; of the others any will do, once. */
class Calls {
  sound = 0;
  durations = [];
  wrong = [];
  ends = new Map();
  #gateway;
  #random;
  #isStopped = false;

  constructor(gateway, keys, random) {
    this.#gateway = gateway;
    this.#random = random;
    for (let caller = 0; caller < SOUND_CALLERS; caller += 1) void this.#callSound();
    for (let caller = 0; caller < GARBAGE_CALLERS; caller += 1) for (const key of keys) void this.#callGarbage(key);
  }

  stop() {
    this.#isStopped = true;
  }

  async #callSound() {
    while (!this.#isStopped) {
      this.sound += 1;
      const [nonce, text] = [this.sound, pick(this.#random, TEXTS)];
      const calledAt = performance.now();
      const { kind, reason, text: answer } = outcomeOf(await this.#gateway.client.call('sound__echo', { nonce, text }));
      this.durations.push(performance.now() - calledAt);
      const isRight = kind === 'answered' && answer === `sound ${nonce}${text}`;
      if (!isRight && this.wrong.length < 10) this.wrong.push(`${kind} ${reason ?? String(answer).slice(0, 100)}`);
      await wait(this.#random() * 2 * PAUSE_MS);
    }
  }

  async #callGarbage(key) {
    while (!this.#isStopped) {
      const { result, error } = await this.#gateway.client.call(`${key}__maybe`, {});
      const failure = result?._meta?.['trunkline/failure'];
      const end = failure === undefined ? (error === undefined ? 'result' : 'error') : failure.reason;
      this.ends.set(end, (this.ends.get(end) ?? 0) + 1);
      await wait(this.#random() * 10 * PAUSE_MS);
    }
  }
}
