import { describe, expect, it } from 'vitest';
import type { NamedViewsOptions } from '../../../src/gateway/catalog/tool-policy.js';
import { type ServerScript, startGateway, toolOf } from '../../support/scripted-gateway.js';
import { flush, type Message } from '../../support/wire.js';

const MINUTE_MS = 60_000;
const TOOL = JSON.parse(toolOf('t'));
const NOT_LISTED = { capabilities: { tools: {} } };

/** A server with or without caching hints for its tools. Change `lists` to change its answers. */
function serverOf(lists: Message, members: Partial<ServerScript> = {}): ServerScript {
  return { hasBridge: true, isModern: true, hello: NOT_LISTED, lists, ...members };
}

function tools(hint: Message = {}, list: readonly unknown[] = [TOOL]): Message {
  return { 'tools/list': { resultType: 'complete', tools: list, ...hint } };
}

/** A running gateway, and a client without a handshake that requests the tools. */
async function serving(servers: Readonly<Record<string, ServerScript>>, views?: NamedViewsOptions) {
  const world = await startGateway({ servers, ...(views && { views }) });
  const client = world.connect();
  let id = 0;
  const list = async (method = 'tools/list'): Promise<Message> => {
    id += 1;
    client.modernRequest(id, method);
    await flush();
    return client.answerTo(id)?.result;
  };
  const hint = async (method?: string) => {
    const { ttlMs, cacheScope } = await list(method);
    return [ttlMs, cacheScope];
  };
  const pass = async (ms: number) => {
    world.clock.advance(ms);
    await flush();
  };
  return { ...world, client, list, hint, pass };
}

const PUBLIC_MINUTE = { ttlMs: MINUTE_MS, cacheScope: 'public' };

describe('a merged list', () => {
  it('may be cached for the shortest time that is left of what servers say, and not longer than 5 minutes', async () => {
    const { hint, pass } = await serving({
      a: serverOf(tools({ ttlMs: 3_600_000, cacheScope: 'public' })),
      b: serverOf(tools(PUBLIC_MINUTE)),
    });
    expect(await hint()).toEqual([MINUTE_MS, 'public']);
    await pass(20_000);
    expect(await hint()).toEqual([40_000, 'public']);
    const { hint: ofLongest } = await serving({ a: serverOf(tools({ ttlMs: 3_600_000, cacheScope: 'public' })) });
    expect(await ofLongest()).toEqual([300_000, 'public']);
  });

  it('is private if one server says so, or does not say', async () => {
    const a = serverOf(tools(PUBLIC_MINUTE));
    const { hint } = await serving({ a, b: serverOf(tools({ ttlMs: MINUTE_MS, cacheScope: 'private' })) });
    expect(await hint()).toEqual([MINUTE_MS, 'private']);
    const { hint: withLegacy } = await serving({ a, b: { tools: ['t'] } });
    expect(await withLegacy()).toEqual([MINUTE_MS, 'private']);
    const { hint: withoutTime } = await serving({ a: serverOf(tools({ cacheScope: 'public' })) });
    expect(await withoutTime()).toEqual([0, 'public']);
  });

  it('is public where the server that does not say offers no such list', async () => {
    const a = serverOf(
      { ...tools(), 'prompts/list': { prompts: [], ...PUBLIC_MINUTE } },
      { hello: { capabilities: { tools: {}, prompts: {} } } },
    );
    const { hint } = await serving({ a, b: { tools: ['t'] } });
    expect(await hint('prompts/list')).toEqual([MINUTE_MS, 'public']);
    expect(await hint('resources/list')).toEqual([300_000, 'private']);
  });

  it('is private if views of the configuration may show other clients another one', async () => {
    const views = { views: [{ name: 'few', servers: ['a'] }], clients: [] };
    const { hint } = await serving({ a: serverOf(tools(PUBLIC_MINUTE)) }, views);
    expect(await hint()).toEqual([MINUTE_MS, 'private']);
  });
});

describe('a list that its server does not let be cached any longer', () => {
  const names = ({ tools: listed }: Message) => listed.map(({ name }: Message) => name);

  it('F172: is read again when a client is shown it, so that changes without an announcement are found', async () => {
    const lists = tools(PUBLIC_MINUTE);
    const { server, list, hint, pass } = await serving({ a: serverOf(lists) });
    const reads = () => server('a').child.asked('tools/list').length;
    lists['tools/list'] = tools(PUBLIC_MINUTE, [TOOL, JSON.parse(toolOf('new'))])['tools/list'];
    await pass(MINUTE_MS - 1);
    await list();
    await pass(1);
    expect(reads()).toBe(1);
    const stale = await list();
    expect([names(stale), stale.ttlMs]).toEqual([['a__t'], 0]);
    await pass(0);
    expect(reads()).toBe(2);
    expect(names(await list())).toEqual(['a__t', 'a__new']);
    expect(await hint()).toEqual([MINUTE_MS, 'public']);
  });

  it('F173: is not read more often than every 5 s', async () => {
    const { server, list, pass } = await serving({ a: serverOf(tools({ ttlMs: 0, cacheScope: 'private' })) });
    const reads = () => server('a').child.asked('tools/list').length;
    await pass(4_999);
    for (let count = 0; count < 3; count += 1) await list();
    await pass(0);
    expect(reads()).toBe(1);
    await pass(1);
    for (let count = 0; count < 3; count += 1) await list();
    await pass(4_999);
    expect(reads()).toBe(2);
  });

  it('is announced to clients with a handshake if it has changed', async () => {
    const lists = tools(PUBLIC_MINUTE);
    const { connect, pass } = await serving({ a: serverOf(lists) });
    const client = connect().greet();
    client.request(1, 'tools/list');
    lists['tools/list'] = tools(PUBLIC_MINUTE, [])['tools/list'];
    await pass(MINUTE_MS);
    client.request(2, 'tools/list');
    await pass(250);
    await pass(250);
    const announced = client.received.messages.filter(({ method }) => method !== undefined);
    expect(announced.map(({ method }) => method)).toEqual(['notifications/tools/list_changed']);
  });
});

describe('a result that is relayed', () => {
  it('F174: keeps the hints of its server, and gets those that keep nothing if the server has none', async () => {
    const resources = {
      'resources/list': { resources: [{ uri: 'x://a', name: 'a' }] },
      'resources/templates/list': { resourceTemplates: [] },
    };
    const { server, client } = await serving({
      a: serverOf(resources, { hello: { capabilities: { resources: {} } } }),
    });
    const hintOf = async (id: number, members: Message) => {
      client.modernRequest(id, 'resources/read', { uri: 'x://a' });
      server('a').child.reply('resources/read', { contents: [], ...members });
      await flush();
      const { ttlMs, cacheScope } = client.answerTo(id)?.result ?? {};
      return [ttlMs, cacheScope];
    };
    expect(await hintOf(1, { resultType: 'complete', ...PUBLIC_MINUTE })).toEqual([MINUTE_MS, 'public']);
    expect(await hintOf(2, { resultType: 'complete' })).toEqual([0, 'private']);
    expect(await hintOf(3, {})).toEqual([0, 'private']);
  });
});
