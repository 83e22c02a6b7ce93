import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { outcomeOf } from './client.mjs';
import { Gateway, worker } from './gateway.mjs';
import { pick, randomFrom } from './random.mjs';
import { until, wait } from './wait.mjs';

const CHILDREN = 20;
const CALLERS = 50;
const MIN_CALLS_PER_SECOND = 200;
const READY_WITHIN_MS = 60_000;
/** A call may take its whole timeout, which is longer than all that can hold it up. */
const ANSWERED_WITHIN_MS = 70_000;

/** Kills servers while they are at work for many callers, and asks each call what became of it. */
export const killChildren = {
  name: 'S-1',
  title: 'servers killed with SIGKILL while many callers call them',
  full: { kills: 1000, pauseMs: 100, workMs: 30 },
  short: { kills: 60 },
  run,
};

async function run({ kills, pauseMs, workMs, seed, folder }) {
  const random = randomFrom(seed);
  const keys = Array.from({ length: CHILDREN }, (_, index) => `s${index}`);
  const effects = new Map(keys.map((key) => [key, join(folder, `${key}.effects`)]));
  for (const file of effects.values()) writeFileSync(file, '');
  const restart = { firstDelay: '20ms', maxDelay: '100ms', budget: 1000 };
  const servers = keys.map((key) => [key, worker({ args: [`name=${key}`, `effects=${effects.get(key)}`], restart })]);
  const gateway = new Gateway(folder, Object.fromEntries(servers));
  await gateway.open();

  const calls = new Calls(gateway.client, keys, random, workMs);
  const startedAt = performance.now();
  const killed = await gateway.whileAlive(() => killAll({ gateway, keys, kills, pauseMs, random }));
  const lastKillAt = performance.now();
  const callsPerSecond = (calls.ended / (lastKillAt - startedAt)) * 1000;
  const isReady = await gateway.becomesReady(READY_WITHIN_MS);
  const readyAfterMs = Math.round(performance.now() - lastKillAt);
  calls.stop();
  await until(() => gateway.client.unanswered === 0, ANSWERED_WITHIN_MS);
  const { strays, faults } = gateway.client;
  const { bugs } = await gateway.now();
  const end = await gateway.close();

  const { kinds, reasons, crossed } = calls;
  // The servers answer as long as they live: where the gateway gave up waiting, something was lost on the way.
  const lost = gateway.client.unanswered + (reasons.get('timeout') ?? 0);
  const executed = calls.compareWith(effects);
  return {
    facts: [
      ['servers, callers', `${CHILDREN}, ${CALLERS}`],
      ['kills, and for how long', `${killed}, ${((lastKillAt - startedAt) / 1000).toFixed(0)} s`],
      ['calls made', String(calls.made)],
      ...[...kinds].sort().map(([kind, times]) => [`ended as \`${kind}\``, String(times)]),
      ['why the gateway answered', [...reasons].map(([reason, times]) => `${reason} ${times}`).join(', ') || 'never'],
      ['calls executed', String(executed.total)],
      ['all servers ready after the last kill', `${readyAfterMs} ms`],
    ],
    targets: [
      { target: `${kills} servers killed`, measured: String(killed), isMet: killed === kills },
      { target: '0 outcomes lost', measured: String(lost), isMet: lost === 0 },
      { target: '0 outcomes twice', measured: String(strays), isMet: strays === 0 },
      { target: '0 outcomes crossed', measured: String(crossed), isMet: crossed === 0 },
      { target: '0 calls executed twice or elsewhere', measured: String(executed.wrong), isMet: executed.wrong === 0 },
      {
        target: '0 calls answered and not executed, or executed and "not sent"',
        measured: String(executed.contradicted),
        isMet: executed.contradicted === 0,
      },
      {
        target: `≥ ${MIN_CALLS_PER_SECOND} calls/s`,
        measured: callsPerSecond.toFixed(0),
        isMet: callsPerSecond >= MIN_CALLS_PER_SECOND,
      },
      {
        target: `every server ready ${READY_WITHIN_MS / 1000} s after the last kill`,
        measured: isReady ? `${readyAfterMs} ms` : 'no',
        isMet: isReady,
      },
      {
        target: 'no fault of the gateway, which ends as asked',
        measured: [...faults, ...bugs, `exit ${end}`].join('; '),
        isMet: faults.length + bugs.length === 0 && end === 0,
      },
    ],
  };
}

/** As often each server, in any order; several may be away at once. Resolves with how many were killed. */
async function killAll({ gateway, keys, kills, pauseMs, random }) {
  const due = Array.from({ length: kills }, (_, index) => keys[index % keys.length]);
  const lastPids = new Map();
  let killed = 0;
  while (due.length > 0) {
    const key = pick(random, due);
    const report = await gateway.status(key);
    const isNew = report.state === 'ready' && report.pid !== lastPids.get(key);
    if (!isNew) {
      await wait(5);
      continue;
    }
    process.kill(report.pid, 'SIGKILL');
    lastPids.set(key, report.pid);
    due.splice(due.indexOf(key), 1);
    killed += 1;
    await wait(random() * 2 * pauseMs);
  }
  return killed;
}

/** Callers that each call one server after another, and know what they asked. */
class Calls {
  made = 0;
  ended = 0;
  crossed = 0;
  kinds = new Map();
  reasons = new Map();
  /** By nonces: which server it went to, and what became of it. */
  #calls = new Map();
  #isStopped = false;

  constructor(client, keys, random, workMs) {
    for (let caller = 0; caller < CALLERS; caller += 1) void this.#callOn(client, keys, random, workMs);
  }

  stop() {
    this.#isStopped = true;
  }

  /** Holds the nonces that the servers noted against what the callers were told. */
  compareWith(effects) {
    const times = new Map();
    let total = 0;
    let wrong = 0;
    for (const [key, file] of effects) {
      for (const nonce of readFileSync(file, 'utf8').split('\n').slice(0, -1)) {
        total += 1;
        times.set(nonce, (times.get(nonce) ?? 0) + 1);
        if (times.get(nonce) > 1 || this.#calls.get(nonce)?.key !== key) wrong += 1;
      }
    }
    let contradicted = 0;
    for (const [nonce, { kind }] of this.#calls) {
      if (kind === 'answered' && !times.has(nonce)) contradicted += 1;
      if (kind === 'not_sent' && times.has(nonce)) contradicted += 1;
    }
    return { total, wrong, contradicted };
  }

  async #callOn(client, keys, random, workMs) {
    while (!this.#isStopped) {
      const key = pick(random, keys);
      this.made += 1;
      const nonce = `${this.made}-${Math.floor(random() * 1e9)}`;
      const call = { key, kind: undefined };
      this.#calls.set(nonce, call);
      const outcome = outcomeOf(await client.call(`${key}__effect`, { nonce, delayMs: random() * 2 * workMs }));
      call.kind = outcome.kind;
      this.ended += 1;
      add(this.kinds, outcome.kind);
      if (outcome.reason !== undefined) add(this.reasons, outcome.reason);
      const isOwn = outcome.kind === 'answered' ? outcome.text === `${key} ${nonce}` : outcome.server === key;
      if (!isOwn) this.crossed += 1;
    }
  }
}

function add(counts, name) {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}
