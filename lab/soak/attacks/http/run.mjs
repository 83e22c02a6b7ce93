import { readFileSync } from 'node:fs';
import { HttpGateway, soundClient } from './gateway.mjs';
import { bodies } from './groups/bodies.mjs';
import { exhaustion, hoarding, largeCalls, rates } from './groups/exhaustion.mjs';
import { fields } from './groups/fields.mjs';
import { framing } from './groups/framing.mjs';
import { names, namesWithoutToken } from './groups/names.mjs';
import { paths } from './groups/paths.mjs';
import { sessions } from './groups/sessions.mjs';
import { slowness } from './groups/slowness.mjs';
import { streams } from './groups/streams.mjs';
import { tokens } from './groups/tokens.mjs';
import { request } from './wire.mjs';

const GROUPS = [
  framing,
  fields,
  names,
  namesWithoutToken,
  tokens,
  sessions,
  bodies,
  streams,
  paths,
  exhaustion,
  hoarding,
  largeCalls,
  rates,
  slowness,
];
const AT_ONCE = 6;
/** For a whole session with one call; a queue that an attack has left would take longer. */
const SOUND_WITHIN_MS = 2_000;
const MAX_RESIDENT_MIB = 256;
const HOARDED_MIB = 384;

/** Attacks on the HTTP server, group by group, and a sound client after each group. */
export const httpAttacks = {
  name: 'S-10',
  title: 'attacks on the HTTP server',
  full: { slow: true },
  short: { slow: false },
  run,
};

async function run({ slow, folder }) {
  const groups = GROUPS.filter(({ isSlow }) => slow || isSlow !== true);
  const rows = [];
  const failures = [];
  for (const group of groups) {
    const report = await attackWith(group, folder);
    failures.push(...report.failures.map((what) => `${group.name}: ${what}`));
    rows.push(report);
  }
  const attacks = rows.reduce((sum, { count }) => sum + count, 0);
  const bad = rows.filter(({ sound }) => sound.wrong !== undefined || sound.ms > SOUND_WITHIN_MS);
  const large = rows.filter(({ peakMiB, maxMiB }) => peakMiB > maxMiB);
  return {
    facts: [['attacks, groups', `${attacks}, ${rows.length}`]],
    tables: [
      {
        head: ['Group', 'Attacks', 'As expected', 'Sound client after it, ms', 'Peak MiB', 'Exit'],
        rows: rows.map(({ name, count, failed, sound, peakMiB, end }) => [
          name,
          String(count),
          String(count - failed),
          sound.wrong ?? sound.ms.toFixed(0),
          peakMiB.toFixed(0),
          String(end),
        ]),
      },
      ...(failures.length > 0 ? [{ head: ['Not as expected'], rows: failures.map((failure) => [failure]) }] : []),
    ],
    targets: [
      {
        target: 'every attack ends as expected',
        measured: `${failures.length} do not`,
        isMet: failures.length === 0,
      },
      {
        target: `a sound client is served within ${SOUND_WITHIN_MS} ms after each group`,
        measured: `${bad.length} times not`,
        isMet: bad.length === 0,
      },
      {
        target: `≤ ${MAX_RESIDENT_MIB} MiB resident; ${HOARDED_MIB} where bodies of 240 MiB are open`,
        measured: `${Math.max(...rows.map(({ peakMiB }) => peakMiB)).toFixed(0)} MiB at most`,
        isMet: large.length === 0,
      },
      {
        target: 'every gateway lives until it is asked to end',
        measured: rows.map(({ end }) => end).join(', '),
        isMet: rows.every(({ end }) => end === 0),
      },
    ],
  };
}

async function attackWith({ name, attacks, limits, options, together = AT_ONCE, isHoarding }, folder) {
  const gateway = new HttpGateway({ folder, limits, options });
  await gateway.open();
  const failures = [];
  const session = await gateway.session();
  const queue = attacks.map((attack, index) => ({ attack, nonce: `evil ${index}`, from: address(index) }));
  const work = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const failure = await attackOnce(next, gateway, session).catch((error) => `broke off: ${error.stack}`);
      if (failure !== undefined) failures.push(`${next.attack.name}: ${failure}`);
    }
  };
  await Promise.all(Array.from({ length: together }, work));
  const failed = failures.length;
  const sound = await soundClient(gateway);
  const peakMiB = peak(gateway.pid);
  const end = await gateway.close();
  if (end !== 0) failures.push(`exit ${end}: ${gateway.stderr.slice(-500).replaceAll('\n', ' ')}`);
  return {
    name,
    count: attacks.length,
    failed,
    failures,
    sound,
    peakMiB,
    maxMiB: isHoarding ? HOARDED_MIB : MAX_RESIDENT_MIB,
    end,
  };
}

/** Resolves with what was not as expected. */
async function attackOnce({ attack, nonce, from }, gateway, session) {
  // The call whose effect tells whether a request was executed.
  const message = (text = nonce) =>
    JSON.stringify({
      jsonrpc: '2.0',
      id: nonce,
      method: 'tools/call',
      params: { name: 'sound__effect', arguments: { nonce: text } },
    });
  const context = { gateway, session, nonce, from, message, host: gateway.host, port: gateway.port };
  if (attack.act !== undefined) return await attack.act(context);
  const body = message();
  const right = { headers: { ...gateway.headers(session), 'content-length': Buffer.byteLength(body) }, body };
  const given = attack.request?.({ ...context, right }) ?? {};
  const hasBody = given.method === undefined || given.method === 'POST';
  const merged = {
    ...right,
    ...(hasBody ? {} : { body: '' }),
    ...given,
    headers: { ...right.headers, ...(hasBody ? {} : { 'content-length': undefined }), ...given.headers },
  };
  if (typeof given.body === 'string' && given.headers?.['content-length'] === undefined && !given.keepLength)
    merged.headers['content-length'] = Buffer.from(given.body, 'latin1').length;
  const parts = attack.raw?.({ ...context, right, request }) ?? [request(merged)];
  const { from: ownFrom = from, ...how } = attack.how ?? {};
  const exchanged = await gateway.send({}, { from: ownFrom, parts, isHead: given.method === 'HEAD', ...how });
  return judge(attack, exchanged, gateway, nonce);
}

function judge({ expect, most = 1, mayExecute = false, check }, exchanged, gateway, nonce) {
  const { responses, isClosed, raw } = exchanged;
  const [first] = responses;
  const got = first?.status ?? (isClosed ? 'closed' : 'waits');
  const allowed = [expect].flat();
  if (!allowed.includes(got)) return `${got} instead of ${allowed.join(' or ')} (${short(first?.body)})`;
  if (responses.length > most) return `${responses.length} responses: ${responses.map(({ status }) => status)}`;
  if (raw.includes(gateway.token)) return 'the token is in the response';
  if (/^access-control-/im.test(raw)) return 'there is a CORS header';
  const isExecuted = gateway.effects().some((effect) => effect === nonce);
  if (isExecuted && !mayExecute && ![200, 202, 'waits'].includes(got)) return `${got}, but the call was executed`;
  if (gateway.effects().includes(`${nonce} smuggled`)) return 'the smuggled call was executed';
  return check?.(exchanged);
}

function short(body) {
  return body === undefined ? 'no response' : body.slice(0, 160).replaceAll('\n', ' ');
}

/** An own loopback address for each attack, since wrong tokens count by address. */
function address(index) {
  return `127.1.${1 + (index >> 7)}.${1 + (index & 127)}`;
}

function peak(pid) {
  return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024;
}
