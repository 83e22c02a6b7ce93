import { describe, expect, it, vi } from 'vitest';
import { EventReader } from './event-reader.js';
import { json } from './scripted-core.js';
import { initializeRequest, inSession, notification, readAnswer, request, serving } from './serving.js';

const progress = (n: number) => json(notification('notifications/progress', { progress: n }));
const result = (id: number | string, value: unknown = {}) => json({ jsonrpc: '2.0', id, result: value });

describe('the answer to a POST', () => {
  it('is plain JSON when the answer is the first thing to send', async () => {
    const { http, session } = await inSession();
    http.core.onRequest = (_message, reply) => reply.answer(json('{"id":1.0, "big":12345678901234567890,"result":{}}'));
    const answer = await http.post(request(1), session);
    expect(answer.status).toBe(200);
    expect(answer.headers['content-type']).toBe('application/json');
    expect(answer.headers['content-length']).toBe(String(answer.text.length));
    expect(answer.text).toBe('{"id":1.0, "big":12345678901234567890,"result":{}}');
  });

  it('is a stream when something else comes first, all in the order in which it was sent', async () => {
    const { http, session } = await inSession();
    http.core.onRequest = (_message, reply) => {
      reply.send(progress(1));
      reply.send(progress(2));
      reply.answer(result(7));
    };
    const stream = await http.postForEvents(request(7), session);
    expect(stream.response.headers['content-type']).toBe('text/event-stream');
    const events = await stream.rest();
    expect(events.map(({ id }) => id)).toEqual(['1.0', '1.1', '1.2']);
    expect(events.map(({ data }) => JSON.parse(data ?? ''))).toEqual([
      notification('notifications/progress', { progress: 1 }),
      notification('notifications/progress', { progress: 2 }),
      { jsonrpc: '2.0', id: 7, result: {} },
    ]);
  });

  it('has edits and large messages in it byte for byte', async () => {
    const { http, session } = await inSession();
    const text = `{"jsonrpc":"2.0","id":XXX,"result":{"text":"${'äß🙂'.repeat(20_000)}"}}`;
    const bytes = Buffer.from(text);
    const at = text.indexOf('XXX');
    http.core.onRequest = (message, reply) => {
      if (message.params.early) reply.send(progress(1));
      const edits = [{ span: { start: at, end: at + 3 }, text: Buffer.from('"an id"') }];
      reply.answer({ bytes, span: { start: 0, end: bytes.length }, edits });
    };
    const expected = text.replace('XXX', '"an id"');
    expect((await http.post(request(1), session)).text).toBe(expected);
    const [, event] = await (await http.postForEvents(request(1, 'x', { early: true }), session)).rest();
    expect(event?.data).toBe(expected);
  });

  it('is 202 without a body for a notification', async () => {
    const { http, session } = await inSession();
    const answer = await http.post(notification('notifications/initialized'), session);
    expect([answer.status, answer.text]).toEqual([202, '']);
  });

  it('is 400 with the error of the session for a body that is no JSON-RPC', async () => {
    const { http, session } = await inSession();
    const answer = await http.post('{"jsonrpc":', session);
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.text)).toMatchObject({ id: null, error: { code: -32700 } });
  });

  it('F34: goes to the POST that asked, when 50 of one session ask at once with the same id', async () => {
    const { http, session } = await inSession();
    const held: (() => void)[] = [];
    http.core.onRequest = (message, reply) => {
      held.push(() => {
        const { nonce } = message.params;
        if (nonce % 2 === 0) reply.send(json(notification('notifications/progress', { nonce })));
        reply.answer(result(1, { nonce }));
      });
      // Sends the answers only when all requests are there, the last one first.
      if (held.length === 50) for (const answer of held.reverse()) answer();
    };
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, nonce) => http.post(request(1, 'tools/call', { nonce }), session)),
    );
    answers.forEach(({ text }, nonce) => {
      const nonces = [...text.matchAll(/"nonce":(\d+)/g)].map(([, found]) => Number(found));
      expect(nonces).toEqual(nonce % 2 === 0 ? [nonce, nonce] : [nonce]);
    });
  });

  it('ends without an answer when the client has cancelled the request', async () => {
    const { http, session } = await inSession();
    const replies = http.core.hold();
    const quiet = http.post(request(1), session);
    const streamed = http.postForEvents(request(2), session);
    await expect.poll(() => replies.length).toBe(2);
    const [first, second] = http.core.last.bodies.at(-1)?.includes('"id":2') ? replies : [...replies].reverse();
    second?.send(progress(1));
    first?.withdraw();
    second?.withdraw();
    expect((await quiet).status).toBe(202);
    expect(await (await streamed).rest()).toHaveLength(1);
  });

  it('is 500 when the core throws, and the front goes on', async () => {
    const { http, session } = await inSession();
    http.core.onRequest = () => {
      throw new Error('a fault of ours');
    };
    const answer = await http.post(request(1), session);
    expect(answer.status).toBe(500);
    expect(answer.text).not.toContain('a fault of ours');
    expect(http.events).toContainEqual({
      kind: 'internal.error',
      error: expect.objectContaining({ message: 'a fault of ours' }),
    });
    expect((await http.post(notification('n'), session)).status).toBe(202);
  });
});

describe('the answer to a batch', () => {
  const BATCH = JSON.stringify([request(1), notification('n'), request('b')]);

  /** Posts a batch. The test gives the answers in any order. */
  async function posting() {
    const { http, session } = await inSession('2025-03-26');
    const replies = http.core.hold();
    const posted = http.begin('POST', '/mcp', session, BATCH);
    await expect.poll(() => replies[0]).toBeDefined();
    const [reply] = replies;
    if (reply === undefined) throw new Error('No channel');
    return { http, posted, reply };
  }

  it('is one array of JSON when all answers are there before anything else, in the order in which they came', async () => {
    const { http, session } = await inSession('2025-03-26');
    const channels = http.core.hold();
    const posted = http.post(BATCH, session);
    await expect.poll(() => channels.length).toBe(2);
    channels[1]?.answer(json('{"id":"b" ,"result":{"n":1.0}}'));
    channels[0]?.answer(result(1));
    const answer = await posted;
    expect([answer.status, answer.headers['content-type']]).toEqual([200, 'application/json']);
    expect(answer.text).toBe('[{"id":"b" ,"result":{"n":1.0}},{"jsonrpc":"2.0","id":1,"result":{}}]');
    expect(answer.headers['content-length']).toBe(String(answer.text.length));
  });

  it('is an array for a single request too', async () => {
    const { http, session } = await inSession('2025-03-26');
    http.core.onRequest = (_message, reply) => reply.answer(result(1));
    expect((await http.post(JSON.stringify([request(1)]), session)).text).toBe(
      '[{"jsonrpc":"2.0","id":1,"result":{}}]',
    );
  });

  it('is a stream when something else comes first, with an event for each answer', async () => {
    const { posted, reply } = await posting();
    reply.answer(result('b'));
    reply.send(progress(1));
    reply.answer(result(1));
    const stream = new EventReader(await posted);
    expect(stream.response.headers['content-type']).toBe('text/event-stream');
    const events = (await stream.rest()).map(({ data }) => JSON.parse(data ?? ''));
    expect(events).toEqual([
      { jsonrpc: '2.0', id: 'b', result: {} },
      notification('notifications/progress', { progress: 1 }),
      { jsonrpc: '2.0', id: 1, result: {} },
    ]);
  });

  it('is a stream after 10 s, which begins with the answers that are there', async () => {
    const { http, posted, reply } = await posting();
    reply.answer(result(1));
    http.clock.advance(10_000);
    const stream = new EventReader(await posted);
    expect(JSON.parse((await stream.next())?.data ?? '').id).toBe(1);
    reply.answer(result('b'));
    expect((await stream.rest()).map(({ data }) => JSON.parse(data ?? '').id)).toEqual(['b']);
  });

  it('is a stream when more than 1 MiB would have to be held for the last answer', async () => {
    const { posted, reply } = await posting();
    reply.answer(result(1, 'x'.repeat(1024 * 1024)));
    const stream = new EventReader(await posted);
    expect(stream.response.headers['content-type']).toBe('text/event-stream');
    expect((await stream.next())?.data).toHaveLength(1024 * 1024 + '{"jsonrpc":"2.0","id":1,"result":""}'.length);
    reply.answer(result('b'));
    expect(await stream.rest()).toHaveLength(1);
  });

  it('lacks what was cancelled, and is 202 when nothing is left', async () => {
    const one = await posting();
    one.reply.withdraw();
    one.reply.answer(result('b'));
    expect((await readAnswer(await one.posted)).text).toBe('[{"jsonrpc":"2.0","id":"b","result":{}}]');
    const other = await posting();
    other.reply.answer(result(1));
    other.reply.withdraw();
    expect((await readAnswer(await other.posted)).text).toBe('[{"jsonrpc":"2.0","id":1,"result":{}}]');
    const none = await posting();
    none.reply.withdraw();
    none.reply.withdraw();
    expect(await readAnswer(await none.posted)).toMatchObject({ status: 202, text: '' });
  });

  it('is 202 without a body when nothing in it asks for an answer', async () => {
    const { http, session } = await inSession('2025-03-26');
    const answer = await http.post(JSON.stringify([notification('a'), { jsonrpc: '2.0', id: 1, result: {} }]), session);
    expect([answer.status, answer.text]).toEqual([202, '']);
  });
});

describe('a stream', () => {
  it.each([
    ['2025-11-25', true],
    ['2025-06-18', false],
    ['2025-03-26', false],
  ])('of a client of %s begins with an empty event: %s', async (revision, isPrimed) => {
    const { http, session } = await inSession(revision);
    http.core.onRequest = (_message, reply) => {
      reply.send(progress(1));
      reply.answer(result(1));
    };
    const events = await (await http.postForEvents(request(1), session)).rest();
    const listening = await http.listen(session);
    expect(events).toHaveLength(isPrimed ? 3 : 2);
    expect(events[0]?.data === '').toBe(isPrimed);
    http.core.last.stream?.send(progress(2));
    const first = await listening.next();
    expect(first).toMatchObject(
      isPrimed ? { id: '0.0', data: '' } : { id: '0.0', data: expect.stringContaining('"progress":2') },
    );
  });

  it('is begun when the answer takes 10 s, and kept alive every 15 s from then on', async () => {
    const { http, session } = await inSession();
    const replies = http.core.hold();
    const begun = http.postForEvents(request(1), session);
    await expect.poll(() => replies[0]).toBeDefined();
    http.clock.advance(10_000);
    const stream = await begun;
    http.clock.advance(15_000);
    expect(await stream.next()).toEqual({ comment: 'keep-alive' });
    replies[0]?.send(progress(1));
    http.clock.advance(14_999);
    replies[0]?.send(progress(2));
    http.clock.advance(15_000);
    replies[0]?.answer(result(1));
    const rest = await stream.rest();
    expect(rest.map(({ id, comment }) => id ?? comment)).toEqual(['1.0', '1.1', 'keep-alive', '1.2']);
    http.clock.advance(60_000);
    expect(replies[0]?.unwrittenBytes).toBe(0);
  });

  it('carries the session id when it answers initialize', async () => {
    const { http, session } = await inSession();
    expect(session['mcp-session-id']).toMatch(/^t1\.[a-z2-7]{10}\.[A-Za-z0-9_-]+$/);
    const other = await http.post(initializeRequest('2025-11-25'));
    expect(other.headers['mcp-session-id']).not.toBe(session['mcp-session-id']);
    expect((await http.post(request(1), session)).headers['mcp-session-id']).toBeUndefined();
  });
});

describe('a client that goes away', () => {
  it('has not cancelled: the request goes on, and its messages are dropped', async () => {
    // With a limit of one connection, the next request is served only after the transport noticed the end of the first one.
    const http = await serving({ limits: { maxConnections: 1 } });
    const retry = <T>(attempt: () => Promise<T>) => vi.waitFor(attempt, { timeout: 60_000, interval: 5 });
    const session = await http.initialize();
    const replies = http.core.hold();
    const body = JSON.stringify(request(1));
    const socket = await retry(async () => {
      const connected = await http.connect();
      connected.write(`${http.head('POST', { ...session, 'content-length': `${body.length}` })}${body}`);
      await expect.poll(() => replies[0] ?? connected.closed).toBeTruthy();
      if (replies[0] === undefined) throw new Error('Not served yet');
      return connected;
    });
    const [unheard] = replies;
    expect(unheard?.isDisconnected).toBe(false);
    socket.destroy();
    http.core.onRequest = (message, channel) => {
      channel.send(progress(1));
      channel.answer(result(message.id));
    };
    await retry(() => http.post(notification('n'), session));
    expect(http.core.last.closed).toBe(0);
    expect(unheard?.isDisconnected).toBe(true);
    unheard?.send(progress(1));
    unheard?.answer(result(1));
    const stream = await retry(() => http.postForEvents(request(2), session));
    expect((await stream.next())?.id).toBe('1.0');
    expect(http.core.last.bodies.join()).not.toContain('cancelled');
  });

  it('finds the rest of a broken stream when it comes back, while the answer is still to come', async () => {
    const { http, session } = await inSession('2025-11-25');
    const replies = http.core.hold(progress(1));
    const broken = await http.postForEvents(request(1), session);
    expect((await broken.next())?.id).toBe('1.0');
    expect((await broken.next())?.id).toBe('1.1');
    broken.response.destroy();
    replies[0]?.send(progress(2));
    const resumed = await http.listen({ ...session, 'last-event-id': http.eventId(1, 1) });
    expect((await resumed.next())?.data).toContain('"progress":2');
    replies[0]?.send(progress(3));
    replies[0]?.answer(result(1));
    expect((await resumed.rest()).map(({ id }) => id)).toEqual(['1.3', '1.4']);
  });

  it('finds the answer that came while it was away', async () => {
    const { http, session } = await inSession('2025-11-25');
    const replies = http.core.hold(progress(1));
    const broken = await http.postForEvents(request(1), session);
    await broken.next();
    broken.response.destroy();
    replies[0]?.answer(result(1));
    const events = await (await http.listen({ ...session, 'last-event-id': http.eventId(1, 0) })).rest();
    expect(events.map(({ id }) => id)).toEqual(['1.1', '1.2']);
    // The client may ask again, because the events are still there. The stream ends at once.
    expect(await (await http.listen({ ...session, 'last-event-id': http.eventId(1, 2) })).rest()).toEqual([]);
  });
});
