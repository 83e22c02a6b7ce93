// Lists that no capability declares, revisions, and pages of lists that are not as the specification wants them.

import type { Message } from '../../support/wire.js';
import type { FieldClient } from '../legs.js';
import { type Play, type Speaker, tool } from '../play.js';
import { FAILS, type Row } from '../row.js';

/** The list of a client that follows cursors as the official examples do. */
async function allTools(asked: FieldClient): Promise<string> {
  const names: string[] = [];
  let cursor: string | undefined;
  do {
    const page: Message = await asked.get(asked.client.listTools(cursor === undefined ? {} : { cursor }));
    names.push(
      ...page.tools.map(({ name }: Message) => name).filter((name: string) => !name.startsWith('trunkline__')),
    );
    cursor = page.nextCursor;
  } while (cursor);
  return `tools: ${names.join(' ')}`;
}

/** A server whose first page ends with this cursor, and whose second page is asked for with its text. */
function paging(what: string, nextCursor: unknown, outcome: Pick<Row, 'direct' | 'through' | 'status'>): Row {
  const list = (request: Message, server: Speaker) => {
    const isFirst = request.params?.cursor === undefined;
    const isNext = request.params?.cursor === String(nextCursor);
    if (isFirst) server.answer(request, { tools: [tool('a')], nextCursor });
    else server.answer(request, isNext ? { tools: [tool('b')], nextCursor: null } : { tools: [tool('a')] });
  };
  return {
    quirk: `The cursor of the next page is ${what}`,
    right: 'A number is its text, `null` and an empty text are none, and anything else ends the list with a note.',
    server: { on: { 'tools/list': list } },
    ask: allTools,
    ...outcome,
  };
}

const BARE: Play = { hello: { capabilities: {} } };
const EMPTY = 'A server without capabilities may have lists, and official clients ask it for them.';

/** A client that asks for the first page with a cursor. */
function firstPage(cursor: unknown, direct: string): Row {
  return {
    quirk: `A client asks for the first page with the cursor ${JSON.stringify(cursor)}`,
    right: 'It gets the first page.',
    client: async (wire) => {
      await wire.hello();
      wire.say({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: { cursor } });
      return await wire.answer(1);
    },
    direct,
    through: 'tools: echo',
  };
}

export const PAGES: readonly Row[] = [
  { quirk: 'No capability is declared, and there are tools', right: EMPTY, server: BARE },
  {
    quirk: 'No capability is declared, and there are prompts and resources',
    right: EMPTY,
    server: { ...BARE, prompts: [{ name: 'p' }], resources: [{ uri: 'x://1', name: 'r' }] },
    ask: async (client) => `${await client.prompts()}; ${await client.resources()}`,
    direct: 'prompts: p; resources: x://1',
  },
  {
    quirk: 'No capability is declared, and there is no list',
    right: 'The server counts as one without lists.',
    server: { ...BARE, on: { 'tools/list': ({ id }, server) => server.say(unknownMethod(id)) } },
    ask: (client) => client.tools(),
    direct: `${FAILS}: Method not found`,
    through: 'tools: none',
    status: /row\d+: \w+, no tools\n(?!(?:.|\n)*list failed)/,
  },
  {
    quirk: 'The server chooses revision 2024-10-07',
    right: 'The official SDK accepts it.',
    server: { hello: { protocolVersion: '2024-10-07' } },
  },
  {
    quirk: 'A client asks for revision 2024-10-07',
    right: 'The official SDK agrees on it.',
    client: async (wire) => {
      await wire.hello('2024-10-07');
      return (await wire.find(({ id }) => id === 0))?.result.protocolVersion;
    },
    direct: '2024-10-07',
  },
  {
    quirk: 'A client asks for a revision that is unknown',
    right: 'It is offered the latest one.',
    client: async (wire) => {
      await wire.hello('1.0');
      return (await wire.find(({ id }) => id === 0))?.result.protocolVersion;
    },
    direct: '2025-11-25',
  },
  paging('a number', 2, { direct: `${FAILS}: the SDK rejects the answer`, through: 'tools: a b' }),
  paging('zero', 0, { direct: `${FAILS}: the SDK rejects the answer`, through: 'tools: a b' }),
  paging('an empty text', '', { direct: 'tools: a' }),
  paging('null', null, { direct: `${FAILS}: the SDK rejects the answer`, through: 'tools: a' }),
  paging('a text', 'next', { direct: `${FAILS}: the SDK rejects the answer`, through: 'tools: a b' }),
  paging(
    'an object',
    {},
    {
      direct: `${FAILS}: the SDK rejects the answer`,
      through: 'tools: a',
      status: /list cut short: the cursor of the next page is no text/,
    },
  ),
  {
    quirk: 'The cursors never end',
    right: 'The list ends with a note.',
    server: {
      on: {
        'tools/list': (request, server) => {
          const page = Number(request.params?.cursor ?? 1);
          server.answer(request, { tools: [tool(`t${page}`)], nextCursor: `${page + 1}` });
        },
      },
    },
    ask: async (client) => `${(await client.tools()).split(' ')[1]}`,
    direct: 't1',
    status: /list cut short: more than 100 pages/,
  },
  firstPage(null, `${FAILS}: -32603`),
  firstPage('', 'tools: echo'),
];

function unknownMethod(id: unknown): Message {
  return { jsonrpc: '2.0', id, error: { code: -32601, message: 'Method not found' } };
}
