// Whole exchanges over HTTP: the order of requests, streams that end early, forms of answers.
import type { Message } from '../../support/wire.js';
import type { HttpPlay } from '../http-play.js';
import type { Row } from '../row.js';

const STREAM_TYPE = { 'content-type': 'text/event-stream' };
const JSON_TYPE = { 'content-type': 'application/json' };

/** A server that refuses all until it has read `initialized`, for which it takes some time. */
function slowToBegin(): HttpPlay {
  let isReady = false;
  return {
    take: ({ message }, response) => {
      if (message.method === 'notifications/initialized') {
        setTimeout(() => {
          isReady = true;
          response.writeHead(202).end();
        }, 50);
        return true;
      }
      if (isReady || message.method === 'initialize' || message.id === undefined) return false;
      const error = { code: -32_600, message: 'Client must send notifications/initialized before making requests' };
      response.writeHead(200, JSON_TYPE).end(JSON.stringify({ jsonrpc: '2.0', id: message.id, error }));
      return true;
    },
  };
}

/** A server whose stream ends before the answer, which comes on the stream that continues it. */
function continued(begin: string): HttpPlay {
  let answer: Message | undefined;
  return {
    take: ({ method, message, headers }, response, server) => {
      if (method === 'GET' && headers['last-event-id'] !== undefined) {
        response.writeHead(200, STREAM_TYPE).end(`id: e2\ndata: ${JSON.stringify(answer)}\n\n`);
        return true;
      }
      if (message.method !== 'tools/call') return false;
      answer = server.answerTo(message);
      response.writeHead(200, STREAM_TYPE).end(begin);
      return true;
    },
  };
}

export const EXCHANGES: readonly Row[] = [
  {
    quirk: 'Each answer comes in an array',
    right: 'It is that message.',
    http: {
      take: ({ message }, response, server) => {
        const answer = server.answerTo(message);
        if (answer === undefined) return false;
        response.writeHead(200, JSON_TYPE).end(JSON.stringify([answer]));
        return true;
      },
    },
  },
  {
    quirk: 'Requests are refused until `initialized` was read',
    right: 'They wait for its answer.',
    http: slowToBegin(),
  },
  {
    quirk: 'A stream ends before its answer, after an event with an id and no data',
    right: 'The stream is continued from that event.',
    http: continued('id: e1\nretry: 10\ndata:\n\n'),
  },
  {
    quirk: 'A stream ends before its answer, after a log message with an id',
    right: 'The stream is continued from that event.',
    http: continued(
      'id: e1\nretry: 10\ndata: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}\n\n',
    ),
  },
  {
    quirk: 'A list is a bare array',
    right: 'Its server has no list, and is called all the same.',
    http: { on: { 'tools/list': [{ name: 'echo', inputSchema: { type: 'object' } }] as never } },
    ask: (client) => client.call(),
    direct: 'echo: hello',
  },
  {
    quirk: 'Progress has a total that is null',
    right: 'The call is answered.',
    http: {
      take: ({ message }, response, server) => {
        const progressToken = message.params?._meta?.progressToken;
        if (message.method !== 'tools/call' || progressToken === undefined) return false;
        const params = { progressToken, progress: 1, total: null };
        const progress = { jsonrpc: '2.0', method: 'notifications/progress', params };
        response
          .writeHead(200, STREAM_TYPE)
          .end(`data: ${JSON.stringify(progress)}\n\ndata: ${JSON.stringify(server.answerTo(message))}\n\n`);
        return true;
      },
    },
    ask: (client) => client.call('echo', {}, { onprogress: () => {} }),
    direct: 'echo: hello',
  },
];
