import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import * as net from 'node:net';
import { describe, expect, it } from 'vitest';
import { json } from './scripted-core.js';
import { initializeRequest, inSession, notification, readToEnd, request, type Serving } from './serving.js';

const MINUTE_MS = 60_000;

/** Whether the drain is over. Lets promises settle first. */
async function isOver(drained: Promise<void>): Promise<boolean> {
  const pending = Symbol();
  return (await Promise.race([drained, new Promise((resolve) => setImmediate(resolve, pending))])) !== pending;
}

/** Resolves when the gateway accepts no connections. It waits until it has accepted those that are there. */
async function untilRefused(http: Serving): Promise<void> {
  const status = () =>
    http.send('GET', '/livez').then(
      ({ status }) => status,
      (error: Error) => error.message,
    );
  await expect.poll(status).toContain('ECONNREFUSED');
}

/** A connection that its client keeps open, as a proxy does. */
async function keptConnection(http: Serving): Promise<net.Socket> {
  const socket = await http.connect();
  const body = JSON.stringify(initializeRequest('2025-11-25'));
  socket.write(`${http.head('POST', { 'content-length': `${body.length}` })}${body}`);
  const [answer] = (await once(socket, 'data')) as [Buffer];
  expect(answer.toString()).toMatch(/^HTTP\/1\.1 200 .*\r\nConnection: keep-alive\r\n/s);
  return socket;
}

/** Number of connections to the port that the system has established, accepted or not. Only Linux tells it: `Infinity` elsewhere. */
function establishedTo(port: number): number {
  if (process.platform !== 'linux') return Number.POSITIVE_INFINITY;
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const rows = readFileSync('/proc/net/tcp', 'latin1').split('\n');
  return rows
    .map((row) => row.trim().split(/\s+/))
    .filter(([, , remote, state]) => state === '01' && remote?.endsWith(suffix)).length;
}

describe('a draining gateway', () => {
  it('is alive and not ready, and closes each connection with its next response', async () => {
    const { http, session } = await inSession();
    const kept = await keptConnection(http);
    void http.front.drain(MINUTE_MS);
    expect((await http.send('GET', '/livez')).status).toBe(200);
    expect((await http.send('GET', '/healthz')).status).toBe(200);
    const ready = await http.send('GET', '/readyz');
    expect([ready.status, ready.text, ready.headers.connection]).toEqual([503, 'draining', 'close']);
    expect((await http.post(request(1), session)).status).toBe(200);
    expect((await http.initialize())['mcp-session-id']).toBeDefined();

    kept.write(http.head('GET', session));
    const [head] = (await once(kept, 'data')) as [Buffer];
    expect(head.toString()).toMatch(/^HTTP\/1\.1 200 .*\r\nConnection: close\r\n/s);
    expect(http.events).toContainEqual({ kind: 'http.draining', ms: MINUTE_MS });
  });

  it('F314: accepts connections for 10 s, and then finishes its calls only', async () => {
    const { http, session } = await inSession();
    const replies = http.core.hold();
    const call = http.post(request(1), session);
    await expect.poll(() => replies).toHaveLength(1);
    const drained = http.front.drain(MINUTE_MS);
    http.clock.advance(9_999);
    expect((await http.send('GET', '/livez')).status).toBe(200);
    http.clock.advance(1);
    await untilRefused(http);
    http.clock.advance(40_000);
    expect(await isOver(drained)).toBe(false);

    replies[0]?.answer(json({ jsonrpc: '2.0', id: 1, result: {} }));
    // The answer to a call of more than 10 s comes on an event stream.
    expect((await call).text).toContain('"result":{}');
    http.clock.advance(100);
    await drained;
  });

  it('F314: serves connections that the system has established and that it has not accepted yet', async () => {
    const { http } = await inSession();
    await keptConnection(http);
    void http.front.drain(MINUTE_MS);
    const before = establishedTo(http.front.port);
    const sockets = Array.from({ length: 20 }, () => net.connect(http.front.port, '127.0.0.1'));
    // Each socket connects in the next tick, in which this process accepts nothing. A busy system establishes some later.
    await new Promise((resolve) => process.nextTick(resolve));
    const deadline = performance.now() + 10_000;
    while (establishedTo(http.front.port) < before + 20 && performance.now() < deadline);
    http.clock.advance(10_000);
    const answers = sockets.map(async (socket) => {
      socket.write(http.head('GET', {}).replace('/mcp', '/livez'));
      return (await readToEnd(socket)).slice(0, 12);
    });
    expect(await Promise.all(answers)).toEqual(Array(20).fill('HTTP/1.1 200'));
    await untilRefused(http);
  });

  it('accepts connections for half of a shorter drain', async () => {
    const { http } = await inSession();
    await keptConnection(http);
    void http.front.drain(2_000);
    http.clock.advance(999);
    expect((await http.send('GET', '/livez')).status).toBe(200);
    http.clock.advance(1);
    await untilRefused(http);
  });

  it('ends after its time, although a call is in flight', async () => {
    const { http, session } = await inSession();
    const replies = http.core.hold();
    const call = http.post(request(1), session).catch(() => {});
    await expect.poll(() => replies).toHaveLength(1);
    const drained = http.front.drain(MINUTE_MS);
    http.clock.advance(MINUTE_MS - 1);
    expect(await isOver(drained)).toBe(false);
    http.clock.advance(1);
    await drained;
    await http.close();
    await call;
  });

  it('ends when no request has come for 2 s, although a connection is open', async () => {
    const { http, session } = await inSession();
    await keptConnection(http);
    const drained = http.front.drain(MINUTE_MS);
    http.clock.advance(1_900);
    expect((await http.post(request(1), session)).status).toBe(200);
    http.clock.advance(1_900);
    expect(await isOver(drained)).toBe(false);
    http.clock.advance(200);
    await drained;
  });

  it('ends at once without a connection', async () => {
    const { http } = await inSession();
    const socket = await http.connect();
    socket.destroy();
    // The answer to this request is the last thing on its connection.
    await http.send('GET', '/livez');
    const drained = http.front.drain(MINUTE_MS);
    await expect
      .poll(() => {
        http.clock.advance(100);
        return isOver(drained);
      })
      .toBe(true);
    expect(http.clock.now()).toBeLessThan(2_000);
  });

  it('ends its GET streams when it accepts no connections, and asks for the next ones soon', async () => {
    const { http, session } = await inSession('2025-11-25');
    const listening = await http.listen(session);
    const replies = http.core.hold(json(notification('n')));
    const call = await http.postForEvents(request(1), session);
    void http.front.drain(MINUTE_MS);
    http.clock.advance(9_900);
    http.core.last.stream?.send(json(notification('late')));
    http.clock.advance(100);
    expect((await listening.rest()).map(({ data, retry }) => data || retry)).toEqual([
      undefined,
      JSON.stringify(notification('late')),
      '500',
    ]);
    expect(http.core.endings).toBe(1);
    replies[0]?.answer(json({ jsonrpc: '2.0', id: 1, result: {} }));
    expect((await call.rest()).at(-1)?.data).toContain('"result":{}');
  });

  it('does not wait for subscriptions, which would never end', async () => {
    const { http } = await inSession();
    const replies = http.core.hold();
    const _meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' };
    const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'subscriptions/listen' };
    const listening = http.post(request(1, 'subscriptions/listen', { _meta }), headers).catch(() => {});
    await expect.poll(() => replies).toHaveLength(1);
    const drained = http.front.drain(MINUTE_MS);
    http.clock.advance(2_000);
    await drained;
    expect(http.core.endings).toBe(1);
    await http.close();
    await listening;
  });
});
