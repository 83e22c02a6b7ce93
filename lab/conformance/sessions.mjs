// Do the sessions of one client share their servers? Claude Code lists its servers in three sessions at once, and then in
// three sessions in turn, with eight real servers behind Trunkline and default settings. One hub and one process of each
// server that keeps nothing must do for all of them.
import { execFile } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { CLIENTS, prepareClient } from './client-programs.mjs';
import { prepareServers } from './real-servers.mjs';
import { CLI } from './targets.mjs';

const SESSIONS = 3;
/** Servers that keep state. Each session has its own process of them, which ends with the session. */
const OF_SESSIONS = ['thinking', 'everything', 'firefox'];
const NAME = 'trunkline';
const RUN_TIMEOUT_MS = 120_000;
const END_WITHIN_MS = 10_000;
const POLL_MS = 50;
const PASSED_ON = ['PATH', 'LANG', 'TERM', 'TMPDIR', 'USER'];

const execute = promisify(execFile);
const servers = await prepareServers({ isShort: true });
const entries = Object.fromEntries(servers.goodKeys.map((key) => [key, servers.entries[key]]));
const client = CLIENTS.claude;
const program = await prepareClient(client);
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'trunkline-sessions-')));
const inherited = Object.fromEntries(
  PASSED_ON.flatMap((name) => (name in process.env ? [[name, process.env[name]]] : [])),
);
const env = { ...inherited, ...client.env, HOME: folder, CLAUDE_CONFIG_DIR: join(folder, '.claude') };
const place = { folder, env, run };
let failures = 0;

try {
  symlinkSync(join(servers.folder, 'node_modules'), join(folder, 'node_modules'));
  const config = join(folder, 'trunkline.yaml');
  writeFileSync(config, JSON.stringify({ servers: entries }));
  mkdirSync(join(folder, '.claude'));
  const hubs = { TRUNKLINE_HUB_DIR: join(folder, 'hubs') };
  await client.register(place, { name: NAME, command: process.execPath, args: [CLI, '--config', config], env: hubs });
  say(
    `${client.package} ${client.version}, ${SESSIONS} sessions, ${servers.goodKeys.length} real servers, Node ${process.version}`,
  );

  const atOnce = await Promise.all(Array.from({ length: SESSIONS }, () => look()));
  await judge('at once, with nothing cached and no hub', atOnce);
  const inTurn = [];
  for (let session = 0; session < SESSIONS; session += 1) inTurn.push(await look());
  await judge('in turn', inTurn);
} finally {
  for (const { pid } of processes().filter(({ command }) => command.includes('hub serve')))
    process.kill(pid, 'SIGTERM');
  const giveUpAt = performance.now() + END_WITHIN_MS;
  while (processes().length > 0 && performance.now() < giveUpAt) await sleep(POLL_MS);
  for (const { pid, command } of processes()) {
    fail(`still runs: ${pid} ${command}`);
    process.kill(pid, 'SIGKILL');
  }
  rmSync(folder, { recursive: true, force: true });
}
process.exitCode = failures === 0 ? 0 : 1;

async function run(args) {
  const [command, ...first] = program;
  const options = { cwd: folder, env, timeout: RUN_TIMEOUT_MS, killSignal: 'SIGKILL' };
  const { stdout, stderr } = await execute(command, [...first, ...args], options).catch((error) => error);
  return stdout?.trim() ? stdout : stderr;
}

async function look() {
  const before = performance.now();
  const found = await client.look(place);
  return { own: found.find(({ name }) => name === NAME), seconds: (performance.now() - before) / 1000 };
}

async function judge(how, sessions) {
  for (const { own, seconds } of sessions) {
    const said = own === undefined ? 'the client does not mention the server' : own.said;
    say(`  ${how}: ${said} in ${seconds.toFixed(1)} s`);
    if (own?.isGood !== true) fail('a session is not connected');
  }
  const hubs = processes().filter(({ command }) => command.includes('hub serve')).length;
  const atEnd = serverCount();
  // A session with roots has processes of its own of the servers that ask for roots, which end with the session.
  const shared = servers.goodKeys.length - OF_SESSIONS.length;
  const giveUpAt = performance.now() + END_WITHIN_MS;
  while (serverCount() > shared && performance.now() < giveUpAt) await sleep(POLL_MS);
  const running = serverCount();
  say(`  ${how}: ${hubs} hub, ${running} processes of servers, ${atEnd} at the end of the last session`);
  if (hubs !== 1) fail(`${hubs} hubs run`);
  if (running !== shared) fail(`${running} processes of servers run, not ${shared}`);
}

function serverCount() {
  return processes().filter(({ isServer }) => isServer).length;
}

/** All processes of this run. The first process of a server leads a group, and its environment has a mark of Trunkline's. */
function processes() {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const command = readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ');
      const environment = readFileSync(`/proc/${name}/environ`, 'utf8');
      if (!environment.includes(`HOME=${folder}`)) return [];
      const [, group] = /\) \S+ \d+ (\d+)/.exec(readFileSync(`/proc/${name}/stat`, 'utf8')) ?? [];
      return [{ pid: Number(name), command, isServer: group === name && environment.includes('TRUNKLINE_FAMILY_') }];
    } catch {
      // It has ended meanwhile, or is a thread of the kernel.
      return [];
    }
  });
}

function say(text) {
  process.stdout.write(`${text}\n`);
}

function fail(text) {
  failures += 1;
  say(`  FAILED: ${text}`);
}
