import { afterEach, describe, expect, it, vi } from 'vitest';
import { LegacyExchange } from '../../src/downstream/legacy/legacy-session.js';
import { ClientView } from '../../src/gateway/client-view.js';
import { Backend } from '../../src/gateway/registry/backend.js';
import { type InProcessClient, InProcessGateway, textOf } from '../support/in-process-gateway.js';

const BUG = { code: -32603, data: { reason: 'internal', code: 'TL-CALL-INTERNAL', outcome: 'unknown' } };

let gateway: InProcessGateway;
const escaped: unknown[] = [];
const onEscape = (error: unknown) => escaped.push(error);
afterEach(async () => {
  vi.restoreAllMocks();
  process.off('uncaughtException', onEscape);
  process.off('unhandledRejection', onEscape);
  await gateway.end();
  expect(escaped.splice(0)).toEqual([]);
});

/** Two clients of one server that is ready. Whatever would end the process from now on makes the test fail. */
async function start(entry: Record<string, unknown> = {}): Promise<[InProcessClient, InProcessClient]> {
  gateway = new InProcessGateway({ servers: { f: { sharing: 'profile', ...entry } } });
  const clients = [await gateway.connect(), await gateway.connect()] as [InProcessClient, InProcessClient];
  await gateway.untilState('f', 'ready');
  process.on('uncaughtException', onEscape);
  process.on('unhandledRejection', onEscape);
  return clients;
}

function throwOnce(): never {
  throw new Error('injected');
}

/** All that goes on when one thing went wrong. */
async function expectOthersToWork(one: InProcessClient, other: InProcessClient, bugs: number): Promise<void> {
  for (const client of [one, other]) expect(textOf(await client.call('f__answer', { nonce: 'n' }))).toBe('n');
  const { result } = await other.request('tools/call', { name: 'trunkline__status' });
  expect(result.structuredContent.internalErrorCount).toBe(bugs);
  expect(gateway.status('f')).toMatchObject({ state: 'ready', restarts: 0, inFlight: 0 });
  expect(result.content[0].text).toContain(`Internal errors in Trunkline: ${bugs}. Each failed one request`);
  expect(gateway.log.filter((line) => line.includes('internal error: one request failed'))).toHaveLength(bugs);
}

describe('F58: an internal error', () => {
  it('while an answer is delivered fails that request, and no other of the same process', async () => {
    const [one, other] = await start();
    vi.spyOn(LegacyExchange.prototype, 'answer').mockImplementationOnce(throwOnce);
    const calls = [one.request('tools/call', { name: 'f__answer' }), other.call('f__answer', { nonce: 'b' })] as const;
    expect((await calls[0]).error).toMatchObject(BUG);
    expect(textOf(await calls[1])).toBe('b');
    await expectOthersToWork(one, other, 1);
  });

  it('frees the slot of its request', async () => {
    const [one, other] = await start({ concurrency: 1 });
    for (let times = 0; times < 3; times += 1) {
      vi.spyOn(LegacyExchange.prototype, 'answer').mockImplementationOnce(throwOnce);
      expect((await one.request('tools/call', { name: 'f__answer' })).error).toMatchObject(BUG);
    }
    vi.spyOn(LegacyExchange.prototype, 'onCancel').mockImplementationOnce(throwOnce);
    expect((await one.request('tools/call', { name: 'f__answer' })).error).toMatchObject(BUG);
    await expectOthersToWork(one, other, 4);
  });

  it('while a request is routed fails that request', async () => {
    const [one, other] = await start();
    vi.spyOn(ClientView.prototype, 'serve').mockImplementationOnce(throwOnce);
    expect((await one.request('tools/call', { name: 'f__answer' })).error).toMatchObject(BUG);
    await expectOthersToWork(one, other, 1);
  });

  it('while a notification is handled loses that notification, and no other message', async () => {
    const [one, other] = await start();
    vi.spyOn(Backend.prototype, 'notification').mockImplementationOnce(throwOnce);
    // One write brings the notification and the answer.
    expect(textOf(await one.call('f__batch', { nonce: 'n' }))).toBe('n');
    await expectOthersToWork(one, other, 1);
  });

  it('while progress is reported loses that report', async () => {
    const [one, other] = await start();
    vi.spyOn(LegacyExchange.prototype, 'progress').mockImplementationOnce(throwOnce);
    expect(textOf(await one.call('f__progress', { nonce: 'n', steps: 3 }, 'token'))).toBe('n');
    expect(one.notifications('notifications/progress')).toHaveLength(2);
    await expectOthersToWork(one, other, 1);
  });

  it('at the end of a process fails one of its requests, and all others get the failure of the process', async () => {
    const [one, other] = await start({ restart: { firstDelay: '10ms' } });
    const calls = [one, other].map((client) => client.request('tools/call', { name: 'f__silent' }));
    const exchanges = vi.spyOn(LegacyExchange.prototype, 'fail').mockImplementationOnce(throwOnce);
    void one.call('f__exit');
    const [first, second] = await Promise.all(calls);
    expect(exchanges).toHaveBeenCalled();
    expect(first?.error).toMatchObject(BUG);
    expect(second?.result._meta['trunkline/failure']).toMatchObject({ reason: 'child_exited' });
    await gateway.untilState('f', 'ready');
    expect(textOf(await other.call('f__answer', { nonce: 'n' }))).toBe('n');
  });

  it('in one client does not affect the answers of others', async () => {
    const [one, other] = await start();
    one.received.onLine = throwOnce;
    void one.call('f__answer');
    expect(textOf(await other.call('f__answer', { nonce: 'n' }))).toBe('n');
    expect(gateway.composition.platform.internalErrors.count).toBe(1);
  });

  it('while a list is read again leaves the last one in force', async () => {
    const [one, other] = await start();
    const before = await one.listTools();
    vi.spyOn(ClientView.prototype, 'listsChanged').mockImplementationOnce(throwOnce);
    await one.call('f__change', { add: true });
    await expect.poll(() => gateway.composition.platform.internalErrors.count).toBe(1);
    expect(await one.listTools()).toEqual(before);
    await expectOthersToWork(one, other, 1);
  });
});
