import { afterEach, describe, expect, it } from 'vitest';
import { HttpGateway } from '../../support/http-gateway.js';
import { endAll, type Got, json, serve } from '../../upstream/http/remote-server.js';
import { serving } from './serving.js';

afterEach(endAll);

const TOOL = { name: 'read', inputSchema: { type: 'object' } };

/** A server that answers calls when `count` of them are there, so that they are in flight at once. */
async function serverOf(era: 'legacy' | 'modern', count = 1) {
  const waiting: Got[] = [];
  return await serve((got) => {
    const { message, response } = got;
    const result = (content: object) => json(response, { jsonrpc: '2.0', id: message.id, result: content });
    if (message.method === 'tools/list') return result({ tools: [TOOL], resultType: 'complete' });
    if (message.method !== 'tools/call') return undefined;
    waiting.push(got);
    if (waiting.length < count) return true;
    for (const one of waiting.splice(0)) {
      const { id, params } = one.message;
      const content = [{ type: 'text', text: params.arguments.who ?? '' }];
      json(one.response, { jsonrpc: '2.0', id, result: { content, resultType: 'complete' } });
    }
    return true;
  }, era);
}

function gatewayFor(origin: string, more: object = {}) {
  const entry = { url: `${origin}/mcp`, sharing: 'all', passHeaders: ['X-Request-Id', 'X-Tenant'], ...more };
  return HttpGateway.start({ servers: { far: entry, other: { ...entry, passHeaders: ['X-Request-Id'] } } });
}

describe('headers of clients', () => {
  it.each([
    ['legacy', 'legacy'],
    ['legacy', 'modern'],
    ['modern', 'legacy'],
    ['modern', 'modern'],
  ] as const)('reach a %s server with the call of their own %s client, on a connection of all', async (era, of) => {
    const count = 8;
    const { origin, of: ofServer } = await serverOf(era, count);
    const gateway = await gatewayFor(origin, { concurrency: 64 });
    const answers = await Promise.all(
      Array.from({ length: count }, async (_, at) => {
        const who = `client ${at}`;
        const session = of === 'legacy' ? await gateway.session() : {};
        // One client sends no tenant, and must not get the one of another.
        const own = { 'x-request-id': who, ...(at > 0 && { 'x-tenant': who }) };
        return await gateway.call('far__read', { who }, { ...session, ...own, 'x-other': 'o', cookie: 'c=1' });
      }),
    );
    expect(answers.map(({ body }) => body.result.content[0].text)).toEqual(answers.map((_, at) => `client ${at}`));
    const calls = ofServer('tools/call').map(({ headers, message }) => ({
      headers,
      who: message.params.arguments.who,
    }));
    expect(calls).toHaveLength(count);
    for (const { headers, who } of calls) {
      expect([headers['x-request-id'], headers['x-tenant']]).toEqual([who, who === 'client 0' ? undefined : who]);
      expect([headers['x-other'], headers.cookie]).toEqual([undefined, undefined]);
    }
  });

  it('are those of the batch that carries a call', async () => {
    const { origin, of } = await serverOf('legacy', 4);
    const gateway = await gatewayFor(origin);
    const batch = async (tenant: string) => {
      const session = await gateway.session({}, '2025-03-26');
      const call = (id: number) => ({
        ...{ jsonrpc: '2.0', id, method: 'tools/call' },
        params: { name: 'far__read', arguments: { who: tenant } },
      });
      await gateway.post([call(1), call(2)], { ...session, 'x-tenant': tenant });
    };
    await Promise.all([batch('red'), batch('blue')]);
    const seen = of('tools/call').map(({ headers, message }) => [headers['x-tenant'], message.params.arguments.who]);
    expect(seen.sort()).toEqual([...Array(2).fill(['blue', 'blue']), ...Array(2).fill(['red', 'red'])]);
  });

  it('stay away from requests of the gateway itself, and from servers that do not name them', async () => {
    const { origin, got } = await serverOf('legacy');
    const gateway = await gatewayFor(origin);
    const headers = { 'x-tenant': 'red', 'x-request-id': '1' };
    await gateway.call('far__read', {}, headers);
    await gateway.call('other__read', {}, headers);
    const withTenant = got.filter((one) => one.headers['x-tenant'] !== undefined);
    expect(withTenant.map(({ message }) => message.method)).toEqual(['tools/call']);
    expect(got.filter((one) => one.headers['x-request-id'] !== undefined)).toHaveLength(2);
  });

  it('follow a changed configuration without another connection', async () => {
    const { origin, of } = await serverOf('legacy');
    const gateway = await gatewayFor(origin);
    await gateway.call('far__read', {}, { 'x-tenant': 'red' });
    const far = { url: `${origin}/mcp`, sharing: 'all', passHeaders: ['X-Team'] };
    gateway.change({ servers: { far, other: { ...far, passHeaders: [] } } });
    await gateway.call('far__read', {}, { 'x-tenant': 'red', 'x-team': 'blue' });
    const [first, second] = of('tools/call').map(({ headers }) => [headers['x-tenant'], headers['x-team']]);
    expect([first, second]).toEqual([
      ['red', undefined],
      [undefined, 'blue'],
    ]);
    expect(of('initialize')).toHaveLength(2);
  });

  it.each([
    ['x-tenant: red\r\nX-Tenant: blue', 'The header x-tenant is repeated; it must be sent once'],
    [`x-tenant: ${'a'.repeat(4097)}`, 'The header x-tenant is longer than 4096 bytes'],
    ...['\x00', '\x01', '\x0b', '\x1f', '\x7f'].map((character) => [`x-tenant: a${character}b`, '']),
  ])('that could mean two things are refused: %j', async (line, message) => {
    const http = await serving();
    http.core.passedHeaders = () => ['x-tenant'];
    const socket = await http.connect();
    const body = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
    const head = http
      .head('POST', { 'content-length': String(body.length) })
      .replace('\r\n\r\n', `\r\n${line}\r\n\r\n`);
    const answer = new Promise<string>((resolve) => socket.once('data', (chunk) => resolve(String(chunk))));
    socket.write(Buffer.from(`${head}${body}`, 'latin1'));
    const text = await answer;
    expect(text).toContain('HTTP/1.1 400');
    expect(text).toContain(message);
  });
});
