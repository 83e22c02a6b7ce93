import { readdirSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { GatewayProcess, Message } from '../support/gateway-process.js';
import { Place, type Running } from '../support/http-place.js';
import { sharedPlace } from '../support/hub-place.js';
import { until } from '../support/processes.js';

const RESULTS = { max: '100kB' };
const TOOL = 'trunkline__read_result';

async function toolsOf(client: GatewayProcess): Promise<string[]> {
  return (await client.listTools()).map(({ name }) => name);
}

describe('clients of a hub', () => {
  it('get the two ends of a result of 12 MiB, and read the rest, each its own', async () => {
    const place = sharedPlace({ servers: { lab: {} }, config: { defaults: { results: RESULTS } } });
    const [one, other] = [await place.client(), await place.client()];
    // In the message, the four characters are six bytes.
    const mark = 'ab\u00e9"';
    const length = 8 * 1024 * 1024;
    const { raw, message } = await one.call('lab__big', { bytes: length, mark });
    expect(raw.length).toBeLessThan(101_000);
    const [block, link] = message.result.content;
    expect(block.text).toContain('Trunkline left out');
    expect(link).toMatchObject({ type: 'resource_link', name: 'result of lab__big' });
    const { uri, size } = link;
    const whole = (await one.request('resources/read', { uri })).message.result.contents[0].text;
    expect(whole).toHaveLength(length);
    expect(whole.replaceAll(mark, '')).toBe('');
    expect(size).toBe(Buffer.byteLength(whole));
    const part = (await one.call(TOOL, { uri, offset: size - 5 })).message.result.content[1].text;
    expect(part).toBe(mark);
    expect((await other.request('resources/read', { uri })).message.error.code).toBe(-32002);
    expect((await other.call(TOOL, { uri })).message.result.isError).toBe(true);
    const files = readdirSync(place.folder, { recursive: true, encoding: 'utf8' });
    expect(files.filter((file) => /result/.test(file))).toEqual([]);
  });

  it('see the tool come and go with the setting, without a new session', async () => {
    const place = sharedPlace({ servers: { lab: {} } });
    const client = await place.client();
    expect(await toolsOf(client)).not.toContain(TOOL);
    const big = async () => (await client.call('lab__big', { bytes: 200_000 })).message.result.content;
    expect(await big()).toEqual([{ type: 'text', text: 'x'.repeat(200_000) }]);
    const changes = () => client.notifications('notifications/tools/list_changed').length;
    client.configure({ lab: { results: RESULTS } });
    await until('the tools change', () => changes() > 0);
    expect(await toolsOf(client)).toContain(TOOL);
    const [, link] = await big();
    const before = changes();
    client.configure({ lab: {} });
    await until('the tools change again', () => changes() > before);
    expect(await toolsOf(client)).not.toContain(TOOL);
    expect(await big()).toHaveLength(1);
    expect((await client.request('resources/read', { uri: link.uri })).message.result.contents).toHaveLength(1);
  });
});

describe('clients over HTTP', () => {
  let place: Place;
  let running: Running;
  beforeEach(async () => {
    place = new Place();
    running = await place.serve({ servers: { lab: { ...place.lab(), results: RESULTS } } });
    await running.untilReady();
  });
  afterEach(() => place.dispose());

  it('with sessions of one token read their own results only, until the session ends', async () => {
    const [one, other] = [await place.handshake(running), await place.handshake(running)];
    const { result } = await one.request('tools/call', { name: 'lab__big', arguments: { bytes: 200_000 } });
    const { uri } = result.content[1];
    expect((await one.request('resources/read', { uri })).result.contents[0].text).toBe('x'.repeat(200_000));
    expect((await other.request('resources/read', { uri })).error).toMatchObject({ code: -32002, data: { uri } });
    await one.end();
    const next = await place.handshake(running);
    expect((await next.request('resources/read', { uri })).error.code).toBe(-32002);
  });

  it('without sessions read the results of their token', async () => {
    const ask = async (method: string, members: Message): Promise<Message> => {
      const _meta = {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientCapabilities': {},
      };
      const name = members.name ?? members.uri;
      const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': method, 'mcp-name': name };
      const message = { jsonrpc: '2.0', id: 1, method, params: { ...members, _meta } };
      return (await (await place.post(running, message, headers)).json()) as Message;
    };
    const { result } = await ask('tools/call', { name: 'lab__big', arguments: { bytes: 200_000 } });
    const { uri } = result.content[1];
    expect((await ask('resources/read', { uri })).result).toMatchObject({
      ...{ resultType: 'complete', ttlMs: 0, cacheScope: 'private' },
      contents: [{ uri, text: 'x'.repeat(200_000) }],
    });
    const found = await ask('tools/call', { name: TOOL, arguments: { uri, offset: 199_998 } });
    expect(found.result.content[1].text).toBe('xx');
  });
});
