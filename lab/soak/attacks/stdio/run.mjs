import { mkdirSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { outcomeOf } from '../../client.mjs';
import { Gateway, worker } from '../../gateway.mjs';
import { until, wait } from '../../wait.mjs';
import { KINDS, MARK } from './kinds.mjs';

const ATTACKER = fileURLToPath(new URL('../../servers/attacker.mjs', import.meta.url));
const TIMEOUT_MS = 2_000;
/** For the handshake of the attacker, the calls of it, and the damage that it does. */
const ATTACK_MS = 1_500;
/** Of a call of the attacker: its timeout, a wait for its start, and twice the time that a busy machine may take. */
const ENDS_WITHIN_MS = 15_000;
/** Of one call of the sound server. */
const SOUND_WITHIN_MS = 5_000;
const GONE_WITHIN_MS = 4_000;
const MAX_RESIDENT_MIB = 256;
/** Where unfinished lines fill `maxPartial`, which is 256 MiB. */
const HOARDED_MIB = 384;
const PAUSE_MS = 2;
const CALLERS = 3;
/** Of the failures of one attack. */
const SHOWN = 3;
const KIB_PER_MIB = 1024;

/** Servers that attack the gateway, one in each gateway, beside a sound one. */
export const hostileServers = {
  name: 'S-9',
  title: 'hostile servers, each beside a healthy one',
  full: { every: 1, only: 0 },
  short: { every: 8, only: 0 },
  run,
};

async function run({ every, only, folder }) {
  const isChosen = (_, index) => (only > 0 ? index === only - 1 : index % every === 0);
  const chosen = KINDS.filter(isChosen);
  const reports = [];
  for (const kind of chosen) reports.push(await attackWith(kind, folder));
  const failures = reports.flatMap(({ name, failures: all }) => all.slice(0, SHOWN).map((what) => `${name}: ${what}`));
  const calls = reports.reduce((sum, report) => sum + report.calls, 0);
  const target = (name, isOfIt) => {
    const those = reports.flatMap(({ failures: all }) => all.filter(isOfIt));
    return { target: name, measured: `${those.length} times not`, isMet: those.length === 0 };
  };
  const starting =
    (...words) =>
    (what) =>
      words.some((word) => what.startsWith(word));
  const known = ['sound', 'memory', 'call', 'left', 'gateway', 'client'];
  return {
    facts: [
      ['kinds of attacks', String(chosen.length)],
      ['calls of the healthy server', String(calls)],
      ['memory at most, MiB', Math.max(...reports.map(({ peakMiB }) => peakMiB)).toFixed(0)],
      ['longest call of the healthy server, ms', Math.max(...reports.map(({ longest }) => longest)).toFixed(0)],
    ],
    tables: [
      {
        head: ['Attack', 'Calls', 'Longest ms', 'Ends of its own calls', 'Peak MiB', ''],
        rows: reports.map(({ name, calls: count, longest, ends, peakMiB, failures: all }) => [
          name,
          String(count),
          longest.toFixed(0),
          ends,
          peakMiB.toFixed(0),
          all.length === 0 ? 'met' : '**not met**',
        ]),
      },
      ...(failures.length > 0 ? [{ head: ['Not as promised'], rows: failures.map((failure) => [failure]) }] : []),
    ],
    targets: [
      target('every call of the healthy server answered by it, and its tools listed', starting('sound')),
      target('the gateway lives, and ends as asked', starting('gateway')),
      target('the client reads only messages, and nothing of the attacker in answers of others', starting('client')),
      target(`every call of an attacker ends within ${ENDS_WITHIN_MS / 1000} s`, starting('call')),
      target(
        `≤ ${MAX_RESIDENT_MIB} MiB resident; ${HOARDED_MIB} where lines of 240 MiB are unfinished`,
        starting('memory'),
      ),
      target('no process is left', starting('left')),
      target('what an attack must not achieve', (what) => !starting(...known)(what)),
    ],
  };
}

async function attackWith(kind, folder) {
  const own = mkdtempSync(join(folder, 'attack-'));
  const mark = `ATTACKED_${own.slice(-6)}`;
  const attackers = Object.fromEntries(
    Array.from({ length: kind.attackers ?? 1 }, (_, number) => {
      const notes = join(own, `notes-${number}`);
      mkdirSync(notes);
      const args = [ATTACKER, `kind=${kind.name}`, `notes=${notes}`];
      const settings = {
        timeout: `${TIMEOUT_MS}ms`,
        maxTimeout: `${2 * TIMEOUT_MS}ms`,
        startTimeout: '3s',
        listTimeout: '3s',
      };
      return [
        `evil${number}`,
        { command: process.execPath, args, env: { ATTACK: mark }, ...settings, ...kind.settings },
      ];
    }),
  );
  const gateway = new Gateway(own, { sound: worker({ args: ['name=sound'] }), ...attackers });
  const failures = [];
  const report = { name: kind.name, failures, calls: 0, longest: 0, ends: '', peakMiB: 0 };
  try {
    await gateway.whileAlive(() => attack(kind, gateway, report, Object.keys(attackers)));
    report.peakMiB =
      Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${gateway.pid}/status`, 'utf8'))[1]) / KIB_PER_MIB;
    const maxMiB = kind.isHoard === true ? HOARDED_MIB : MAX_RESIDENT_MIB;
    if (report.peakMiB > maxMiB) failures.push(`memory: ${report.peakMiB.toFixed(0)} MiB`);
    failures.push(...(await gateway.now()).bugs.map((bug) => `gateway: ${bug}`));
  } catch (error) {
    failures.push(`gateway: ${error.message}`);
  }
  const { faults, strays } = gateway.client;
  failures.push(...faults.slice(0, 3).map((fault) => `client: ${fault.slice(0, 200)}`));
  if (strays > 0) failures.push(`client: ${strays} answers to nothing`);
  const end = await gateway.close();
  if (end !== 0) failures.push(`gateway: exit ${end}`);
  await until(() => marked(mark).length === 0, GONE_WITHIN_MS);
  const left = marked(mark);
  if (left.length > 0) failures.push(`left: ${left.length} processes`);
  for (const pid of left) process.kill(pid, 'SIGKILL');
  return report;
}

async function attack(kind, gateway, report, keys) {
  const { client } = gateway;
  const { failures } = report;
  await client.initialize({ sampling: {}, elicitation: {}, roots: { listChanged: true } });
  const listed = async () => {
    const { tools } = await client.ask('tools/list');
    if (!tools.some(({ name }) => name === 'sound__echo')) failures.push('sound: its tools are not listed');
    return tools;
  };
  await listed();
  const endsAt = performance.now() + (kind.attackMs ?? ATTACK_MS);
  const callSound = async (caller) => {
    for (let number = 0; performance.now() < endsAt; number += 1) {
      const nonce = `${caller}-${number}`;
      const calledAt = performance.now();
      const answer = await Promise.race([client.call('sound__echo', { nonce }), wait(SOUND_WITHIN_MS)]);
      report.longest = Math.max(report.longest, performance.now() - calledAt);
      report.calls += 1;
      const text =
        answer === undefined ? 'no answer' : (outcomeOf(answer).text ?? JSON.stringify(answer).slice(0, 200));
      if (text.includes(MARK)) failures.push(`client: the text of the attacker answers another call: ${text}`);
      if (text !== `sound ${nonce}`) failures.push(`sound: ${text}`);
      if (failures.length > 10) return;
      await wait(PAUSE_MS);
    }
  };
  const ends = new Map();
  const callAttacker = async (key) => {
    while (performance.now() < endsAt) {
      const calledAt = performance.now();
      const answer = await Promise.race([client.call(`${key}__hit`, {}), wait(ENDS_WITHIN_MS)]);
      const ms = performance.now() - calledAt;
      if (answer === undefined) {
        failures.push(`call: not ended after ${ms.toFixed(0)} ms`);
        return;
      }
      if (!isAnswer(answer)) failures.push(`client: not an answer: ${JSON.stringify(answer).slice(0, 200)}`);
      if (failures.length > 10) return;
      const { kind: way, reason } = outcomeOf(answer);
      const end = way === 'answered' ? way : `${way} ${String(reason).slice(0, 40)}`;
      ends.set(end, (ends.get(end) ?? 0) + 1);
      await wait(50);
    }
  };
  const sound = Array.from({ length: CALLERS }, (_, caller) => callSound(caller));
  await Promise.all([...sound, ...keys.map(callAttacker)]);
  report.ends = [...ends].map(([end, times]) => `${end} ${times}`).join(', ');
  const tools = await listed();
  const wrong = await kind.holds?.({ tools, client, ends, gateway });
  if (wrong !== undefined) failures.push(wrong);
}

/** What a client that checks messages accepts: a result that is an object, or an error with a code and a message. */
function isAnswer({ jsonrpc, result, error }) {
  if (jsonrpc !== '2.0' || (result === undefined) === (error === undefined)) return false;
  if (error === undefined) return typeof result === 'object' && result !== null && !Array.isArray(result);
  return Number.isInteger(error?.code) && typeof error.message === 'string';
}

/** The processes that carry the mark of an attack in their environment. */
function marked(mark) {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/environ`, 'latin1').includes(`ATTACK=${mark}`);
      } catch {
        return false;
      }
    })
    .map(Number);
}
