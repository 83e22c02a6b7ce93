import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from './client.mjs';
import { CLI } from './gateway.mjs';
import { LAB, living } from './kill-gateway.mjs';
import { pick, randomFrom } from './random.mjs';
import { until, wait } from './wait.mjs';

/** Both start two processes that ignore SIGTERM, in sessions of their own. The second one ignores the end of stdin as well. */
const SERVERS = { sound: ['daemons'], stubborn: ['stubborn', 'daemons'] };
const KINDS = ['server', 'gateway', 'gateway and guardian', 'orderly end'];
/** Longer than SIGTERM and SIGKILL take, for the groups first and then for what has left them. */
const WITHIN_MS = 10_000;

/** Kills servers, gateways and guardians, and looks for processes that had sessions of their own. */
export const killDaemons = {
  name: 'S-8',
  title: 'kills of servers whose processes have sessions of their own',
  // `untilMs` is the latest moment of the kill after the first list: some daemons are still being started.
  full: { kills: 100, untilMs: 300 },
  short: { kills: 8 },
  run,
};

async function run({ kills, untilMs, seed, folder }) {
  const random = randomFrom(seed);
  const results = [];
  // One kill of each kind at once, because all wait most of the time.
  for (let count = 0; count < kills; count += KINDS.length) {
    const round = KINDS.slice(0, kills - count).map(async (kind) => {
      const killAfterMs = random() * untilMs;
      const server = pick(random, Object.keys(SERVERS));
      return { kind, ...(await killOnce({ kind, killAfterMs, server, folder })) };
    });
    results.push(...(await Promise.all(round)));
  }
  const leftovers = results.flatMap(({ left }) => left);
  for (const line of leftovers) console.log(`left: ${line}`);
  const facts = KINDS.map((kind) => {
    const times = results.filter((result) => result.kind === kind).map(({ goneAfterMs }) => goneAfterMs);
    const sorted = times.toSorted((a, b) => a - b);
    return [
      `${kind}: kills, everything gone after`,
      `${sorted.length}, ${sorted[sorted.length >> 1]} to ${sorted.at(-1)} ms`,
    ];
  });
  const found = results.reduce((sum, { daemons }) => sum + daemons, 0);
  return {
    facts: [['processes with sessions of their own at the kill', String(found)], ...facts],
    targets: [
      {
        target: `0 processes left ${WITHIN_MS / 1000} s after ${kills} kills`,
        measured: String(leftovers.length),
        isMet: leftovers.length === 0,
      },
    ],
  };
}

async function killOnce({ kind, killAfterMs, server, folder: parent }) {
  const folder = mkdtempSync(join(parent, 'daemons-'));
  const gateway = start(folder, SERVERS, join(folder, 'data'));
  await gateway.client.initialize();
  await gateway.client.ask('tools/list');
  await wait(killAfterMs);
  const processes = () => living(folder, gateway.pid);
  const before = processes();
  const daemons = before.filter((line) => line.endsWith(' daemon') && !line.includes('setsid')).length;
  const victim = kind === 'server' ? await gateway.status(server) : undefined;

  const killedAt = performance.now();
  let next;
  let isGone = () => processes().length === 0;
  if (kind === 'server') {
    const own = new Set(before.filter((line) => line.includes(`/${server} `)).map((line) => Number.parseInt(line, 10)));
    process.kill(victim.pid, 'SIGKILL');
    isGone = () => !processes().some((line) => own.has(Number.parseInt(line, 10)));
  } else if (kind === 'orderly end') {
    gateway.process.stdin.end();
  } else {
    if (kind === 'gateway and guardian') {
      for (const line of before)
        if (line.includes('trunkline-guardian')) process.kill(Number.parseInt(line, 10), 'SIGKILL');
    }
    gateway.process.kill('SIGKILL');
    await gateway.exited;
    // The run file knows a server after some milliseconds; the next start ends what it knows.
    if (kind === 'gateway and guardian') next = start(mkdtempSync(join(parent, 'next-')), {}, join(folder, 'data'));
  }
  await until(isGone, WITHIN_MS);
  const goneAfterMs = Math.round(performance.now() - killedAt);
  const left = isGone() ? [] : processes();

  gateway.process.stdin.end();
  next?.process.stdin.end();
  await Promise.all([gateway.exited, next?.exited]);
  await until(() => processes().length === 0, WITHIN_MS);
  for (const line of processes()) {
    left.push(line);
    process.kill(Number.parseInt(line, 10), 'SIGKILL');
  }
  rmSync(folder, { recursive: true });
  return { daemons, goneAfterMs, left };
}

/** A gateway whose servers have their names in their command lines. */
function start(folder, servers, data) {
  const file = join(folder, 'trunkline.yaml');
  const entries = Object.entries(servers).map(([key, options]) => {
    const restart = { firstDelay: '10ms', maxDelay: '50ms', budget: 1000 };
    return [key, { command: 'node', args: [LAB, ...options, `run=${folder}/${key}`], restart, stopGrace: '100ms' }];
  });
  writeFileSync(file, JSON.stringify({ servers: Object.fromEntries(entries) }));
  const gateway = spawn(process.execPath, [CLI, '--config', file], {
    env: { ...process.env, XDG_DATA_HOME: data },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  gateway.stdin.on('error', () => {});
  const client = new Client(gateway);
  const status = async (server) => {
    const { result } = await client.call('trunkline__status', { server });
    return result.structuredContent.servers[0];
  };
  return {
    process: gateway,
    pid: gateway.pid,
    client,
    status,
    exited: new Promise((resolve) => gateway.once('exit', resolve)),
  };
}
