import { describe, expect, it } from 'vitest';
import { pageOf, type ServerScript, startGateway, toolOf } from '../support/scripted-gateway.js';
import { flush, type Message } from '../support/wire.js';
import { seeing } from './seeing-one-server.js';

const annotated = (name: string, header: string) =>
  toolOf(name, { inputSchema: { type: 'object', properties: { of: { type: 'string', 'x-mcp-header': header } } } });
const TOOLS = [annotated('right', 'Of'), annotated('wrong', 'no name')];
const REMOTE: ServerScript = { tools: TOOLS, isRemote: true, isModern: true, hasBridge: true };

describe('a tool with a wrong annotation for headers', () => {
  it.each<[string, ServerScript, string[]]>([
    ['behind a URL is not listed', REMOTE, ['s__right']],
    ['of a process is listed', { ...REMOTE, isRemote: false }, ['s__right', 's__wrong']],
    ['of an older revision is listed', { ...REMOTE, isModern: false }, ['s__right', 's__wrong']],
  ])('%s', async (_, script, names) => {
    const { connect, server } = await startGateway({ servers: { s: script } });
    const client = connect().greet();
    client.request(1, 'tools/list');
    await flush();
    expect(client.answerTo(1)?.result.tools.map(({ name }: Message) => name)).toEqual(names);
    const { withheld } = server('s').backend.knownListsAs('exposed').tools;
    expect(withheld).toEqual(
      names.length === 1 ? [{ name: 'wrong', reason: 'its x-mcp-header is no name of a header' }] : [],
    );
  });

  it('is not listed for a client that sees the server unchanged, whose lists are read for the headers', async () => {
    const { one, a } = await seeing({ ...REMOTE, pages: [pageOf(TOOLS)] });
    expect(a.backend.mirroredParams('right')).toEqual([{ header: 'Of', path: ['of'] }]);
    one.request(1, 'tools/list');
    await flush();
    expect(one.answerTo(1)?.result.tools.map(({ name }: Message) => name)).toEqual(['right']);
  });
});

describe('the parameters that a server wants in headers', () => {
  it('are known anew when the tools are read again, which is done once for calls that need it together', async () => {
    const { server } = await startGateway({ servers: { s: REMOTE } });
    const { backend, child } = server('s');
    child.listsTools = false;
    const reread = Promise.all([backend.rereadTools(), backend.rereadTools()]);
    await flush();
    child.reply('tools/list', { tools: [JSON.parse(annotated('right', 'Other'))] });
    await reread;
    expect(backend.mirroredParams('right')).toEqual([{ header: 'Other', path: ['of'] }]);
    expect(child.asked('tools/list')).toHaveLength(2);
  });
});

describe('a call of a server behind a URL', () => {
  it('loses its connection and no process, and is counted so', async () => {
    const { connect, server } = await startGateway({ servers: { s: { tools: ['x'], isRemote: true } } });
    const client = connect().greet();
    client.call(1, 's__x');
    await flush();
    server('s').crash();
    await flush();
    const { content, _meta } = client.answerTo(1)?.result ?? {};
    expect(_meta['trunkline/failure']).toMatchObject({ reason: 'connection_lost', outcome: 'unknown' });
    expect(content[0].text).toContain('lost its connection during this call. Trunkline connects again.');
    expect([...server('s').backend.dispatcher.failureReasons]).toEqual([['connection_lost', 1]]);
  });
});
