import type { Edit } from '../json/splice.js';
import type { RpcError } from '../jsonrpc/rpc-error.js';
import type { ClientProfile } from '../mcp/client-profile.js';
import type { NotificationEnvelope, RequestEnvelope, ResponseEnvelope } from '../mcp/envelope.js';
import type { ListKind } from '../mcp/lists.js';
import type { Exchange } from './exchange.js';
import type { Failure } from './failure.js';

/** A client's session as the gateway sees it. */
export interface DownstreamClient {
  /** Who is behind it. */
  readonly principal: string;
  /** What was agreed on; `undefined` before. */
  readonly revision: string | undefined;
  /** The merged list has become another one. */
  listChanged(kind: ListKind): void;
  /**
   * Asks the client something for a server; `via` is the request that made the server ask, if it is known. The
   * function that is returned takes the question back.
   */
  ask(input: InputRequest, via: Exchange | undefined): WithdrawInput;
  /** The one server that it wanted to see as it is is not configured any more. */
  gone(): void;
  /** Something that a server said and that concerns this client, untouched but for the edits. */
  notify(notification: NotificationEnvelope, edits?: readonly Edit[]): void;
}

/** A server's request to a client, while the client answers it. */
export interface InputRequest {
  readonly request: RequestEnvelope;
  /** What has to be replaced in the request before the client gets it. */
  readonly edits: readonly Edit[];
  /** Calling `keepProgress` keeps reporting progress after the answer, until the function that it returns is called. */
  answer(response: ResponseEnvelope, keepProgress: () => () => void): void;
  fail(error: RpcError): void;
  progress(notification: NotificationEnvelope): void;
}

/** Withdraws a server's request. `notice` is the server's own notification; absent if the server is gone. */
export type WithdrawInput = (notice?: NotificationEnvelope, edits?: readonly Edit[]) => void;

/** What is known of a client when it comes. */
export interface ClientFacts {
  /** What it says of itself. */
  readonly profile: ClientProfile;
  /** The key of the one server that it wants to see as it is; all of them, merged, when absent. */
  readonly server?: string | undefined;
}

/** What a session needs of the gateway. */
export interface GatewayPort {
  /** A session begins: its client has said what it is. */
  connect(client: DownstreamClient, facts: ClientFacts): ClientConnection;
}

/** One client's way into the gateway. */
export interface ClientConnection {
  /** What each server that is there has declared. */
  readonly offered: readonly Readonly<Record<string, unknown>>[];
  /** How to use what is offered, for the client's model. */
  readonly instructions: string;
  /**
   * How its only server greeted it, for a client that sees that server as it is. Resolves with why not when the
   * server does not start. Absent for all others, who are greeted by us.
   */
  readonly initializeResult: Promise<ServerHandshake> | undefined;
  /** Serves a request, whatever front it came through. */
  serve(exchange: Exchange): void;
  /** Takes in a notification that is not about one of the client's requests. */
  notified(notification: NotificationEnvelope): void;
  /** The session is over. */
  close(): void;
}

/** What a server said to `initialize`, as JSON. */
export type ServerHandshake =
  | { readonly kind: 'initialized'; readonly result: Uint8Array; readonly revision: string }
  | { readonly kind: 'failed'; readonly failure: Failure };
