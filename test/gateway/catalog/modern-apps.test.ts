import { describe, expect, it } from 'vitest';
import { offering, startGateway, toolOf } from '../../support/scripted-gateway.js';
import { flush } from '../../support/wire.js';

const MAIN = 'ui://app/main';

/** A server with a tool that only its own user interface may call. */
function app() {
  const ui = { resourceUri: MAIN, visibility: ['app'] };
  return { ...offering({ resources: [MAIN] }), tools: [toolOf('refresh', { _meta: { ui } })] };
}

describe('a user interface for a client without a handshake', () => {
  it('keeps its tools, its visibility and its own HTML, as with a handshake', async () => {
    const { connect, server } = await startGateway({ servers: { a: app(), b: app() } });
    const legacy = connect().greet();
    legacy.request('list', 'tools/list');
    const client = connect();
    client.modernRequest('list', 'tools/list');
    const { tools } = client.answerTo('list')?.result ?? {};
    expect(tools).toEqual(legacy.answerTo('list')?.result.tools);
    const [own, alias] = tools.map(({ _meta }: { _meta: { ui: unknown } }) => _meta.ui);
    expect(own).toEqual({ resourceUri: MAIN, visibility: ['app'] });
    expect(alias).toEqual({ resourceUri: expect.stringMatching(/^ui:\/\/b--/), visibility: ['app'] });
    client.modernRequest('read', 'resources/read', { uri: alias.resourceUri });
    expect(server('b').child.asked('resources/read')[0]?.params.uri).toBe(MAIN);
    server('b').child.reply('resources/read', { contents: [{ uri: MAIN, text: 'b' }] });
    await flush();
    expect(client.answerTo('read')?.result.contents).toEqual([{ uri: alias.resourceUri, text: 'b' }]);
    client.modernRequest('call', 'tools/call', { name: 'b__refresh' });
    expect(server('b').child.calls).toHaveLength(1);
  });
});
