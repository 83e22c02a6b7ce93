import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CallFeed } from '../../../src/gateway/call-feed.js';
import type { NamedViewsOptions } from '../../../src/gateway/catalog/tool-policy.js';
import type { ApprovalVerdict } from '../../../src/spec/tool-approvals.js';
import {
  type GatewayScript,
  offering,
  pageOf,
  type ServerScript,
  scriptGateway,
  startGateway,
  toolOf,
} from '../../support/scripted-gateway.js';
import { flush, type Message } from '../../support/wire.js';

const FILES: ServerScript = {
  tools: [
    toolOf('read_text_file', {
      description: 'Reads a file as text. The file has to exist.',
      inputSchema: { type: 'object', properties: { path: { type: 'string' }, head: {} }, required: ['path'] },
    }),
    toolOf('create_directory', { description: 'Creates a directory.' }),
    toolOf('search_files', { description: 'Finds files by a pattern.' }),
  ],
};
const GITHUB: ServerScript = {
  tools: [
    toolOf('create_pull_request', { description: 'Opens a pull request.' }),
    toolOf('create_issue', { description: 'Creates an issue.' }),
  ],
};
const OWN = ['trunkline__find_tools', 'trunkline__describe_tools', 'trunkline__call_tool'];

/** A client of a gateway in search mode, and its requests. */
async function searching(
  script: Partial<GatewayScript> = {},
  { name = 't', view }: { name?: string; view?: string } = {},
) {
  const world = await startGateway({ servers: { files: FILES, github: GITHUB }, mode: 'search', ...script });
  const client = world.connect(view === undefined ? {} : { view });
  const hello = client.initialize('2025-11-25', {}, name);
  let id = 0;
  const ask = async (method: string, params?: unknown) => {
    id += 1;
    client.request(id, method, params);
    // The search is loaded with its first use.
    await import('../../../src/gateway/search/find-tools.js');
    await flush();
    return client.answerTo(id);
  };
  const call = (tool: string, args: unknown) => ask('tools/call', { name: tool, arguments: args });
  const find = async (args: Message) => (await call('trunkline__find_tools', args))?.result;
  const found = async (query: string): Promise<string[]> =>
    ((await find({ query })).structuredContent?.tools ?? []).map((tool: Message) => tool.name);
  const listed = async (): Promise<string[]> =>
    (await ask('tools/list'))?.result.tools.map((tool: Message) => tool.name);
  const sent = (key: string) =>
    world
      .server(key)
      .child.asked('tools/call')
      .map(({ params }) => params);
  return { ...world, client, hello, ask, call, find, found, listed, sent };
}

describe('a client in search mode', () => {
  it('gets a list of the tools of the search and of the pinned tools', async () => {
    const { listed } = await searching({
      servers: { files: { ...FILES, shapes: { pin: ['read_*'] } }, github: GITHUB },
    });
    expect(await listed()).toEqual(['files__read_text_file', ...OWN]);
  });

  it('finds tools, the best first, with a sentence, the parameters and the best definitions', async () => {
    const { find } = await searching();
    const { content, structuredContent } = await find({ query: 'text of files', limit: 2 });
    expect(structuredContent.tools).toEqual([
      {
        name: 'files__read_text_file',
        server: 'files',
        description: 'Reads a file as text. The file has to exist.',
        inputSchema: { type: 'object', properties: { path: { type: 'string' }, head: {} }, required: ['path'] },
      },
      expect.objectContaining({ name: 'files__search_files', server: 'files' }),
    ]);
    expect(content[0].text.split('\n')[0]).toBe('files__read_text_file (path*, head): Reads a file as text.');
  });

  it('finds a tool first that it names exactly', async () => {
    const { found } = await searching();
    for (const name of ['github__create_issue', 'CREATE_ISSUE', 'call github__create_issue for me'])
      expect((await found(name))[0]).toBe('github__create_issue');
  });

  it('finds the tools of one server, with words or without', async () => {
    const { find } = await searching();
    const names = async (args: Message) => (await find(args)).structuredContent.tools.map((tool: Message) => tool.name);
    expect(await names({ query: 'create', server: 'files' })).toEqual(['files__create_directory']);
    expect(await names({ server: 'github' })).toEqual(['github__create_pull_request', 'github__create_issue']);
  });

  it('finds a tool by the keywords of the configuration, under its new name', async () => {
    const shapes = { rename: { create_issue: 'report' }, keywords: { create_issue: ['grievance'] } };
    const { found } = await searching({ servers: { files: FILES, github: { ...GITHUB, shapes } } });
    expect((await found('file a grievance'))[0]).toBe('github__report');
  });

  it.each([
    [{ query: 'qwxz' }, 'No tool among 5 tools matches "qwxz".'],
    [{ query: 'qwxz' }, 'Servers with tools: files (3), github (2).'],
    [{ query: 'x', server: 'nowhere' }, 'There is no server "nowhere".'],
    [{}, 'Say in `query` what has to be done, or name a `server`.'],
    [{ query: 5 }, '`query` must be a text'],
  ])('that asks with %j is told %s', async (args, text) => {
    const { find } = await searching();
    const { content, structuredContent } = await find(args);
    expect(content[0].text).toContain(text);
    expect(structuredContent).toBeUndefined();
  });

  it('is told which servers are missing', async () => {
    const { find, server } = await searching();
    server('github').crash('parked');
    const missing = expect.stringContaining('Missing: the tools of github.');
    expect((await find({ query: 'pull request' })).content[0].text).toEqual(missing);
    expect((await find({ query: 'directory' })).structuredContent.notes).toEqual([missing]);
  });

  it('gets exact definitions by their names', async () => {
    const { call } = await searching();
    const names = ['files__create_directory', 'create_issue', 'files__nothing'];
    const { result } = (await call('trunkline__describe_tools', { names })) ?? {};
    expect(result.content[0].text.split('\n')).toEqual([
      '{"name":"files__create_directory","inputSchema":{"type":"object"},"description":"Creates a directory."}',
      '{"name":"github__create_issue","inputSchema":{"type":"object"},"description":"Creates an issue."}',
      expect.stringContaining('Unknown tool: "files__nothing".'),
    ]);
    expect(result.structuredContent.tools).toHaveLength(2);
    expect(result.structuredContent.notes).toEqual([expect.stringContaining('files__nothing')]);
    const { result: unknown } = (await call('trunkline__describe_tools', { names: ['x'] })) ?? {};
    expect(unknown.isError).toBe(true);
  });

  it('calls a tool through trunkline__call_tool or by its own name', async () => {
    const { call, sent } = await searching();
    void call('trunkline__call_tool', { name: 'github__create_issue', arguments: { title: 'x' } });
    await flush();
    void call('github__create_issue', { title: 'x' });
    await flush();
    expect(sent('github')).toEqual([
      { name: 'create_issue', arguments: { title: 'x' } },
      { name: 'create_issue', arguments: { title: 'x' } },
    ]);
  });

  it('gets the answer of the tool unchanged', async () => {
    const { client, server } = await searching();
    client.call('c', 'trunkline__call_tool', { arguments: { name: 'github__create_issue' } });
    const answer = {
      content: [{ type: 'text', text: 'x' }],
      structuredContent: { a: 1 },
      isError: true,
      _meta: { b: 2 },
    };
    server('github').child.answer(0, answer);
    expect(client.answerTo('c')?.result).toEqual(answer);
  });

  it('is told what is wrong with a call of trunkline__call_tool, and of an unknown tool', async () => {
    const { call } = await searching();
    const { result } = (await call('trunkline__call_tool', { tool: 'x' })) ?? {};
    expect(result).toMatchObject({ isError: true, content: [{ text: expect.stringContaining('`name`') }] });
    const { error } = (await call('trunkline__call_tool', { name: 'creat_issue' })) ?? {};
    expect(error.message).toContain('Did you mean `github__create_issue`?');
  });

  it('is observed as if it called the tool directly', async () => {
    const calls = new CallFeed({ now: () => 0 });
    const names: (string | undefined)[] = [];
    calls.observe({ begin: ({ name }) => void names.push(name) });
    const { call } = await searching({ calls });
    void call('trunkline__call_tool', { name: 'github__create_issue' });
    void call('trunkline__find_tools', { query: 'x' });
    await flush();
    expect(names).toEqual(['github__create_issue', 'trunkline__find_tools']);
  });

  it('hears of a changed list only if its own list has changed', async () => {
    const pages = ['{"tools":[]}'];
    const { client, clock, listed, server } = await searching({
      servers: { files: { pages, shapes: { pin: ['pinned'] } }, github: GITHUB },
    });
    await listed();
    client.received.take();
    const changed = async (tools: readonly string[]) => {
      pages[0] = pageOf(tools);
      server('files').child.say({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' });
      await clock.advanceSlowly(1_000, flush);
      return client.received.take().map(({ method }) => method);
    };
    expect(await changed(['hidden'])).toEqual([]);
    expect(await changed(['hidden', 'pinned'])).toEqual(['notifications/tools/list_changed']);
  });

  it('hears of every change of the prompts, which are all in its list', async () => {
    const lists: Record<string, Message> = { 'prompts/list': { prompts: [] } };
    const { client, clock, ask, server } = await searching({
      servers: { files: { ...offering({ prompts: [] }), tools: ['a'], lists } },
    });
    await ask('prompts/list');
    client.received.take();
    lists['prompts/list'] = { prompts: [{ name: 'new' }] };
    server('files').child.say({ jsonrpc: '2.0', method: 'notifications/prompts/list_changed' });
    await clock.advanceSlowly(1_000, flush);
    expect(client.received.take().map(({ method }) => method)).toEqual(['notifications/prompts/list_changed']);
  });

  it('is told in its instructions to search before it gives up', async () => {
    const search = 'search with it before you say that something is not possible';
    expect((await searching()).hello.result.instructions).toContain(search);
    expect((await searching({ mode: 'direct' })).hello.result.instructions).not.toContain(search);
  });

  it('of the era without sessions has the same tools', async () => {
    const { connect, server } = await searching();
    const modern = connect();
    modern.modernRequest(1, 'tools/list');
    await flush();
    expect(modern.answerTo(1)?.result.tools.map(({ name }: Message) => name)).toEqual(OWN);
    modern.modernRequest(2, 'tools/call', { name: OWN[0], arguments: { query: 'pull request' } });
    await flush();
    expect(modern.answerTo(2)?.result.structuredContent.tools[0].name).toBe('github__create_pull_request');
    modern.modernRequest(3, 'tools/call', { name: OWN[2], arguments: { name: 'github__create_issue' } });
    server('github').child.answer(0);
    await flush();
    expect(modern.answerTo(3)?.result).toMatchObject({ content: [] });
  });
});

describe('a client in direct mode', () => {
  it('has no tools of the search', async () => {
    const { listed, call } = await searching({ mode: 'direct' });
    expect(await listed()).toHaveLength(5);
    for (const name of OWN) expect((await call(name, { query: 'x', name: 'x' }))?.error.code).toBe(-32602);
  });

  it.each([
    ['that asks for one server', { server: 'files' }, 3],
    ['that asks for everything, as commands do', { view: '' }, 5],
  ])('%s is in direct mode, whatever the configuration says', async (_, who, count) => {
    const { connect } = await searching();
    const client = connect(who).greet();
    client.request(1, 'tools/list');
    await flush();
    expect(client.answerTo(1)?.result.tools).toHaveLength(count);
  });
});

describe('the mode', () => {
  it('of a view replaces that of the gateway', async () => {
    const views: NamedViewsOptions = { views: [{ name: 'v', mode: 'direct' }, { name: 'w' }], clients: [] };
    expect(await (await searching({ views }, { view: 'v' })).listed()).toHaveLength(5);
    expect(await (await searching({ views }, { view: 'w' })).listed()).toEqual(OWN);
  });

  it('is chosen by the name of the client and the number of tools, and then stays', async () => {
    const many = (count: number) => ({ files: { tools: Array.from({ length: count }, (_, at) => `t${at}`) } });
    const cursor = await searching({ mode: 'auto', servers: many(41) }, { name: 'cursor-vscode' });
    expect(await cursor.listed()).toEqual(OWN);
    cursor.change(many(5), ['files']);
    await flush();
    expect(await cursor.listed()).toEqual(OWN);
    const few = await searching({ mode: 'auto', servers: many(40) }, { name: 'cursor-vscode' });
    expect(await few.listed()).toHaveLength(40);
    const claude = await searching({ mode: 'auto', servers: many(41) }, { name: 'claude-code' });
    expect(await claude.listed()).toHaveLength(41);
  });
});

describe('the search', () => {
  it('finds no tool that the client may not call: denied, unapproved, quarantined, of another view or for no model', async () => {
    const approvals = {
      facts: { tools: 0, isFirstUse: false, fault: undefined, advice: '' },
      judge: (definitions: ReadonlyMap<string, string>) =>
        new Map(
          [...definitions.keys()].map((name): [string, ApprovalVerdict] => [
            name,
            name === 'ok_one' ? 'approved' : 'new',
          ]),
        ),
    };
    const servers = {
      a: { tools: ['ok_one', 'new_one'], approvals },
      b: { tools: ['denied_one', 'ok_two', '{"name":"broken_one","inputSchema":5}'], filter: { deny: ['denied*'] } },
      c: { tools: ['hidden_one', toolOf('app_one', { _meta: { ui: { visibility: ['app'] } } })] },
    };
    const views = { views: [{ name: 'v', tools: { deny: ['c__hidden*'] } }], clients: [] };
    const { found } = await searching({ servers, views }, { view: 'v' });
    expect((await found('ok one two new denied broken hidden app')).sort()).toEqual(['a__ok_one', 'b__ok_two']);
  });

  it('finds and calls exactly the tools of the direct list, under any rules', async () => {
    const NAMES = ['alpha', 'beta', 'gamma', 'delta'];
    const rules = fc.record({ allow: fc.option(fc.subarray(NAMES), { nil: undefined }), deny: fc.subarray(NAMES) });
    const shapes = fc.record({
      pin: fc.subarray(NAMES),
      rename: fc.constantFrom({}, { alpha: 'omega' }, { beta: 'alpha' }),
    });
    const server = fc.record({ rules, shapes, prefix: fc.constantFrom('', 'x'), isDown: fc.boolean() });
    const view = fc.record({
      allow: fc.option(fc.subarray(['a__alpha', 'b__*', '*a'])),
      deny: fc.subarray(['b__beta']),
    });
    await fc.assert(
      fc.asyncProperty(server, server, view, async (one, other, { allow, deny }) => {
        const script = ({ rules: { allow: only, deny: not }, shapes: own, prefix }: typeof one): ServerScript => ({
          tools: NAMES,
          filter: { ...(only && { allow: only }), deny: not },
          shapes: own,
          ...(prefix === '' && { prefix }),
        });
        const servers = { a: script(one), b: script(other) };
        const tools = { ...(allow && { allow }), deny };
        const views: NamedViewsOptions = {
          views: [
            { name: 'direct', mode: 'direct', tools },
            { name: 'search', mode: 'search', tools },
          ],
          clients: [],
        };
        const search = await searching({ servers, views }, { view: 'search' });
        for (const [key, { isDown }] of [
          ['a', one],
          ['b', other],
        ] as const)
          if (isDown) search.server(key).crash('parked');
        const client = search.connect({ view: 'direct' }).greet();
        client.request('list', 'tools/list');
        await flush();
        const direct: string[] = client.answerTo('list')?.result.tools.map((tool: Message) => tool.name);
        const all = [...NAMES, 'omega'].flatMap((name) => [name, `a__${name}`, `b__${name}`]);
        const { structuredContent } = await search.find({ query: all.join(' '), limit: 50 });
        const found = (structuredContent?.tools ?? []).map((tool: Message) => tool.name);
        expect(found.sort()).toEqual([...direct].sort());
        const calls = () => ['a', 'b'].map((key) => search.sent(key).map(({ name }) => name));
        for (const name of all) {
          client.call(name, name);
          search.client.call(name, 'trunkline__call_tool', { arguments: { name } });
          await flush();
          expect(search.client.answerTo(name), name).toEqual(client.answerTo(name));
          // Each call that reached a server reached it twice: directly and through the search.
          for (const sent of calls()) expect(sent.filter((each) => each === sent.at(-1)).length % 2, name).toBe(0);
        }
      }),
      { numRuns: 30 },
    );
  });
});

describe('the search of a command', () => {
  const VIEWS = {
    views: [{ name: 'reads', servers: ['files'], tools: { deny: ['*__create_*'] } }],
    clients: [],
  };

  it('finds the tools of clients that do not search, with the definition of each', async () => {
    const { gateway } = await startGateway({ servers: { files: FILES, github: GITHUB } });
    const { result, isStarting } = await gateway.find({ query: 'create', limit: 50 }, undefined);
    const { tools } = result.structuredContent as { tools: { name: string; inputSchema: unknown }[] };
    expect(tools.map(({ name }) => name).sort()).toEqual([
      'files__create_directory',
      'github__create_issue',
      'github__create_pull_request',
    ]);
    expect(tools.every(({ inputSchema }) => inputSchema !== undefined)).toBe(true);
    expect(isStarting).toBe(false);
  });

  it('finds nothing that the view hides', async () => {
    const { gateway } = await startGateway({ servers: { files: FILES, github: GITHUB }, views: VIEWS });
    const { result } = await gateway.find({ query: 'create' }, 'reads');
    expect(result.structuredContent).toBeUndefined();
    expect(JSON.stringify(result.content)).not.toContain('github');
  });

  it('says that servers start whose tools are not known', async () => {
    const { gateway } = scriptGateway({ servers: { files: FILES } });
    expect(await gateway.find({ query: 'create' }, undefined)).toMatchObject({ isStarting: true });
  });
});
