import { afterEach, describe, expect, it } from 'vitest';
import { GatewayProcess, type Message } from '../support/gateway-process.js';
import { until } from '../support/processes.js';

let gateway: GatewayProcess;
afterEach(() => gateway.dispose());

async function start(capabilities: object): Promise<void> {
  gateway = await GatewayProcess.start({ servers: { lab: {} } }, { handshake: false });
  await gateway.initialize('2025-11-25', capabilities);
  await gateway.listTools();
}

/** Calls the tool that asks; resolves with the server request as the client got it, and with the call's answer to come. */
async function ask(
  method: string,
  params: object = {},
): Promise<{ raw: string; input: Message; call: Promise<string> }> {
  const before = gateway.received.length;
  const call = gateway.call('lab__ask', { method, params }).then(({ message }) => message.result.content[0].text);
  const serverRequests = () => gateway.received.slice(before).filter(({ message }) => message.method === method);
  await until('the server request', () => serverRequests().length > 0);
  const [received] = serverRequests();
  if (received === undefined) throw new Error('No server request');
  return { raw: received.raw, input: received.message, call };
}

describe('a server request', () => {
  it('reaches the client byte for byte but for the id, and so does the answer the server', async () => {
    await start({ sampling: {} });
    const { raw, input, call } = await ask('sampling/createMessage', { messages: [], n: 1 });
    expect(raw).toMatch(/^\{"params":\{"messages":\[\],"n":1\},"x":1\.0,"jsonrpc":"2\.0","id":1,"method":/);
    gateway.send(`{"jsonrpc":"2.0", "result":{"e":1e400,"n":9007199254740993},"id":${input.id}}`);
    expect(await call).toMatch(/^\{"jsonrpc":"2\.0", "result":\{"e":1e400,"n":9007199254740993\},"id":"ask-\d+"\}$/);
  });

  it('may be answered by the client with an error', async () => {
    await start({ elicitation: {} });
    const { input, call } = await ask('elicitation/create', { message: 'Sure?' });
    gateway.send(`{"jsonrpc":"2.0","id":${input.id},"error":{"code":-1,"message":"no","data":{"x":1.0}}}`);
    expect(await call).toContain('"error":{"code":-1,"message":"no","data":{"x":1.0}}');
  });

  it.each([
    ['sampling/createMessage', { elicitation: {}, roots: {} }, -32601],
    ['roots/list', { sampling: {} }, -32601],
    ['elicitation/create', { sampling: {} }, -32601],
  ])('is never %s when the client declared %j', async (method, capabilities, code) => {
    await start(capabilities);
    const { message } = await gateway.call('lab__ask', { method });
    expect(message.result.content[0].text).toContain(`"code":${code}`);
    expect(gateway.received.filter((received) => received.message.method === method)).toEqual([]);
  });

  it("reaches the client when its method is a vendor's own", async () => {
    await start({});
    const { input, call } = await ask('vendor/ask', { x: 1 });
    gateway.send(`{"jsonrpc":"2.0","id":${input.id},"error":{"code":-32601,"message":"what?"}}`);
    expect(await call).toContain('"message":"what?"');
  });

  it('is never a form when the client declared urls only, and the other way round', async () => {
    await start({ elicitation: { url: {} } });
    const form = await gateway.call('lab__ask', {
      method: 'elicitation/create',
      params: { mode: 'form', message: '' },
    });
    expect(form.message.result.content[0].text).toContain('"code":-32602');
    const { input, call } = await ask('elicitation/create', { mode: 'url', message: '', url: 'https://a.test' });
    gateway.send(`{"jsonrpc":"2.0","id":${input.id},"result":{"action":"accept"}}`);
    expect(await call).toContain('accept');
  });

  it('may wait for a person longer than the timeout of a call', async () => {
    const servers = { lab: { timeout: '1500ms' }, other: { timeout: '800ms' } };
    gateway = await GatewayProcess.start({ servers }, { handshake: false });
    await gateway.initialize('2025-11-25', { elicitation: {} });
    await gateway.listTools();
    const { input, call } = await ask('elicitation/create', { message: 'Take your time' });
    // Two calls of another server run into its timeout, one after the other: more than the time of the first has passed then.
    for (let round = 0; round < 2; round += 1) {
      const { message } = await gateway.call('other__wait', { delayMs: 60_000 });
      expect(message.result._meta['trunkline/failure'].reason).toBe('timeout');
      expect((await gateway.status('lab')).inFlight).toBe(1);
    }
    gateway.send(`{"jsonrpc":"2.0","id":${input.id},"result":{"action":"accept"}}`);
    expect(await call).toContain('accept');
  });

  it('is cancelled when the server dies', async () => {
    await start({ elicitation: {} });
    const before = gateway.call('lab__ask', { method: 'elicitation/create' });
    await until('the server request', () =>
      gateway.received.some(({ message }) => message.method === 'elicitation/create'),
    );
    process.kill((await gateway.status('lab')).pid, 'SIGKILL');
    expect((await before).message.result._meta['trunkline/failure'].outcome).toBe('unknown');
    await until('the cancellation', () => gateway.notifications('notifications/cancelled').length > 0);
    expect(gateway.notifications('notifications/cancelled')[0]?.message.params.requestId).toBe(1);
  });

  it("comes from a server that got the client's revision, name and capabilities unchanged", async () => {
    gateway = await GatewayProcess.start({ servers: { lab: {} } }, { handshake: false });
    await gateway.initialize('2025-06-18', { sampling: {}, experimental: { 'x/y': { deep: [1] } } });
    const { message } = await gateway.call('lab__hello');
    expect(JSON.parse(message.result.content[0].text), message.result.content[0].text).toEqual({
      protocolVersion: '2025-06-18',
      capabilities: { sampling: {}, experimental: { 'x/y': { deep: [1] } } },
      clientInfo: { name: 'test', version: '1' },
    });
  });
});
