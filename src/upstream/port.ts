import type { ByteReader } from '../io/byte-reader.js';
import type { Edit, SplicedMessage } from '../json/splice.js';
import type { RpcError } from '../jsonrpc/rpc-error.js';
import type { ClientProfile } from '../mcp/client-profile.js';
import type { NotificationEnvelope, RequestEnvelope, ResponseEnvelope } from '../mcp/envelope.js';
import type { ServerDescription } from '../mcp/initialize-result.js';
import type { InputRequest, WithdrawInput } from '../mcp/input-request.js';
import type { RelayedRequest } from '../mcp/relayed-request.js';
import type { ChildExit, ChildSpec, Launched } from '../supervision/launcher.js';
import type { ResourceLimits } from '../supervision/resource-limits.js';
import type { ServerEra } from './server-era.js';

/*
 * The port to the servers behind the gateway.
 *
 * A transport implements `Dialer` and `Channel`. A `Dialect` (`dialect.ts`), one for each protocol era, performs the
 * handshake over the channel and makes the `UpstreamConnection`. The gateway implements `UpstreamListener`. The life of one connection:
 *
 * 1. The supervisor asks for a launch, and the gateway calls `Dialer.dial`. The call returns at once.
 * 2. The transport waits for the profile of the client, reports `handshakeStarted`, and performs the handshake.
 * 3. `Dialed.connection` resolves with the connection or with the reason of the failure.
 * 4. The gateway sends requests down, and the transport reports to the listener what the server sends by itself.
 * 5. The connection ends: the server exits (`closed`), or the gateway calls `Dialed.end` or `UpstreamConnection.close`.
 *    Each request in flight is settled with a failure. A closed connection is never used again; the next launch makes
 *    another one, with the next generation.
 *
 * Messages are bytes with a scanned envelope. An `Edit` replaces one token of a message; everything else of the text
 * passes through unchanged.
 */

/** Connects to servers. There is one implementation for each transport. */
export interface Dialer {
  /** Starts to connect. Returns at once and never throws: a failure resolves `Dialed.connection`. */
  dial(target: DialTarget, listener: UpstreamListener): Dialed;
}

/** The server to connect to. */
export interface DialTarget {
  readonly spec: ChildSpec;
  /** Counts the launches of this server. */
  readonly generation: number;
  /** What the handshake tells the server about its client. The handshake starts when this resolves. */
  readonly profile: Promise<ClientProfile>;
  /** The protocol era of the server, as far as it is known. */
  readonly era: ServerEra;
  readonly log: ServerLog;
  /** The largest message that the server may send, in bytes. */
  readonly maxFrameBytes: number;
  /** Requests fail as `overloaded` while more bytes than this wait for the server to read them. */
  readonly maxUnwrittenBytes: number;
  /** What the processes of the server may use now; nothing is limited if absent. */
  readonly limits?: () => ResourceLimits;
}

/** Where the output of a server goes that is no protocol message. */
interface ServerLog {
  add(line: string): void;
  /** Adds output that is no message. It is decoded only if there is room for it. */
  addJunk(bytes: Uint8Array, reason: string): void;
  /** Where to write the next bytes of the server's stderr, and how many were written. */
  readonly stderr: ByteReader;
  /** Nothing further comes from stderr; an unfinished line counts as a line. */
  end(): void;
}

/** A connection from the first attempt until nothing of it is left. A remote server has no pid. */
export interface Dialed extends Launched {
  /** Rejects only with an internal error. */
  readonly connection: Promise<DialOutcome>;
}

export type DialOutcome =
  | { readonly kind: 'open'; readonly connection: UpstreamConnection }
  | {
      readonly kind: 'failed';
      readonly reason: string;
      /** Whether the host lacked a resource, such as file descriptors, so that the server is not at fault. */
      readonly isHostFault?: boolean;
      /** Whether the server answered the handshake, with an error or with an unknown revision. */
      readonly isRefused?: boolean;
    };

/** One connection to a server that has completed its handshake, in whatever protocol era the server speaks. */
export interface UpstreamConnection {
  readonly generation: number;
  /** The protocol revision that the handshake agreed on. */
  readonly revision: string;
  /** The protocol revision that the gateway requested in the handshake. */
  readonly requestedRevision: string;
  /** The server's result of `initialize`: JSON, verbatim. */
  readonly initializeResult: Uint8Array;
  /** The capabilities that the server declared, verbatim. */
  readonly capabilities: Readonly<Record<string, unknown>>;
  /** The server's `instructions`, verbatim. */
  readonly instructions: string | undefined;
  /** The server's description of itself. */
  readonly serverInfo: ServerDescription;
  /** What the server calls itself, as JSON, where the revision wants results to say so. */
  readonly nameInResults?: Uint8Array | undefined;
  readonly counters: Readonly<DropCounters>;
  /** Requests that wait for an answer. */
  readonly inFlight: number;
  /** How long its output was not read because too much of it answered nothing, in milliseconds. */
  readonly pausedMs: number;
  readonly isClosed: boolean;

  /** Whether the server declared a capability, such as `tools` or `resources.subscribe`. */
  offers(capability: string): boolean;
  /**
   * Sends a client's request. `edits` are what routing replaces, such as an exposed name by the original name.
   *
   * Returns `undefined` if the request cannot be sent; the handler is settled before this returns.
   */
  send(
    request: RelayedRequest,
    edits: readonly Edit[],
    timeouts: RequestTimeouts,
    handler: RequestHandler,
  ): SentRequest | undefined;
  /** Sends a client's notification; only the edits change it. Does nothing once the connection is closed. */
  notify(notification: SentNotification, edits?: readonly Edit[]): void;
  /** Sends a request of the gateway's own. `params` must be serializable, or bytes of JSON. */
  request(method: string, params: unknown, timeouts: RequestTimeouts): Promise<Outcome>;
  /**
   * Has the server notify of the states of a task of the tasks extension, by its own id. Calls `settled` once, with whether it
   * will. The returned function ends it. Absent if the server decides alone what it notifies of.
   */
  watchTask?(taskId: string, settled: (agreed: boolean) => void): () => void;
  /**
   * Closes the connection and settles each request in flight with the reason. Calling it again does nothing. `because` is
   * what the server did, if the gateway ends it for that.
   */
  close(reason: CloseReason, because?: EndedBecause): void;
}

/** What a connection needs of a notification that it sends. */
export interface SentNotification extends Pick<NotificationEnvelope, 'bytes' | 'span' | 'method'> {
  /** Edits that remove what a legacy server must not get. */
  readonly legacyEdits?: readonly Edit[] | undefined;
}

/** `exited`: the server ended the connection, or broke it. `stopped`: the gateway ended it. */
export type CloseReason = 'exited' | 'stopped';

/** What a server did, so that the gateway ended it: a phrase with *it* as the subject, without a period or a secret. */
export type EndedBecause = string;

/** What a connection dropped, counted by kind since the connection was opened. */
export interface DropCounters {
  /** Answers to requests that timed out or were cancelled. */
  late: number;
  /** Second answers to one request. */
  duplicate: number;
  /** Answers to requests that were never sent. */
  unknown: number;
  /** Output that is no message. */
  junk: number;
  /** Lines of nothing but white space. */
  blank: number;
  /** Messages beyond the frame limit. */
  oversized: number;
  /** Unfinished messages that held the most when the memory for unfinished messages was full. */
  evicted: number;
  /** Progress that goes backward, or belongs to no open request. */
  staleProgress: number;
  /** Answers to requests of the server that could not be written. */
  unsentReplies: number;
}

export function newDropCounters(): DropCounters {
  return {
    late: 0,
    duplicate: 0,
    unknown: 0,
    junk: 0,
    blank: 0,
    oversized: 0,
    evicted: 0,
    staleProgress: 0,
    unsentReplies: 0,
  };
}

/** Time limits of a request, in milliseconds. With `idleMs` and `maxMs` infinite, it stands open and no one waits for it. */
export interface RequestTimeouts {
  /** From the start to the first sign of the request, if that is not `idleMs`. */
  readonly firstMs?: number;
  /** From the start to the answer; progress starts it again. */
  readonly idleMs: number;
  /** From the start to the answer, whatever progress there is. */
  readonly maxMs: number;
}

/** The sender of a request, as the connection sees it. */
export interface RequestHandler {
  /** Called exactly once. */
  settle(outcome: Outcome): void;
  /** Called for each progress notification that moves forward; `value` is its `progress`. */
  progress?(notification: NotificationEnvelope, value: number): void;
  /** The lease of a large request's memory. The code that writes the request releases it. */
  readonly lease?: SplicedMessage['lease'];
  /** The progress that an earlier connection reported; only values beyond it move forward. */
  readonly progressed?: number | undefined;
  /**
   * Whether the sender takes a result that requires input from it. Otherwise the connection asks with `requireInput` and
   * sends the request again with the input.
   */
  readonly takesInputRequests?: boolean;
  /** Asks the sender for something that the server needs for the request. Absent if the sender cannot be asked. */
  requireInput?(input: InputRequest): WithdrawInput;
  /** Sends the sender another message that the request caused. Not after `settle`. */
  send?(message: SplicedMessage): void;
  /** Whether an error without an id answers this request: a server may not name the id of what it does not understand. */
  readonly takesErrorWithoutId?: boolean;
}

/** How a request ended. */
export type Outcome =
  | {
      readonly kind: 'answered';
      readonly response: ResponseEnvelope;
      /** When the answer was read, in milliseconds on the clock. */
      readonly at: number;
      /** What to replace in the response because the server speaks another era than the sender. */
      readonly edits?: readonly Edit[];
    }
  | {
      readonly kind: 'failed';
      readonly reason: RequestFailure;
      /** Whether a byte of the request may have reached the server. */
      readonly sent: boolean;
      /** What the server did, if the connection was closed for that. */
      readonly because?: EndedBecause | undefined;
    };

export type RequestFailure =
  | CloseReason
  /** No answer and no progress within the idle timeout, or no answer within the maximum. */
  | 'timeout'
  /** The server does not read: too many bytes wait for it already. */
  | 'overloaded'
  | 'response_too_large'
  /** The answer was unfinished and held the most when the memory for unfinished messages was full. */
  | 'response_dropped'
  /** The answer began, and no byte of it came for too long. */
  | 'response_malformed'
  /** The answer is a sound message of JSON-RPC, but its result is no object. */
  | 'result_malformed'
  /** The sender cancelled the request. */
  | 'cancelled';

/** A request in flight. */
export interface SentRequest {
  /** Milliseconds on the clock. */
  readonly sentAt: number;
  /**
   * Settles the request as cancelled and notifies the server; a late answer is dropped.
   *
   * `notice` is the client's own notification. Its reason and its `_meta` are kept, apart from the edits.
   */
  cancel(notice?: NotificationEnvelope, edits?: readonly Edit[]): void;
  /** Keeps reporting progress after the answer, which created a task. Call the returned function to stop. */
  keepProgress(): () => void;
}

/** Receives what a server sends by itself, and what becomes of its connection. */
export interface UpstreamListener {
  /** The handshake starts; the server's start timeout counts from now. */
  handshakeStarted(): void;
  /** The server sends a request that only the gateway or a client can answer. */
  request(request: ServerRequest): void;
  /** The server sends a notification that is not the progress of a request. */
  notification(notification: NotificationEnvelope): void;
  /** The server is silent, and a liveness probe starts. */
  suspected(): void;
  /** The probe is over: the server answers again. */
  cleared(): void;
  /** The connection is closed because the server cannot be used: it does not answer, or it violates the protocol. */
  unfit(reason: EndedBecause): void;
  /** The server ended by itself. */
  closed(exit: ChildExit): void;
}

/** One request of a server, while it is being answered. */
export interface ServerRequest {
  readonly request: RequestEnvelope;
  /** Answers with a client's answer; only the id and the edits change it. */
  answer(response: ResponseEnvelope, edits: readonly Edit[]): void;
  /** Answers with a result of the gateway's own, as JSON. */
  succeed(result: Uint8Array): void;
  fail(error: RpcError): void;
  /** Forwards a client's progress under the token that the server chose. */
  progress(notification: NotificationEnvelope, edits: readonly Edit[]): void;
}
