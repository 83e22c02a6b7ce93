// Do real clients connect through Trunkline when thirty real servers are behind it, two of them broken? Each client runs
// ten times as its users run it, with default settings; the first time nothing is cached.
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs, promisify } from 'node:util';
import { CLIENTS, prepareClient } from './client-programs.mjs';
import { describeLog } from './gateway-log.mjs';
import { prepareServers } from './real-servers.mjs';
import { CLI } from './targets.mjs';

const NAME = 'trunkline';
const RUN_TIMEOUT_MS = 120_000;
/** From the end of a client to that of all that it started. */
const END_WITHIN_MS = 10_000;
const POLL_MS = 50;
/** What of our environment the clients see: settings of the person who runs this would change what they do. */
const PASSED_ON = ['PATH', 'LANG', 'TERM', 'TMPDIR', 'USER', 'NODE_EXTRA_CA_CERTS'];

const { values } = parseArgs({
  options: {
    client: { type: 'string', multiple: true },
    direct: { type: 'boolean', default: false },
    mode: { type: 'string' },
    runs: { type: 'string' },
    short: { type: 'boolean', default: false },
  },
});
const runCount = Number(values.runs ?? (values.short ? 2 : 10));
const wanted = values.client ?? Object.keys(CLIENTS).filter((key) => CLIENTS[key].isShort || !values.short);
const unknown = wanted.find((key) => !Object.hasOwn(CLIENTS, key));
if (unknown !== undefined) throw new Error(`There is no client ${unknown}: ${Object.keys(CLIENTS).join(', ')}`);
if (!(runCount >= 1)) throw new Error(`--runs ${values.runs} is not a number of runs`);

const gateway = values.mode === undefined ? {} : { mode: values.mode };

const execute = promisify(execFile);
const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => stop.abort(new Error(signal)));

const servers = await prepareServers({ isShort: values.short });
const count = Object.keys(servers.entries).length;
say(
  `Real clients, ${count} real servers of which ${count - servers.goodKeys.length} are broken, Node ${process.version}`,
);
for (const key of wanted) {
  const client = { ...CLIENTS[key], key, program: await prepareClient(CLIENTS[key]) };
  await trySeries(client, 'Trunkline');
  if (values.direct) await trySeries(client, 'direct');
}

/** Runs one client several times in a home folder of its own. Prints every run and the sum. */
async function trySeries(client, way) {
  const place = openPlace(client);
  try {
    say(`\n${client.package} ${client.version}, ${way}: ${client.tests}`);
    client.prepare?.(place);
    for (const server of way === 'direct' ? servers.commands : [registeredTrunkline(place)]) {
      await client.register(place, server);
    }
    const runs = [];
    for (let number = 1; number <= runCount; number += 1) runs.push(await tryOnce(client, place, { way, number }));
    const passed = runs.filter(({ isGood }) => isGood).length;
    const [first, ...later] = runs.map(({ seconds }) => seconds);
    const times = [`first ${first.toFixed(1)} s`, ...(later.length === 0 ? [] : [`later ${range(later)} s`])];
    say(`  ${passed} of ${runCount} runs passed; ${times.join(', ')}`);
    // How the client fares without Trunkline is no fault of Trunkline's.
    if (way === 'Trunkline' && passed < runCount) process.exitCode = 1;
  } finally {
    await untilEnded(place.folder);
    rmSync(place.folder, { recursive: true, force: true });
  }
}

/** A folder that is home, working folder and place of the configuration, as the client sees it. */
function openPlace(client) {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'trunkline-clients-')));
  symlinkSync(join(servers.folder, 'node_modules'), join(folder, 'node_modules'));
  writeFileSync(join(folder, 'trunkline.yaml'), JSON.stringify({ gateway, servers: servers.entries }));
  mkdirSync(join(folder, '.claude'));
  const passedOn = PASSED_ON.filter((name) => process.env[name] !== undefined);
  const inherited = Object.fromEntries(passedOn.map((name) => [name, process.env[name]]));
  const env = { ...inherited, HOME: folder, CLAUDE_CONFIG_DIR: join(folder, '.claude'), ...client.env };
  const { program } = client;
  const run = async (args) => {
    const options = { cwd: folder, env, timeout: RUN_TIMEOUT_MS, killSignal: 'SIGKILL', signal: stop.signal };
    const [command, ...first] = program;
    const { stdout, stderr } = await execute(command, [...first, ...args], options).catch((error) => error);
    stop.signal.throwIfAborted();
    return stdout.trim() === '' ? stderr : stdout;
  };
  return { folder, env, program, run, log: join(folder, 'trunkline.log') };
}

/** The hub of the run is apart from the hubs of the person who runs this. */
function hubsOf(folder) {
  return { TRUNKLINE_HUB_DIR: join(folder, 'hubs') };
}

/** Ends the hub, so that the next run starts one, and all processes are gone. */
async function endHub({ folder, env }) {
  const args = [CLI, 'stop', '--config', join(folder, 'trunkline.yaml')];
  await execute(process.execPath, args, { cwd: folder, env: { ...env, ...hubsOf(folder) } }).catch((error) => {
    say(`    trunkline stop: ${error.message}`);
  });
}

function registeredTrunkline({ folder, log }) {
  const args = [CLI, '--config', join(folder, 'trunkline.yaml'), '-v', '--log-file', log];
  return { name: NAME, command: process.execPath, args, env: hubsOf(folder) };
}

function range(numbers) {
  return `${Math.min(...numbers).toFixed(1)} to ${Math.max(...numbers).toFixed(1)}`;
}

/** Prints how one run went. Returns whether the client got what it wanted, and how long it took. */
async function tryOnce(client, place, { way, number }) {
  const startedAt = Date.now();
  const before = performance.now();
  const signal = AbortSignal.any([stop.signal, AbortSignal.timeout(RUN_TIMEOUT_MS)]);
  const found = await client.look({ ...place, signal }).catch((error) => [{ name: NAME, said: error.message }]);
  const seconds = (performance.now() - before) / 1000;
  stop.signal.throwIfAborted();
  if (way === 'Trunkline') await endHub(place);
  const left = await untilEnded(place.folder);

  const outcome = way === 'direct' ? judgeAll(found) : judgeTrunkline(found);
  const isGood = outcome.isGood && left.length === 0;
  const cache = number === 1 ? ', nothing cached' : '';
  say(`  run ${number}${cache}: ${isGood ? 'passed' : 'FAILED'} in ${seconds.toFixed(1)} s: ${outcome.said}`);
  if (way === 'Trunkline') say(`    log: ${readLog(place.log, startedAt)}`);
  for (const line of left) say(`    still runs: ${line}`);
  return { isGood, seconds };
}

function judgeTrunkline(found) {
  const own = found.find(({ name }) => name === NAME);
  if (own === undefined) return { isGood: false, said: 'the client does not mention the server' };
  return { isGood: own.isGood === true, said: own.tools === undefined ? own.said : `${own.said}, ${own.tools} tools` };
}

function judgeAll(found) {
  const good = found.filter(({ name, isGood }) => isGood && servers.goodKeys.includes(name));
  const tools = good.reduce((sum, one) => sum + (one.tools ?? 0), 0);
  const missing = servers.goodKeys.filter((key) => !good.some(({ name }) => name === key));
  const said = `${good.length} of ${servers.goodKeys.length} good servers${tools > 0 ? `, ${tools} tools` : ''}`;
  return { isGood: missing.length === 0, said: missing.length === 0 ? said : `${said}, not ${missing.join(', ')}` };
}

/** The log of the run that just ended. The next run begins another one. */
function readLog(file, startedAt) {
  try {
    return describeLog(readFileSync(file, 'utf8'), { startedAt, expected: servers.goodKeys });
  } catch (error) {
    return `unreadable: ${error.message}`;
  } finally {
    rmSync(file, { force: true });
  }
}

/** Waits for the end of all that a client started. Returns what still runs after the time allowed, and ends it. */
async function untilEnded(folder) {
  for (const deadline = performance.now() + END_WITHIN_MS; ; await sleep(POLL_MS)) {
    const { stdout } = await execute('ps', ['-A', '-ww', '-o', 'stat=,pid=,args=']);
    const lines = stdout.split('\n').map((line) => line.trim());
    const left = lines.filter(
      (line) => !line.startsWith('Z') && [folder, servers.folder].some((at) => line.includes(at)),
    );
    if (left.length === 0) return [];
    if (performance.now() < deadline) continue;
    for (const line of left) endProcess(Number(line.split(/\s+/)[1]));
    return left;
  }
}

function endProcess(pid) {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}

function say(text) {
  process.stdout.write(`${text}\n`);
}
