import type { NotificationEnvelope } from '../../mcp/envelope.js';
import type { ListKind } from '../../mcp/lists.js';
import type { ServerRequest } from '../../upstream/port.js';

/** What a backend reports to the gateway that it belongs to. */
export interface BackendListener {
  /**
   * The entries that this backend contributes to the merged lists may have changed. `announced` are the lists whose
   * changes the server announced itself.
   */
  listsChanged(announced?: readonly ListKind[]): void;
  /** The server announced that these lists changed. Their entries are not read yet. */
  listsAnnounced(kinds: readonly ListKind[], notification: NotificationEnvelope): void;
  /** The lists may have changed, and nobody knows how: only clients that read them from the server use this backend. */
  unreadListsChanged(): void;
  /** The first start succeeded or failed, or the cached catalogue of an earlier run was loaded. */
  startSettled(): void;
  /** A new process is connected. It knows neither the subscriptions nor the log level of the process before it. */
  attached(): void;
  /** The process is gone, and its open requests and tasks with it. */
  detached(): void;
  /** The server sent a request that only a client can answer. */
  serverRequest(request: ServerRequest): void;
  /** The server sent a notification other than a list change. */
  notification(notification: NotificationEnvelope): void;
  /** Whether a stop of the process would lose state, such as subscriptions and tasks, although no call is in flight. */
  wouldLoseState(): boolean;
}
