import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from './client.mjs';
import { DelegatedGroup } from './delegated.mjs';
import { CLI } from './gateway.mjs';
import { until } from './wait.mjs';

const HIDER = fileURLToPath(new URL('servers/hider.mjs', import.meta.url));
/** What the server may use, and the controllers that can enforce it. */
const LIMITS = { memory: '1GiB', processes: 200 };
const CONTROLLERS = { memory: 'memory', pids: 'processes' };
const KINDS = ['server', 'gateway', 'gateway and guardian', 'orderly end'];
/** Longer than SIGTERM and SIGKILL take. */
const WITHIN_MS = 10_000;
/** Chains have many short gaps, so one look is not enough. */
const LOOKS = 5;

/**
 * Kills servers, gateways and guardians in a control group of their own, and looks for processes that hide: they have lost
 * the environment, the session and the group of their server.
 */
export const controlGroups = {
  name: 'S-14',
  title: 'kills of servers whose processes hide, in a control group',
  full: { kills: 40 },
  short: { kills: 4 },
  run,
};

async function run({ kills, folder }) {
  const results = [];
  for (let count = 0; count < kills; count += 1) {
    results.push(await killOnce(KINDS[count % KINDS.length], mkdtempSync(join(folder, 'hider-'))));
  }
  const sum = (key) => results.reduce((total, result) => total + result[key], 0);
  const facts = KINDS.map((kind) => {
    const times = results.filter((result) => result.kind === kind).map(({ goneAfterMs }) => goneAfterMs);
    return [`${kind}: kills, everything gone after`, `${times.length}, at most ${Math.max(...times)} ms`];
  });
  return {
    facts: [
      ['limits that the system can enforce here', results[0]?.wanted.join(', ') || 'none'],
      ['hidden processes at the kill that ignore SIGTERM', String(sum('hidden'))],
      ...facts,
    ],
    targets: [
      target('servers that start in a group of their own', kills, kills - sum('outside')),
      target('servers that start again in a group of their own', Math.ceil(kills / KINDS.length), sum('inAgain')),
      target('servers whose limits the system enforces, as far as it can', kills, sum('isWalled')),
      target(`processes left ${WITHIN_MS / 1000} s after ${kills} kills`, 0, sum('left')),
      target('control groups left at the end', 0, sum('groupsLeft')),
    ],
  };
}

function target(text, wanted, measured) {
  return { target: `${wanted} ${text}`, measured: String(measured), isMet: measured === wanted };
}

async function killOnce(kind, folder) {
  const group = new DelegatedGroup(folder);
  // The chains end when this is gone, whatever becomes of them.
  const mark = join(folder, 'mark');
  mkdirSync(mark);
  try {
    const gateway = start(group, folder, { hider: { command: 'node', args: [HIDER, mark], limits: LIMITS } });
    await gateway.client.initialize();
    await gateway.client.ask('tools/list');
    const wanted = group.controllers().flatMap((name) => CONTROLLERS[name] ?? []);
    const server = await gateway.ready(1, wanted.length);
    const walls = server.controlGroup?.enforces ?? [];
    const processes = () => list(mark);
    await until(() => processes().some((line) => line.endsWith(' hidden')), WITHIN_MS);
    const outside = group.pathOf(server.pid)?.startsWith('trunkline-servers-') && server.controlGroup !== null ? 0 : 1;
    const before = processes();
    const killedAt = performance.now();
    let inAgain = 0;
    let next;
    if (kind === 'server') {
      const born = new Set(before.filter((line) => !line.includes('chain.sh')).map(pidOf));
      process.kill(server.pid, 'SIGKILL');
      await until(() => !processes().some((line) => born.has(pidOf(line))), WITHIN_MS);
      const again = await gateway.ready(2, wanted.length);
      inAgain = group.pathOf(again.pid)?.startsWith('trunkline-servers-') && again.controlGroup !== null ? 1 : 0;
    } else if (kind !== 'orderly end') {
      if (kind === 'gateway and guardian') process.kill(guardianOf(gateway.process.pid), 'SIGKILL');
      gateway.process.kill('SIGKILL');
      if (kind === 'gateway and guardian') next = start(group, folder, {});
    }
    if (kind === 'server' || kind === 'orderly end') gateway.process.stdin.end();
    let looks = 0;
    await until(() => {
      looks = processes().length === 0 ? looks + 1 : 0;
      return looks >= LOOKS;
    }, WITHIN_MS);
    const goneAfterMs = Math.round(performance.now() - killedAt);
    const left = processes();
    for (const line of left) console.log(`left: ${line}`);
    next?.process.stdin.end();
    await Promise.all([gateway.exited, next?.exited]);
    // The guardian removes the last folder when it ends.
    const isEmpty = () => group.groups().length === 0;
    await until(isEmpty, WITHIN_MS);
    const hidden = before.filter((line) => line.endsWith(' hidden')).length;
    const isWalled = walls.join() === wanted.join();
    return {
      kind,
      isWalled,
      wanted,
      hidden,
      outside,
      inAgain,
      left: left.length,
      groupsLeft: group.groups().length,
      goneAfterMs,
    };
  } finally {
    rmSync(mark, { recursive: true });
    group.remove();
  }
}

/** A gateway in the control group. */
function start(group, folder, servers) {
  const own = mkdtempSync(join(folder, 'gateway-'));
  const file = join(own, 'trunkline.json');
  const restart = { firstDelay: '10ms', maxDelay: '50ms', budget: 1000 };
  const entries = Object.entries(servers).map(([key, server]) => [key, { ...server, restart, stopGrace: '100ms' }]);
  writeFileSync(file, JSON.stringify({ servers: Object.fromEntries(entries) }));
  const { command, args } = group.command(process.execPath, CLI, '--config', file);
  const gateway = spawn(command, args, {
    env: { ...process.env, XDG_DATA_HOME: join(folder, 'data') },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  gateway.stdin.on('error', () => {});
  const client = new Client(gateway);
  const ready = async (generation, walls) => {
    let server;
    await until(async () => {
      const { result } = await client.call('trunkline__status', { server: 'hider' });
      server = result.structuredContent.servers[0];
      return (
        server.state === 'ready' && server.generation >= generation && server.controlGroup?.enforces.length === walls
      );
    }, WITHIN_MS);
    return server;
  };
  return { process: gateway, client, ready, exited: new Promise((resolve) => gateway.once('exit', resolve)) };
}

function pidOf(line) {
  return Number.parseInt(line, 10);
}

function guardianOf(pid) {
  return pidOf(list(`trunkline-guardian ${pid} `)[0]);
}

/** The processes whose command lines contain the text, as lines of `ps` that begin with the pid. */
function list(text) {
  const listing = execFileSync('ps', ['-A', '-ww', '-o', 'pid=,stat=,args='], { encoding: 'utf8' });
  return listing.split('\n').filter((line) => line.includes(text) && !/^\s*\d+ Z/.test(line));
}
