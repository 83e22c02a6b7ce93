import type { ReplyChannel } from '../../../src/downstream/transport.js';
import type { MessageSink } from '../../../src/wire/jsonrpc/message.js';

/** The reply channel of a pipe. All messages go to the sink. */
export function replyOn(sink: MessageSink): ReplyChannel {
  return {
    isShared: true,
    isDisconnected: false,
    unwrittenBytes: 0,
    send: (message, source) => sink.send(message, source),
    answer: (message, source) => sink.send(message, source),
    withdraw: () => {},
    onAbandoned: () => {},
  };
}
