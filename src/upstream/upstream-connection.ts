import type { ChildExit, Launched, LaunchFault } from '../spec/launch.js';
import type { ResourceLimits } from '../spec/server-rules.js';
import type { ServerSpec } from '../spec/server-spec.js';
import type { ByteReader } from '../wire/io/byte-reader.js';
import type { Span } from '../wire/json/json-text.js';
import type { Edit, SplicedMessage } from '../wire/json/splice.js';
import type { RpcError } from '../wire/jsonrpc/message.js';
import type { NotificationEnvelope, RequestEnvelope, ResponseEnvelope } from '../wire/mcp/envelope.js';
import type { ClientProfile, ServerDescription } from '../wire/mcp/handshake.js';
import type { CloseReason, EndedBecause, Outcome } from '../wire/mcp/outcome.js';
import type { InputRequest, RelayedRequest, WithdrawInput } from '../wire/mcp/relayed-request.js';
import type { ServerEra } from './server-era.js';

/*
 * The port to the servers. A transport implements `Dialer` and `Channel`. A `Dialect` (`dialect.ts`), one for each protocol
 * era, performs the handshake over the channel and makes the `UpstreamConnection`. The gateway implements
 * `UpstreamListener`. The life of one connection:
 *
 * 1. The supervisor asks for a launch, and the gateway calls `Dialer.dial`. The call returns at once.
 * 2. The transport waits for the profile of the client, reports `handshakeStarted`, and performs the handshake.
 * 3. `Dialed.connection` resolves with the connection or with the reason of the failure.
 * 4. The gateway sends requests to the server. The transport reports the server's own messages to the listener.
 * 5. The connection ends: the server exits (`closed`), or the gateway calls `Dialed.end` or `UpstreamConnection.close`.
 *    Each request in flight is settled with a failure. A closed connection is never used again. The next launch makes
 *    another connection, with the next generation.
 */

/** Connects to servers. There is one implementation for each transport. */
export interface Dialer<Spec extends ServerSpec = ServerSpec> {
  /** Starts to connect. Returns at once and never throws. A failure resolves `Dialed.connection`. */
  dial(target: DialTarget<Spec>, listener: UpstreamListener): Dialed;
}

export interface DialTarget<Spec extends ServerSpec = ServerSpec> extends LaunchPlace {
  readonly spec: Spec;
  /** Counts the launches of this server. */
  readonly generation: number;
}

/** The facts about a server that are the same for all of its launches. */
export interface LaunchPlace {
  /** Description of the client for the handshake. The handshake starts when the promise resolves. */
  readonly profile: Promise<ClientProfile>;
  /** The protocol era of the server, as far as it is known. */
  readonly era: ServerEra;
  readonly log: ServerLog;
  /** The largest message that the server may send, in bytes. */
  readonly maxFrameBytes: number;
  /** Limit of the bytes that the server has not read. Beyond the limit, messages wait; `overloaded` in `RequestFailure` says how long. */
  readonly maxUnwrittenBytes: number;
  /** Returns the present limits of the server's processes. Absent without limits. */
  readonly limits?: () => ResourceLimits;
}

/** Log of one server: its stderr, and those lines of its stdout that are not protocol messages. */
interface ServerLog {
  add(line: string): void;
  /** Adds output that is not a message. Decodes it only if the log has room. */
  addJunk(bytes: Uint8Array, reason: string): void;
  readonly stderr: ByteReader;
  /** Ends the log at the end of stderr. Logs an unfinished line as a line. */
  end(): void;
}

/** A connection from the start of the dial to the end of the server's processes. A remote server has no pid. */
export interface Dialed extends Launched {
  /** Rejects only with an internal error. */
  readonly connection: Promise<DialOutcome>;
}

/**
 * Returns at once, and dials later: `begin` resolves with the dial, or with its failure. `isEnded` returns whether the caller has
 * ended the connection meanwhile.
 */
export function dialLater(begin: (isEnded: () => boolean) => Promise<Dialed | DialOutcome>): Dialed {
  let dialed: Dialed | undefined;
  let isEnded = false;
  const begun = begin(() => isEnded).then((found) => {
    dialed = 'end' in found ? found : undefined;
    return found;
  });
  return {
    get pid() {
      return dialed?.pid;
    },
    connection: begun.then((found) => ('end' in found ? found.connection : found)),
    end: async (ladder) => {
      isEnded = true;
      await begun.catch(() => {});
      await dialed?.end(ladder);
    },
  };
}

export type DialOutcome =
  | { readonly kind: 'open'; readonly connection: UpstreamConnection }
  | {
      readonly kind: 'failed';
      readonly reason: string;
      /** Party at fault. The default is the server. */
      readonly fault?: LaunchFault;
      /** Pause that the server wants before the next attempt, in milliseconds. */
      readonly retryAfterMs?: number | undefined;
      /** Whether the server answered the handshake with an error or with an unknown revision. */
      readonly isRefused?: boolean;
    };

/** The server's description of itself in the handshake, verbatim. */
export interface HandshakeAnswer {
  readonly capabilities: Readonly<Record<string, unknown>>;
  readonly instructions: string | undefined;
  readonly serverInfo: ServerDescription;
}

/** Source of the lists of a server: its connection, or the catalogue of an earlier run. */
export interface ListSource extends HandshakeAnswer {
  /** The protocol revision that the handshake agreed on. */
  readonly revision: string;
  /** Whether the server declared a capability, such as `tools` or `resources.subscribe`. */
  offers(capability: string): boolean;
  /** Sends a request of the gateway's own. `params` must be serializable, or bytes of JSON. */
  request(method: string, params: unknown, timeouts: RequestTimeouts): Promise<Outcome>;
}

/** The traffic of one connection, without the rules of any protocol era. */
export interface Traffic {
  readonly counters: Readonly<DropCounters>;
  /** Number of requests without an answer. Requests without a deadline do not count. */
  readonly inFlight: number;
  /** Total time for which the gateway did not read the server, because the server flooded it, in milliseconds. */
  readonly pausedMs: number;
  readonly isClosed: boolean;
  /**
   * Sends a client's request. `edits` are the replacements of routing, such as the original name for an exposed name.
   *
   * Settles the handler and returns `undefined` if the request cannot be sent.
   */
  send(
    request: RelayedRequest,
    edits: readonly Edit[],
    timeouts: RequestTimeouts,
    handler: RequestHandler,
  ): SentRequest | undefined;
  /** Sends a client's notification with the edits. Does nothing after the connection is closed. */
  notify(notification: SentNotification, edits?: readonly Edit[]): void;
  /** Sends a request of the gateway's own. `params` must be serializable, or bytes of JSON. */
  request(method: string, params: unknown, timeouts: RequestTimeouts): Promise<Outcome>;
  /**
   * Closes the connection and settles each request in flight with the reason. Calling it again does nothing. `because` is
   * given if the gateway ends the server because of its behavior.
   */
  close(reason: CloseReason, because?: EndedBecause): void;
}

/** One connection to a server after its handshake, the same for all protocol eras. */
export interface UpstreamConnection extends ListSource, Traffic {
  readonly generation: number;
  /** The protocol revision that the gateway requested in the handshake. */
  readonly requestedRevision: string;
  /** The server's result of `initialize`: JSON, verbatim. */
  readonly initializeResult: Uint8Array;
  /** The server's name as JSON, if its revision requires the name in results. */
  readonly nameInResults?: Uint8Array | undefined;
  /**
   * Subscribes to the states of a task of the tasks extension. `taskId` is the server's own id. Calls `settled` once, with
   * `true` if the server agreed. The returned function ends the subscription. Absent for legacy servers, which have none.
   */
  watchTask?(taskId: string, settled: (agreed: boolean) => void): () => void;
}

/** The parts of a notification that a connection needs to send it. */
export interface SentNotification {
  readonly method: string;
  readonly bytes: Uint8Array;
  readonly span: Span;
  /** Edits that remove the members that a legacy server must not get. */
  readonly legacyEdits?: readonly Edit[] | undefined;
}

/** Numbers of the messages that a connection has dropped since it was opened, by kind. */
export type DropCounters = ReturnType<typeof newDropCounters>;

export function newDropCounters() {
  return {
    /** Answers to requests that timed out or were cancelled. */
    late: 0,
    /** Second answers to one request. */
    duplicate: 0,
    /** Answers to requests that were never sent. */
    unknown: 0,
    /** Lines that are not messages, and answers with a malformed result or error. */
    junk: 0,
    /** Messages that were repaired and passed on, because they had bytes that are not UTF-8, or an id that was missing or null. */
    repaired: 0,
    /** Lines that are empty or only white space. */
    blank: 0,
    /** Messages beyond the frame limit. */
    oversized: 0,
    /** Unfinished messages that were dropped, because each was the largest when the memory for them was full. */
    evicted: 0,
    /** Progress notifications whose `progress` does not grow, or that belong to no open request. */
    staleProgress: 0,
    /** Answers to requests of the server that could not be written. */
    unsentReplies: 0,
    /** Sessions that a remote server forgot, and that were replaced. No message is dropped by this. */
    forgottenSessions: 0,
  };
}

/** Time limits of a request, in milliseconds. With `idleMs` and `maxMs` infinite, the request may stay open forever. */
export interface RequestTimeouts {
  /** From the start to the first progress or answer. The default is `idleMs`. */
  readonly firstMs?: number;
  /** From the start, or from the latest progress, to the next progress or the answer. */
  readonly idleMs: number;
  /** From the start to the answer, regardless of progress. */
  readonly maxMs: number;
}

export interface RequestHandler {
  /** Called exactly once. */
  settle(outcome: Outcome): void;
  /** Called with the request in the form in which it is about to be written, each time that it is written. */
  sent?(message: SplicedMessage): void;
  /** Called for each progress notification with a larger `progress` than before. `value` is this `progress`. */
  progress?(notification: NotificationEnvelope, value: number): void;
  /** The lease of a large request's memory. The code that writes the request releases it. */
  readonly lease?: SplicedMessage['lease'];
  /** The latest progress value of an earlier connection. Only larger values are reported. */
  readonly progressed?: number | undefined;
  /**
   * Whether the sender accepts the result `input_required`. Otherwise the connection calls `requireInput` and sends the
   * request again with the input.
   */
  readonly takesInputRequests?: boolean;
  /** Asks the sender for input that the server needs for the request. Absent if the sender cannot be asked. */
  requireInput?(input: InputRequest): WithdrawInput;
  /** Sends the sender a further message that its request caused. Not called after `settle`. */
  send?(message: SplicedMessage): void;
  /**
   * Headers of the HTTP request that carried the sender's request, by lower-case names: those that the configuration passes to this
   * server. Only a server behind a URL gets them.
   */
  readonly passedHeaders?: Readonly<Record<string, string>> | undefined;
  /** Whether an error without an id answers this request. A server may omit the id if it cannot read the request. */
  readonly takesErrorWithoutId?: boolean;
}

export interface SentRequest {
  /** Milliseconds on the clock. */
  readonly sentAt: number;
  /**
   * Settles the request as cancelled and notifies the server. A late answer is dropped.
   *
   * `notice` is the client's own notification. The server gets the reason and the `_meta` of `notice`, with the edits.
   */
  cancel(notice?: NotificationEnvelope, edits?: readonly Edit[]): void;
  /** Reports progress even after an answer that created a task, until the returned function is called. */
  keepProgress(): () => void;
}

export interface ServerMessages {
  /** The server sends a request that only the gateway or a client can answer. */
  request(request: ServerRequest): void;
  /** The server sends a notification that is not the progress of a request. */
  notification(notification: NotificationEnvelope): void;
}

/** Receives the server's own messages, and the reason why its connection becomes unusable. */
export interface ConnectionListener extends ServerMessages {
  /** The gateway gives the connection up, because the server is silent, floods, violates the protocol or exceeds a limit. */
  unfit(reason: EndedBecause): void;
}

/** Receives the server's own messages, and the changes of its connection. */
export interface UpstreamListener extends ConnectionListener {
  /** The handshake starts. The server's start timeout counts from now. */
  handshakeStarted(): void;
  /** The server is silent, and a liveness probe starts. */
  suspected(): void;
  /** The probe is over, because the server answers again. */
  cleared(): void;
  /** The process of the server has exited, by itself or because the gateway ended it. */
  closed(exit: ChildExit): void;
  /** A connection ended, as in `LaunchEvents`. */
  lost(fault: LaunchFault | 'moved', reason: string): void;
}

export interface ServerRequest {
  readonly request: RequestEnvelope;
  /** The sender of the request that caused this one, if the transport shows it. */
  readonly cause?: RequestHandler | undefined;
  /** Answers with a client's answer. Replaces its id and applies the edits. */
  answer(response: ResponseEnvelope, edits: readonly Edit[]): void;
  /** Answers with a result of the gateway's own, as JSON. */
  succeed(result: Uint8Array): void;
  fail(error: RpcError): void;
  /** Forwards a client's progress under the token that the server chose. */
  progress(notification: NotificationEnvelope, edits: readonly Edit[]): void;
}
