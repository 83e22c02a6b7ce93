import { describe, expect, it } from 'vitest';
import { OutgoingServerRequests } from '../../../src/downstream/legacy/outgoing-server-requests.js';
import type { InputRequest } from '../../../src/downstream/port.js';
import { EnvelopeRequest } from '../../../src/mcp/relayed-request.js';
import { notificationOf, RecordingSink, requestOf } from '../../support/wire.js';

const INPUT: InputRequest = {
  request: new EnvelopeRequest(requestOf('{"jsonrpc":"2.0","id":"q","method":"roots/list"}')),
  edits: [],
  answer: () => {},
  fail: () => {},
  progress: () => {},
};
const CANCELLATION =
  '{"jsonrpc":"2.0","params":{"reason":"l\\u0061te","requestId":"q"},"method":"notifications/cancelled"}';

function sending() {
  const [unsolicited, reply] = [new RecordingSink(), new RecordingSink()];
  const serverRequests = new OutgoingServerRequests((message) => unsolicited.send(message));
  serverRequests.declare({ roots: {} });
  return { serverRequests, unsolicited: unsolicited.lines, reply };
}

describe('a server request that is withdrawn', () => {
  it.each([
    [notificationOf(CANCELLATION), CANCELLATION.replace('"q"', '1')],
    [undefined, expect.stringContaining('"requestId":1')],
  ])('is cancelled on the way that it took, with the text of the server if there is one', (notification, expected) => {
    const { serverRequests, unsolicited, reply } = sending();
    const withdraw = serverRequests.send(INPUT, (message) => reply.send(message));
    withdraw(notification);
    expect(reply.lines).toEqual([expect.stringContaining('roots/list'), expected]);
    expect(unsolicited).toEqual([]);
  });

  it('is cancelled once', () => {
    const { serverRequests, unsolicited } = sending();
    const withdraw = serverRequests.send(INPUT);
    withdraw(notificationOf(CANCELLATION));
    withdraw();
    expect(unsolicited).toHaveLength(2);
  });
});
