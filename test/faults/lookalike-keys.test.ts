import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type InProcessClient, InProcessGateway, textOf } from '../support/in-process-gateway.js';
import { until } from '../support/processes.js';

const FOLDING = fileURLToPath(new URL('../fixtures/servers/folding.mjs', import.meta.url));

describe('a server that ignores the case of keys and takes the last one', () => {
  let client: InProcessClient;
  let gateway: InProcessGateway;

  beforeAll(async () => {
    gateway = new InProcessGateway({
      servers: {
        f: {
          command: 'node',
          args: [FOLDING, 'run=RUN'],
          tools: { deny: ['hidden'], params: { search: { hide: ['owner'], set: { owner: 'me' } } } },
        },
      },
    });
    client = await gateway.connect();
    await client.listTools();
  });
  afterAll(() => gateway.end());

  /** The answer to a request whose params are written like this. */
  async function answerTo(id: string, rest: string) {
    client.received.take();
    client.say(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},${rest}}`);
    await until('the answer', () => client.received.messages.some((message) => message.id === id));
    return client.received.messages.find((message) => message.id === id);
  }

  it.each([
    '"method":"tools/call","params":{"name":"f__open","Name":"hidden","arguments":{}}',
    '"method":"tools/call","params":{"name":"f__open","\\u004eame":"hidden","arguments":{}}',
    '"method":"tools/call","params":{"name":"f__open","nAmE":"hidden","arguments":{}}',
    '"method":"tools/call","params":{"name\\u0000":"hidden","name":"f__open","arguments":{}}',
    '"method":"tools/call","params":{"name":"f__search","arguments":{"repo":1,"owner\\u0000x":"you"}}',
    '"method":"tools/call","params":{"name":"f__open"},"Params":{"name":"hidden"}',
    '"method":"tools/call","params":{"name":"f__open"},"paramſ":{"name":"hidden"}',
    '"method":"tools/call","params":{"name":"f__search","arguments":{"repo":1},"Arguments":{"owner":"you"}}',
    '"method":"tools/call","params":{"name":"f__search","arguments":{"repo":1,"Owner":"you"}}',
    '"method":"tools/call","params":{"name":"f__search","arguments":{"repo":1,"\\u004fWNER":"you"}}',
    '"method":"tools/call","params":{"name":"f__open"},"Id":99',
    '"method":"ping","Method":"tools/call","params":{"name":"hidden"}',
  ])('F381: gets no call that Trunkline and the server understand differently: %s', async (rest) => {
    expect(await answerTo('x', rest)).toMatchObject({
      error: { code: expect.any(Number), message: expect.any(String) },
    });
    expect(textOf(await client.call('f__search', { repo: 1 }))).toBe('["search",{"owner":"me","repo":1}]');
  });

  it('F381: has no keys in its list that clients like it would take for others', async () => {
    const { result } = await client.request('tools/list');
    const own = result.tools.filter(({ name }: { name: string }) => name.startsWith('f__'));
    expect(own.map((tool: object) => Object.keys(tool))).toEqual([
      ['name', 'inputSchema'],
      ['name', 'inputSchema'],
    ]);
  });

  it('F381: gives no client an answer that says two ids, and goes on', async () => {
    const result = await client.call('f__lie', { to: 7 });
    expect(textOf(result)).toContain('f');
    expect(result.isError).toBe(true);
    expect(gateway.status('f').state).toBe('ready');
    expect(textOf(await client.call('f__open'))).toBe('["open",{}]');
  });
});
