// What servers behind a URL send besides messages: codings, statuses, sessions that they forget, words for people.
import type { ServerResponse } from 'node:http';
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import type { HttpPlay, HttpRequest, HttpSpeaker } from '../http-play.js';
import { FAILS, NO_ANSWER, type Row, SOUND } from '../row.js';

type Take = NonNullable<HttpPlay['take']>;

const JSON_TYPE = { 'content-type': 'application/json' };

/** A server that sends each answer in its own way. */
function answering(send: (text: string, response: ServerResponse, request: HttpRequest) => unknown): HttpPlay {
  return {
    take: (request, response, server) => {
      const answer = server.answerTo(request.message);
      if (answer === undefined) return false;
      send(JSON.stringify(answer), response, request);
      return true;
    },
  };
}

function coded(coding: string, encode: (text: string) => string | Buffer): HttpPlay {
  return answering((text, response) =>
    response.writeHead(200, { ...JSON_TYPE, 'content-encoding': coding }).end(encode(text)),
  );
}

const CODINGS: readonly Row[] = [
  ...(
    [
      ['gzip', gzipSync],
      ['x-gzip', gzipSync],
      ['deflate', deflateSync],
      ['deflate', deflateRawSync],
      ['br', brotliCompressSync],
      ['GZIP', gzipSync],
      ['deflate, gzip', (text: string) => gzipSync(deflateSync(text))],
    ] as const
  ).map(([coding, encode], at) => ({
    quirk: `Answers have the coding \`${coding}\`${at === 3 ? ' without its header' : ''}`,
    right: 'They are decoded.',
    http: coded(coding, encode),
  })),
  {
    quirk: 'Answers have the coding `gzip` without its end',
    right: 'What came is read, if it is a whole message.',
    http: coded('gzip', (text) => gzipSync(text).subarray(0, -8)),
  },
  {
    quirk: 'Answers name the coding `utf-8`, which is none',
    right: 'They are read as they are.',
    http: coded('utf-8', (text) => text),
  },
  {
    quirk: 'Answers come as a compressed event stream',
    right: 'It is decoded as it comes.',
    http: answering((text, response) =>
      response
        .writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' })
        .end(gzipSync(`event: message\ndata: ${text}\n\n`)),
    ),
  },
  {
    quirk: 'Few compressed bytes hold more than a message may have',
    right: 'The call fails at the limit of a message, and the server stays.',
    http: {
      take: ({ message }, response) => {
        if (message.method !== 'tools/call') return false;
        const body = gzipSync(
          `{"jsonrpc":"2.0","id":${message.id},"result":{"content":[],"a":"${'a'.repeat(4 << 20)}"}}`,
        );
        response.writeHead(200, { ...JSON_TYPE, 'content-encoding': 'gzip' }).end(body);
        return true;
      },
    },
    entry: { maxFrame: '1MiB' },
    ask: async (client) => `${await client.tools()}; ${(await client.call()).slice(0, 12)}`,
    direct: 'tools: echo; echo: ',
    through: 'tools: echo; echo: fails:',
    protects: 'The memory of all other servers and clients.',
  },
];

const FORMS: readonly Row[] = [
  {
    quirk: 'A byte order mark begins each answer',
    right: 'It is skipped.',
    http: answering((text, response) => response.writeHead(200, JSON_TYPE).end(`\uFEFF${text}`)),
  },
  {
    quirk: 'A firewall refuses requests without `User-Agent`',
    right: 'Every request has one.',
    http: {
      take: ({ headers }, response) => {
        if (headers['user-agent'] !== undefined) return false;
        response.writeHead(403).end('<html><title>Blocked</title>');
        return true;
      },
    },
  },
  {
    quirk: '`initialized` never gets an answer',
    right: 'It holds up nothing.',
    http: { take: ({ message }) => message.method === 'notifications/initialized' },
    direct: NO_ANSWER,
    through: SOUND,
  },
  {
    quirk: '`initialized` is answered with an open event stream',
    right: 'It holds up nothing.',
    http: {
      take: ({ message }, response) => {
        if (message.method !== 'notifications/initialized') return false;
        response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': open\n\n');
        return true;
      },
    },
  },
  {
    quirk: 'POST is answered with 202, and the answer comes on the stream of GET',
    right: 'The answer is taken there.',
    http: onStandingStream(),
  },
];

/** A server that answers all but `initialize` on the stream that the client opens with GET. */
function onStandingStream(): HttpPlay {
  const streams = new WeakMap<HttpSpeaker, ServerResponse>();
  return {
    take: ({ method, message }, response, server) => {
      if (method === 'GET') {
        streams.set(server, response);
        response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
        return true;
      }
      const standing = streams.get(server);
      const answer = server.answerTo(message);
      if (answer === undefined || message.method === 'initialize' || standing === undefined) return false;
      response.writeHead(202).end();
      standing.write(`data: ${JSON.stringify(answer)}\n\n`);
      return true;
    },
  };
}

/** A server that forgets each session with the first call in it, and refuses everything there from then on. */
function forgetful(refuse: (request: HttpRequest, response: ServerResponse) => unknown): HttpPlay {
  const used = new Map<string, boolean>();
  const take: Take = (request, response, server: HttpSpeaker) => {
    const { method } = request.message;
    if (method === 'initialize') {
      const id = `s${used.size + 1}`;
      used.set(id, false);
      server.soundly(request, response, { 'mcp-session-id': id });
      return true;
    }
    const id = String(request.headers['mcp-session-id'] ?? '');
    if (request.message.id === undefined) return false;
    if (id === '') {
      withStatus(400)(request, response);
      return true;
    }
    if (used.get(id) !== false) {
      refuse(request, response);
      return true;
    }
    if (method === 'tools/call') used.set(id, true);
    return false;
  };
  return { take };
}

function withStatus(status: number, body = ''): (request: HttpRequest, response: ServerResponse) => unknown {
  return (_, response) => response.writeHead(status, JSON_TYPE).end(body);
}

function withError(code: number, message: string, status = 200) {
  return ({ message: { id } }: HttpRequest, response: ServerResponse) =>
    response.writeHead(status, JSON_TYPE).end(JSON.stringify({ jsonrpc: '2.0', id, error: { code, message } }));
}

const FORGOTTEN: readonly Row[] = (
  [
    ['404', withStatus(404)],
    ['410', withStatus(410)],
    ['400 "not initialized"', withError(-32_000, 'Bad Request: Server not initialized', 400)],
    ['400 without a word', withStatus(400)],
    ['401', withStatus(401)],
    ['403', withStatus(403, '{"detail":"forbidden"}')],
    ['409', withStatus(409)],
    ['422', withStatus(422, '{"detail":[{"msg":"unprocessable"}]}')],
    ['503', withStatus(503)],
    ['200 with -32001', withError(-32_001, 'Session not found')],
    ['200 with -32600', withError(-32_600, 'Invalid Request')],
    ['200 with -32002', withError(-32_002, 'Session expired')],
    ['200 with -32000', withError(-32_000, 'Server not initialized')],
  ] as const
).map(([name, refuse]) => ({
  quirk: `A session is forgotten after each call, with ${name}`,
  right: 'The call is answered in a new session, and the status names such a server.',
  http: forgetful(refuse),
  entry: { headers: { 'X-Key': 'good' } },
  ask: async (client) => {
    for (let count = 0; count < 7; count += 1) {
      const isAnswered = await client.call().then(
        (text) => text === 'echo: hello',
        () => false,
      );
      if (!isAnswered) return `${FAILS} after ${count} calls`;
    }
    // The session is that of this client.
    const named = await client.call('trunkline__status');
    return `7 calls, ${/sessions: the server forgot \d/.test(named) ? '' : 'not '}named in the status`;
  },
  direct: `${FAILS} after 1 calls`,
  through: '7 calls, named in the status',
}));

const WORDS: readonly Row[] = (
  [
    ['400', '{"error":{"message":"no such model"}}', 'no such model'],
    ['403', '{"error":"forbidden","error_description":"Your plan has ended"}', 'Your plan has ended'],
    ['421', 'wrong host', 'wrong host'],
    ['422', '{"detail":[{"message":"text is missing"}]}', 'text is missing'],
    ['500', '<html><head><title>Out of order</title></head></html>', 'Out of order'],
  ] as const
).map(([status, body, words]) => ({
  quirk: `A call is refused with ${status} and a reason in the body`,
  right: 'The reason reaches the person.',
  http: {
    take: ({ message }, response) => {
      if (message.method !== 'tools/call') return false;
      response.writeHead(Number(status)).end(body);
      return true;
    },
  },
  ask: async (client) => {
    const text = await client.call().catch((error: Error) => error.message);
    return text.includes(words) ? `the reason: ${words}` : `${FAILS}: ${text}`;
  },
  direct: `the reason: ${words}`,
}));

/** A server that answers one kind of request in its own way. */
function answeringOnly(
  isMeant: (request: HttpRequest) => boolean,
  send: (response: ServerResponse, request: HttpRequest) => unknown,
): HttpPlay {
  return {
    take: (request, response) => {
      if (!isMeant(request)) return false;
      send(response, request);
      return true;
    },
  };
}

const isNotified = ({ message }: HttpRequest) => message.method === 'notifications/initialized';
const isGet = ({ method }: HttpRequest) => method === 'GET';

const HABITS: readonly Row[] = [
  ...[307, 308].map((status) => ({
    quirk: `The URL redirects with ${status} to the same one with a slash`,
    right: 'The redirect is followed within the origin.',
    http: answeringOnly(
      ({ path }) => path === '/mcp',
      (response) => response.writeHead(status, { location: '/mcp/' }).end(),
    ),
  })),
  ...(
    [
      ['200 and nothing', (response) => response.writeHead(200).end()],
      ['204', (response) => response.writeHead(204).end()],
      ['200 and an empty object', (response) => response.writeHead(200, JSON_TYPE).end('{}')],
      ['202 and a page', (response) => response.writeHead(202, { 'content-type': 'text/html' }).end('<p>ok')],
    ] as readonly (readonly [string, (response: ServerResponse) => unknown])[]
  ).map(([name, send]) => ({
    quirk: `\`initialized\` is answered with ${name}`,
    right: 'The answer to a notification means nothing.',
    http: answeringOnly(isNotified, send),
  })),
  ...[400, 404, 405, 406, 501].map((status) => ({
    quirk: `GET is answered with ${status}`,
    right: 'There is no such stream, and all else works.',
    http: answeringOnly(isGet, (response) => response.writeHead(status).end()),
  })),
  {
    quirk: 'GET is answered with a page',
    right: 'There is no such stream, and all else works.',
    http: answeringOnly(isGet, (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<p>hello')),
  },
  {
    quirk: 'GET is never answered',
    right: 'It holds up nothing for long.',
    http: answeringOnly(isGet, () => {}),
  },
  {
    quirk: 'The media type is in capitals, with a character set',
    right: 'It is JSON.',
    http: answering((text, response) =>
      response.writeHead(200, { 'content-type': 'Application/JSON; charset=UTF-8' }).end(text),
    ),
  },
  {
    quirk: 'JSON comes over several lines',
    right: 'It is one message.',
    http: answering((text, response) =>
      response.writeHead(200, JSON_TYPE).end(JSON.stringify(JSON.parse(text), null, '\t')),
    ),
  },
  ...(
    [
      ['with CRLF', (text) => `event: message\r\ndata: ${text}\r\n\r\n`],
      ['with CR', (text) => `event: message\rdata: ${text}\r\r`],
      ['with comments and unknown fields', (text) => `: hello\nx: y\nretry: 10\ndata:${text}\n\n: bye\n\n`],
      ['with a byte order mark', (text) => `\uFEFFdata: ${text}\n\n`],
      [
        'with data over several lines',
        (text) => `${JSON.stringify(JSON.parse(text), null, 1).replace(/^/gm, 'data: ')}\n\n`,
      ],
      ['with an event of another name before the answer', (text) => `event: ping\ndata: now\n\ndata: ${text}\n\n`],
      ['with an empty event before the answer', (text) => `id: 1\ndata:\n\ndata: ${text}\n\n`],
    ] as readonly (readonly [string, (text: string) => string])[]
  ).map(([name, frame]) => ({
    quirk: `Event streams come ${name}`,
    right: 'They are read as the HTML standard says.',
    http: answering((text, response) =>
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end(frame(text)),
    ),
    ...(name === 'with CR' && { direct: NO_ANSWER, through: SOUND }),
  })),
  {
    quirk: 'A balancer keeps a session at its machine by a cookie',
    right: 'The cookie is sent back.',
    http: {
      take: ({ message, headers }, response, server) => {
        if (message.method === 'initialize') {
          server.soundly({ message, method: 'POST' } as HttpRequest, response, { 'set-cookie': 'AWSALB=one; Path=/' });
          return true;
        }
        if (message.id === undefined || headers.cookie === 'AWSALB=one' || message.method === 'server/discover')
          return false;
        response.writeHead(502).end();
        return true;
      },
    },
    direct: `${FAILS}: Streamable HTTP error: Error POSTing to endpoint: `,
    through: SOUND,
  },
];

export const REMOTE: readonly Row[] = [...CODINGS, ...FORMS, ...HABITS, ...FORGOTTEN, ...WORDS];
