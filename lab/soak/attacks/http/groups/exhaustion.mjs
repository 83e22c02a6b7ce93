// Using up what is limited, with the limits of docs/http.md at their defaults, except for the request rate.
import { connect } from 'node:net';
import { wait } from '../../../wait.mjs';
import { exchange, request } from '../wire.mjs';

const WIDE_RATE = { requestsPerSecond: 100_000, requestBurst: 100_000 };

export const exhaustion = {
  name: 'exhaustion',
  together: 1,
  limits: WIDE_RATE,
  attacks: [
    { name: 'the 101st session', act: tooManySessions },
    { name: '250 idle connections, and a sound client beside them', act: idleConnections },
    { name: '300 connections: those beyond 256 are closed at once', act: tooManyConnections },
    { name: '500 connections reset at once', act: resets },
    { name: '500 connections that end at once', act: ends },
    { name: '200 requests that are reset in the middle of the body', act: halfBodies },
    { name: '20 large answers on one session that nobody reads', act: unread },
    { name: '2,000 requests without a token', act: withoutToken },
    { name: '2,000 requests with a foreign Host', act: foreignHosts },
    { name: '1,000 calls of one session at once', act: manyCalls },
    { name: 'the streams of 90 sessions, opened and reset 5 times', act: manyStreams },
  ],
};

/** All that `gateway.maxPartial` allows: 256 MiB, besides what the gateway itself takes. */
export const hoarding = {
  name: 'hoarded bodies',
  together: 1,
  isHoarding: true,
  limits: WIDE_RATE,
  attacks: [{ name: '60 bodies of almost 4 MiB that never end', act: hoarded }],
};

/** One client must not make a server refuse the calls of the others. */
export const largeCalls = {
  name: 'large calls',
  together: 1,
  limits: WIDE_RATE,
  attacks: [{ name: '20 calls of 2 MiB at once', act: calledLargely }],
};

/** With every limit at its default, the request rate included. */
export const rates = {
  name: 'request rates',
  together: 1,
  limits: {},
  attacks: [{ name: '1,000 requests, 100 at once', act: tooManyRequests }],
};

async function tooManySessions({ gateway, from }) {
  const ids = await manySessions(gateway, from, 99);
  try {
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'evil', version: '1' } };
    const { responses } = await gateway.post(undefined, { id: 0, method: 'initialize', params }, { from });
    const [{ status, headers }] = responses;
    if (status !== 503 || headers.get('retry-after') !== '30')
      return `${status}, Retry-After ${headers.get('retry-after')}`;
    const { responses: old } = await gateway.post(ids[0], { id: 1, method: 'ping' }, { from });
    return old[0]?.status === 200 ? undefined : `an old session answers ${old[0]?.status}`;
  } finally {
    await deleteAll(gateway, from, ids);
  }
}

function manySessions(gateway, from, count) {
  return Promise.all(Array.from({ length: count }, () => gateway.session({}, { from })));
}

function deleteAll(gateway, from, ids) {
  return Promise.all(ids.map((id) => gateway.send({ method: 'DELETE', headers: gateway.headers(id) }, { from })));
}

/** Open connections, or those that the server let be open. */
async function connections(gateway, from, count) {
  const sockets = [];
  for (let times = 0; times < count; times += 1) {
    const socket = connect({ host: '127.0.0.1', port: gateway.port, localAddress: from });
    socket.on('error', () => {});
    socket.resume();
    sockets.push(socket);
  }
  await Promise.all(sockets.map((socket) => new Promise((done) => socket.once('connect', done).once('close', done))));
  await wait(200);
  return sockets;
}

async function idleConnections({ gateway, from, session }) {
  const sockets = await connections(gateway, from, 250);
  const { responses } = await gateway.post(session, { id: 1, method: 'ping' }, { from: '127.4.0.1', waitMs: 1_000 });
  for (const socket of sockets) socket.destroy();
  await wait(100);
  return responses[0]?.status === 200 ? undefined : `the sound client gets ${responses[0]?.status ?? 'nothing'}`;
}

async function tooManyConnections({ gateway, from }) {
  const sockets = await connections(gateway, from, 300);
  const closed = sockets.filter((socket) => socket.destroyed || socket.readableEnded).length;
  for (const socket of sockets) socket.destroy();
  await wait(100);
  return closed >= 44 && closed <= 60 ? undefined : `${closed} of 300 were closed`;
}

async function resets({ gateway, from }) {
  await repeat(500, () => exchange({ port: gateway.port, from, parts: [], abort: true }));
}

async function ends({ gateway, from }) {
  await repeat(500, () => exchange({ port: gateway.port, from, parts: ['POST /mcp'], end: true }));
}

async function halfBodies({ gateway, from, session }) {
  const headers = { ...gateway.headers(session), 'content-length': 100_000 };
  const text = request({ headers, body: 'x'.repeat(50_000) });
  await repeat(200, () => exchange({ port: gateway.port, from, parts: [text, 5], abort: true }));
}

async function unread({ gateway, from }) {
  const session = await gateway.session({}, { from });
  const text = 'u'.repeat(512 * 1024);
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: 'sound__report', arguments: { nonce: 1, text }, _meta: { progressToken: 1 } },
  });
  const bytes = request({ headers: { ...gateway.headers(session), 'content-length': body.length }, body });
  const sockets = [];
  for (let times = 0; times < 20; times += 1) {
    const socket = connect({ host: '127.0.0.1', port: gateway.port, localAddress: from });
    socket.on('error', () => {});
    socket.pause();
    socket.write(bytes);
    sockets.push(socket);
    // All at once would be more than the server has room for.
    await wait(150);
  }
  const { responses } = await gateway.post(session, { id: 2, method: 'ping' }, { from });
  for (const socket of sockets) socket.destroy();
  return responses[0]?.status === 200 ? undefined : `the session answers ${responses[0]?.status ?? 'nothing'}`;
}

async function calledLargely({ gateway, from, session }) {
  const text = 'u'.repeat(2 * 1024 * 1024);
  const params = { name: 'sound__echo', arguments: { nonce: 1, text } };
  const calls = Array.from({ length: 20 }, (_, id) =>
    gateway.post(session, { id, method: 'tools/call', params }, { from }),
  );
  const unanswered = (await Promise.all(calls)).filter(({ responses }) => responses[0]?.status !== 200).length;
  return unanswered === 0 ? undefined : `${unanswered} of 20 calls without an answer`;
}

async function withoutToken({ gateway, from }) {
  return await flood(gateway, from, { authorization: undefined }, [401, 429]);
}

async function foreignHosts({ gateway, from }) {
  return await flood(gateway, from, { host: 'evil.example' }, [403]);
}

async function flood(gateway, from, changed, statuses) {
  const headers = { ...gateway.headers(), 'content-length': 2, ...changed };
  const got = new Set();
  await repeat(2_000, async () => {
    const { responses } = await gateway.send({ headers, body: '{}' }, { from, waitMs: 5_000 });
    got.add(responses[0]?.status ?? 'nothing');
  });
  return [...got].every((status) => statuses.includes(status)) ? undefined : `got ${[...got]}`;
}

/** 60 × 4 MiB are less than `gateway.maxPartial`, and more than the memory that a gateway should take. */
async function hoarded({ gateway, from, session }) {
  const headers = { ...gateway.headers(session), 'content-length': 4 * 1024 * 1024 };
  const parts = [request({ headers, body: ' '.repeat(4 * 1024 * 1024 - 1) })];
  const open = Promise.all(
    Array.from({ length: 60 }, () => exchange({ port: gateway.port, from, parts, waitMs: 2_500 })),
  );
  await wait(1_500);
  const { responses } = await gateway.post(session, { id: 3, method: 'ping' }, { from: '127.4.0.2', waitMs: 2_000 });
  await open;
  return responses[0]?.status === 200 ? undefined : `the sound client gets ${responses[0]?.status ?? 'nothing'}`;
}

async function manyCalls({ gateway, from, session }) {
  let unanswered = 0;
  await repeat(1_000, async (number) => {
    const params = { name: 'sound__echo', arguments: { nonce: `m${number}m`, delayMs: 20 } };
    const { responses } = await gateway.post(session, { id: number, method: 'tools/call', params }, { from });
    if (responses[0]?.status !== 200) unanswered += 1;
  });
  return unanswered === 0 ? undefined : `${unanswered} of 1,000 calls without an answer`;
}

async function manyStreams({ gateway, from }) {
  const ids = await manySessions(gateway, from, 90);
  for (let round = 0; round < 5; round += 1) {
    const parts = (id) => [
      request({ method: 'GET', headers: { ...gateway.headers(id), accept: 'text/event-stream' } }),
      100,
    ];
    await Promise.all(ids.map((id) => exchange({ port: gateway.port, from, parts: parts(id), abort: true })));
  }
  await wait(100);
  const headers = { ...gateway.headers(ids[0]), accept: 'text/event-stream' };
  const { responses } = await gateway.send({ method: 'GET', headers }, { from });
  await deleteAll(gateway, from, ids);
  return responses[0]?.status === 200 ? undefined : `the next stream gets ${responses[0]?.status}`;
}

async function tooManyRequests({ gateway, from, session }) {
  const got = new Map();
  let withoutRetryAfter = 0;
  // So many that even a busy machine sends them faster than the limit allows.
  await repeat(1_000, async () => {
    const { responses } = await gateway.post(session, { id: 1, method: 'ping' }, { from });
    const status = responses[0]?.status ?? 'nothing';
    got.set(status, (got.get(status) ?? 0) + 1);
    if (status === 429 && !(Number(responses[0].headers.get('retry-after')) > 0)) withoutRetryAfter += 1;
  });
  // The limit belongs to the token, so a sound client has to wait as well.
  await wait(1_000);
  if (!got.has(429) || withoutRetryAfter > 0) return `${[...got].join(' ')}; ${withoutRetryAfter} without Retry-After`;
  return [...got.keys()].every((status) => status === 200 || status === 429) ? undefined : `got ${[...got].join(' ')}`;
}

/** So many times, 100 at once. */
async function repeat(times, work) {
  let next = 0;
  const worker = async () => {
    while (next < times) {
      next += 1;
      await work(next);
    }
  };
  await Promise.all(Array.from({ length: 100 }, worker));
}
