import { describe, expect, it } from 'vitest';
import { type Catalog, changedLists, mergeCatalogs } from '../../../src/gateway/catalog/catalog.js';
import { hmac } from '../../support/hmac.js';
import { type Offer, offering, scriptGateway, startGateway } from '../../support/scripted-gateway.js';
import { bytesOf, flush } from '../../support/wire.js';

const A: Offer = { prompts: ['p'], resources: ['x://a/1', 'x://both'], templates: ['x://a/{id}'] };
const B: Offer = { prompts: ['p', 'q'], resources: ['x://both', 'x://b/1'], templates: ['x://b/{id}'] };

async function merged(offers: Readonly<Record<string, Offer>> = { a: A, b: B }) {
  const servers = Object.fromEntries(Object.entries(offers).map(([key, offer]) => [key, offering(offer)]));
  const world = await startGateway({ servers });
  return world;
}

function textOf(catalog: Catalog): unknown {
  return JSON.parse(Buffer.from(catalog.pagesFor(undefined).at(undefined) ?? []).toString());
}

describe('the merged lists', () => {
  it('have the servers in order, prompts under their prefixes and resources under their URIs', async () => {
    const { gateway } = await merged();
    const { tools, prompts, resources, templates } = gateway.catalogs;
    expect(textOf(tools)).toEqual({ tools: [] });
    expect(textOf(prompts)).toEqual({ prompts: [{ name: 'a__p' }, { name: 'b__p' }, { name: 'b__q' }] });
    expect(resources.shadowed).toEqual([{ key: 'b', exposed: 'x://both', owner: 'a' }]);
    expect(textOf(resources)).toEqual({
      resources: ['x://a/1', 'x://both', 'x://b/1'].map((uri) => ({ uri, name: uri })),
    });
    expect(textOf(templates)).toEqual({
      resourceTemplates: ['x://a/{id}', 'x://b/{id}'].map((uriTemplate) => ({ uriTemplate, name: uriTemplate })),
    });
  });

  it('take a URI for nothing but itself, even if it begins like a name with a prefix', async () => {
    const { gateway } = await merged();
    const { prompts, resources, templates } = gateway.catalogs;
    expect(prompts.resolve('a__unlisted')).toMatchObject({ key: 'a', original: 'unlisted' });
    expect(prompts.resolve('q')).toMatchObject({ key: 'b', original: 'q' });
    for (const catalog of [resources, templates]) expect(catalog.resolve('a__unlisted')).toBeUndefined();
    expect([...resources.routes].map(([uri, { key }]) => [uri, key])).toEqual([
      ['x://a/1', 'a'],
      ['x://both', 'a'],
      ['x://b/1', 'b'],
    ]);
  });

  it('have tools of our own in the list of tools alone', async () => {
    const { server } = await merged();
    const own = [{ name: 'own', entry: bytesOf('{"name":"trunkline__status"}') }];
    const catalogs = mergeCatalogs({
      servers: [server('a').backend],
      ownTools: own,
      naming: 'exposed',
      paging: { hmac },
    });
    expect(textOf(catalogs.tools)).toEqual({ tools: [{ name: 'trunkline__status' }] });
    for (const kind of ['prompts', 'resources', 'templates'] as const) {
      expect(Buffer.from(catalogs[kind].pagesFor(undefined).at(undefined) ?? []).toString()).not.toContain('trunkline');
    }
  });

  it('come on pages when they are long, and a cursor is good until the list is another', async () => {
    const names = (key: string) => Array.from({ length: 600 }, (_, index) => `${key}${index}`);
    const world = scriptGateway({
      servers: { a: offering({ prompts: names('a') }), b: offering({ prompts: names('b') }) },
    });
    const client = world.connect().greet();
    client.request('held', 'prompts/list');
    expect(client.received.lines).toEqual([]);
    await world.startAll();
    const first = client.answerTo('held')?.result;
    client.request('first', 'prompts/list');
    expect(client.answerTo('first')?.result).toEqual(first);
    client.request('second', 'prompts/list', { cursor: first.nextCursor });
    const second = client.answerTo('second')?.result;
    expect([first.prompts.length, second.prompts.length, second.nextCursor]).toEqual([1_000, 200, undefined]);
    expect([...first.prompts, ...second.prompts].map(({ name }) => name)).toEqual([
      ...names('a').map((name) => `a__${name}`),
      ...names('b').map((name) => `b__${name}`),
    ]);

    client.request('wrong', 'tools/list', { cursor: first.nextCursor });
    expect(client.answerTo('wrong')?.error).toEqual({ code: -32602, message: 'Invalid cursor' });
    world.server('a').crash();
    await world.server('a').start();
    client.request('same', 'prompts/list', { cursor: first.nextCursor });
    expect(client.answerTo('same')?.result).toEqual(second);
    world.server('a').crash('parked');
    client.request('late', 'prompts/list', { cursor: first.nextCursor });
    expect(client.answerTo('late')?.error).toEqual({ code: -32602, message: 'Invalid cursor' });
  });
});

describe('the lists that have changed', () => {
  it.each([
    ['nothing', A, []],
    ['a prompt more', { ...A, prompts: ['p', 'new'] }, ['prompts']],
    ['a resource less', { ...A, resources: ['x://a/1'] }, ['resources']],
    ['another template', { ...A, templates: ['x://a/{other}'] }, ['templates']],
    ['nothing left', { prompts: [], resources: [], templates: [] }, ['prompts', 'resources', 'templates']],
  ] as const)('after a restart with %s are those in which a client sees a difference', async (_, offer, kinds) => {
    const { gateway, server } = await merged({ a: A });
    const before = gateway.catalogs;
    server('a').crash();
    server('a').lists = offering(offer).lists ?? {};
    await server('a').start();
    expect(changedLists(before, gateway.catalogs)).toEqual(kinds);
    expect(changedLists(gateway.catalogs, before)).toEqual(kinds);
  });

  it('are told to a client that has asked for them, resources and their templates in one', async () => {
    const { server, connect, clock } = await merged({ a: A });
    const client = connect().greet();
    for (const method of ['prompts/list', 'resources/list', 'resources/templates/list']) client.request(method, method);
    client.received.take();
    server('a').crash('parked');
    clock.advance(1_000);
    expect(client.received.take().map(({ method }) => method)).toEqual([
      'notifications/prompts/list_changed',
      'notifications/resources/list_changed',
    ]);
  });

  it('are read anew when the server says so: those, and no others', async () => {
    const { gateway, server, clock } = await merged({ a: A });
    const { child } = server('a');
    const asked = () =>
      ['prompts/list', 'resources/list', 'resources/templates/list'].map((m) => child.asked(m).length);
    const settle = async () => {
      clock.advance(1_000);
      await flush();
    };
    expect(asked()).toEqual([1, 1, 1]);
    child.say({ jsonrpc: '2.0', method: 'notifications/prompts/list_changed' });
    await settle();
    expect(asked()).toEqual([2, 1, 1]);
    child.say({ jsonrpc: '2.0', method: 'notifications/resources/list_changed' });
    await settle();
    expect(asked()).toEqual([2, 2, 2]);
    expect(gateway.catalogs.prompts.listed.get('a')).toEqual(['a__p']);
  });
});
