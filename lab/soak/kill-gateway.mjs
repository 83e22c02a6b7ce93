import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from './client.mjs';
import { CLI } from './gateway.mjs';
import { randomFrom } from './random.mjs';
import { wait } from './wait.mjs';

export const LAB = fileURLToPath(new URL('../../test/fixtures/servers/lab.mjs', import.meta.url));
const WITHIN_MS = 3_000;
const CALLS_AT_ONCE = 8;

/** What each server does not heed, beside a sound one. `die` makes some restart under way. */
const SERVERS = {
  sound: [],
  stubborn: ['stubborn'],
  family: ['stubborn', 'grandchild'],
  helper: ['grandchild'],
};

/**
 * Kills the gateway with SIGKILL at a random moment, again and again, while stubborn servers are at work, and looks
 * whether anything is left three seconds later.
 */
export const killGateway = {
  name: 'S-2',
  title: 'the gateway killed with SIGKILL while it is at work',
  // `untilMs` is the latest moment of the kill; `fromSpawn` counts it from the start of the gateway, so that servers
  // are killed while they start, too.
  full: { runs: 100, untilMs: 1000, fromSpawn: false },
  short: { runs: 4 },
  run,
};

async function run({ runs, untilMs, fromSpawn, seed, folder }) {
  const random = randomFrom(seed);
  const results = [];
  for (let count = 0; count < runs; count += 1) {
    results.push(await killOnce({ killAfterMs: random() * untilMs, fromSpawn, random, folder }));
  }
  const sum = (key) => results.reduce((total, result) => total + result[key], 0);
  const goneAfter = results.map(({ goneAfterMs }) => goneAfterMs).toSorted((a, b) => a - b);
  const failed = results.filter(({ left }) => left.length > 0);
  for (const { killedAfterMs, left } of failed)
    console.log(`left, killed after ${killedAfterMs} ms:\n${left.join('\n')}`);
  return {
    facts: [
      ['gateways killed', String(runs)],
      ['when', `within ${untilMs} ms of ${fromSpawn ? 'the spawn of the gateway' : 'the first answer'}`],
      ['processes below them at that moment', String(sum('processes'))],
      ['calls answered until then', String(sum('answers'))],
      ['everything gone after', `median ${goneAfter[Math.floor(runs / 2)]} ms, longest ${goneAfter.at(-1)} ms`],
    ],
    targets: [
      {
        target: `nothing left ${WITHIN_MS} ms after the kill, each time`,
        measured: `${failed.length} runs with something left`,
        isMet: failed.length === 0,
      },
    ],
  };
}

async function killOnce({ killAfterMs, fromSpawn, random, folder: parent }) {
  const folder = mkdtempSync(join(parent, 'kill-'));
  const file = join(folder, 'trunkline.yaml');
  const servers = Object.entries(SERVERS).map(([key, options]) => {
    const restart = { firstDelay: '10ms', maxDelay: '50ms', budget: 1000 };
    return [key, { command: 'node', args: [LAB, ...options, `run=${folder}`], restart, stopGrace: '100ms' }];
  });
  writeFileSync(file, JSON.stringify({ servers: Object.fromEntries(servers) }));
  const gateway = spawn(process.execPath, [CLI, '--config', file], {
    env: { ...process.env, XDG_DATA_HOME: join(folder, 'data') },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const exited = new Promise((resolve) => gateway.once('exit', resolve));
  const calls = callAllTheTime(new Client(gateway), random);
  if (!fromSpawn) await calls.answered;
  await wait(killAfterMs);
  // The gateway itself is one of them, by the name of its configuration.
  const processes = living(folder, gateway.pid).length - 1;
  gateway.kill('SIGKILL');
  await exited;
  const killedAt = performance.now();
  let left = living(folder, gateway.pid);
  while (left.length > 0 && performance.now() - killedAt < WITHIN_MS) {
    await wait(20);
    left = living(folder, gateway.pid);
  }
  const goneAfterMs = Math.round(performance.now() - killedAt);
  for (const line of left) process.kill(Number.parseInt(line, 10), 'SIGKILL');
  rmSync(folder, { recursive: true });
  return { killedAfterMs: Math.round(killAfterMs), processes, answers: calls.answers(), goneAfterMs, left };
}

/** Shakes hands, and keeps several calls of all servers in flight. */
function callAllTheTime(client, random) {
  let made = 0;
  let answers = 0;
  let first = () => {};
  const answered = new Promise((resolve) => {
    first = resolve;
  });
  const callOn = async () => {
    for (;;) {
      made += 1;
      const [server] = Object.keys(SERVERS).slice(made % 4);
      const tool = random() < 0.002 ? 'die' : 'wait';
      await client.call(`${server}__${tool}`, { marker: 'x', delayMs: random() * 5 });
      answers += 1;
      first();
    }
  };
  void client.initialize().then(() => {
    for (let caller = 0; caller < CALLS_AT_ONCE; caller += 1) void callOn();
  });
  return { answered, answers: () => answers };
}

/** Every process of a run that lives, the guardian included, as lines of `ps` that begin with the pid. */
export function living(folder, gatewayPid) {
  const listing = execFileSync('ps', ['-A', '-ww', '-o', 'pid=,stat=,args='], { encoding: 'utf8' });
  return listing.split('\n').filter((line) => {
    const isOurs = line.includes(folder) || line.includes(`trunkline-guardian ${gatewayPid} `);
    return isOurs && !/^\s*\d+ Z/.test(line);
  });
}
