import type { Caller, HttpClientSession, HttpSessionPort } from '../../../src/downstream/http/http-client.js';
import type { SessionState } from '../../../src/downstream/http/session-records.js';
import type { OpenReply, ReplyChannel } from '../../../src/downstream/transport.js';
import type { SplicedMessage } from '../../../src/wire/json/splice.js';
import {
  type Answer,
  type MessageSink,
  NULL_ID,
  RPC_CODES,
  RpcError,
  rpcErrorMessage,
  unedited,
} from '../../../src/wire/jsonrpc/message.js';
import type { Envelope, Rejection, RequestEnvelope } from '../../../src/wire/mcp/envelope.js';
import type { MirroredParam } from '../../../src/wire/mcp/mirrored-params.js';
import type { Message } from '../../support/wire.js';

export type OnRequest = (message: Message, reply: ReplyChannel, session: ScriptedSession) => void;

/** Plays the core: answers `initialize` and echoes requests. The test can replace the answers. */
export class ScriptedCore implements HttpSessionPort {
  readonly sessions: ScriptedSession[] = [];
  readonly endpoints: (string | undefined)[] = [];
  /** Those who opened the sessions. */
  readonly callers: Caller[] = [];
  readonly servers = new Set<string | undefined>([undefined, 'files', 'v/work']);
  ready = true;
  /** The principals whose kept processes were ended. */
  readonly keptEndings: string[] = [];
  /** How often subscriptions were ended. */
  endings = 0;
  /** Error for requests without sessions. */
  refusal: RpcError | undefined;
  /** Answers `initialize` at once, unless the test calls `answer` later. */
  onInitialize: (answer: () => void, reply: ReplyChannel) => void = (answer) => answer();
  /** Ends the repeated handshake of a resumed session. */
  onRestore: () => Promise<boolean> = () => Promise.resolve(true);
  /** Answers the requests other than `initialize`. */
  onRequest: OnRequest = (message, reply) => {
    reply.answer(json({ jsonrpc: '2.0', id: message.id, result: { echo: message.params } }));
  };

  /** Leaves requests unanswered, each after this message. Returns their channels in the order of the requests. */
  hold(first?: SplicedMessage): ReplyChannel[] {
    const replies: ReplyChannel[] = [];
    this.onRequest = (_, reply) => {
      replies.push(reply);
      if (first !== undefined) reply.send(first);
    };
    return replies;
  }

  beginsSession(message: Envelope): boolean {
    return message.kind === 'request' && message.method === 'initialize';
  }

  isSessionless(message: Envelope | Rejection): boolean {
    return (message.kind === 'request' || message.kind === 'notification') && message.tokens.eraVersion !== undefined;
  }

  refusalWithoutSession({ method, tokens }: RequestEnvelope): RpcError | undefined {
    if (tokens.eraVersion !== undefined) return this.refusal;
    return method === 'unheard/of'
      ? new RpcError(RPC_CODES.methodNotFound, 'unheard of')
      : new RpcError(-32602, 'begin');
  }

  /** The process that messages name. */
  instanceIn: () => string | undefined = () => undefined;

  /** Names of the headers of clients that servers get. */
  passedHeaders?: () => readonly string[];

  /** Which endpoints are open to a user. All are if absent. */
  endpointFor?: HttpSessionPort['endpointFor'];

  openSession(
    endpoint: string | undefined,
    caller: Caller,
    onGone = () => {},
    isResumed = false,
  ): ScriptedSession | undefined {
    this.endpoints.push(endpoint);
    this.callers.push(caller);
    if (!this.servers.has(endpoint)) return undefined;
    const session = new ScriptedSession(this, onGone, isResumed);
    this.sessions.push(session);
    return session;
  }

  isReady(): boolean {
    return this.ready;
  }

  /** The principals with processes. */
  readonly withProcesses = new Set<string>();

  principals(): ReadonlySet<string> {
    return this.withProcesses;
  }

  endKept(principal: string): void {
    this.keptEndings.push(principal);
  }

  endSubscriptions(): void {
    this.endings += 1;
  }

  get last(): ScriptedSession {
    const session = this.sessions.at(-1);
    if (session === undefined) throw new Error('No session was opened');
    return session;
  }
}

export class ScriptedSession implements HttpClientSession {
  readonly bodies: string[] = [];
  readonly attached: (MessageSink | undefined)[] = [];
  revision: string | undefined;
  isOutdated = false;
  closed = 0;
  onClose: () => void = () => {};
  /** Called with the attached stream, unchanged. */
  onAttach: (stream: MessageSink | undefined) => void = () => {};
  /** Parameters that calls repeat in headers. */
  mirroredParams = (): readonly MirroredParam[] => [];
  /** Reports that the server or view of the session was removed. */
  readonly onGone: () => void;
  readonly isResumed: boolean;
  /** The params of the repeated handshakes. */
  readonly restored: Message[] = [];
  /** The settings of its client from before it was resumed. */
  state: SessionState | undefined;
  readonly #core: Pick<ScriptedCore, 'onInitialize' | 'onRequest' | 'onRestore'>;

  constructor(
    core: Pick<ScriptedCore, 'onInitialize' | 'onRequest' | 'onRestore'>,
    onGone: () => void,
    isResumed: boolean,
  ) {
    this.onGone = onGone;
    this.isResumed = isResumed;
    this.#core = core;
  }

  async restore(initialize: Uint8Array, state?: SessionState): Promise<boolean> {
    this.state = state && { ...(state.level !== undefined && { level: state.level }), uris: state.uris };
    const params: Message = JSON.parse(Buffer.from(initialize).toString());
    this.restored.push(params);
    const isRestored = await this.#core.onRestore();
    if (isRestored) this.revision = params.protocolVersion;
    return isRestored;
  }

  get stream(): MessageSink | undefined {
    return this.attached.at(-1);
  }

  passing(): void {}

  receive(envelope: Envelope | Rejection, openReply: OpenReply): Answer | undefined {
    const text = Buffer.from(envelope.bytes).toString();
    this.bodies.push(text);
    let parsed: Message | Message[];
    try {
      parsed = JSON.parse(text);
    } catch {
      return rpcErrorMessage(NULL_ID, new RpcError(RPC_CODES.parseError, 'Not JSON'));
    }
    const requests = [parsed].flat().filter((message) => message.method !== undefined && message.id !== undefined);
    const reply = openReply(requests.length, Array.isArray(parsed));
    for (const message of requests) {
      if (message.method === 'initialize') this.#core.onInitialize(() => this.#initialize(message, reply), reply);
      else this.#core.onRequest(message, reply, this);
    }
    if (requests.length === 0) reply.withdraw();
    return undefined;
  }

  attach(stream: MessageSink | undefined): void {
    this.attached.push(stream);
    this.onAttach(stream);
  }

  close(): void {
    this.closed += 1;
    this.onClose();
  }

  #initialize(message: Message, reply: ReplyChannel): void {
    this.revision = message.params.protocolVersion;
    const serverInfo = { name: 'scripted', version: '1' };
    const result = { protocolVersion: this.revision, capabilities: { tools: {} }, serverInfo };
    reply.answer(json({ jsonrpc: '2.0', id: message.id, result }));
  }
}

export function json(message: Message | string): SplicedMessage {
  return unedited(Buffer.from(typeof message === 'string' ? message : JSON.stringify(message)));
}
