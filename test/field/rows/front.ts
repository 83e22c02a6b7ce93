// What clients over HTTP send besides messages.

import type { IncomingMessage } from 'node:http';
import { type FrontClient, PAGE } from '../front.js';
import { FAILS, type Row } from '../row.js';

/** Answer of a sound call. */
const CALLED = 'hello';
/** The request is taken, and has no message as its answer. */
const TAKEN = 'taken';

type Asking = (client: FrontClient) => Promise<string>;

function inSession(ask: Asking): Asking {
  return async (client) => {
    await client.hello();
    return await ask(client);
  };
}

function stateOf({ statusCode = 0 }: IncomingMessage): string {
  return statusCode < 300 ? TAKEN : `${FAILS}: ${statusCode}`;
}

const CALL = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'echo', arguments: {} } };
const STREAM = { accept: 'text/event-stream' };

const SERVED: readonly Row[] = (
  [
    ['A sound client over HTTP', inSession((client) => client.call())],
    ['The path ends with a slash', inSession((client) => client.call({}, '/')), `${FAILS}: 404`],
    ['There is no `Accept`', inSession((client) => client.call({ accept: undefined })), `${FAILS}: 406`],
    ['`Accept` is `*/*`', inSession((client) => client.call({ accept: '*/*' })), `${FAILS}: 406`],
    [
      '`Accept` is `application/*, text/*`',
      inSession((client) => client.call({ accept: 'application/*, text/*' })),
      `${FAILS}: 406`,
    ],
    [
      '`Accept` has qualities',
      inSession((client) => client.call({ accept: 'application/json;q=0.9, text/event-stream;q=0.8' })),
    ],
    [
      '`Accept` is in capitals',
      inSession((client) => client.call({ accept: 'Application/JSON, Text/Event-Stream' })),
      `${FAILS}: 406`,
    ],
    [
      '`Content-Type` has a character set',
      inSession((client) => client.call({ 'content-type': 'application/json; charset=utf-8' })),
    ],
    ['`Content-Type` is in capitals', inSession((client) => client.call({ 'content-type': 'Application/JSON' }))],
    ['`MCP-Protocol-Version` is missing', inSession((client) => client.call({ 'mcp-protocol-version': undefined }))],
    [
      '`MCP-Protocol-Version` is an older one than agreed',
      inSession((client) => client.call({ 'mcp-protocol-version': '2025-03-26' })),
    ],
    ['The body begins with a byte order mark', inSession((client) => client.ask(`\uFEFF${JSON.stringify(CALL)}`))],
    ['The body has several lines', inSession((client) => client.ask(JSON.stringify(CALL, null, '\t')))],
    ['The body ends with a line', inSession((client) => client.ask(`${JSON.stringify(CALL)}\r\n`))],
    ['The id is a text', inSession((client) => client.ask({ ...CALL, id: 'one' }))],
    ['The id is 0', inSession((client) => client.ask({ ...CALL, id: 0 }))],
    [
      'The request has members that nobody knows',
      inSession((client) => client.ask({ ...CALL, vendor: { x: 1 } })),
      `${FAILS}: 400`,
    ],
    ['`arguments` is missing', inSession((client) => client.ask({ ...CALL, params: { name: 'echo' } }))],
    ['A client asks for revision 2024-11-05', (client) => client.hello({}, '2024-11-05'), '2024-11-05', '2024-11-05'],
    [
      'A client asks for a revision that nobody knows',
      (client) => client.hello({}, '2099-01-01'),
      '2025-11-25',
      '2025-11-25',
    ],
    [
      'A notification that nobody knows',
      inSession((client) => client.ask({ jsonrpc: '2.0', method: 'notifications/vendor' })),
      '202',
      '202',
    ],
    [
      'A ping before `initialized`',
      (client) => client.hello().then(() => client.ask({ jsonrpc: '2.0', id: 2, method: 'ping' })),
      'answered',
      'answered',
    ],
    [
      'A second stream is opened while the first one is open',
      inSession(async (client) => {
        await client.begin('GET', undefined, STREAM);
        return stateOf(await client.begin('GET', undefined, STREAM));
      }),
      `${FAILS}: 409`,
      TAKEN,
    ],
    [
      'A stream with `Accept: */*`',
      inSession(async (client) => stateOf(await client.begin('GET', undefined, { accept: '*/*' }))),
      `${FAILS}: 406`,
      TAKEN,
    ],
    [
      'A session is ended with DELETE',
      inSession(async (client) => stateOf(await client.begin('DELETE'))),
      TAKEN,
      TAKEN,
    ],
    [
      'A page asks before it sends',
      async (client) => {
        const asked = { origin: PAGE, 'access-control-request-method': 'POST' };
        return stateOf(await client.begin('OPTIONS', undefined, asked));
      },
      `${FAILS}: 405`,
      TAKEN,
    ],
  ] as readonly (readonly [string, Asking, string?, string?])[]
).map(([quirk, front, direct = CALLED, through = CALLED]) => ({
  ...{ quirk, right: 'It is served.', front, direct, through },
}));

export const FRONT: readonly Row[] = [
  ...SERVED,
  {
    quirk: '`Accept` names JSON only',
    right: 'The request is refused, because its answer may be an event stream.',
    front: inSession((client) => client.call({ accept: 'application/json' })),
    direct: `${FAILS}: 406`,
  },
];
