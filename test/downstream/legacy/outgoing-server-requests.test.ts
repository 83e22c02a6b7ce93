import { describe, expect, it } from 'vitest';
import { OutgoingServerRequests } from '../../../src/downstream/legacy/outgoing-server-requests.js';
import type { InputRequest } from '../../../src/downstream/port.js';
import type { SplicedMessage } from '../../../src/json/splice.js';
import { callOf, RecordedExchange } from '../../support/recorded-exchange.js';
import { notificationOf, RecordingSink, requestOf, responseOf } from '../../support/wire.js';

const QUESTION: InputRequest = {
  request: requestOf('{"jsonrpc":"2.0","id":"q","method":"roots/list"}'),
  edits: [],
  answer: () => {},
  fail: () => {},
  progress: () => {},
};
const NOTICE = '{"jsonrpc":"2.0","params":{"reason":"l\\u0061te","requestId":"q"},"method":"notifications/cancelled"}';

function asking(via: RecordedExchange | undefined) {
  const sink = new RecordingSink();
  const client = new OutgoingServerRequests((message: SplicedMessage) => sink.send(message));
  client.declare({ roots: {} });
  return { unsolicited: sink.lines, withdraw: client.ask(QUESTION, via) };
}

describe('a question that is taken back', () => {
  it.each([
    [notificationOf(NOTICE), NOTICE.replace('"q"', '1')],
    [undefined, expect.stringContaining('"requestId":1')],
  ])('ends where it was asked, in the server’s words if it has any', (notice, expected) => {
    const call = new RecordedExchange();
    const { unsolicited, withdraw } = asking(call);
    withdraw(notice);
    expect(call.notices).toEqual([expect.stringContaining('roots/list'), expected]);
    expect(unsolicited).toEqual([]);
  });

  it('ends apart from the call that it was asked in, once that is over', () => {
    const call = new RecordedExchange(callOf('read'));
    const { unsolicited, withdraw } = asking(call);
    call.relay(responseOf('{"jsonrpc":"2.0","id":1,"result":{}}'));
    withdraw(notificationOf(NOTICE));
    expect(call.notices).toHaveLength(1);
    expect(unsolicited).toEqual([NOTICE.replace('"q"', '1')]);
  });

  it('ends once', () => {
    const { unsolicited, withdraw } = asking(undefined);
    withdraw(notificationOf(NOTICE));
    withdraw();
    expect(unsolicited).toHaveLength(2);
  });
});
