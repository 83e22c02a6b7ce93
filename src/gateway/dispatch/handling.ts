import type { Edit } from '../../json/splice.js';
import type { NotificationEnvelope, ResponseEnvelope } from '../../mcp/envelope.js';
import type { Outcome } from '../../spec/outcome.js';
import type { UpstreamConnection } from '../../upstream/port.js';

/** The handling of one request and of its response. */
export interface Handling {
  readonly edits: readonly Edit[];
  readonly editAnswer?: EditAnswer | undefined;
  /** Returns the reason for which the present process must not get the request. Called just before each attempt. */
  readonly refusal?: (() => string | undefined) | undefined;
  /** Whether the request may be sent again to the next process if its process exits before the response. */
  readonly isRepeatable?: boolean | undefined;
  /** Present when the request concerns a task. */
  readonly translation?: Translation | undefined;
  /** Called with the response after it was relayed. */
  readonly onAnswered?: ((response: ResponseEnvelope) => void) | undefined;
}

/** Returns the edits of a server's response, just before the response is relayed. `connection` is the one that it came over. */
export type EditAnswer = (
  response: ResponseEnvelope,
  connection: Pick<UpstreamConnection, 'revision'>,
) => readonly Edit[];

/** Replaces the task ids in messages between a client and a server, just before each message is relayed. */
export interface Translation {
  /** Edits of the request for the process of this connection. */
  request?(connection: UpstreamConnection): readonly Edit[];
  /** Edits of the response. `keepProgress()` relays progress also after the response; call its result to stop that. */
  answer(response: ResponseEnvelope, keepProgress: () => () => void): readonly Edit[];
  progress(notification: NotificationEnvelope): readonly Edit[];
  cancel(notification: NotificationEnvelope): readonly Edit[];
  /** Resolves with the final outcome if the response only created a task. Returns `undefined` if the response is final. */
  goOn?(
    response: ResponseEnvelope,
    connection: UpstreamConnection,
    keepProgress: () => () => void,
  ): Promise<Outcome> | undefined;
}
