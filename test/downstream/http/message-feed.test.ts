import { describe, expect, it } from 'vitest';
import { createHttpClients } from '../../../src/downstream/http/http-client.js';
import type { Era, ReplyChannel } from '../../../src/downstream/transport.js';
import { MessageFeed } from '../../../src/io/message-feed.js';
import { Backpressure } from '../../../src/io/streams/backpressure.js';
import { splice } from '../../../src/json/splice.js';
import { resultMessage, whole } from '../../../src/jsonrpc/message.js';
import { bytesOf, scan } from '../../support/wire.js';

/** Answers every request at once, after a notification. */
const era: Era = {
  needsSession: true,
  beginsSession: () => true,
  refusalWithoutSession: () => expect.unreachable(),
  open: (transport) => ({
    ...{ revision: undefined, profile: { clientInfo: { name: 'agent' }, capabilities: {} }, inFlight: 0 },
    receive: (_, reply) => {
      transport.send(whole(bytesOf('"unsolicited"')));
      reply.send(whole(bytesOf('"progress"')));
      reply.answer(resultMessage(bytesOf('1'), bytesOf('{}')));
      return true;
    },
    receiveBatch: () => expect.unreachable(),
    close: () => {},
  }),
};

function client() {
  const messages = new MessageFeed(() => 0);
  const sent: string[] = [];
  const keep = (message: Parameters<ReplyChannel['send']>[0]) =>
    void sent.push(Buffer.from(splice(message)).toString());
  const clients = createHttpClients({
    ...{ scan, messages, chooseEra: () => era, backpressure: new Backpressure() },
    ...{ hasServer: () => true, hasView: () => true, isReady: () => true },
  });
  const session = clients.openSession('files', 'person', () => {});
  const reply: ReplyChannel = {
    ...{ isShared: false, isUnheard: false, unwrittenBytes: 0, send: keep, answer: keep },
    ...{ withdraw: () => {}, onAbandoned: () => {} },
  };
  const receive = () => session?.receive(scan(bytesOf('{"jsonrpc":"2.0","id":1,"method":"ping"}')), reply);
  return { messages, sent, receive };
}

describe('an HTTP client', () => {
  it('shows what it sends and what it gets to those who observe, and answers as without them', () => {
    const { messages, sent, receive } = client();
    receive();
    const unobserved = sent.splice(0);
    const seen: string[] = [];
    messages.observe(({ direction, message, connection }) => {
      const { server, client: self } = connection;
      seen.push(`${server} ${String(self?.()?.name)} ${direction} ${Buffer.from(splice(message)).toString()}`);
    });
    receive();
    expect(sent).toEqual(unobserved);
    expect(seen).toEqual([
      'files agent c>g {"jsonrpc":"2.0","id":1,"method":"ping"}',
      'files agent g>c "unsolicited"',
      'files agent g>c "progress"',
      `files agent g>c ${sent[1]}`,
    ]);
  });
});
