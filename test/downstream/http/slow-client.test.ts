import { describe, expect, it } from 'vitest';
import type { ReplyChannel } from '../../../src/downstream/transport.js';
import { flush } from '../../support/wire.js';
import { json } from './scripted-core.js';
import { inSession, notification, request, type Serving, serving } from './serving.js';

const MIB = 1024 * 1024;
const chunk = json(notification('n', { text: 'x'.repeat(64 * 1024) }));

/** Number of messages that no kernel buffers for one connection. */
const ENOUGH = 2_000;

describe('a client that stops reading', () => {
  it('F48: loses its stream at 8 MiB, while others are served', async () => {
    const http = await serving();
    const slow = await http.initialize();
    const slowSession = http.core.last;
    const stalled = await http.listen(slow);
    stalled.response.pause();
    const other = await http.initialize();
    const otherStream = await http.listen(other);
    const sink = slowSession.stream;
    let most = 0;
    for (let sent = 0; sent < ENOUGH && slowSession.stream !== undefined; sent += 1) {
      sink?.send(chunk);
      most = Math.max(most, sink?.unwrittenBytes ?? 0);
      if (sent % 50 === 0) expect((await http.post(request(1), other)).status).toBe(200);
    }
    expect(slowSession.stream).toBeUndefined();
    expect(most).toBeGreaterThan(8 * MIB - 100_000);
    expect(most).toBeLessThan(8 * MIB + 100_000);
    expect(http.events).toContainEqual({ kind: 'http.stream-cut', unwrittenBytes: expect.any(Number) });
    expect(otherStream.response.destroyed).toBe(false);
    // The stream was lost, but not the session.
    expect((await http.post(request(2), slow)).status).toBe(200);
  });

  it('loses the stream of a POST, whose request goes on and whose answer can be fetched', async () => {
    const { http, session } = await inSession('2025-11-25');
    const reply = await stalledReply(http, session);
    for (let sent = 0; sent < ENOUGH && !isCut(http); sent += 1) reply.send(chunk);
    expect(isCut(http)).toBe(true);
    expect(reply.unwrittenBytes).toBe(0);
    reply.answer(json('{"jsonrpc":"2.0","id":1,"result":{}}'));
    const events = await (await http.listen({ ...session, 'last-event-id': http.eventId(1, 0) })).rest();
    expect(events.at(-1)?.data).toBe('{"jsonrpc":"2.0","id":1,"result":{}}');
  });

  it('has 8 MiB over all its streams together', async () => {
    const { http, session } = await inSession();
    const replies: ReplyChannel[] = [];
    for (let count = 0; count < 4; count += 1) replies.push(await stalledReply(http, session));
    let most = 0;
    for (let sent = 0; sent < ENOUGH && !isCut(http); sent += 1) {
      for (const reply of replies) reply.send(chunk);
      most = Math.max(
        most,
        replies.reduce((sum, reply) => sum + reply.unwrittenBytes, 0),
      );
    }
    expect(isCut(http)).toBe(true);
    expect(most).toBeLessThan(9 * MIB);
  });

  it.each(['as JSON', 'on a stream'])(
    'and reads again gets one message that is larger than that whole, %s',
    async (how) => {
      const { http, session } = await inSession();
      const text = 'x'.repeat(20 * MIB);
      http.core.onRequest = (message, reply) => {
        if (how === 'on a stream') reply.send(json(notification('n')));
        reply.answer(json({ jsonrpc: '2.0', id: message.id, result: { text } }));
      };
      const response = await http.begin('POST', '/mcp', session, JSON.stringify(request(1)));
      await flush();
      let length = 0;
      for await (const bytes of response) length += (bytes as Buffer).length;
      expect(length).toBeGreaterThan(20 * MIB);
      expect(isCut(http)).toBe(false);
    },
  );
});

async function stalledReply(http: Serving, session: Record<string, string>): Promise<ReplyChannel> {
  let reply: ReplyChannel | undefined;
  http.core.onRequest = (_message, channel) => {
    reply ??= channel;
    channel.send(json(notification('n')));
  };
  const body = JSON.stringify(request(1));
  const response = await http.begin('POST', '/mcp', session, body);
  response.on('error', () => {});
  response.pause();
  if (reply === undefined) throw new Error('The request did not arrive');
  return reply;
}

function isCut(http: Serving): boolean {
  return http.events.some(({ kind }) => kind === 'http.stream-cut');
}
