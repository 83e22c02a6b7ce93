import type { NotificationEnvelope } from '../../mcp/envelope.js';
import type { ServerRequest } from '../../upstream/server-request.js';

/** Told of what the rest of the gateway has to know of a backend. */
export interface BackendListener {
  /** What this backend contributes to the merged lists may have changed. */
  listsChanged(): void;
  /** The first start has ended, one way or the other, or what it offered in the last run is known. */
  startSettled(): void;
  /** A new process is there, which knows nothing of what was asked of the last one. */
  attached(): void;
  /** The process is gone, and with it whatever it had asked. */
  detached(): void;
  /** The child asks something that only a client can answer. */
  serverRequest(asked: ServerRequest): void;
  /** Something that the child said unasked, other than that a list changed. */
  notification(notification: NotificationEnvelope): void;
  /** Whether something would be lost with the process, although nobody calls it. */
  wouldLoseState(): boolean;
}
