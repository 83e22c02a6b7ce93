import type { Edit } from '../../json/splice.js';
import type { NotificationEnvelope, ResponseEnvelope } from '../../mcp/envelope.js';
import type { Outcome, UpstreamConnection } from '../../upstream/port.js';

/**
 * Replaces the task ids in the messages between a client and a server, beyond the id, the progress token and what
 * routing replaces. Each method is called just before its message is relayed.
 */
export interface Translation {
  /** Edits of the request, once it is known which process it goes to. */
  request?(connection: UpstreamConnection): readonly Edit[];
  /** Edits of the response. Calling `keepProgress` relays progress after it, until the function it returns is called. */
  answer(response: ResponseEnvelope, keepProgress: () => () => void): readonly Edit[];
  /** Edits of the server's progress. */
  progress(notification: NotificationEnvelope): readonly Edit[];
  /** Edits of the client's cancellation. */
  cancel(notification: NotificationEnvelope): readonly Edit[];
  /** Resolves with the real outcome where the response only started a task. `undefined` when the response is final. */
  goOn?(
    response: ResponseEnvelope,
    connection: UpstreamConnection,
    keepProgress: () => () => void,
  ): Promise<Outcome> | undefined;
}

/** Edits of a server's response, computed just before it is relayed. The connection is the one that it came over. */
export type EditAnswer = (
  response: ResponseEnvelope,
  connection: Pick<UpstreamConnection, 'revision'>,
) => readonly Edit[];

/** How one request is sent to its server and how the response is treated. */
export interface Handling {
  /** What to replace in the request. */
  readonly edits: readonly Edit[];
  readonly editAnswer?: EditAnswer | undefined;
  /** Why the request must not reach the present process; evaluated just before it is sent. */
  readonly refusal?: (() => string | undefined) | undefined;
  /** Whether the request may be sent again to the next process if its process exits before the response. */
  readonly isRepeatable?: boolean | undefined;
  /** Present when the request concerns a task. */
  readonly translation?: Translation | undefined;
  /** Called with the response after it was relayed. */
  readonly onAnswered?: ((response: ResponseEnvelope) => void) | undefined;
}
