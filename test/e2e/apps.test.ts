import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { GatewayProcess, type Message } from '../support/gateway-process.js';
import { until } from '../support/processes.js';

const APP = fileURLToPath(new URL('../fixtures/servers/app.mjs', import.meta.url));
const URI = 'ui://app/main.html';

let gateway: GatewayProcess;
afterEach(() => gateway.dispose());

describe('two MCP Apps with the same user interface and tool', () => {
  it('are each shown with their own interface', async () => {
    const server = (says: string) => ({ command: 'node', args: [APP, says] });
    gateway = await GatewayProcess.start({ servers: { one: server('first'), two: server('second') } });

    const [first, second, status] = await gateway.listTools();
    expect(status?.name).toBe('trunkline__status');
    expect(first).toMatchObject({ name: 'one__show', _meta: { ui: { resourceUri: URI }, 'ui/resourceUri': URI } });
    const alias: string = second?._meta.ui.resourceUri;
    expect(alias).toMatch(/^ui:\/\/two--[0-9a-f]{8}\/main\.html$/);
    expect(second?._meta).toEqual({
      ui: { resourceUri: alias, visibility: ['model', 'app'] },
      'ui/resourceUri': alias,
    });

    const { resources } = (await gateway.request('resources/list')).message.result;
    const rest = { name: 'Main', mimeType: 'text/html;profile=mcp-app', description: URI };
    expect(resources).toEqual([
      { uri: URI, ...rest },
      { uri: alias, ...rest },
    ]);
    for (const [uri, says] of [
      [URI, 'first'],
      [alias, 'second'],
    ]) {
      const { result } = (await gateway.request('resources/read', { uri })).message;
      expect(result).toEqual({ contents: [{ uri, mimeType: rest.mimeType, text: `<h1>${says}</h1>` }] });
    }

    expect((await gateway.request('resources/subscribe', { uri: alias })).message.result).toEqual({});
    await gateway.call('one__show');
    await gateway.call('two__show');
    const updates = () => gateway.notifications('notifications/resources/updated');
    await until('the update', () => updates().length > 0);
    expect(updates().map(({ message }: { message: Message }) => message.params)).toEqual([{ uri: alias }]);

    const shown = await Promise.all(['one', 'two'].map((key) => gateway.status(key)));
    expect(shown.map(({ resources: { exposed, quarantined } }) => [exposed, quarantined])).toEqual([
      [[URI], []],
      [[alias], []],
    ]);
  });
});
