import { describe, expect, it } from 'vitest';
import type { Sharing } from '../../src/gateway/registry/instances.js';
import { createOwnTool, textResult } from '../../src/gateway/status/own-tool.js';
import { scriptGateway, toolOf } from '../support/scripted-gateway.js';
import { flush, type Message } from '../support/wire.js';

const OWN = createOwnTool({ name: 'trunkline__x', inputSchema: { type: 'object' } }, () => textResult('x'));

const HELLO = {
  capabilities: { tools: { listChanged: false }, 'x/y': {} },
  serverInfo: { name: 'itself', version: '7', unknown: 1 },
  instructions: 'Use me.',
};

/** Two servers, the first of which clients see alone. */
function looking(sharing: Sharing = 'profile', hello: Message = HELLO) {
  const world = scriptGateway({
    servers: {
      a: {
        tools: [toolOf('read file', { execution: { taskSupport: 'optional' } }), 'hidden'],
        sharing,
        hello,
        filter: { deny: ['hidden'] },
      },
      b: { tools: ['x'] },
    },
    ownTools: [OWN],
    startupWaitMs: 5_000,
  });
  const client = () => world.connect({ server: 'a' });
  const hi = (protocolVersion = '2025-11-25') => ({ protocolVersion, capabilities: {}, clientInfo: { name: 't' } });
  return { ...world, client, hi };
}

describe('a client that wants to see one server as it is', () => {
  it('gets the initialize result of the server, once it runs, in the words of the server', async () => {
    const { client, server, hi } = looking();
    const one = client();
    one.request(1, 'initialize', hi());
    await flush();
    expect(one.answerTo(1)).toBeUndefined();
    await server('a').start();
    await flush();
    expect(one.answerTo(1)?.result).toEqual({ protocolVersion: '2025-11-25', ...HELLO });
    expect(one.session.revision).toBe('2025-11-25');
  });

  it('sees its names, without those that the configuration hides and without ours', async () => {
    const { client, startAll, hi } = looking();
    await startAll();
    const one = client();
    one.request(1, 'initialize', hi());
    await flush();
    one.request(2, 'tools/list');
    expect(one.answerTo(2)?.result.tools).toEqual([
      { name: 'read file', inputSchema: { type: 'object' }, execution: { taskSupport: 'optional' } },
    ]);
  });

  it('calls its tools by these names, listed or not, and none of another server or of ours', async () => {
    const { client, startAll, server, hi } = looking();
    await startAll();
    const one = client();
    one.request(1, 'initialize', hi());
    await flush();
    for (const [id, name] of ['read file', 'unlisted', 'trunkline__x'].entries()) one.call(`c${id}`, name);
    expect(server('a').child.calls.map(({ params }) => params.name)).toEqual(['read file', 'unlisted', 'trunkline__x']);
    for (const name of ['hidden', 'b__x']) one.call(name, name);
    expect(one.answerTo('hidden')?.error.code).toBe(-32602);
    expect(server('a').child.calls.at(-1)?.params.name).toBe('b__x');
    expect(server('b').child.calls).toEqual([]);
  });

  it('shares its process with clients of all servers that look the same', async () => {
    const { client, connect, startAll, server, ids, hi } = looking();
    await startAll();
    const one = client();
    one.request(1, 'initialize', hi());
    const other = connect();
    other.request(1, 'initialize', hi());
    await flush();
    one.call(2, 'read file');
    other.call(2, 'a__read_file');
    expect(server('a').backend.clients.size).toBe(2);
    expect(ids()).toEqual(['a', 'b']);
  });

  it('is told why when the server does not start in time, and may try again', async () => {
    const { client, server, clock, hi } = looking();
    const one = client();
    server('a').moved('starting');
    one.request(1, 'initialize', hi());
    clock.advance(30_000);
    await flush();
    expect(one.answerTo(1)?.error).toMatchObject({ code: -32603, message: expect.stringContaining('starting') });
    expect(server('a').backend.clients.size).toBe(0);
    one.request(2, 'tools/list');
    expect(one.answerTo(2)?.error.message).toContain('initialize');
    one.request(3, 'initialize', hi());
    await server('a').start();
    await flush();
    expect(one.answerTo(3)?.result.serverInfo.name).toBe('itself');
    expect(server('a').backend.clients.size).toBe(1);
  });

  it.each(['parked', 'stopped'] as const)('is told at once when the server is %s', async (state) => {
    const { client, server, hi } = looking();
    const one = client();
    one.request(1, 'initialize', hi());
    server('a').moved(state);
    await flush();
    expect(one.answerTo(1)?.error.code).toBe(-32603);
  });

  it('may leave while it waits, and leaves nothing behind', async () => {
    const { client, server, clock, gateway, hi } = looking('isolated');
    const one = client();
    one.request(1, 'initialize', hi());
    one.session.close();
    expect(server('a').isEnded).toBe(true);
    clock.advance(60_000);
    await flush();
    expect(one.received.lines).toEqual([]);
    expect(gateway.pool.of('a')).toEqual([]);
    expect(clock.pending).toBe(0);
  });

  it('is told when the gateway closes while it waits', async () => {
    const { client, gateway, hi } = looking();
    const one = client();
    one.request(1, 'initialize', hi());
    gateway.close();
    await flush();
    expect(one.answerTo(1)?.error.message).toContain('stopped');
  });

  it('gets the revision that it speaks, where the server was told of a newer one for the sake of others', async () => {
    const { client, startAll, hi } = looking('all');
    await startAll();
    const one = client();
    one.request(1, 'initialize', hi('2025-06-18'));
    await flush();
    expect(one.answerTo(1)?.result).toEqual({ protocolVersion: '2025-06-18', ...HELLO });
    expect(one.session.revision).toBe('2025-06-18');
  });

  it('gets the revision of the server when that is older', async () => {
    const { client, startAll, hi } = looking('profile', { ...HELLO, protocolVersion: '2024-11-05' });
    await startAll();
    const one = client();
    one.request(1, 'initialize', hi());
    await flush();
    expect(one.answerTo(1)?.result.protocolVersion).toBe('2024-11-05');
    expect(one.session.revision).toBe('2024-11-05');
  });
});
