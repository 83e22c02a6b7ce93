import { describe, expect, it } from 'vitest';
import type { ApprovalVerdict } from '../../src/spec/tool-approvals.js';
import { type ServerScript, startGateway, toolOf } from '../support/scripted-gateway.js';
import { flush } from '../support/wire.js';
import { seeing } from './seeing-one-server.js';

const SEARCH = toolOf('search', {
  inputSchema: { type: 'object', properties: { q: {}, owner: {} }, required: ['q', 'owner'] },
});
const SHAPES: ServerScript = {
  tools: [SEARCH, 'plain'],
  shapes: { rename: { search: 'find' }, params: { search: { hide: ['owner'], set: { owner: 'me' } } } },
};

async function shaping(script: Partial<ServerScript> = {}) {
  const world = await startGateway({ servers: { a: { ...SHAPES, ...script } } });
  const client = world.connect().greet();
  const sent = () =>
    world
      .server('a')
      .child.asked('tools/call')
      .map(({ params }) => params);
  return { ...world, client, sent };
}

describe('a server whose tools the configuration shapes', () => {
  it('gets calls under its own names and with the values of the configuration', async () => {
    const { client, sent } = await shaping();
    client.request(1, 'tools/list');
    const [find] = client.answerTo(1)?.result.tools ?? [];
    expect(find).toMatchObject({ name: 'a__find', inputSchema: { properties: { q: {} }, required: ['q'] } });
    client.call(2, 'a__find', { arguments: { q: 'x', owner: 'you' } });
    client.call(3, 'a__plain', { arguments: { owner: 'you' } });
    expect(sent()).toEqual([
      { name: 'search', arguments: { owner: 'me', q: 'x' } },
      { name: 'plain', arguments: { owner: 'you' } },
    ]);
  });

  it.each(['search', 'find', 'a__search'])('gets the values also if the client calls the tool %s', async (name) => {
    const { client, sent } = await shaping({ prefix: name === 'a__search' ? 'a' : '' });
    client.call(1, name, { arguments: { owner: 'you' } });
    expect(sent()).toEqual([{ name: 'search', arguments: { owner: 'me' } }]);
  });

  it('is judged by its own definitions, annotations included', async () => {
    const judged: string[] = [];
    const approvals = {
      facts: { tools: 0, isFirstUse: false, fault: undefined, advice: '' },
      judge: (definitions: ReadonlyMap<string, string>) => {
        judged.push(...definitions.values());
        return new Map([...definitions.keys()].map((name): [string, ApprovalVerdict] => [name, 'approved']));
      },
    };
    const shapes = { ...SHAPES.shapes, annotate: { '*': { title: 'Mine', readOnlyHint: true } } };
    const { client, sent } = await shaping({ approvals, shapes });
    client.request('list', 'tools/list');
    expect(client.answerTo('list')?.result.tools[0]).toMatchObject({
      title: 'Mine',
      annotations: { readOnlyHint: true },
    });
    expect(JSON.parse(judged[0] ?? '')).toEqual(JSON.parse(SEARCH));
    client.call(1, 'a__find', {});
    expect(sent()).toHaveLength(1);
  });

  it('is shaped for clients that see it alone, too', async () => {
    const { one, child } = await seeing({
      ...SHAPES,
      pages: [`{"tools":[${SEARCH},{"name":"plain" ,"inputSchema":{"type":"object"}}]}`],
    });
    one.request(1, 'tools/list');
    await flush();
    expect(one.answerTo(1)?.result.tools).toEqual([
      { name: 'find', inputSchema: { type: 'object', properties: { q: {} }, required: ['q'] } },
      { name: 'plain', inputSchema: { type: 'object' } },
    ]);
    one.call(2, 'find', { arguments: { owner: 'you' } });
    expect(
      child()
        .asked('tools/call')
        .map(({ params }) => params),
    ).toEqual([{ name: 'search', arguments: { owner: 'me' } }]);
  });
});
