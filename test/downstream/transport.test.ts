import { describe, expect, it } from 'vitest';
import { ClientPipe } from '../../src/downstream/stdio/stdio-transport.js';
import type { EraSession, TransportSession } from '../../src/downstream/transport.js';
import { unedited } from '../../src/wire/jsonrpc/message.js';
import { bytesOf, lineOf, type Message, RecordingSink, scan } from '../support/wire.js';

/** An era that answers every request with its own name. */
function namedEra(name: string) {
  const opened: TransportSession[] = [];
  const era = { opened, closed: 0, needsSession: true, beginsSession: () => true };
  const session: EraSession = {
    ...{ revision: name === 'new' ? undefined : name, profile: undefined, inFlight: 2 },
    receive: (_, reply) => reply.answer(unedited(bytesOf(JSON.stringify({ by: name })))),
    receiveBatch: () => unedited(bytesOf(JSON.stringify({ refusedBy: name }))),
    close: () => {
      era.closed += 1;
    },
  };
  const open = (transport: TransportSession) => {
    opened.push(transport);
    return session;
  };
  return Object.assign(era, { open, refusalWithoutSession: () => undefined });
}

function onOnePipe() {
  const sink = new RecordingSink();
  const [one, other] = [namedEra('new'), namedEra('old')];
  const pipe = new ClientPipe({
    scan,
    sink,
    principal: 'me',
    chooseEra: (message) => (message.kind === 'request' && message.tokens.eraVersion !== undefined ? one : other),
  });
  const say = (...messages: (Message | string)[]) => {
    for (const message of messages) pipe.receive(lineOf(message).subarray(0, -1));
  };
  return { sink, one, other, pipe, say };
}

const OLD = { jsonrpc: '2.0', id: 1, method: 'x' };
const NEW = { ...OLD, params: { _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' } } };

describe('a client that uses two eras on one pipe', () => {
  it('has each message served by the era that is chosen for it, with one session for each era', () => {
    const { sink, one, other, say } = onOnePipe();
    say(OLD, NEW, NEW, OLD, '[{"jsonrpc":"2.0","id":1,"method":"x"}]');
    expect(sink.messages).toEqual([{ by: 'old' }, { by: 'new' }, { by: 'new' }, { by: 'old' }, { refusedBy: 'old' }]);
    expect([one.opened.length, other.opened.length]).toEqual([1, 1]);
    expect(one.opened[0]?.principal).toBe('me');
  });

  it('opens no session before the first message of an era', () => {
    const { one, other, pipe, say } = onOnePipe();
    expect([pipe.inFlight, pipe.revision]).toEqual([0, undefined]);
    say('not JSON', '  ');
    expect([one.opened, other.opened]).toEqual([[], []]);
  });

  it('has the revision that it negotiated, and the requests of both eras in flight', () => {
    const { pipe, say } = onOnePipe();
    say(NEW);
    expect([pipe.inFlight, pipe.revision]).toEqual([2, undefined]);
    say(OLD, NEW);
    expect([pipe.inFlight, pipe.revision]).toEqual([4, 'old']);
  });

  it('leaves both at once, and nothing is served afterwards', () => {
    const { sink, one, other, pipe, say } = onOnePipe();
    say(OLD, NEW);
    pipe.close();
    pipe.close();
    expect([one.closed, other.closed]).toEqual([1, 1]);
    sink.take();
    say(OLD);
    expect(sink.lines).toEqual([]);
  });
});
