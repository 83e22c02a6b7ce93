// Event streams: resuming with ids of others, text that looks like events, and answers to questions of others.
import { wait } from '../../../wait.mjs';
import { exchange, request } from '../wire.mjs';

const EVENT_IDS = {
  0: '0',
  1: '1',
  '-1': '-1',
  'a text': 'x',
  __proto__: '__proto__',
  'a path': '../../etc/passwd',
  'an asterisk': '*',
  '12 KiB': 'e'.repeat(12_000),
  '2^64': '18446744073709551616',
  NaN: 'NaN',
  'an SQL text': "' OR 1=1 --",
  'a list': '1,2,3',
  'bytes beyond ASCII': '\xe9\xff',
  'a colon': ':',
  'half of two': '1_',
  'a slash': '1/1',
  'an escape': '%0a%0adata:evil',
};

export const streams = {
  name: 'event streams',
  together: 4,
  attacks: [
    ...Object.entries(EVENT_IDS).map(([name, id]) => ({
      name: `Last-Event-ID: ${name}`,
      request: () => ({ method: 'GET', headers: { accept: 'text/event-stream', 'last-event-id': id } }),
      expect: 400,
    })),
    {
      name: 'GET without event streams in Accept',
      request: () => ({ method: 'GET', headers: { accept: 'application/json' } }),
      expect: 406,
    },
    {
      name: 'GET without Accept',
      request: () => ({ method: 'GET', headers: { accept: undefined } }),
      expect: [200, 406],
    },
    { name: 'a second stream of a session', act: secondStream },
    { name: '100 streams, each reset at once', act: manyResets },
    { name: '100 GETs of one session at once', act: manyAtOnce },
    { name: 'a text that looks like an event', act: eventText },
    { name: 'a progress token that looks like an event', act: eventToken },
    { name: 'an event id of another session', act: foreignEvent },
    { name: 'one event resumed 30 times at once', act: resumedManyTimes },
    { name: 'a connection reset during a call', act: resetDuringCall },
    { name: 'another session answers a server request', act: foreignAnswer },
    { name: 'a wrong answer, then the right one', act: twoAnswers },
    { name: 'a session of a server answers its server request twice', act: answerTwice },
  ],
};

const call = (id, name, args, progressToken) => ({
  id,
  method: 'tools/call',
  params: { name, arguments: args, ...(progressToken === undefined ? {} : { _meta: { progressToken } }) },
});

function listen(gateway, session, from, headers = {}, how = {}) {
  const all = { ...gateway.headers(session), accept: 'text/event-stream', ...headers };
  return gateway.send({ method: 'GET', headers: all }, { from, waitMs: 1_500, ...how });
}

/** The events of a response: ids and messages. */
function events(body) {
  return body
    .split('\n\n')
    .map((text) => {
      const lines = text.split('\n');
      const field = (name) =>
        lines.filter((line) => line.startsWith(`${name}:`)).map((line) => line.slice(name.length + 1).trim());
      return { id: field('id')[0], event: field('event')[0], data: field('data').join('\n') };
    })
    .filter(({ id, data }) => id !== undefined || data !== '');
}

async function secondStream({ gateway, from }) {
  const session = await gateway.session({}, { from });
  const first = listen(gateway, session, from);
  await wait(150);
  const { responses } = await listen(gateway, session, from);
  const [older, newer] = [(await first).responses[0], responses[0]];
  const isReplaced = older?.status === 200 && older.isWhole && newer?.status === 200 && !newer.isWhole;
  return isReplaced
    ? undefined
    : `${older?.status}, ended: ${older?.isWhole}; ${newer?.status}, ended: ${newer?.isWhole}`;
}

async function manyResets({ gateway, from }) {
  const session = await gateway.session({}, { from });
  for (let times = 0; times < 100; times += 1) {
    const headers = { ...gateway.headers(session), accept: 'text/event-stream' };
    await exchange({ port: gateway.port, from, parts: [request({ method: 'GET', headers }), 2], abort: true });
  }
  await wait(50);
  const { responses } = await listen(gateway, session, from);
  return responses[0]?.status === 200 ? undefined : `the next stream gets ${responses[0]?.status}`;
}

async function manyAtOnce({ gateway, from }) {
  const session = await gateway.session({}, { from });
  const all = await Promise.all(
    Array.from({ length: 100 }, () => listen(gateway, session, from, {}, { waitMs: 2_000 })),
  );
  const statuses = new Set(all.map(({ responses }) => responses[0]?.status ?? 'none'));
  const open = all.filter(({ responses }) => responses[0]?.status === 200 && !responses[0].isWhole).length;
  const areServed = statuses.size === 1 && statuses.has(200);
  return areServed && open === 1 ? undefined : `${open} open, of ${[...statuses]}`;
}

/** Its answer comes as a stream, because progress comes first. */
async function streamed(gateway, from, session, nonce, token) {
  const { responses } = await gateway.post(session, call(5, 'sound__report', { nonce, delayMs: 50 }, token), {
    from,
    waitMs: 1_500,
  });
  return responses[0];
}

async function eventText({ gateway, from }) {
  const session = await gateway.session({}, { from });
  const evil =
    'x\n\nevent: message\ndata: {"jsonrpc":"2.0","id":5,"result":{"evil":true}}\n\n\r\rid: evil\r\rdata: evil\u2028';
  const { headers, body } = await streamed(gateway, from, session, evil, 'p');
  if (!headers.get('content-type')?.startsWith('text/event-stream')) return 'no stream';
  const got = events(Buffer.from(body, 'latin1').toString());
  for (const { id, data } of got) {
    if (id === 'evil') return 'the text made an event id';
    if (data === '') continue;
    const message = JSON.parse(data);
    if (message.result?.evil) return 'the text made an answer';
  }
  return got.some(({ data }) => data.includes('evil')) ? undefined : 'no answer';
}

async function eventToken({ gateway, from }) {
  const session = await gateway.session({}, { from });
  const token = 't\n\ndata: {"evil":1}\n\n';
  const { body } = await streamed(gateway, from, session, 'n', token);
  const progress = events(body).filter(({ data }) => data.includes('notifications/progress'));
  return progress.length === 2 && progress.every(({ data }) => JSON.parse(data).params.progressToken === token)
    ? undefined
    : `${progress.length} notifications: ${body.slice(0, 300)}`;
}

async function foreignEvent({ gateway, from }) {
  const victim = await gateway.session({}, { from });
  const { body } = await streamed(gateway, from, victim, 'secret of the victim', 'p');
  const id = events(body)[0]?.id;
  if (id === undefined) return 'no event id';
  const attacker = await gateway.session({}, { from });
  const { responses, raw } = await listen(gateway, attacker, from, { 'last-event-id': id });
  if (raw.includes('secret of the victim')) return 'the answer of the victim is sent to another session';
  return responses[0]?.status === 400 ? undefined : `${responses[0]?.status} for the event of another session`;
}

async function resumedManyTimes({ gateway, from }) {
  const session = await gateway.session({}, { from });
  const { body } = await streamed(gateway, from, session, 'again', 'p');
  const id = events(body)[0]?.id;
  const all = await Promise.all(
    Array.from({ length: 30 }, () => listen(gateway, session, from, { 'last-event-id': id })),
  );
  const statuses = all.map(({ responses }) => responses[0]?.status);
  return statuses.every((status) => [200, 400, 409].includes(status)) ? undefined : `${[...new Set(statuses)]}`;
}

async function resetDuringCall({ gateway, from, nonce }) {
  const session = await gateway.session({}, { from });
  const body = JSON.stringify({ jsonrpc: '2.0', ...call(5, 'sound__effect', { nonce, delayMs: 300 }) });
  const headers = { ...gateway.headers(session), 'content-length': body.length };
  await exchange({ port: gateway.port, from, parts: [request({ headers, body }), 100], abort: true });
  await wait(500);
  if (gateway.effects().filter((effect) => effect === nonce).length !== 1) return 'the call was not executed once';
  const { responses } = await gateway.post(session, { id: 6, method: 'ping' }, { from });
  return responses[0]?.status === 200 ? undefined : `the session answers ${responses[0]?.status}`;
}

/** A call whose server asks its client, while `meanwhile` runs. Resolves with what the server was told. */
async function asked({ gateway, from, target = '/mcp', name = 'asker__ask' }, meanwhile) {
  const session = await gateway.session({ elicitation: {} }, { from });
  const text = JSON.stringify({ jsonrpc: '2.0', ...call(8, name, {}) });
  const headers = { ...gateway.headers(session), 'content-length': text.length };
  const answer = gateway.send({ target, headers, body: text }, { from, waitMs: 1_500 });
  await wait(400);
  await meanwhile(session);
  return (await answer).raw;
}

const reply = (id, who) => ({ id, result: { action: 'accept', content: { who } } });
/** Whatever the id of the question is, it is probably one of these. */
const LIKELY_IDS = [0, 1, 2, 3, 4, 5, '0', '1', '2', '3', 's1', 's-1', 'server-1', 't1'];

async function foreignAnswer({ gateway, from }) {
  const raw = await asked({ gateway, from }, async () => {
    const attacker = await gateway.session({ elicitation: {} }, { from });
    for (const id of LIKELY_IDS) await gateway.post(attacker, reply(id, 'evil'), { from });
  });
  if (!raw.includes('elicitation/create')) return `the client is not asked: ${raw.slice(0, 300)}`;
  return raw.includes('evil') ? 'the server was told what another session said' : undefined;
}

async function twoAnswers({ gateway, from }) {
  const raw = await asked({ gateway, from }, async (session) => {
    for (const id of ['wrong', null, -1, 2 ** 53, {}]) await gateway.post(session, reply(id, 'evil'), { from });
  });
  return raw.includes('evil') ? 'an answer with a wrong id was taken' : undefined;
}

async function answerTwice({ gateway, from }) {
  const session = await gateway.session({ elicitation: {} }, { from });
  const text = JSON.stringify({ jsonrpc: '2.0', ...call(8, 'asker__ask', {}) });
  const headers = { ...gateway.headers(session), 'content-length': text.length };
  let id;
  const peeked = await gateway.send({ headers, body: text }, { from, waitMs: 500 });
  for (const { data } of events(peeked.responses[0]?.body ?? '')) {
    if (data.includes('elicitation/create')) id = JSON.parse(data.slice(data.indexOf('{'))).id;
  }
  if (id === undefined) return `no server request: ${peeked.raw.slice(-300)}`;
  const eventId = events(peeked.responses[0].body)[0]?.id;
  await gateway.post(session, reply(id, 'first'), { from });
  await gateway.post(session, reply(id, 'second'), { from });
  const { raw } = await listen(gateway, session, from, { 'last-event-id': eventId });
  if (raw.includes('second')) return 'the second answer counts';
  return raw.includes('first') ? undefined : `the resumed stream lacks the answer: ${raw.slice(-300)}`;
}
