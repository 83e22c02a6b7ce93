import type { Edit, SplicedMessage } from '../json/splice.js';
import type { RpcError } from '../jsonrpc/rpc-error.js';
import type { ClientProfile } from '../mcp/client-profile.js';
import type { NotificationEnvelope, ResponseEnvelope } from '../mcp/envelope.js';
import type { InputRequest, WithdrawInput } from '../mcp/input-request.js';
import type { ListKind } from '../mcp/lists.js';
import type { LogLevel } from '../mcp/log-levels.js';
import type { RelayedRequest } from '../mcp/relayed-request.js';
import type { Hmac } from '../mcp/task-id.js';
import type { Failure } from './failure.js';

export type { InputRequest, WithdrawInput } from '../mcp/input-request.js';

/*
 * The port between clients and the gateway. A protocol era implements `DownstreamClient` and `Exchange`: it opens a
 * session with `GatewayPort.open`, hands each request to `GatewaySession.serve` as an `Exchange`, and calls
 * `GatewaySession.close` when the client is gone. For another transport, see `transport.ts`. Nothing here depends on a
 * transport or on a protocol era.
 */

/** Serves clients. */
export interface GatewayPort {
  /** Signs what clients keep for the gateway. Absent until the gateway has its servers. */
  readonly seals: GatewaySeals | undefined;
  /** Opens a session for a client, which lasts until `close` is called on it. */
  open(client: DownstreamClient, facts: ClientFacts): GatewaySession;
  /** What a client with these facts would see. Opens no session, and starts no server. */
  describe(facts: ClientFacts): GatewayDescription;
}

/** Sign texts, so that the gateway knows them again. */
export interface GatewaySeals {
  /** Its key outlives the process, and several gateways may share it. */
  readonly lasting: Hmac;
  /** Its key ends with the process. */
  readonly run: Hmac;
}

/** What a client learns about the servers before it uses them. */
export interface GatewayDescription {
  /** The capabilities that each running server declared. */
  readonly offered: readonly Readonly<Record<string, unknown>>[];
  /** Instructions for the client's model. */
  readonly instructions: string;
}

/** What a client states about itself when its session opens. */
export interface ClientFacts {
  readonly profile: ClientProfile;
  /** The key of the one server that the client wants to see unchanged. Absent: all servers, merged. */
  readonly server?: string | undefined;
  /** The view of the configuration that the client asks for by name; '' asks for everything. */
  readonly view?: string | undefined;
  /** Where the client's process runs. Absent for clients whose environment is the gateway's own. */
  readonly origin?: ClientOrigin | undefined;
}

/** The environment and the working folder of a client's process. */
export interface ClientOrigin {
  /** The variables that the configuration names, with the client's values; unset ones are absent. */
  readonly environment: Readonly<Record<string, string>>;
  /** The client's working folder, absolute. */
  readonly folder: string;
}

/** One client's session with the gateway. */
export interface GatewaySession extends GatewayDescription {
  /** How a list of this kind that is read now may be cached. */
  caching(kind: ListKind): ListCaching;
  /**
   * What the process of the one server that the client sees unchanged says about itself, or why that server does not start.
   * `undefined` for a client that sees all servers.
   */
  handshake(): Promise<ServerHandshake> | undefined;
  /** What calls of a tool repeat in the headers of a transport that has some, by the name that the client uses. */
  mirroredParams(tool: string): readonly MirroredParam[];
  /** Serves one request. */
  serve(exchange: Exchange): void;
  /**
   * Has the client notified (`DownstreamClient.notify`) of the states of a task of the tasks extension, by the name that the
   * client knows. Calls `settled` with whether a task of this client reports its state, and with `false` when its process ends
   * after that. The returned function ends it.
   */
  watchTask(task: string, settled: (agreed: boolean) => void): () => void;
  /** Takes a notification that does not concern a request in flight. */
  notified(notification: NotificationEnvelope): void;
  /** Ends the session. The caller cancels the exchanges that are still in flight. */
  close(): void;
}

/** How a merged list may be cached. */
export interface ListCaching {
  /** Whether the list waits for no first start of a server, so that it stays as it is for now. */
  readonly isSettled: boolean;
  /** The shortest time that the servers let their lists be cached, in milliseconds; infinite if none of them says. */
  readonly freshMs: number;
  /** Whether the list is the same for all users. */
  readonly isPublic: boolean;
}

/** A parameter that a client repeats in the header `Mcp-Param-` and this name. See `x-mcp-header` in the MCP specification. */
export interface MirroredParam {
  readonly header: string;
  /** Where the value is in the arguments: the names of members, from the outside in. */
  readonly path: readonly string[];
}

/** The initialize result of one server, as JSON. `requestedRevision` is what the gateway requested from the server. */
export type ServerHandshake =
  | {
      readonly kind: 'initialized';
      readonly result: Uint8Array;
      readonly revision: string;
      readonly requestedRevision: string;
    }
  | { readonly kind: 'failed'; readonly failure: Failure };

/** A client, as the gateway sees it. */
export interface DownstreamClient {
  /** The authenticated subject behind the client. Clients of one principal may share servers and tasks. */
  readonly principal: string;
  /** The negotiated protocol revision; `undefined` before the handshake ends. */
  readonly revision: string | undefined;
  /**
   * Whether messages reach the client that belong to none of its requests. Without a session, it gets only what a request
   * or a subscription of it asks for.
   */
  readonly hasSession: boolean;
  /** Whether the client sees one server unchanged and a `ping` of that server reaches it now. */
  readonly takesPings: boolean;
  /** A merged list has changed. */
  listChanged(kind: ListKind): void;
  /** The server that the client sees unchanged announced that a list has changed. */
  listAnnounced(kind: ListKind, notification: NotificationEnvelope): void;
  /** Relays a server's notification that no request of this client caused. */
  notify(notification: NotificationEnvelope, edits?: readonly Edit[]): void;
  /** Asks the client for input that no request of this client caused. See `Exchange.requireInput`. */
  requireInput(input: InputRequest): WithdrawInput;
  /** Replaces the session that `GatewayPort.open` returned: use this one from now on, and close only this one. */
  sessionReplaced(session: GatewaySession): void;
  /** The server or view that the client asked for was removed from the configuration. The client should end its session. */
  gone(): void;
  /** The gateway ends. Requests in flight fail when their servers end. */
  ending(): void;
}

/**
 * One client request, from its arrival to its answer.
 *
 * An exchange is settled by `answer`, `succeed`, `fail` or a cancellation. The first of them wins and the others do
 * nothing, so an answer, a timeout and a crash may race. The implementation sends the answer, the progress and the
 * server requests to the client in whatever form its protocol era needs.
 */
export interface Exchange {
  readonly request: RelayedRequest;
  /** The id that the client gave the request, as JSON. Only for people: the era matches answers. */
  readonly requestId: string;
  /** The client that sent the request. */
  readonly client: DownstreamClient;
  /**
   * What tells apart whose requests are in flight: the client, or the request itself where nothing connects the requests of
   * a client. A server request or a log message of a server goes to a request only if all that could have caused it are of
   * one conversation.
   */
  readonly conversation: object;
  /** Whether the client was asked for input and has not come back yet, so that the server waits and causes nothing. */
  readonly isSuspended: boolean;
  /** Whether the request was answered or cancelled. Nothing more is sent for it then, except progress of a task. */
  readonly isSettled: boolean;
  /** Whether the client requested progress. */
  readonly wantsProgress: boolean;
  /**
   * The least severe log messages that the client wants while the request is served; `off` for none. `undefined` if the
   * level of the client's session decides.
   */
  readonly logLevel: LogLevel | 'off' | undefined;
  /**
   * Whether the client takes a result that requires input from it, and sends the request again with that input. For
   * other clients, the connection to the server asks with `requireInput` and sends the request again itself.
   */
  readonly takesInputRequests: boolean;
  /** The request goes to this backend, named by its id. Messages of one backend reach the client in their order. */
  route(source: string): void;
  /**
   * Leases the memory of a large request, which is about to be written to a server. The code that writes the
   * request releases the lease, so that the memory can be reused. `undefined` when the memory is not pooled.
   */
  leaseRequest(): SplicedMessage['lease'];
  /**
   * Answers with a server's response, unchanged except for the id and the edits. `server` is what the server calls itself,
   * as JSON, for a result that should say so and does not.
   */
  answer(response: ResponseEnvelope, edits?: readonly Edit[], server?: Uint8Array): void;
  /** Answers with a result made by the gateway, as JSON. */
  succeed(result: Uint8Array): void;
  /** Answers with an error. A `Failure` becomes a tool result or a JSON-RPC error, as the era and the method require. */
  fail(reason: RpcError | Failure): void;
  /** Relays a server's progress under the client's progress token. After the answer, it travels along `via` if given. */
  progress(notification: NotificationEnvelope, edits?: readonly Edit[], via?: Exchange): void;
  /** Keeps relaying progress after the answer, because the request became a task. The returned function ends that. */
  keepProgress(): () => void;
  /** Sends another message that this request caused, on the same way as the answer. */
  send(message: SplicedMessage): void;
  /**
   * Asks the client for something that a server needs because of this request. The era decides whether to ask at once
   * or to suspend the request until the client comes back with the input.
   */
  requireInput(input: InputRequest): WithdrawInput;
  /**
   * Registers what to do when the client cancels the request; replaces the previous listener. `notification` is the
   * client's own cancellation, absent when the client disconnected.
   */
  onCancel(listener: (notification?: NotificationEnvelope) => void): void;
}
