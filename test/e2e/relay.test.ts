import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { GatewayProcess, type StartOptions } from '../support/gateway-process.js';
import { until } from '../support/processes.js';

describe('the relay', () => {
  /** One gateway for all tests: each looks at what came since it began. */
  let gateway: GatewayProcess;
  beforeAll(async () => {
    gateway = await GatewayProcess.start({ servers: { lab: {} } });
    await gateway.listTools();
  });
  beforeEach(() => gateway.forget());
  afterAll(() => gateway.dispose());

  it('lists every field of a tool byte for byte, from all pages', async () => {
    const { raw } = await gateway.request('tools/list');
    expect(raw).toContain(
      '{"name":"lab__echo","inputSchema":{"type":"object"},"x-unknown":{"n":9007199254740993,"f":1.0,"e":1e400},"description":"\\u00e9chos its arguments"}',
    );
    expect(raw).toContain(
      '{ "description" : "answers after delayMs" , "inputSchema" : {"type":"object","properties":{"delayMs":{"type":"number"}}}, "name" : "lab__wait" }',
    );
    expect(JSON.parse(raw).result.tools.map(({ name }: { name: string }) => name)).toEqual([
      'lab__echo',
      'lab__wait',
      'lab__verbatim',
      'lab__big',
      'lab__die',
      'lab__effect',
      'lab__progress',
      'lab__change',
      'lab__ask',
      'trunkline__status',
    ]);
  });

  it('reports no progress to a client that did not ask for it', async () => {
    const before = (await gateway.status('lab')).dropped.staleProgress;
    await gateway.call('lab__progress');
    expect(gateway.notifications('notifications/progress')).toEqual([]);
    expect((await gateway.status('lab')).dropped.staleProgress - before).toBe(4);
  });

  it('forwards a result of 20 MiB whole', async () => {
    const { message } = await gateway.call('lab__big', { bytes: 20 * 1024 * 1024 });
    expect(message.result.content[0].text).toHaveLength(20 * 1024 * 1024);
  });
});

describe('the relay, with other servers or settings', () => {
  let gateway: GatewayProcess;
  const start = async (options: StartOptions) => {
    gateway = await GatewayProcess.start(options);
    return gateway;
  };
  afterEach(() => gateway.dispose());

  it('gives each of 128 calls in flight on two servers its own answer, whatever the order', async () => {
    await start({ servers: { one: { concurrency: 64 }, two: { concurrency: 64 } } });
    await gateway.listTools();
    const calls = Array.from({ length: 128 }, async (_, index) => {
      const marker = `marker-${index}`;
      const { message } = await gateway.call(`${index % 2 ? 'one' : 'two'}__wait`, {
        marker,
        delayMs: (index * 37) % 100,
      });
      return message.result.content[0].text === marker;
    });
    expect(await Promise.all(calls)).toEqual(Array(128).fill(true));
    const order = gateway.received.map(({ message }) => message.id).filter((id) => typeof id === 'number');
    expect(order).not.toEqual(order.toSorted((a, b) => a - b));
  });

  it('forwards every byte of large results, which use the same memory one after the other', async () => {
    await start({ servers: { one: {}, two: {}, three: {} } });
    const sizes = [20_000, 70_000, 300_000, 900_000, 1_100_000, 3_000_000];
    const calls = Array.from({ length: 60 }, async (_, index) => {
      const [server, bytes] = [['one', 'two', 'three'][index % 3], sizes[(index * 5) % sizes.length] ?? 0];
      const mark = `<${index} of ${server}>`;
      const { message } = await gateway.call(`${server}__big`, { mark, bytes });
      const { text } = message.result.content[0];
      return text.length === bytes && text === mark.repeat(bytes / mark.length + 1).slice(0, bytes);
    });
    expect(await Promise.all(calls)).toEqual(calls.map(() => true));
  });

  it('refuses a result beyond the frame limit, says so, and reads on', async () => {
    await start({ servers: { lab: { maxFrame: '64KiB' } } });
    const { message } = await gateway.call('lab__big', { bytes: 200_000 });
    expect(message.result._meta['trunkline/failure']).toMatchObject({
      reason: 'response_too_large',
      outcome: 'failed',
    });
    const next = await gateway.call('lab__wait', { marker: 'next', delayMs: 0 });
    expect(next.message.result.content[0].text).toBe('next');
  });

  it('announces a changed list once, and only to a client that has listed', async () => {
    await start({ servers: { lab: {} } });
    await gateway.listTools();
    await gateway.call('lab__change');
    await until('the client is notified', () => gateway.notifications('notifications/tools/list_changed').length > 0);
    expect((await gateway.listTools()).map(({ name }) => name)).toContain('lab__added1');
    // The second storm is a second change; the fifty notifications of each reach the client as one.
    await gateway.call('lab__change');
    await until(
      'the client is notified again',
      () => gateway.notifications('notifications/tools/list_changed').length > 1,
    );
    expect(gateway.notifications('notifications/tools/list_changed')).toHaveLength(2);
  });

  it('routes nothing to a tool that the configuration denies', async () => {
    await start({ servers: { lab: { tools: { deny: ['d*'] } } } });
    expect((await gateway.listTools()).map(({ name }) => name)).not.toContain('lab__die');
    expect((await gateway.call('lab__die')).message.error).toEqual({ code: -32602, message: 'Unknown tool: lab__die' });
    expect((await gateway.call('die')).message.error.code).toBe(-32602);
    expect((await gateway.status('lab')).generation).toBe(1);
  });
});
