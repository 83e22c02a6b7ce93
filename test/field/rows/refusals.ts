// Servers behind a URL that refuse requests for a while, or one of their tools, and answers in odd forms.
import type { ServerResponse } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Message } from '../../support/wire.js';
import type { HttpPlay, HttpRequest, HttpSpeaker } from '../http-play.js';
import type { FieldClient } from '../legs.js';
import { tool } from '../play.js';
import { FAILS, NO_ANSWER, type Row, SOUND } from '../row.js';

const JSON_TYPE = { 'content-type': 'application/json' };
const STREAM_TYPE = { 'content-type': 'text/event-stream' };
const SESSION = { 'mcp-session-id': 's' };
const REASON = '{"error":"This tool needs the paid plan"}';

/** Takes a request. Returns whether it did. */
type Take = (request: HttpRequest, response: ServerResponse, server: HttpSpeaker) => boolean;

/** A server with sessions that takes requests of these methods in its own way. */
function inSession(method: RegExp, take: (...args: Parameters<Take>) => unknown, more: HttpPlay = {}): HttpPlay {
  return {
    ...more,
    take: (request, response, server) => {
      if (request.message.method === 'initialize') {
        server.soundly(request, response, SESSION);
        return true;
      }
      return method.test(request.message.method ?? '') && take(request, response, server) !== false;
    },
  };
}

/** How many requests of this method the server has heard. */
function countOf({ heard }: HttpSpeaker, method: string): number {
  return heard.filter(({ message }) => message.method === method).length;
}

function sendError({ message: { id } }: HttpRequest, response: ServerResponse, error: Message, status = 200): void {
  response.writeHead(status, JSON_TYPE).end(JSON.stringify({ jsonrpc: '2.0', id, error }));
}

/** A method that is refused the first time. */
function onceRefused(method: string, status: number, headers: Record<string, string> = {}): Row {
  const after = headers['retry-after'];
  return {
    quirk: `\`${method}\` is refused once with ${status}${after === undefined ? '' : `, and \`Retry-After: ${after}\``}`,
    right: 'It is sent again, and the client hears of the list.',
    http: {
      take: ({ message }, response, server) => {
        if (message.method !== method || countOf(server, method) > 1) return false;
        response.writeHead(status, headers).end('<title>Try again later</title>');
        return true;
      },
    },
    ask: async (asked) => {
      while ((await asked.tools()) === 'tools: none') {
        const { length } = asked.notified;
        while (asked.notified.length === length) await nextTurn();
      }
      return `${await asked.tools()}; ${await asked.call()}`;
    },
    direct: `${FAILS}: Streamable HTTP error: Error POSTing to endpoint: <title>Try again later</title>`,
    through: SOUND,
  };
}

/** A tool whose calls are refused, before a sound one. */
function oneRefused(status: number, headers: Record<string, string> = {}, key = 'good'): Row {
  return {
    quirk: `The calls of one tool are refused with ${status}${key === '' ? ', and there are no credentials' : ''}`,
    right: 'The refusal costs that call, and the client gets its reason.',
    ...(key !== '' && { entry: { headers: { 'X-Key': key } } }),
    http: inSession(
      /^tools\/call$/,
      ({ message }, response) =>
        message.params.name === 'secret' && response.writeHead(status, { ...JSON_TYPE, ...headers }).end(REASON),
      { tools: [tool('secret'), tool('echo')] },
    ),
    ask: async (asked) => {
      const reasons = [await wordsOf(asked, 'secret'), await wordsOf(asked, 'secret')];
      const isSaid = reasons.every((text) => text.includes('This tool needs the paid plan'));
      return `${isSaid ? 'refused with the reason' : reasons.join('; ')}; ${await asked.tools()}; ${await asked.call()}`;
    },
    direct: 'refused with the reason; tools: secret echo; echo: hello',
  };
}

/** What a call gives, or the words with which it fails. */
async function wordsOf(asked: FieldClient, name: string, args: Message = {}): Promise<string> {
  return await asked.call(name, args).catch(({ message }: Error) => message);
}

/** Errors that servers also use for lost sessions. */
function denied(code: number): Row {
  const denial = `MCP error ${code}: tool call denied`;
  return {
    quirk: `Some calls are denied with ${code}`,
    right: 'Only they fail, and no other session is opened.',
    http: inSession(
      /^tools\/call$/,
      (request, response) =>
        request.message.params.arguments.text === 'deny' &&
        sendError(request, response, { code, message: 'tool call denied' }),
    ),
    ask: async (asked) => {
      const texts = ['a', 'deny', 'b', 'deny'];
      const all = await Promise.all(texts.map((text) => wordsOf(asked, 'echo', { text })));
      return `${all.join('; ')}; ${await asked.call()}`;
    },
    direct: `echo: a; ${denial}; echo: b; ${denial}; echo: hello`,
  };
}

/** All answers have these headers in place of those of JSON. */
function typed(name: string, headers: Record<string, string>): Row {
  return {
    quirk: `Answers in JSON have ${name}`,
    right: 'They are read as JSON.',
    http: {
      take: ({ message }, response, server) => {
        const answer = server.answerTo(message);
        if (answer === undefined) return false;
        response.writeHead(200, headers).end(JSON.stringify(answer));
        return true;
      },
    },
    direct: `${FAILS}: Streamable HTTP error: Unexpected content type: ${headers['content-type'] ?? 'null'}`,
    through: SOUND,
  };
}

/** An error that names another id than the call. */
function withId(id: unknown): Row {
  return {
    quirk: `The error of a call has the id ${JSON.stringify(id)}`,
    right: 'The error answers the call, on whose answer it comes.',
    http: {
      take: ({ message }, response) => {
        if (message.method !== 'tools/call') return false;
        const error = { code: -32_600, message: 'The key has expired' };
        response.writeHead(200, JSON_TYPE).end(JSON.stringify({ jsonrpc: '2.0', id, error }));
        return true;
      },
    },
    ask: (asked) => asked.call(),
    direct: NO_ANSWER,
    through: `${FAILS}: The key has expired`,
  };
}

export const REFUSALS: readonly Row[] = [
  onceRefused('tools/list', 429),
  onceRefused('tools/list', 429, { 'retry-after': '0' }),
  onceRefused('tools/list', 429, { 'retry-after': 'Wed, 21 Oct 2015 07:28:00 GMT' }),
  ...[408, 500, 502, 503, 504].map((status) => onceRefused('initialize', status)),
  ...[400, 401, 402, 404, 405, 410, 413, 501].map((status) => oneRefused(status)),
  oneRefused(403, { 'www-authenticate': 'Bearer error="insufficient_scope"' }),
  oneRefused(401, {}, ''),
  ...[-32_000, -32_001, -32_002, -32_600].map(denied),
  {
    quirk: 'A method that is unknown is refused with 400',
    right: 'The session goes on.',
    http: inSession(
      /^logging\/setLevel$/,
      (_, response) => response.writeHead(400, JSON_TYPE).end('{"error":"Missing handler: logging/setLevel"}'),
      { hello: { capabilities: { tools: {}, logging: {} } } },
    ),
    ask: async (asked) => {
      await asked.client.setLoggingLevel('info').catch(() => {});
      return `${await asked.tools()}; ${await asked.call()}`;
    },
  },
  {
    quirk: 'Lists that are declared and unknown are refused with 404 in a session',
    right: 'The session goes on, and the server counts as one without these lists.',
    http: inSession(
      /^(prompts|resources)\//,
      (request, response) => sendError(request, response, { code: -32_601, message: 'Method not found' }, 404),
      { hello: { capabilities: { tools: {}, prompts: {}, resources: {} } } },
    ),
  },
  {
    quirk: 'A handshake of a newer revision is refused with 400 and the id "server-error"',
    right: 'The older one is tried.',
    http: {
      take: ({ message }, response) => {
        if (message.method !== 'server/discover') return false;
        const error = { code: -32_600, message: 'Bad Request: Unsupported protocol version' };
        response.writeHead(400, JSON_TYPE).end(JSON.stringify({ jsonrpc: '2.0', id: 'server-error', error }));
        return true;
      },
    },
  },
  ...(
    [
      ['200 and a text', 200, 'OK'],
      ['400', 400, 'no'],
      ['500', 500, 'no'],
    ] as const
  ).map(
    ([name, status, body]): Row => ({
      quirk: `\`initialized\` is answered with ${name}`,
      right: 'The answer to a notification means nothing.',
      http: {
        take: ({ message }, response) => {
          if (message.method !== 'notifications/initialized') return false;
          response.writeHead(status, { 'content-type': 'text/plain' }).end(body);
          return true;
        },
      },
      direct: status === 200 ? SOUND : `${FAILS}: Streamable HTTP error: Error POSTing to endpoint: ${body}`,
      through: SOUND,
    }),
  ),
  typed('no media type', {}),
  ...['text/plain', 'text/json', 'application/vnd.api+json', 'application/json, application/json'].map((type) =>
    typed(`the media type \`${type}\``, { 'content-type': type }),
  ),
  withId('server-error'),
  withId(''),
  {
    quirk: 'Each answer names another session, and only that one is known',
    right: 'The session of the latest answer is used, as the official SDK does.',
    http: {
      take: (request, response, server) => {
        const { method, headers, message } = request;
        if (method !== 'POST') return false;
        const count = server.heard.filter((one) => one.method === 'POST').length;
        const isKnown = message.method === 'initialize' || headers['mcp-session-id'] === `s${count - 1}`;
        if (isKnown) server.soundly(request, response, { 'mcp-session-id': `s${count}` });
        else response.writeHead(404).end();
        return true;
      },
    },
    ask: async (asked) => `${await asked.tools()}; ${await asked.call()}; ${await asked.call()}`,
    direct: `${SOUND}; echo: hello`,
  },
  {
    quirk: 'The session is an empty text',
    right: 'There is no session.',
    http: {
      take: (request, response, server) => {
        if (request.message.method !== 'initialize') return false;
        server.soundly(request, response, { 'mcp-session-id': '' });
        return true;
      },
    },
  },
  {
    quirk: 'The stream of GET ends, and is refused with 400 from then on',
    right: 'There is no such stream, and all else works.',
    http: inSession(/^$/, ({ method }, response, { heard }) => {
      if (method !== 'GET') return false;
      if (heard.filter((one) => one.method === 'GET').length > 1) response.writeHead(400).end('Bad Request');
      else response.writeHead(200, STREAM_TYPE).end(': bye\n\n');
      return true;
    }),
  },
];
