// Sessions: guessed, deleted, planted, and what one session does to the requests of another.
import { wait } from '../../../wait.mjs';

const id =
  (make) =>
  ({ session }) => ({ headers: { 'mcp-session-id': make(session) } });
const GUESSES = {
  'a random id': () => 'f'.repeat(43),
  'a UUID': () => '00000000-0000-4000-8000-000000000000',
  'the number 1': () => '1',
  'an id without its last character': (session) => session.slice(0, -1),
  'an id and one more character': (session) => `${session}x`,
  'an id with another last character': (session) => `${session.slice(0, -1)}${session.endsWith('A') ? 'B' : 'A'}`,
  'an id in other letters': (session) =>
    session.toUpperCase() === session ? session.toLowerCase() : session.toUpperCase(),
  'two ids with a comma': (session) => `${session}, ${session}`,
  'an id in quotes': (session) => `"${session}"`,
  'an id in percent escapes': (session) => session.replace(/./g, (letter) => `%${letter.charCodeAt(0).toString(16)}`),
  __proto__: () => '__proto__',
  constructor: () => 'constructor',
  toString: () => 'toString',
  null: () => 'null',
  'a path': () => '../../../etc/passwd',
  'an SQL text': () => "' OR 1=1 --",
  'a format text': () => '%s%n%x',
  'bytes beyond ASCII': () => '\xe9\xff',
  '12 KiB': () => 'a'.repeat(12_000),
};

export const sessions = {
  name: 'sessions',
  attacks: [
    ...Object.entries(GUESSES).map(([name, make]) => ({ name: `id: ${name}`, request: id(make), expect: 404 })),
    { name: 'id: none', request: () => ({ headers: { 'mcp-session-id': undefined } }), expect: 400 },
    { name: 'id: empty', request: id(() => ''), expect: [400, 404] },
    {
      name: 'id: in the query',
      request: ({ session }) => ({
        target: `/mcp?mcp-session-id=${session}`,
        headers: { 'mcp-session-id': undefined },
      }),
      expect: 400,
    },
    {
      name: 'id: in a cookie',
      request: ({ session }) => ({ headers: { 'mcp-session-id': undefined, cookie: `mcp-session-id=${session}` } }),
      expect: 400,
    },
    {
      name: 'id: two headers, the first one right',
      request: () => ({ lines: ['mcp-session-id: x'] }),
      expect: [400, 404],
    },
    {
      name: 'id: two headers, the second one right',
      request: ({ session }) => ({ headers: { 'mcp-session-id': 'x' }, lines: [`mcp-session-id: ${session}`] }),
      expect: [400, 404],
    },
    {
      name: 'id: a guess for GET',
      request: () => ({ method: 'GET', headers: { 'mcp-session-id': 'guess' } }),
      expect: 404,
    },
    {
      name: 'id: a guess for DELETE',
      request: () => ({ method: 'DELETE', headers: { 'mcp-session-id': 'guess' } }),
      expect: 404,
    },
    {
      name: 'id: none for GET',
      request: () => ({ method: 'GET', headers: { 'mcp-session-id': undefined } }),
      expect: 405,
    },
    {
      name: 'id: none for DELETE',
      request: () => ({ method: 'DELETE', headers: { 'mcp-session-id': undefined } }),
      expect: 405,
    },
    { name: 'a session of /mcp at /mcp/sound', request: () => ({ target: '/mcp/sound' }), expect: 404 },
    {
      name: 'a session of /mcp at /mcp/sound for DELETE',
      request: () => ({ method: 'DELETE', target: '/mcp/sound' }),
      expect: 404,
    },
    { name: 'a planted id with initialize', act: planted },
    { name: 'a second initialize in a session', act: initializeAgain },
    { name: 'ids differ, and look random', act: differ },
    { name: 'a deleted session', act: deleted },
    { name: 'DELETE twice at once', act: deletedTwice },
    { name: 'DELETE with a call in flight', act: deletedWhileCalled },
    { name: 'a request before initialized', act: beforeInitialized },
    { name: 'cancels requests of another session', act: cancelsOthers },
    { name: 'answers server requests of nobody', act: answersNobody },
    { name: 'reports progress of another session', act: progressOfOthers },
    { name: 'the same request id in two sessions', act: sameIds },
    { name: '50 requests of one id at once', act: sameIdManyTimes },
    {
      name: 'initialize with an unknown revision',
      act: ({ gateway, from }) => initialized(gateway, from, { protocolVersion: '1900-01-01' }, [200]),
    },
    {
      name: 'initialize without params',
      act: ({ gateway, from }) => initialized(gateway, from, undefined, [200, 400]),
    },
    {
      name: 'initialize with params of a wrong type',
      act: ({ gateway, from }) => initialized(gateway, from, [1, 2], [200, 400]),
    },
    {
      name: 'initialize with a clientInfo of 1 MiB',
      act: ({ gateway, from }) =>
        initialized(
          gateway,
          from,
          {
            protocolVersion: '2025-11-25',
            capabilities: {},
            clientInfo: { name: 'n'.repeat(1_048_576), version: '1' },
          },
          [200, 400],
        ),
    },
    {
      name: 'initialize with __proto__ as a capability',
      act: ({ gateway, from }) =>
        initialized(
          gateway,
          from,
          {
            protocolVersion: '2025-11-25',
            capabilities: JSON.parse('{"__proto__":{"tools":{}}}'),
            clientInfo: { name: '__proto__', version: '1' },
          },
          [200],
        ),
    },
    {
      name: 'initialize as a notification',
      act: async ({ gateway, from }) => {
        const { responses } = await gateway.post(undefined, { method: 'initialize', params: {} }, { from });
        return responses[0]?.status === 400 ? undefined : `${responses[0]?.status} instead of 400`;
      },
    },
  ],
};

const call = (name, args, requestId) => ({ id: requestId, method: 'tools/call', params: { name, arguments: args } });
const INIT = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'evil', version: '1' } };

async function initialized(gateway, from, params, statuses) {
  const { responses } = await gateway.post(undefined, { id: 1, method: 'initialize', params }, { from });
  const status = responses[0]?.status ?? 'no answer';
  return statuses.includes(status) ? undefined : `${status} instead of ${statuses.join(' or ')}`;
}

async function planted({ gateway, from }) {
  const headers = { 'mcp-session-id': 'planted' };
  const { responses } = await gateway.post(undefined, { id: 1, method: 'initialize', params: INIT }, { from, headers });
  const given = responses[0]?.headers.get('mcp-session-id');
  if (given === 'planted') return 'the planted id is accepted';
  const { responses: later } = await gateway.post('planted', { id: 2, method: 'ping' }, { from });
  return later[0]?.status === 404 ? undefined : `${later[0]?.status} for the planted id`;
}

async function initializeAgain({ gateway, from }) {
  const session = await gateway.session({}, { from });
  const { responses } = await gateway.post(session, { id: 1, method: 'initialize', params: INIT }, { from });
  if (responses[0] === undefined || responses[0].status >= 500) return `${responses[0]?.status}`;
  return await alive(gateway, from, session);
}

async function differ({ gateway, from }) {
  const ids = [];
  for (let times = 0; times < 20; times += 1) ids.push(await gateway.session({}, { from }));
  if (new Set(ids).size < 20) return 'an id came twice';
  if (ids.some((one) => one.length < 43 || !/^[\x21-\x7e]+$/.test(one))) return `too short or not visible: ${ids[0]}`;
  // The version and the name of the process are the same for all.
  const beginnings = new Set(ids.map((one) => one.split('.').at(-1).slice(0, 6)));
  return beginnings.size < 20 ? 'ids begin alike' : undefined;
}

async function deleted({ gateway, from }) {
  const session = await gateway.session({}, { from });
  const { responses } = await gateway.send({ method: 'DELETE', headers: gateway.headers(session) }, { from });
  if (responses[0].status >= 300) return `DELETE: ${responses[0].status}`;
  for (const method of ['GET', 'DELETE']) {
    const later = await gateway.send({ method, headers: gateway.headers(session) }, { from });
    if (later.responses[0]?.status !== 404) return `${method} after DELETE: ${later.responses[0]?.status}`;
  }
  const later = await gateway.post(session, { id: 1, method: 'ping' }, { from });
  return later.responses[0]?.status === 404 ? undefined : `POST after DELETE: ${later.responses[0]?.status}`;
}

async function deletedTwice({ gateway, from }) {
  const session = await gateway.session({}, { from });
  const end = () => gateway.send({ method: 'DELETE', headers: gateway.headers(session) }, { from });
  const statuses = (await Promise.all([end(), end()])).map(({ responses }) => responses[0]?.status).sort();
  return statuses[0] < 300 && statuses[1] <= 404 ? undefined : statuses.join();
}

async function deletedWhileCalled({ gateway, from }) {
  const session = await gateway.session({}, { from });
  const inFlight = gateway.post(session, call('sound__echo', { nonce: 'x', delayMs: 3_000 }, 1), {
    from,
    waitMs: 6_000,
  });
  await wait(200);
  await gateway.send({ method: 'DELETE', headers: gateway.headers(session) }, { from });
  const { responses, isClosed, ms } = await inFlight;
  return responses.length > 0 || isClosed || ms < 6_000 ? undefined : 'the call never ends';
}

async function beforeInitialized({ gateway, from }) {
  const { responses } = await gateway.post(undefined, { id: 1, method: 'initialize', params: INIT }, { from });
  const session = responses[0].headers.get('mcp-session-id');
  const later = await gateway.post(session, { id: 2, method: 'tools/list' }, { from });
  return [200, 400].includes(later.responses[0]?.status) ? undefined : `${later.responses[0]?.status}`;
}

/** A session of somebody else with a call of 600 ms, while `attack` runs; that call has to get its own answer. */
async function besideVictim(gateway, from, requestId, attack) {
  const victim = await gateway.session({}, { from: '127.3.0.1' });
  const attacker = await gateway.session({}, { from });
  const nonce = `victim ${requestId}`;
  const answer = gateway.post(victim, call('sound__echo', { nonce, delayMs: 600 }, requestId), { from: '127.3.0.1' });
  await wait(150);
  await attack(attacker);
  const { responses } = await answer;
  return responses[0]?.body.includes(`sound ${nonce}`)
    ? undefined
    : `the victim got ${responses[0]?.body.slice(0, 200)}`;
}

function cancelsOthers({ gateway, from }) {
  return besideVictim(gateway, from, 71, async (attacker) => {
    for (const requestId of [71, '71', 1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
      await gateway.post(
        attacker,
        { method: 'notifications/cancelled', params: { requestId, reason: 'evil' } },
        { from },
      );
  });
}

function answersNobody({ gateway, from }) {
  return besideVictim(gateway, from, 72, async (attacker) => {
    for (const requestId of [72, '72', 1, 2, 3, null, 'x', -1, 2 ** 53])
      await gateway.post(attacker, { id: requestId, result: { content: [{ type: 'text', text: 'EVIL' }] } }, { from });
  });
}

function progressOfOthers({ gateway, from }) {
  return besideVictim(gateway, from, 73, async (attacker) => {
    for (const progressToken of [73, '73', 1, 2, 3])
      await gateway.post(
        attacker,
        { method: 'notifications/progress', params: { progressToken, progress: 1 } },
        { from },
      );
  });
}

function sameIds({ gateway, from }) {
  return besideVictim(gateway, from, 74, async (attacker) => {
    const { responses } = await gateway.post(attacker, call('sound__echo', { nonce: 'attacker' }, 74), { from });
    if (!responses[0]?.body.includes('sound attacker')) throw new Error(`the attacker got ${responses[0]?.body}`);
  });
}

async function sameIdManyTimes({ gateway, from }) {
  const session = await gateway.session({}, { from });
  const numbers = Array.from({ length: 50 }, (_, number) => number);
  const one = async (number) => {
    const { responses } = await gateway.post(session, call('sound__echo', { nonce: `n${number}n` }, 1), { from });
    return responses[0]?.body.includes(`sound n${number}n`);
  };
  const right = (await Promise.all(numbers.map(one))).filter(Boolean).length;
  return right === 50 ? undefined : `${right} of 50 got their own answer`;
}

async function alive(gateway, from, session) {
  const { responses } = await gateway.post(session, { id: 9, method: 'ping' }, { from });
  return responses[0]?.status === 200 ? undefined : `the session answers ${responses[0]?.status}`;
}
