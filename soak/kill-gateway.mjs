// Kills the gateway with SIGKILL at a random moment, again and again, while stubborn servers are at work, and looks
// whether anything is left three seconds later. `docs/reliability.md` tells what this is for.
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const CLI = fileURLToPath(new URL('../dist/cli.js', import.meta.url));
const LAB = fileURLToPath(new URL('../test/fixtures/servers/lab.mjs', import.meta.url));
const WITHIN_MS = 3_000;
const CALLS_AT_ONCE = 8;

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '100' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    // The latest moment of the kill.
    'until-ms': { type: 'string', default: '1000' },
    // Counts the moment from the start of the gateway, so that servers are killed while they start, too.
    'from-spawn': { type: 'boolean', default: false },
  },
});
const runs = Number(values.runs);
const random = randomFrom(Number(values.seed));

/** What each server does not heed, beside a sound one. `die` makes some restart under way. */
const SERVERS = {
  sound: [],
  stubborn: ['stubborn'],
  family: ['stubborn', 'grandchild'],
  helper: ['grandchild'],
};

const from = values['from-spawn'] ? 'the spawn of the gateway' : 'the first answer';
console.log(`${runs} runs, seed ${values.seed}, killed within ${values['until-ms']} ms of ${from}`);
console.log(
  `Node ${process.version}, ${process.platform}, ${cpus()[0]?.model.trim()}, ${availableParallelism()} cores`,
);

const results = [];
for (let run = 0; run < runs; run += 1) results.push(await killOnce(random() * Number(values['until-ms'])));

const sum = (key) => results.reduce((total, result) => total + result[key], 0);
const goneAfter = results.map(({ goneAfterMs }) => goneAfterMs).toSorted((a, b) => a - b);
const failed = results.filter(({ left }) => left.length > 0);
console.log(`killed: ${runs} gateways with ${sum('processes')} processes below them, ${sum('answers')} calls answered`);
console.log(
  `everything gone after: median ${goneAfter[Math.floor(runs / 2)]} ms, longest ${goneAfter.at(-1)} ms (allowed: ${WITHIN_MS} ms)`,
);
console.log(`runs with something left: ${failed.length}`);
for (const { killedAfterMs, left } of failed) console.log(`  killed after ${killedAfterMs} ms\n${left.join('\n')}`);
process.exit(failed.length === 0 ? 0 : 1);

async function killOnce(killAfterMs) {
  const folder = mkdtempSync(join(tmpdir(), 'trunkline-soak-'));
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
  const client = callAllTheTime(gateway);
  if (!values['from-spawn']) await client.answered;
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
  process.stdout.write(left.length === 0 ? '.' : 'F');
  if (results.length === runs - 1) process.stdout.write('\n');
  return { killedAfterMs: Math.round(killAfterMs), processes, answers: client.answers(), goneAfterMs, left };
}

/** Shakes hands, and keeps several calls of all servers in flight. */
function callAllTheTime({ stdin, stdout }) {
  stdin.on('error', () => {});
  let id = 0;
  let answers = 0;
  let first = () => {};
  const answered = new Promise((resolve) => {
    first = resolve;
  });
  const send = (message) => stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  const call = () => {
    id += 1;
    const [server] = Object.keys(SERVERS).slice(id % 4);
    const name = random() < 0.002 ? 'die' : 'wait';
    send({
      id,
      method: 'tools/call',
      params: { name: `${server}__${name}`, arguments: { marker: 'x', delayMs: random() * 5 } },
    });
  };
  const clientInfo = { name: 'soak', version: '1' };
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo };
  send({ id: 'hello', method: 'initialize', params });
  let unfinished = '';
  stdout.setEncoding('utf8').on('data', (text) => {
    const lines = (unfinished + text).split('\n');
    unfinished = lines.pop();
    for (const line of lines) {
      const message = JSON.parse(line);
      if (message.id === 'hello') {
        send({ method: 'notifications/initialized' });
        for (let calls = 0; calls < CALLS_AT_ONCE; calls += 1) call();
      } else if (message.id !== undefined) {
        first();
        answers += 1;
        call();
      }
    }
  });
  return { answered, answers: () => answers };
}

/** Every process of a run that lives, the guardian included, as lines of `ps` that begin with the pid. */
function living(folder, gatewayPid) {
  const listing = execFileSync('ps', ['-A', '-ww', '-o', 'pid=,stat=,args='], { encoding: 'utf8' });
  return listing.split('\n').filter((line) => {
    const isOurs = line.includes(folder) || line.trimEnd().endsWith(`trunkline-guardian ${gatewayPid}`);
    return isOurs && !/^\s*\d+ Z/.test(line);
  });
}

function wait(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Mulberry32: numbers in [0, 1) that a seed repeats. */
function randomFrom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
