import { describe, expect, it } from 'vitest';
import { exposedName } from '../../src/wire/mcp/exposed-name.js';
import { offering, scriptGateway } from '../support/scripted-gateway.js';
import { sha256 } from '../support/sha256.js';
import { flush } from '../support/wire.js';

const servers = {
  quick: { tools: ['x'], prefix: '' },
  slow: { tools: ['y'], ...offering({ prompts: ['p'], resources: ['a:///one'], templates: ['b:///{id}'] }) },
};

describe('a request for what no server lists yet', () => {
  it.each([
    ['resources/read', { uri: 'a:///one' }],
    ['resources/read', { uri: 'b:///7' }],
    ['resources/subscribe', { uri: 'a:///one' }],
  ])('waits for servers that start for the first time: %s of %j', async (method, params) => {
    const { server, connect } = scriptGateway({ servers });
    const client = connect().greet();
    client.request(1, method, params);
    await server('quick').start();
    expect(client.answerTo(1)).toBeUndefined();
    const child = await server('slow').start();
    expect(child.asked(method).map((request) => request.params)).toEqual([params]);
    child.reply(method, { contents: [] });
    await flush();
    expect(client.answerTo(1)?.result).toEqual({ contents: [] });
  });

  it('waits also for a tool whose name does not tell its server', async () => {
    const { server, connect } = scriptGateway({ servers });
    const client = connect().greet();
    client.call(1, 'x');
    await server('slow').start();
    const child = await server('quick').start();
    child.answer(0, { content: [], marker: 1 });
    expect(client.answerTo(1)?.result).toEqual({ content: [], marker: 1 });
  });

  it('F182: waits also for a name that only a list can lead back to the original', async () => {
    const { server, connect } = scriptGateway({ servers: { a: { tools: ['read file'] }, b: {} } });
    const client = connect().greet();
    const shortened = exposedName('a', 'a', 'read file', sha256);
    client.call(1, shortened);
    client.call(2, 'a__unlisted');
    const child = await server('a').start();
    await server('b').start();
    expect(child.calls.map(({ params }) => params.name).sort()).toEqual(['read file', 'unlisted']);
  });

  it('is refused once all have started, if none has it', async () => {
    const { server, connect, clock } = scriptGateway({ servers });
    const client = connect().greet();
    client.request(1, 'resources/read', { uri: 'c:///none' });
    client.call(2, 'none');
    server('quick').moved('starting');
    server('quick').moved('backoff');
    server('slow').moved('starting');
    expect([client.answerTo(1), client.answerTo(2)]).toEqual([undefined, undefined]);
    server('slow').moved('backoff');
    expect([client.answerTo(1)?.error.code, client.answerTo(2)?.error.code]).toEqual([-32002, -32602]);
    clock.advance(60_000);
    expect(clock.pending).toBe(0);
  });

  it('waits no longer than the first list may, and those that come later do not wait at all', async () => {
    const { connect, clock } = scriptGateway({ servers, startupWaitMs: 2_000 });
    const client = connect().greet();
    client.request(1, 'resources/read', { uri: 'a:///one' });
    clock.advance(1_999);
    expect(client.answerTo(1)).toBeUndefined();
    clock.advance(1);
    expect(client.answerTo(1)?.error.code).toBe(-32002);
    client.request(2, 'resources/read', { uri: 'a:///one' });
    expect(client.answerTo(2)?.error.code).toBe(-32002);
  });

  it('never reaches a server when it was cancelled meanwhile', async () => {
    const { server, connect } = scriptGateway({ servers });
    const client = connect().greet();
    client.request(1, 'resources/read', { uri: 'a:///one' });
    client.cancel(1);
    await server('quick').start();
    const child = await server('slow').start();
    expect(child.asked('resources/read')).toEqual([]);
    expect(client.answerTo(1)).toBeUndefined();
  });

  it('waits for a method that no server is known for, too', async () => {
    const { connect, server } = scriptGateway({ servers });
    const client = connect().greet();
    client.request(1, 'vendor/ask');
    await server('slow').start();
    expect(client.answerTo(1)).toBeUndefined();
    await server('quick').start();
    server('quick').child.reply('vendor/ask', { code: -32601, message: 'what?' });
    server('slow').child.reply('vendor/ask', { x: 1 });
    expect(client.answerTo(1)?.result).toEqual({ x: 1 });
  });
});
