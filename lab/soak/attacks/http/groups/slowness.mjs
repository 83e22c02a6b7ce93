// Clients that take their time: heads and bodies that never end, and connections that say nothing.
import { wait } from '../../../wait.mjs';
import { soundClient } from '../gateway.mjs';
import { exchange, request } from '../wire.mjs';

const PAUSE_MS = 300;
/** A head has 10 s, and a request here as well; the rest is for the machine. */
const HEAD_WITHIN_MS = 25_000;
const slowly = (text, pauseMs = PAUSE_MS) => [...text].flatMap((byte) => [byte, pauseMs]);
const isClosed = ({ isClosed: closed }) => (closed ? undefined : 'the connection stays open');
const LONG = { waitMs: HEAD_WITHIN_MS };

export const slowness = {
  name: 'slow clients',
  isSlow: true,
  together: 20,
  // With the usual request rate, some of the 100 slow bodies would be refused instead of cut.
  limits: { receiveTimeout: '10s', requestsPerSecond: 100_000, requestBurst: 100_000 },
  attacks: [
    {
      name: 'a head byte by byte',
      raw: () => slowly('GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: aaaaaaaaaaaaaaaaa'),
      how: LONG,
      expect: [408, 'closed'],
      check: isClosed,
    },
    {
      name: 'a head that never ends',
      raw: () => ['GET /healthz HTTP/1.1\r\nhost: localhost\r\n'],
      how: LONG,
      expect: [408, 'closed'],
      check: isClosed,
    },
    { name: 'one byte, then nothing', raw: () => ['P'], how: LONG, expect: [408, 'closed'], check: isClosed },
    { name: 'a connection that says nothing', raw: () => [], how: LONG, expect: [408, 'closed'], check: isClosed },
    {
      name: 'empty lines instead of a request',
      raw: () => Array.from({ length: 60 }, () => ['\r\n', 200]).flat(),
      how: LONG,
      expect: [400, 408, 'closed'],
      check: isClosed,
    },
    {
      name: 'headers, one each 300 ms',
      raw: () => ['GET /healthz HTTP/1.1\r\n', ...Array.from({ length: 50 }, () => ['x: y\r\n', PAUSE_MS]).flat()],
      how: LONG,
      expect: [408, 'closed'],
      check: isClosed,
    },
    {
      name: 'a body byte by byte',
      raw: ({ right, request: write }) => [
        write({ headers: { ...right.headers, 'content-length': 1_000 } }),
        ...slowly(' '.repeat(50)),
      ],
      how: LONG,
      expect: [408, 'closed'],
      check: isClosed,
    },
    {
      name: 'a body that never begins',
      raw: ({ right, request: write }) => [write({ headers: { ...right.headers, 'content-length': 1_000 } })],
      how: LONG,
      expect: [408, 'closed'],
      check: isClosed,
    },
    {
      name: 'chunks that never end',
      raw: ({ right, request: write }) => {
        const { 'content-length': _, ...headers } = right.headers;
        return [
          write({ headers: { ...headers, 'transfer-encoding': 'chunked' } }),
          ...Array.from({ length: 50 }, () => ['1\r\n \r\n', PAUSE_MS]).flat(),
        ];
      },
      how: LONG,
      expect: [408, 'closed'],
      check: isClosed,
    },
    {
      name: 'a slow second request on a connection',
      raw: ({ right, request: write }) => [
        write(right),
        300,
        ...slowly('GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: aaaaaa'),
      ],
      how: { ...LONG, responses: 2 },
      most: 2,
      expect: 200,
      check: isClosed,
    },
    {
      name: 'a slow body without a token',
      raw: ({ right, request: write }) => [
        write({ headers: { ...right.headers, authorization: undefined, 'content-length': 1_000 } }),
        ...slowly(' '.repeat(5)),
      ],
      expect: 401,
    },
    {
      name: 'half a connection: a request, then the end of sending',
      how: { end: true },
      expect: [200, 'closed'],
      // The end of a connection does not cancel a call.
      mayExecute: true,
    },
    { name: '100 slow heads at once, and a sound client beside them', act: slowHeads },
    { name: '100 slow bodies at once, and a sound client beside them', act: slowBodies },
  ],
};

async function beside({ gateway, from }, parts) {
  const slow = Promise.all(
    Array.from({ length: 100 }, () => exchange({ port: gateway.port, from, parts, waitMs: HEAD_WITHIN_MS })),
  );
  await wait(1_000);
  const { wrong, ms } = await soundClient(gateway);
  const open = (await slow).filter(({ isClosed: closed }) => !closed).length;
  if (wrong !== undefined || ms > 2_000) return `the sound client: ${wrong ?? `${ms} ms`}`;
  return open === 0 ? undefined : `${open} of 100 connections stay open`;
}

function slowHeads(context) {
  return beside(context, ['GET /healthz HTTP/1.1\r\n']);
}

function slowBodies(context) {
  const headers = { ...context.gateway.headers(context.session), 'content-length': 1_000 };
  return beside(context, [request({ headers, body: ' ' })]);
}
