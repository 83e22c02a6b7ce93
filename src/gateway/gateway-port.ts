import type { Edit } from '../jsonrpc/splice.js';
import type { NotificationEnvelope } from '../mcp/envelope.js';
import type { ListKind } from '../mcp/lists.js';
import type { ChildRequest } from './child-request.js';
import type { Exchange } from './exchange.js';

/** A client's session as the gateway sees it. */
export interface GatewayClient {
  /** The merged list has become another one. */
  listChanged(kind: ListKind): void;
  /**
   * Asks the client something for a server; `via` is the request that made the server ask, if it is known. The
   * function that is returned takes the question back.
   */
  ask(asked: ChildRequest, via: Exchange | undefined): (notice?: NotificationEnvelope) => void;
  /** Something that a server said and that concerns this client, untouched but for the edits. */
  notify(notification: NotificationEnvelope, edits?: readonly Edit[]): void;
}

/** What a session needs of the gateway. */
export interface GatewayPort {
  /** How to use what is offered, for the client's model. */
  readonly instructions: string;
  /** A session begins; the function that is returned ends it. */
  connect(client: GatewayClient): () => void;
  /** Takes in a notification that is not about one of the client's requests. */
  notified(client: GatewayClient, notification: NotificationEnvelope): void;
  /** Serves a request, whatever front it came through. */
  serve(exchange: Exchange): void;
}
