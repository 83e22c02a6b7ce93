import { describe, expect, it } from 'vitest';
import { reportStatus } from '../../../src/status/status.js';
import { uiAlias } from '../../../src/wire/mcp/ui-uris.js';
import { factsOf, given } from '../../status/reporting.js';
import { type ServerScript, scriptGateway, toolOf } from '../../support/scripted-gateway.js';
import { sha256 } from '../../support/sha256.js';
import { flush, type Message } from '../../support/wire.js';

const MAIN = 'ui://app/main.html';
const alias = (key: string, uri = MAIN) => uiAlias(key, uri, sha256);

interface App {
  readonly lists?: readonly string[];
  readonly pointsTo?: readonly string[];
  readonly templates?: readonly string[];
}

/** A server that lists these user interfaces, and has a tool for each one that a tool names. */
function app({ lists = [MAIN], pointsTo = [MAIN], templates = [] }: App = {}): ServerScript {
  return {
    tools: pointsTo.map((resourceUri, index) => toolOf(`show${index}`, { _meta: { ui: { resourceUri } } })),
    hello: { capabilities: { tools: {}, resources: { subscribe: true }, completions: {} } },
    lists: {
      'resources/list': { resources: lists.map((uri) => ({ uri, name: 'n' })) },
      'resources/templates/list': { resourceTemplates: templates.map((uriTemplate) => ({ uriTemplate, name: 'n' })) },
    },
  };
}

/** Two servers with the same user interface. By default, `b` lists the same as `a`. */
async function apps(servers: Readonly<Record<string, ServerScript>> = { a: app(), b: app() }, isStarted = true) {
  const world = scriptGateway({ servers });
  if (isStarted) await world.startAll();
  const connect = () => world.connect().greet();
  const client = connect();
  const reached = (method: string): [key: string, params: Message][] =>
    Object.keys(servers).flatMap((key) =>
      world
        .server(key)
        .child.asked(method)
        .map(({ params }): [string, Message] => [key, params]),
    );
  let asked = 0;
  const ask = (method: string, params?: Message) => {
    asked += 1;
    client.request(`q${asked}`, method, params);
    return client.received.take().find(({ id }) => id === `q${asked}`);
  };
  /** The URIs in the list of resources, and those that listed tools name. */
  const seen = () => ({
    listed: ask('resources/list')?.result.resources.map(({ uri }: Message) => uri),
    pointed: ask('tools/list')?.result.tools.map(({ _meta }: Message) => _meta.ui.resourceUri),
  });
  return { ...world, connect, client, reached, ask, seen };
}

describe('a user interface that two servers have', () => {
  it('is listed under its alias for the second one, whose tools point to that', async () => {
    const { seen } = await apps();
    expect(seen()).toEqual({ listed: [MAIN, alias('b')], pointed: [MAIN, alias('b')] });
  });

  it('is read from the server that is meant', async () => {
    const { ask, reached } = await apps();
    ask('resources/read', { uri: alias('b') });
    expect(reached('resources/read')).toEqual([['b', { uri: MAIN }]]);
    ask('resources/read', { uri: MAIN });
    expect(reached('resources/read')).toEqual([
      ['a', { uri: MAIN }],
      ['b', { uri: MAIN }],
    ]);
  });

  it('is asked for and answered with every byte but the URI as it was', async () => {
    const { client, server } = await apps();
    const { child } = server('b');
    const line = (id: string, uri: string) =>
      `{"id":${id}, "params":{ "uri" :${JSON.stringify(uri)},"n":1.0 },"jsonrpc":"2.0","method":"resources/read"}`;
    client.say(line('"c"', alias('b')));
    const id = child.asked('resources/read')[0]?.id;
    expect(child.received.lines.at(-1)).toBe(line(id, MAIN));
    const result = (uri: string) =>
      `{"x":9007199254740993,"contents":[{"text":"<a href='${MAIN}'>","uri" : "${uri}"}, {"uri":"ui://app/part","text":""},{"\\u0075ri":"${uri}","blob":"","_meta":{"uri":"${MAIN}"}}],"uri":"${MAIN}"}`;
    child.say(`{"jsonrpc":"2.0","id":${id},"result":${result(MAIN)}}`);
    expect(client.received.lines.at(-1)).toBe(`{"jsonrpc":"2.0","id":"c","result":${result(alias('b'))}}`);
  });

  it('is answered under its alias even if the answer waits for the client to read the last progress', async () => {
    const { client, clock, server } = await apps();
    client.request('p', 'resources/read', { uri: alias('b'), _meta: { progressToken: 't' } });
    const { child } = server('b');
    const progressToken = child.asked('resources/read')[0]?.params._meta.progressToken;
    child.say({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, progress: 1 } });
    child.reply('resources/read', { contents: [{ uri: MAIN, text: '' }] });
    expect(client.answerTo('p')).toBeUndefined();
    clock.advance(10);
    expect(client.answerTo('p')?.result).toEqual({ contents: [{ uri: alias('b'), text: '' }] });
  });

  it('may be refused by its server, in the words of that', async () => {
    const { client, server } = await apps();
    client.request(1, 'resources/read', { uri: alias('b') });
    server('b').child.reply('resources/read', { code: -32002, message: 'gone', data: { uri: MAIN } });
    expect(client.answerTo(1)?.error).toEqual({ code: -32002, message: 'gone', data: { uri: MAIN } });
  });

  it('is completed by the server that is meant', async () => {
    const { ask, reached } = await apps();
    const argument = { name: 'x', value: '' };
    ask('completion/complete', { ref: { type: 'ref/resource', uri: alias('b') }, argument });
    expect(reached('completion/complete')).toEqual([['b', { ref: { type: 'ref/resource', uri: MAIN }, argument }]]);
  });

  it('is what the result of a tool is shown with that says so by itself', async () => {
    const { client, server } = await apps();
    const result = (uri: string) =>
      `{"content":[{"type":"text","text":"${MAIN}"}],"_meta":{"ui/resourceUri": "${uri}","ui":{"resourceUri":"${uri}","n":1.0}}}`;
    for (const [key, shown] of [
      ['a', MAIN],
      ['b', alias('b')],
    ] as const) {
      const { child } = server(key);
      client.call(key, `${key}__show0`);
      child.say(`{"jsonrpc":"2.0","id":${child.calls[0]?.id},"result":${result(MAIN)}}`);
      expect(client.received.lines.at(-1)).toBe(`{"jsonrpc":"2.0","id":"${key}","result":${result(shown)}}`);
    }
    client.call('error', 'b__show0');
    server('b').child.say({ jsonrpc: '2.0', id: server('b').child.calls[1]?.id, error: { code: 1, message: MAIN } });
    expect(client.answerTo('error')?.error).toEqual({ code: 1, message: MAIN });
  });

  it('is shown by the status under its alias, and not as hidden', async () => {
    const { gateway, server } = await apps();
    const { make } = await given();
    const servers = ['a', 'b'].map((key) => factsOf(server(key).backend));
    const report = reportStatus({ ...make(), catalogs: gateway.catalogs, servers });
    expect(report.servers.map(({ resources }) => [resources.exposed, resources.quarantined])).toEqual([
      [[MAIN], []],
      [[alias('b')], []],
    ]);
  });
});

describe('a user interface that only a tool points to', () => {
  it('is that of its server, whatever else would speak for another', async () => {
    const { ask, reached, seen } = await apps({
      a: app({ lists: ['ui://app/other.html'], pointsTo: [], templates: ['ui://app/{page}'] }),
      b: app({ lists: [] }),
    });
    expect(seen().pointed).toEqual([MAIN]);
    ask('resources/read', { uri: MAIN });
    expect(reached('resources/read')).toEqual([['b', { uri: MAIN }]]);
  });

  it('goes by its alias when another server lists the same', async () => {
    const { ask, reached, seen } = await apps({ a: app({ lists: [] }), b: app({ pointsTo: [] }) });
    expect(seen()).toEqual({ listed: [MAIN], pointed: [alias('a')] });
    ask('resources/read', { uri: alias('a') });
    expect(reached('resources/read')).toEqual([['a', { uri: MAIN }]]);
  });
});

describe('a URI that nobody has', () => {
  it.each([
    ['an alias of a server that has no such thing', alias('b', 'ui://app/none')],
    ['what looks like an alias of a known server', 'ui://b--00000000/main.html'],
  ])('is not looked for elsewhere: %s', async (_, uri) => {
    const { ask, reached } = await apps({
      a: app({ lists: [], pointsTo: [], templates: ['ui://{host}/{page}', uri] }),
      b: { tools: ['x'] },
    });
    expect(ask('resources/read', { uri })?.error).toMatchObject({ code: -32002, data: { uri } });
    expect(reached('resources/read')).toEqual([]);
  });

  it('may be one of a kind that a server lists under an alias, and tells no owner then', async () => {
    const { ask, reached } = await apps();
    expect(ask('resources/read', { uri: 'ui://app/unlisted' })?.error).toMatchObject({ code: -32002 });
    expect(reached('resources/read')).toEqual([]);
  });
});

describe('the owner of a URI that clients have seen', () => {
  it('follows the order of the configuration, whichever server was ready first', async () => {
    const world = await apps(undefined, false);
    const { client, server, seen } = world;
    client.request('first', 'resources/list');
    await server('b').start();
    await server('a').start();
    expect(client.answerTo('first')?.result.resources[1].uri).toBe(alias('b'));
    expect(seen()).toEqual({ listed: [MAIN, alias('b')], pointed: [MAIN, alias('b')] });
  });

  it('stays when a server comes later than that', async () => {
    const { client, clock, server, seen, ask } = await apps(undefined, false);
    client.request('first', 'resources/list');
    await server('b').start();
    clock.advance(10_000);
    expect(seen()).toEqual({ listed: [MAIN], pointed: [MAIN] });
    await server('a').start();
    expect(seen()).toEqual({ listed: [alias('a'), MAIN], pointed: [alias('a'), MAIN] });
    ask('resources/read', { uri: MAIN });
    expect(server('b').child.asked('resources/read')).toHaveLength(1);
  });

  it('stays when a server is given up, whose own is not read from another', async () => {
    const { server, seen, ask, reached } = await apps();
    server('a').crash('parked');
    expect(seen()).toEqual({ listed: [alias('b')], pointed: [alias('b')] });
    expect(ask('resources/read', { uri: MAIN })?.error).toMatchObject({ code: -32603, data: { reason: 'parked' } });
    ask('resources/read', { uri: alias('b') });
    expect(reached('resources/read')).toEqual([['b', { uri: MAIN }]]);
    expect(server('a').demands).toBe(1);
  });
});

describe('a subscription to a user interface', () => {
  const update = (uri: string) =>
    `{"method":"notifications/resources/updated","params":{"n":1.0, "uri" : "${uri}"},"jsonrpc":"2.0"}`;

  async function subscribing() {
    const world = await apps();
    const subscribe = async (by: ReturnType<typeof world.connect>, uri: string, method = 'resources/subscribe') => {
      const children = ['a', 'b'].map((key) => world.server(key).child);
      const heard = children.map((child) => child.asked(method).length);
      by.request('s', method, { uri });
      children.forEach((child, index) => {
        if (child.asked(method).length > (heard[index] ?? 0)) child.reply(method);
      });
      await flush();
      const answer = by.answerTo('s');
      by.received.take();
      return answer?.result;
    };
    return { ...world, subscribe };
  }

  it('is made with the server that is meant, and told of under the URI that the client knows', async () => {
    const { connect, subscribe, reached, server } = await subscribing();
    const [first, second] = [connect(), connect()];
    expect([await subscribe(first, MAIN), await subscribe(second, alias('b'))]).toEqual([{}, {}]);
    expect(reached('resources/subscribe')).toEqual([
      ['a', { uri: MAIN }],
      ['b', { uri: MAIN }],
    ]);
    server('b').child.say(update(MAIN));
    expect([first.received.lines, second.received.lines]).toEqual([[], [update(alias('b'))]]);
    server('a').child.say(update(MAIN));
    expect(first.received.lines).toEqual([update(MAIN)]);
  });

  it('is one for all clients, and ends with the last', async () => {
    const { connect, subscribe, reached } = await subscribing();
    const [one, two] = [connect(), connect()];
    await subscribe(one, alias('b'));
    await subscribe(two, alias('b'));
    expect(reached('resources/subscribe')).toHaveLength(1);
    await subscribe(one, alias('b'), 'resources/unsubscribe');
    expect(reached('resources/unsubscribe')).toEqual([]);
    await subscribe(two, alias('b'), 'resources/unsubscribe');
    expect(reached('resources/unsubscribe')).toEqual([['b', { uri: MAIN }]]);
  });

  it('is ended with its server even if the alias leads nowhere any more', async () => {
    const { client, subscribe, reached, server, ask } = await subscribing();
    await subscribe(client, alias('b'));
    server('b').crash();
    server('b').pages = ['{"tools":[]}'];
    server('b').lists = app({ lists: [] }).lists ?? {};
    await server('b').start();
    expect(ask('resources/read', { uri: alias('b') })?.error.code).toBe(-32002);
    await subscribe(client, alias('b'), 'resources/unsubscribe');
    expect(reached('resources/unsubscribe')).toEqual([['b', { uri: MAIN }]]);
  });

  it('is made anew with the next process under the URI that the server knows', async () => {
    const { client, subscribe, reached, server } = await subscribing();
    await subscribe(client, alias('b'));
    server('b').crash();
    await server('b').start();
    expect(reached('resources/subscribe')).toEqual([['b', { uri: MAIN }]]);
    server('b').child.say(update(MAIN));
    expect(client.received.lines).toContain(update(alias('b')));
  });

  it('is told of other things of its server too, each under what it is to clients', async () => {
    const lists = [MAIN, 'ui://app/other.html'];
    const { client, server } = await apps({ a: app({ lists }), b: app({ lists }) });
    client.request('s', 'resources/subscribe', { uri: alias('b') });
    server('b').child.reply('resources/subscribe');
    await flush();
    client.received.take();
    server('b').child.say(update('ui://app/other.html'), update('ui://app/main.html/part'));
    expect(client.received.lines).toEqual([
      update(alias('b', 'ui://app/other.html')),
      update('ui://app/main.html/part'),
    ]);
  });
});
