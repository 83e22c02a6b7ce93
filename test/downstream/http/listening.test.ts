import { describe, expect, it } from 'vitest';
import { json } from './scripted-core.js';
import { inSession, notification, request, serving } from './serving.js';

const note = (n: number) => json(notification('notifications/message', { n }));
const numbers = (events: readonly { data?: string }[]) => events.map(({ data }) => JSON.parse(data ?? '').params.n);

describe('a GET', () => {
  it('carries messages that belong to no request, and tells the session when it has gone', async () => {
    const { http, session } = await inSession();
    const stream = await http.listen(session);
    expect(stream.response.headers).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': 'no-store, no-transform',
    });
    http.core.last.stream?.send(note(1));
    expect(await stream.next()).toMatchObject({ id: '0.0' });
    stream.response.destroy();
    await expect.poll(() => http.core.last.attached).toHaveLength(2);
    expect(http.core.last.stream).toBeUndefined();
  });

  it.each(['application/json', '*/html', 'text/event-stream;q=0'])('with Accept %s gets 406', async (accept) => {
    const { http, session } = await inSession();
    expect((await http.send('GET', '/mcp', { ...session, accept })).status).toBe(406);
    expect(http.core.last.attached).toEqual([]);
  });

  it('replaces an older one, which may be dead', async () => {
    const { http, session } = await inSession();
    const first = await http.listen(session);
    const ended = new Promise((resolve) => first.response.once('end', resolve));
    const second = await http.listen(session);
    await ended;
    http.core.last.stream?.send(note(1));
    expect([second.response.statusCode, await second.next()]).toMatchObject([200, { id: '0.0' }]);
  });

  it('F211: ends with its connection also where its response waits for that of a POST', async () => {
    const { http, session } = await inSession();
    http.core.onRequest = () => {};
    const body = JSON.stringify(request(1));
    const socket = await http.connect();
    const post = http.head('POST', { ...session, 'content-length': `${body.length}` });
    socket.write(`${post}${body}${http.head('GET', session)}`);
    await expect.poll(() => http.core.last.stream).toBeDefined();
    socket.destroy();
    await expect.poll(() => http.core.last.attached).toHaveLength(2);
    expect(http.core.last.stream).toBeUndefined();
    expect((await http.listen(session)).response.statusCode).toBe(200);
  });

  it('is kept alive by a comment every 15 s', async () => {
    const http = await serving();
    const stream = await http.listen(await http.initialize());
    for (let tick = 0; tick < 3; tick += 1) {
      http.clock.advance(15_000);
      expect(await stream.next()).toEqual({ comment: 'keep-alive' });
    }
  });
});

describe('Last-Event-ID', () => {
  it('brings what was sent after it on its stream, and nothing of another', async () => {
    const { http, session } = await inSession();
    http.core.onRequest = (message, reply) => {
      reply.send(note(message.id * 100));
      reply.answer(json({ jsonrpc: '2.0', id: message.id, result: {} }));
    };
    const listening = await http.listen(session);
    const sink = http.core.last.stream;
    sink?.send(note(1));
    await (await http.postForEvents(request(1), session)).rest();
    sink?.send(note(2));
    await (await http.postForEvents(request(2), session)).rest();
    sink?.send(note(3));
    expect(
      numbers([await listening.next(), await listening.next(), await listening.next()].map((e) => e ?? {})),
    ).toEqual([1, 2, 3]);
    listening.response.destroy();

    const resumed = await http.listen({ ...session, 'last-event-id': http.eventId(0, 0) });
    http.core.last.stream?.send(note(4));
    const events = [await resumed.next(), await resumed.next(), await resumed.next()].map((event) => event ?? {});
    expect(numbers(events)).toEqual([2, 3, 4]);
    const other = await (await http.listen({ ...session, 'last-event-id': http.eventId(2, 0) })).rest();
    expect(other.map(({ id }) => id)).toEqual(['2.1']);
  });

  it('takes over from a connection that the client has lost and we have not', async () => {
    const { http, session } = await inSession();
    const lost = await http.listen(session);
    http.core.last.stream?.send(note(1));
    const resumed = await http.listen({ ...session, 'last-event-id': http.eventId(0, 0) });
    await lost.rest();
    expect(http.core.last.attached).not.toContain(undefined);
    http.core.last.stream?.send(note(2));
    expect((await resumed.next())?.data).toContain('"n":2');
  });

  it.each(['', 'x', '1', '0.0', '-1.0.OWN', '1.0.0.OWN', '0.1e3.OWN', '9.0.OWN', '1.0.OWN', '1.0.bbbbbbbbbb'])(
    '"%s" names nothing to resume: 400',
    async (id) => {
      const { http, session } = await inSession();
      await http.post(request(1), session);
      const lastEventId = id.replace('OWN', http.ids.instance);
      expect((await http.send('GET', '/mcp', { ...session, 'last-event-id': lastEventId })).status).toBe(400);
    },
  );

  it('is worth nothing in another session', async () => {
    const http = await serving();
    const [first, second] = [await http.initialize(), await http.initialize()];
    http.core.onRequest = (message, reply) => {
      reply.send(note(1));
      reply.answer(json({ jsonrpc: '2.0', id: message.id, result: {} }));
    };
    await (await http.postForEvents(request(1), first)).rest();
    expect((await http.send('GET', '/mcp', { ...second, 'last-event-id': http.eventId(1, 0) })).status).toBe(400);
  });

  it('brings no more than the ring holds', async () => {
    const { http, session } = await inSession(undefined, { limits: { replayEvents: 3 } });
    const stream = await http.listen(session);
    for (let n = 0; n < 10; n += 1) http.core.last.stream?.send(note(n));
    stream.response.destroy();
    const resumed = await http.listen({ ...session, 'last-event-id': http.eventId(0, 1) });
    const events = [await resumed.next(), await resumed.next(), await resumed.next()].map((event) => event ?? {});
    expect(numbers(events)).toEqual([7, 8, 9]);
  });
});
