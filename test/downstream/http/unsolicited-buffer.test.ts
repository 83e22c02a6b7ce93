import { describe, expect, it } from 'vitest';
import { UnsolicitedBuffer } from '../../../src/downstream/http/http-client.js';
import { unedited } from '../../../src/wire/jsonrpc/message.js';
import { bytesOf, type Message, RecordingSink } from '../../support/wire.js';

/** Adds messages while no stream is open. `heard` returns the messages that the next stream gets. */
function missed(...messages: (Message | string)[]) {
  const buffer = new UnsolicitedBuffer();
  const add = (message: Message | string) =>
    buffer.add(unedited(bytesOf(typeof message === 'string' ? message : JSON.stringify(message))));
  messages.forEach(add);
  const heard = () => {
    const sink = new RecordingSink();
    buffer.flushTo(sink);
    return sink.lines;
  };
  return { add, heard };
}

function notice(method: string, params: Message = {}): Message {
  return { jsonrpc: '2.0', method: `notifications/${method}`, params };
}

function input(id: number): Message {
  return { jsonrpc: '2.0', id, method: 'elicitation/create', params: {} };
}

const CHANGED = notice('tools/list_changed');

describe('messages that a client missed', () => {
  it('are sent in order and as they were, once', () => {
    const raw = '{ "method":"elicitation/create","id":7 ,"jsonrpc":"2.0","n":1e400}';
    const { heard } = missed(raw, CHANGED, notice('resources/updated', { uri: 'x:1' }));
    expect(heard()).toEqual([
      raw,
      JSON.stringify(CHANGED),
      JSON.stringify(notice('resources/updated', { uri: 'x:1' })),
    ]);
    expect(heard()).toEqual([]);
  });

  it('have each change and each update once', () => {
    const update = notice('resources/updated', { uri: 'x:1' });
    expect(missed(CHANGED, update, CHANGED, update).heard()).toHaveLength(2);
  });

  it.each(['message', 'progress', 'vendor'])('have none that is only for clients that listen, such as %s', (method) => {
    expect(missed(notice(method)).heard()).toEqual([]);
  });

  it.each(['tasks/status', 'elicitation/complete', 'resources/updated'])(
    'are a bounded number of notifications, such as %s, until they were sent',
    (method) => {
      const { add, heard } = missed();
      for (let n = 0; n < 1_000; n += 1) add(notice(method, { n }));
      add(CHANGED);
      expect(heard()).toHaveLength(257);
      add(notice(method, { n: 2_000 }));
      expect(heard()).toHaveLength(1);
    },
  );

  it('have the latest change of each list', () => {
    const { add, heard } = missed();
    for (let n = 0; n < 1_000; n += 1) add(notice('tools/list_changed', { n }));
    add(notice('prompts/list_changed'));
    expect(heard()).toEqual([
      JSON.stringify(notice('tools/list_changed', { n: 999 })),
      JSON.stringify(notice('prompts/list_changed')),
    ]);
  });

  it('F210: have a bounded number of changes of lists that MCP does not define', () => {
    const { add, heard } = missed();
    for (let n = 0; n < 1_000; n += 1) add(notice(`list${n}/list_changed`));
    add(CHANGED);
    expect(heard()).toHaveLength(257);
  });

  it('have neither a cancelled server request nor its cancellation', () => {
    const { add, heard } = missed(input(1), input(2));
    for (let id = 3; id < 1_000; id += 1) {
      add(input(id));
      add(notice('cancelled', { requestId: id }));
    }
    add(notice('cancelled', { requestId: 1 }));
    expect(heard()).toEqual([JSON.stringify(input(2))]);
  });

  it('have the cancellation of a server request that was sent', () => {
    const { add, heard } = missed(input(1));
    heard();
    add(notice('cancelled', { requestId: 1 }));
    expect(heard()).toEqual([JSON.stringify(notice('cancelled', { requestId: 1 }))]);
  });
});
