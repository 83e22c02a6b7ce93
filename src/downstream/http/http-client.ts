import { randomInt } from 'node:crypto';
import type { FeedConnection, MessageFeed } from '../../wire/io/message-feed.js';
import type { Backpressure, ClientBackpressure } from '../../wire/io/streams/backpressure.js';
import { readText } from '../../wire/json/json-text.js';
import { isRecord, parseJson } from '../../wire/json/json-value.js';
import { type SplicedMessage, splice } from '../../wire/json/splice.js';
import {
  type Answer,
  type MessageSink,
  notificationMessage,
  type RpcError,
  requestMessage,
  unedited,
} from '../../wire/jsonrpc/message.js';
import { type Envelope, type Rejection, type RequestEnvelope, scanOwn } from '../../wire/mcp/envelope.js';
import { LISTS, METHODS } from '../../wire/mcp/methods.js';
import type { MirroredParam } from '../../wire/mcp/mirrored-params.js';
import type { ClientOrigin, User } from '../port.js';
import { type ChooseEra, EraSessions, type OpenReply, type ReplyChannel, type TransportSession } from '../transport.js';
import type { SessionState } from './session-records.js';

/** The sender of a request, as its token proves. */
export interface Caller {
  /** Identifies the subject: a user, or all holders of the shared token. Sessions and their state belong to it. */
  readonly principal: string;
  /** Absent with the shared token and without authentication. */
  readonly user?: User;
  /** Time at which the token ends, in milliseconds on the clock. Absent for a token that does not end. */
  readonly tokenEndsAt?: number;
}

/** The part of the gateway that the transport uses besides sessions. */
interface HttpGateway {
  /** Returns the endpoint that serves a user who asks for this one; `undefined` if the endpoint is closed to the user. */
  readonly endpointFor?:
    | ((endpoint: string | undefined, user: User) => { readonly endpoint: string | undefined } | undefined)
    | undefined;
  /** Names in lower case of the headers of clients that servers get. */
  readonly passedHeaders?: (() => readonly string[]) | undefined;
  /** Whether the first start of every server has ended. */
  isReady(): boolean;
  /** Ends the subscriptions of clients without a session, so that they subscribe elsewhere. */
  endSubscriptions(): void;
  /** The principals with processes of their own, which may have no clients at the moment. */
  principals(): ReadonlySet<string>;
  /** Ends the processes that no client uses, and that are kept for clients of this principal. */
  endKept(principal: string): void;
}

export interface HttpSessionPort extends HttpGateway {
  /** Whether this message, sent without a session id, opens a session. */
  beginsSession(message: Envelope): boolean;
  /** Whether messages like this one belong to no session, whatever session id they carry. */
  isSessionless(message: Envelope | Rejection): boolean;
  /** Returns the error for a request without a session; `undefined` if the request opens a session or needs none. */
  refusalWithoutSession(request: RequestEnvelope): RpcError | undefined;
  /** Returns the name of the process that has the task or the suspended call of a message. The name is not verified. */
  instanceIn(message: Envelope | Rejection): string | undefined;
  /**
   * Opens a session. `endpoint` is `undefined` for `/mcp`, the server's key for `/mcp/<key>`, or `endpointOfView` for `/mcp/v/<name>`.
   * Returns `undefined` if there is no such server or view. `onGone` is called when the server or view is removed from the configuration.
   * `isResumed` is set if another process may have sent requests to the client in this session.
   */
  openSession(
    endpoint: string | undefined,
    caller: Caller,
    onGone: () => void,
    isResumed?: boolean,
  ): HttpClientSession | undefined;
}

export interface HttpClientSession {
  /**
   * Takes the message or the batch of one body. If the body is not JSON-RPC or the batch is refused, returns the error
   * to send instead of answers.
   */
  receive(message: Envelope | Rejection, openReply: OpenReply): Answer | undefined;
  /** Shows the recordings a message that goes to the client in the response to a POST. */
  passing(message: SplicedMessage): void;
  /** Parameters that this call must repeat in its headers. */
  mirroredParams(call: RequestEnvelope): readonly MirroredParam[];
  /** Sets the stream for unsolicited messages; `undefined` after the client closed it. */
  attach(stream: MessageSink | undefined): void;
  /**
   * Resumes a session of another process. Repeats the handshake, without an answer to the client. `initialize` is the params as
   * JSON. Then repeats the log level and the subscriptions of `state`. Notifies the client of the lists and these resources,
   * because they may have changed. Resolves with whether the handshake succeeded.
   */
  restore(initialize: Uint8Array, state?: SessionState): Promise<boolean>;
  /** The negotiated revision, once known. */
  readonly revision: string | undefined;
  /** Whether a variable of the user has changed since the session was opened. */
  readonly isOutdated: boolean;
  close(): void;
}

interface HttpClientsOptions extends HttpGateway, SharedParts {
  readonly hasServer: (key: string) => boolean;
  readonly hasView: (name: string) => boolean;
}

interface SharedParts {
  readonly chooseEra: ChooseEra;
  readonly backpressure: Backpressure;
  readonly messages: MessageFeed;
  /** Returns the variables of a user, with which the user's servers run. Returns the same object until one changes. */
  readonly originOf?: ((user: User) => ClientOrigin) | undefined;
}

/** Opens the sessions behind the HTTP endpoints: `/mcp` serves all servers, `/mcp/<key>` one, `/mcp/v/<name>` a view. */
export function createHttpClients(options: HttpClientsOptions): HttpSessionPort {
  const { chooseEra, hasServer, hasView } = options;
  return {
    ...options,
    beginsSession: (message) => chooseEra(message, () => false).beginsSession(message),
    isSessionless: (message) => !chooseEra(message, () => false).needsSession,
    refusalWithoutSession: (request) => chooseEra(request, () => false).refusalWithoutSession(request),
    instanceIn: (message) => chooseEra(message, () => false).instanceIn?.(message),
    openSession: (endpoint, { principal, user }, onGone, isResumed = false) => {
      const view = viewAt(endpoint);
      const server = view === undefined ? endpoint : undefined;
      if ((view !== undefined && !hasView(view)) || (server !== undefined && !hasServer(server))) return undefined;
      return new HttpClient({ ...options, principal, ...(user && { user }), server, view, onGone, isResumed });
    },
  };
}

/** Prefix of the endpoints of views. No key of a server contains a slash. */
const VIEWS = 'v/';

export function endpointOfView(name: string): string {
  return `${VIEWS}${name}`;
}

/** The name of the view, if this is the endpoint of one. */
export function viewAt(endpoint: string | undefined): string | undefined {
  return endpoint?.startsWith(VIEWS) === true ? endpoint.slice(VIEWS.length) : undefined;
}

interface HttpClientOptions extends Caller, SharedParts {
  readonly server: string | undefined;
  readonly view: string | undefined;
  readonly onGone: () => void;
  readonly isResumed: boolean;
}

/**
 * Ids of server requests in a resumed session begin at random, so that a late answer to a request of an earlier process is
 * no answer to a request of this one. They fit into a signed integer of 32 bits.
 */
const MIN_RESUMED_ID = 2 ** 20;
const MAX_RESUMED_ID = 2 ** 30;

/** Id of the requests that a session repeats in place of its client, which does not use negative ids. */
const OWN_ID = -1;

/** One client's HTTP session. Unsolicited messages wait in a buffer while the client has no GET stream open. */
class HttpClient implements HttpClientSession, TransportSession {
  readonly principal: string;
  readonly server: string | undefined;
  readonly view: string | undefined;
  readonly firstRequestId: number | undefined;
  readonly user: User | undefined;
  readonly origin: ClientOrigin | undefined;
  readonly #options: HttpClientOptions;
  readonly #sessions: EraSessions;
  readonly #connection: FeedConnection;
  readonly #unsolicited = new UnsolicitedBuffer();
  /** While this client is connected, the servers never pause, because its streams are cut if it does not read. */
  readonly #backpressure: ClientBackpressure;
  #stream: MessageSink | undefined;
  #onClosed: () => void = () => {};

  constructor(options: HttpClientOptions) {
    this.#options = options;
    this.principal = options.principal;
    this.server = options.server;
    this.view = options.view;
    this.firstRequestId = options.isResumed ? randomInt(MIN_RESUMED_ID, MAX_RESUMED_ID) : undefined;
    this.user = options.user;
    this.origin = options.user && options.originOf?.(options.user);
    this.#backpressure = options.backpressure.client();
    this.#sessions = new EraSessions(options.chooseEra, this);
    const client = () => this.#sessions.profile?.clientInfo;
    this.#connection = { number: options.messages.nextConnection(), server: options.server, client };
  }

  get revision(): string | undefined {
    return this.#sessions.revision;
  }

  get isListening(): boolean {
    return this.#stream !== undefined;
  }

  get isOutdated(): boolean {
    const { user, originOf } = this.#options;
    return user !== undefined && originOf !== undefined && originOf(user) !== this.origin;
  }

  receive(message: Envelope | Rejection, openReply: OpenReply): Answer | undefined {
    const { messages } = this.#options;
    if (messages.isObserved) messages.passed('c>g', unedited(message.bytes), this.#connection);
    const waitsForTask = message.kind === 'request' && message.method === METHODS.taskResult;
    return this.#sessions.receive(message, (answers, isBatch) => {
      const reply = openReply(answers, isBatch);
      // Without a GET stream, the client gets the server requests of its tasks when it waits for the result of a task.
      if (waitsForTask) this.#unsolicited.flushTo(reply);
      return reply;
    });
  }

  async restore(initialize: Uint8Array, { level, uris }: SessionState = { uris: [] }): Promise<boolean> {
    const answer = await new Promise<Uint8Array | undefined>((resolve) => {
      this.#onClosed = () => resolve(undefined);
      this.#receiveOwn(requestMessage(OWN_ID, METHODS.initialize, initialize), (answered) =>
        resolve(answered && splice(answered)),
      );
    });
    if (answer === undefined || this.#sessions.isClosed || this.revision === undefined) return false;
    this.#receiveOwn(notificationMessage(METHODS.initialized));
    for (const changed of changesOf(answer)) this.send(notificationMessage(changed));
    if (level !== undefined) this.#receiveOwn(requestMessage(OWN_ID, METHODS.setLevel, { level }));
    for (const uri of uris) {
      this.#receiveOwn(requestMessage(OWN_ID, METHODS.subscribe, { uri }), (answered) => {
        // The server did not report changes between the two subscriptions.
        if (answered !== undefined && answered.errorCode === undefined)
          this.send(notificationMessage(METHODS.resourceUpdated, { uri }));
      });
    }
    return true;
  }

  /** Takes a message in place of the client, which does not get the answer. */
  #receiveOwn(message: SplicedMessage, answered: (answer: Answer | undefined) => void = () => {}): void {
    this.receive(scanOwn(splice(message)), () => silentReply(answered));
  }

  passing(message: SplicedMessage): void {
    const { messages } = this.#options;
    if (messages.isObserved) messages.passed('g>c', message, this.#connection);
  }

  mirroredParams(call: RequestEnvelope): readonly MirroredParam[] {
    return this.#sessions.of(call).mirroredParams?.(call) ?? [];
  }

  attach(stream: MessageSink | undefined): void {
    this.#stream = stream;
    if (stream !== undefined) this.#unsolicited.flushTo(stream);
  }

  send(message: SplicedMessage): void {
    this.passing(message);
    if (this.#stream === undefined) this.#unsolicited.add(message);
    else this.#stream.send(message);
  }

  gone(): void {
    this.#options.onGone();
  }

  close(): void {
    this.#sessions.close();
    this.#backpressure.close();
    this.#onClosed();
  }
}

/** The channel of a request that the client has not sent. */
function silentReply(answered: (answer: Answer | undefined) => void): ReplyChannel {
  return {
    isShared: false,
    isDisconnected: true,
    unwrittenBytes: 0,
    send: () => {},
    answer: (message) => {
      answered(message);
      message.lease?.release();
    },
    withdraw: () => answered(undefined),
    onAbandoned: () => {},
  };
}

/** The notifications about the lists that a server declares in its answer to `initialize`. */
function changesOf(answer: Uint8Array): readonly string[] {
  const message = parseJson(new TextDecoder().decode(answer));
  const result = isRecord(message) && isRecord(message.result) ? message.result : {};
  const declared = isRecord(result.capabilities) ? result.capabilities : {};
  const kinds = Object.values(LISTS).filter(({ capability }) => {
    const list = declared[capability];
    return isRecord(list) && list.listChanged === true;
  });
  return [...new Set(kinds.map(({ changed }) => changed))];
}

const LIST_CHANGED = /^notifications\/\w+\/list_changed$/;

const DEFINED_CHANGES: ReadonlySet<string> = new Set(Object.values(LISTS).map(({ changed }) => changed));

/** Methods of notifications that are sent only once and that a client waits for. */
const BUFFERED: ReadonlySet<string> = new Set([
  METHODS.cancelled,
  METHODS.elicitationComplete,
  METHODS.taskStatus,
  METHODS.resourceUpdated,
]);

/**
 * Limit of the buffered notifications, without the list changes that MCP defines. A client that missed more
 * notifications has to read everything again anyway.
 */
const MAX_NOTIFICATIONS = 256;

/**
 * Buffers unsolicited messages while the client has no GET stream open: server requests, list changes, and a bounded
 * number of the notifications that a client waits for. All other messages are dropped.
 */
export class UnsolicitedBuffer {
  /**
   * Buffered messages by key. The key of a server request is its id, so that a cancellation removes the request. The
   * key of a list change is its method, so that only the latest stays. The key of other notifications is their text.
   */
  readonly #messages = new Map<string, SplicedMessage>();
  #notifications = 0;

  add(message: SplicedMessage): void {
    const bytes = splice(message);
    const scanned = scanOwn(bytes);
    // The era session limits the number of server requests that wait at once.
    if (scanned.kind === 'request') this.#messages.set(requestKey(readText(bytes, scanned.id)), unedited(bytes));
    if (scanned.kind !== 'notification') return;
    const { requestId } = scanned.tokens;
    const isCancellation = scanned.method === METHODS.cancelled && requestId !== undefined;
    if (isCancellation && this.#messages.delete(requestKey(readText(bytes, requestId)))) return;
    const { method } = scanned;
    const isListChange = LIST_CHANGED.test(method);
    if (!isListChange && !BUFFERED.has(method)) return;
    const key = isListChange ? method : new TextDecoder().decode(bytes);
    if (!DEFINED_CHANGES.has(method) && !this.#messages.has(key)) {
      this.#notifications += 1;
      if (this.#notifications > MAX_NOTIFICATIONS) return;
    }
    this.#messages.set(key, unedited(bytes));
  }

  /** Sends all buffered messages in order and empties the buffer. */
  flushTo(stream: MessageSink): void {
    for (const message of this.#messages.values()) stream.send(message);
    this.#messages.clear();
    this.#notifications = 0;
  }
}

function requestKey(id: string): string {
  return `request ${id}`;
}
