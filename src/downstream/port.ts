import type { Edit, SplicedMessage } from '../wire/json/splice.js';
import type { RpcError } from '../wire/jsonrpc/message.js';
import type { NotificationEnvelope, ResponseEnvelope } from '../wire/mcp/envelope.js';
import type { ClientProfile } from '../wire/mcp/handshake.js';
import type { ListKind, LogLevel } from '../wire/mcp/methods.js';
import type { MirroredParam } from '../wire/mcp/mirrored-params.js';
import type { Outcome } from '../wire/mcp/outcome.js';
import type { InputRequest, RelayedRequest, WithdrawInput } from '../wire/mcp/relayed-request.js';
import type { Hmac } from '../wire/mcp/task-id.js';
import type { Failure } from './failure.js';

export type { InputRequest, WithdrawInput } from '../wire/mcp/relayed-request.js';

/*
 * The room of the clients: `stdio` and `http` carry their messages, `legacy` and `modern` speak the revisions of MCP, `users`
 * knows who they are. The gateway, the hub, features and the composition root may use it.
 *
 * Begin here, at the port between clients and the gateway. A protocol era implements `DownstreamClient` and `Exchange`: it
 * opens a session with `GatewayPort.open`, hands each request to `GatewaySession.serve` as an `Exchange`, and calls
 * `GatewaySession.close` when the client is gone. A transport implements the port in `transport.ts` instead.
 */

/** Serves clients. Implemented by the gateway. */
export interface GatewayPort {
  /** Signs texts that clients store for the gateway. Absent until the gateway has its servers. */
  readonly seals: GatewaySeals | undefined;
  /** Opens a session, which lasts until its `close` is called. Never waits for a server. */
  open(client: DownstreamClient, facts: ClientFacts): GatewaySession;
  /** Describes the gateway to a client with these facts. Opens no session and starts no server. */
  describe(facts: ClientFacts): GatewayDescription;
}

/** Signatures by which the gateway recognizes its own texts, such as `requestState`. */
export interface GatewaySeals {
  /** Signs with a key that outlives the process. Several gateways may share the key. */
  readonly lasting: Hmac;
  /** Signs with a key that ends with the process. */
  readonly run: Hmac;
  /** The name of the process, which is a part of the texts. No two processes have the same. */
  readonly instance: string;
}

/** Description of the servers for `initialize` and `server/discover`. */
export interface GatewayDescription {
  /** Capabilities of the running servers, as each server declared them. */
  readonly offered: readonly Readonly<Record<string, unknown>>[];
  /** Instructions for the client's model; '' for none. */
  readonly instructions: string;
}

/** A user of the gateway, or a machine with a token of its own. */
export interface User {
  /** Identifies the user among all issuers. Everything that the user's clients have belongs to it. */
  readonly principal: string;
  /** Name that the issuer or the file of tokens gives. May be any text. */
  readonly name: string;
  readonly kind: 'user' | 'machine';
  readonly groups: readonly string[];
}

/** Facts about a client that are known when its session opens. */
export interface ClientFacts extends ClientPlace {
  readonly profile: ClientProfile;
}

/** The facts about a client that its transport knows before the client has said anything. */
export interface ClientPlace {
  /** Key of the only server that the client sees, unchanged. Absent for a client that sees all servers, merged. */
  readonly server?: string | undefined;
  /** Name of the view that the client requests; '' for all servers. Absent if the gateway chooses the view. */
  readonly view?: string | undefined;
  /** Environment of the client's process. Absent if it is the gateway's own environment. */
  readonly origin?: ClientOrigin | undefined;
  /** The user behind the client. Absent if clients need not say who their user is. */
  readonly user?: User | undefined;
}

/** The environment and the working folder of a client's process. */
export interface ClientOrigin {
  /** The client's values of the variables that the configuration names. Unset variables are absent. */
  readonly environment: Readonly<Record<string, string>>;
  /** The client's working folder, absolute. */
  readonly folder: string;
  /** The principal of the user whose variables are in `environment`. */
  readonly user?: string | undefined;
  readonly userName?: string | undefined;
  readonly isMachine?: boolean | undefined;
}

export interface GatewaySession extends GatewayDescription {
  /** Returns the lifetime and the audience of a list that is read now (page server/utilities/caching of 2026-07-28). */
  caching(kind: ListKind): ListCaching;
  /**
   * Resolves with the initialize result of the only server that the client sees, or with the reason for which that server
   * does not start. Never rejects. Returns `undefined` for a client that sees all servers.
   */
  handshake(): Promise<ServerHandshake> | undefined;
  /** Parameters of a tool that its calls repeat in HTTP headers. `tool` is the exposed name. */
  mirroredParams(tool: string): readonly MirroredParam[];
  /** Serves one request. Reports the answer, or the failure, to the exchange. An exception is an internal error. */
  serve(exchange: Exchange): void;
  /**
   * Notifies the client (`DownstreamClient.notify`) of the states of a task of the tasks extension. `task` is the id that the client knows.
   * Calls `settled` with `true` if the notifications begin, and with `false` if the client has no such task or the server refuses. Calls
   * `settled` with `false` again when the server's process ends. The returned function ends the notifications.
   */
  watchTask(task: string, settled: (agreed: boolean) => void): () => void;
  /** Takes a notification of the client. Cancellations and progress go to their requests instead. */
  notified(notification: NotificationEnvelope): void;
  /** Ends the session. The caller must cancel the exchanges that are in flight. */
  close(): void;
}

/** Lifetime and audience of a merged list in a client's cache. */
export interface ListCaching {
  /** Whether the list is complete, because the first start of every server has succeeded or failed. */
  readonly isSettled: boolean;
  /** Shortest of the times for which the servers allow their lists to be cached; infinite if no server states a time. */
  readonly freshMs: number;
  /** Whether the list is the same for all users. */
  readonly isPublic: boolean;
}

/** Initialize result of one server, as JSON. `requestedRevision` is the revision that the gateway requested from it. */
export type ServerHandshake =
  | {
      readonly kind: 'initialized';
      readonly result: Uint8Array;
      readonly revision: string;
      readonly requestedRevision: string;
    }
  | { readonly kind: 'failed'; readonly failure: Failure };

/** A client, as the gateway sees it. Implemented by protocol eras. */
export interface DownstreamClient {
  /** Authenticated subject behind the client. Clients of one principal may share servers and tasks. */
  readonly principal: string;
  /** Negotiated protocol revision; `undefined` before the handshake ends. */
  readonly revision: string | undefined;
  /**
   * Whether the client has a session, and so receives messages that belong to none of its requests. A client without a session
   * receives only messages of its requests and subscriptions.
   */
  readonly hasSession: boolean;
  /** Number of requests that were not answered yet. */
  readonly inFlight: number;
  /** Whether the client is notified of changes of lists that it may not have read. */
  readonly followsLists?: boolean;
  /** Whether a `ping` of the only server that the client sees reaches the client now. */
  readonly takesPings: boolean;
  listChanged(kind: ListKind): void;
  /** Relays a `list_changed` notification of the only server that the client sees. */
  listAnnounced(kind: ListKind, notification: NotificationEnvelope): void;
  /** Relays a server's notification that belongs to no request of this client. */
  notify(notification: NotificationEnvelope, edits?: readonly Edit[]): void;
  /** Sends the client a server request that belongs to no request of the client. See `Exchange.requireInput`. */
  requireInput(input: InputRequest): WithdrawInput;
  /** Replaces the session that `GatewayPort.open` returned. From now on, the client uses and closes only the new session. */
  sessionReplaced(session: GatewaySession): void;
  /** Reports that the client's server or view was removed from the configuration. The client should end its session. */
  gone(): void;
  /** Reports that the gateway shuts down. Requests in flight fail when their servers end. */
  ending(): void;
}

/**
 * One client request, from its arrival to its answer. Implemented by protocol eras, which write the answer, the progress and
 * the server requests in the form of their revisions.
 *
 * The first call of `answer`, `succeed` or `fail`, or a cancellation by the client, settles the exchange. Later calls do
 * nothing, so an answer, a timeout and a crash may race. No member throws if the client has left.
 */
export interface Exchange {
  /** The gateway may replace the request before it is routed, such as to add a trace context. */
  request: RelayedRequest;
  /** The request as the client sent it. */
  readonly received: SplicedMessage;
  /**
   * Reviews the answer of the server before anything is made of it, and returns the answer that goes on, or the reason for which the
   * client does not get it. Returns `undefined` if the answer needs no review. Set by a gate. The bytes of the answer are valid only
   * until the method returns. Must end when the exchange is cancelled.
   */
  readonly review?: ((answer: Answered) => Promise<Answered | Withheld> | undefined) | undefined;
  /** The HTTP request that carried the request. Absent for other transports. */
  readonly http?: HttpFacts | undefined;
  /** Observes the call. The gateway sets it when the request arrives. Absent if no observer wants the call. */
  trail?: CallTrail | undefined;
  /** The text of the request to which a person has said yes (`Decision.identity`). Absent if nobody has. */
  allowed?: string | undefined;
  /** Id that the client gave the request, as JSON. For logs only, because the era matches answers to requests. */
  readonly requestId: string;
  readonly client: DownstreamClient;
  /**
   * Identity of the program behind the request. This is the client, or the exchange itself if the requests of one client may
   * come from unrelated programs. A server request or a log message is assigned to a request only if all requests that may have
   * caused the message have the same conversation.
   */
  readonly conversation: object;
  /** Whether the client was asked for input and has not come back yet. Meanwhile the server waits, and sends no messages. */
  readonly isSuspended: boolean;
  /** Whether the request was answered or cancelled. After that, only the progress of a task may be sent for the request. */
  readonly isSettled: boolean;
  readonly wantsProgress: boolean;
  /**
   * Lowest level of the log messages that the client wants while the request is served; `off` for none. `undefined` if the
   * level of the client's session decides (`logging/setLevel`, which 2026-07-28 does not have).
   */
  readonly logLevel: LogLevel | 'off' | undefined;
  /**
   * Whether the client accepts `input_required` results and sends the request again with the input (page basic/patterns/mrtr of
   * 2026-07-28). For other clients, the connection to the server calls `requireInput` and sends the request again itself.
   */
  readonly takesInputRequests: boolean;
  /** Whether the person at the client can be asked because of this request (`elicitation/create` of this mode). */
  elicits(mode: ElicitationMode): boolean;
  /** Sets the id of the backend that gets the request. Messages of one backend reach the client in their order. */
  route(source: string): void;
  /**
   * Leases the memory of a large request, before the request is written to a server. The writer of the request releases the
   * lease, so that the memory can be reused. Returns `undefined` if the memory is not pooled.
   */
  leaseRequest(): SplicedMessage['lease'];
  /**
   * Answers with a server's response, unchanged except for the id and the edits. `server` is the `serverInfo` of the server as
   * JSON. A result without a `serverInfo` gets it if the client's revision requires one.
   */
  answer(response: ResponseEnvelope, edits?: readonly Edit[], server?: Uint8Array): void;
  /** Answers with a result made by the gateway, as JSON. */
  succeed(result: Uint8Array): void;
  /** Answers with an error. A `Failure` of `tools/call` becomes a tool result. All other errors are JSON-RPC errors. */
  fail(reason: RpcError | Failure): void;
  /** Relays a server's progress under the client's progress token. After the answer, sends it on the channel of `via`. */
  progress(notification: NotificationEnvelope, edits?: readonly Edit[], via?: Exchange): void;
  /** Relays progress also after the answer, because the request became a task. Call the returned function to stop that. */
  keepProgress(): () => void;
  /** Sends another message that this request caused, on the channel of the answer. */
  send(message: SplicedMessage): void;
  /**
   * Asks the client for input that a server needs for this request. The era either sends the server request at once, or
   * suspends the client's request until the client comes back with the input. Calls `input.fail` if the client cannot be
   * asked. The returned function withdraws the server request.
   */
  requireInput(input: InputRequest): WithdrawInput;
  /**
   * Sets the listener for a cancellation by the client, and replaces the previous listener. `notification` is the client's
   * own cancellation. It is absent if the client has disconnected.
   */
  onCancel(listener: (notification?: NotificationEnvelope) => void): void;
}

/**
 * Observes one call from its arrival to its end. The era reports the end, and the code that sends the call to a server reports
 * the attempts. No member throws.
 *
 * Bytes of messages, edits and outcomes are valid only until the method returns, because their memory is used again.
 */
export interface CallTrail {
  /** The call goes to this instance of a server, which may be behind a URL. May be called again, because another instance may have the answer. */
  routed(server: string, instance: string, isRemote: boolean): void;
  /**
   * The call is sent over a connection with these edits, for the first time or again. Returns further edits of the request,
   * such as a trace context, which must not overlap the edits.
   */
  sending(connection: SendingConnection, edits: readonly Edit[]): readonly Edit[] | undefined;
  /**
   * The request is written to the server in this form. A request that asks its client for input is written once more for each
   * answer of the client, within one attempt. Not called if the request cannot be written.
   */
  sent(message: SplicedMessage): void;
  /**
   * The attempt has ended. Called once for each `sending`, unless the call ends before. `sentAt` is the time at which the
   * request was sent, in milliseconds on the clock; absent if it could not be sent.
   */
  attemptEnded(outcome: Outcome, sentAt?: number): void;
  /** Takes a remark about the call, such as the finding of an interceptor. */
  noted?(remark: string): void;
  /** The call has ended. Called once. */
  ended(end: CallEnd): void;
}

/** An answer of a server. */
export type Answered = Extract<Outcome, { readonly kind: 'answered' }>;

/** The reason for which a client does not get an answer, as in `Failure`. */
export interface Withheld {
  readonly kind: 'withheld';
  readonly detail: string;
  readonly rule: string;
}

export interface HttpFacts {
  readonly address: string;
  readonly port: number;
  /** Returns a header by its name in lower case, unchecked. */
  header(name: string): string | undefined;
}

export interface SendingConnection {
  /** Number of the server's launch. */
  readonly generation: number;
  /** The protocol revision that the handshake agreed on. */
  readonly revision: string;
}

/** End of a call. Without `response`, `result` and `failure`, the client has cancelled the call, or has left. */
export interface CallEnd {
  /** The server's response, before the edits of routing and of the client's era. */
  readonly response: ResponseEnvelope | undefined;
  /** A result of the gateway's own, as JSON. */
  readonly result: Uint8Array | undefined;
  /** The reason for which the gateway answers with an error, or with a tool result that says so. */
  readonly failure: RpcError | Failure | undefined;
  /** The answer as the client gets it. */
  readonly message: SplicedMessage | undefined;
}

export type ElicitationMode = 'form' | 'url';

export function withMembers(exchange: Exchange, own: Partial<Exchange>): Exchange {
  return new Proxy(exchange, {
    get: (_, name) => {
      const holder = Object.hasOwn(own, name) ? own : exchange;
      const member: unknown = Reflect.get(holder, name, holder);
      return typeof member === 'function' ? member.bind(holder) : member;
    },
  });
}
