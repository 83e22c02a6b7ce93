import type { SplicedMessage } from '../../json/splice.js';
import type { MessageSink } from '../../jsonrpc/message.js';

/**
 * Where the messages go that one request causes: the pipe, or the answer to the POST that carried it. `source` is whose
 * message it is, as for a `MessageSink`.
 */
export interface ReplyChannel {
  /** Whether this is the way of all requests, so that two in flight cannot have the same id. */
  readonly isPipe?: boolean;
  /** Whether the client has gone from where it would hear what goes this way. */
  readonly isUnheard?: boolean;
  /** Something on the way to the answer, such as progress. */
  send(message: SplicedMessage, source?: string): void;
  /** The answer. */
  answer(message: SplicedMessage, source?: string): void;
  /** There will be no answer, since the client cancelled. */
  withdraw(): void;
}

/** On a pipe there is one way for everything. */
export function pipeChannel(sink: MessageSink): ReplyChannel {
  return {
    isPipe: true,
    send: (message, source) => sink.send(message, source),
    answer: (message, source) => sink.send(message, source),
    withdraw: () => {},
  };
}
