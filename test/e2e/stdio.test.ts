import { afterEach, describe, expect, it } from 'vitest';
import { GatewayProcess } from '../support/gateway-process.js';
import { until } from '../support/processes.js';

let gateway: GatewayProcess;
afterEach(() => gateway.dispose());

describe('stdout', () => {
  it('carries nothing but protocol, with -vv and servers that print garbage', async () => {
    const noisy = { args: ['noisy'] };
    gateway = await GatewayProcess.start({ servers: { one: noisy, two: noisy }, args: ['-vv'] });
    await gateway.listTools();
    for (let call = 0; call < 20; call += 1) {
      const { message } = await gateway.call(call % 2 ? 'one__wait' : 'two__wait', { marker: `m${call}`, delayMs: 0 });
      expect(message.result.content[0].text).toBe(`m${call}`);
    }
    await gateway.call('one__die');
    await gateway.untilState('one', 'ready');
    // Every line was parsed on arrival, which would have failed for anything but JSON.
    for (const { message, raw } of gateway.received) {
      expect(message.jsonrpc).toBe('2.0');
      expect(raw).not.toContain('\r');
    }
    const answers = gateway.received.filter(({ message }) => message.id <= 22);
    for (const { raw } of answers) expect(raw).not.toMatch(/noise|Welcome/);
    const status = await gateway.status('two');
    expect(status.dropped.junk).toBeGreaterThan(10);
    expect(status.log.join('\n')).toContain('noise');
    expect(gateway.stderr).toContain('server ready');
  });
});

describe('the front', () => {
  it.each(['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'])('speaks revision %s', async (revision) => {
    gateway = await GatewayProcess.start({ servers: {} }, { handshake: false });
    const { message } = await gateway.initialize(revision);
    expect(message.result.protocolVersion).toBe(revision);
    expect(message.result.serverInfo.name).toBe('trunkline');
    expect(message.result.capabilities).toEqual({
      tools: { listChanged: true },
      prompts: { listChanged: true },
      resources: { listChanged: true, subscribe: true },
      completions: {},
      logging: {},
      ...(revision === '2025-11-25' ? { tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } } : {}),
    });
  });

  it('answers with its newest revision when it does not know the one asked for', async () => {
    gateway = await GatewayProcess.start({ servers: {} }, { handshake: false });
    expect((await gateway.initialize('1999-01-01')).message.result.protocolVersion).toBe('2025-11-25');
  });

  it('answers ping and status while every server hangs', async () => {
    const mute = { args: ['mute'] };
    gateway = await GatewayProcess.start({ servers: { one: mute, two: mute, three: mute } });
    expect((await gateway.request('ping')).message.result).toEqual({});
    expect(await gateway.status('two')).toMatchObject({ state: 'starting' });
  });

  it('lists the servers that are ready when the wait for slow ones is over, and announces the others', async () => {
    gateway = await GatewayProcess.start({
      servers: { quick: {}, late: { args: ['slow=3000'] } },
      gateway: { startupWait: '1200ms' },
    });
    const first = await gateway.listTools();
    expect(first.map(({ name }) => name)).toContain('quick__echo');
    expect(first.map(({ name }) => name)).not.toContain('late__echo');
    await until('the notification', () => gateway.notifications('notifications/tools/list_changed').length > 0);
    expect((await gateway.listTools()).map(({ name }) => name)).toContain('late__echo');
  });

  it('waits for a slow server with the first list, when it comes in time', async () => {
    gateway = await GatewayProcess.start({ servers: { quick: {}, late: { args: ['slow=500'] } } });
    expect((await gateway.listTools()).map(({ name }) => name)).toContain('late__echo');
    expect(gateway.notifications('notifications/tools/list_changed')).toEqual([]);
  });

  it('forwards the instructions of the servers that are ready when the client connects', async () => {
    // Of all servers, one that serves every client does not wait for this one to say what it is.
    gateway = await GatewayProcess.start({ servers: { lab: { sharing: 'all' } }, args: ['-v'] }, { handshake: false });
    await until('the server is ready', () => gateway.stderr.includes('server ready'));
    const { message } = await gateway.initialize();
    expect(message.result.instructions).toMatch(
      /trunkline__status[\s\S]*\n- lab: tools echo, [\s\S]*\nLab instructions\.\n/,
    );
  });

  it('answers an invalid message with an error, and continues', async () => {
    gateway = await GatewayProcess.start({ servers: { lab: {} } });
    const bad: [string, object][] = [
      ['{"jsonrpc":"2.0","id":50,"method":', { id: 50, error: { code: -32700 } }],
      ['[1]', { id: null, error: { code: -32600 } }],
      ['{"jsonrpc":"1.0","id":51,"method":"ping"}', { id: 51, error: { code: -32600 } }],
      ['{"jsonrpc":"2.0","id":52,"method":"no/such"}', { id: 52, error: { code: -32601 } }],
      ['{"jsonrpc":"2.0","id":53,"method":"tools/call","params":{}}', { id: 53, error: { code: -32602 } }],
      ['{"jsonrpc":"2.0","id":54,"method":"tools/call","params":{"name":"no"}}', { id: 54, error: { code: -32602 } }],
      ['{"jsonrpc":"2.0","id":55,"method":"tools/list","params":{"cursor":""}}', { id: 55, error: { code: -32602 } }],
      ['{"jsonrpc":"2.0","id":56,"id":57,"method":"ping"}', { id: 56, error: { code: -32600 } }],
    ];
    for (const [line, expected] of bad) {
      const count = gateway.received.length;
      gateway.send(line);
      await until(`an answer to ${line}`, () => gateway.received.length > count);
      expect(gateway.received.at(-1)?.message).toMatchObject(expected);
    }
    expect((await gateway.call('lab__wait', { marker: 'fine', delayMs: 0 })).message.result.isError).toBeUndefined();
  });

  it('loses nothing when the client stops reading for a while', async () => {
    gateway = await GatewayProcess.start({ servers: { lab: {} } });
    await gateway.listTools();
    gateway.pauseReading();
    const calls = Array.from({ length: 16 }, () => gateway.call('lab__big', { bytes: 2 * 1024 * 1024 }));
    const ping = gateway.request('ping');
    await until('the pipe to the client is full', () => gateway.unreadBytes >= 64 * 1024);
    gateway.resumeReading();
    for (const { message } of await Promise.all(calls)) expect(message.result.content[0].text).toHaveLength(2 ** 21);
    expect((await ping).message.result).toEqual({});
  });
});

// `test/app/run-to-end.test.ts` proves the deadline of three seconds, on a clock of its own.
describe('the end', () => {
  const stubborn = { args: ['mute'] };

  it.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)('comes after %s, with nothing left', async (signal) => {
    gateway = await GatewayProcess.start({ servers: { lab: {}, stubborn } });
    await gateway.untilState('lab', 'ready');
    gateway.kill(signal);
    expect(await gateway.exited).toBe(0);
    expect(gateway.leftovers()).toEqual([]);
  });

  it('leaves nothing when the signal comes while everything is still being loaded', async () => {
    gateway = await GatewayProcess.start({ servers: { lab: {}, stubborn } });
    gateway.kill('SIGTERM');
    expect(await gateway.exited).toBe(0);
    expect(gateway.leftovers()).toEqual([]);
  });

  it('comes when the client closes stdin, with nothing left', async () => {
    gateway = await GatewayProcess.start({ servers: { lab: {}, stubborn } });
    expect(await gateway.close()).toBe(0);
    expect(gateway.leftovers()).toEqual([]);
  });
});
