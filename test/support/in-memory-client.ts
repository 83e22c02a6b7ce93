import { type Failure, failureError, failureResult } from '../../src/downstream/failure.js';
import type {
  CallEnd,
  ClientFacts,
  DownstreamClient,
  Exchange,
  GatewayPort,
  GatewaySession,
  InputRequest,
  WithdrawInput,
} from '../../src/downstream/port.js';
import { type Span, valuesAt } from '../../src/wire/json/json-text.js';
import { type Edit, type SplicedMessage, splice, type TokenText } from '../../src/wire/json/splice.js';
import { RpcError, unedited } from '../../src/wire/jsonrpc/message.js';
import type { NotificationEnvelope, ResponseEnvelope } from '../../src/wire/mcp/envelope.js';
import type { ListKind } from '../../src/wire/mcp/methods.js';
import type { RelayedRequest } from '../../src/wire/mcp/relayed-request.js';
import { bytesOf, type Message, notificationOf } from './wire.js';

export interface InMemoryClientOptions {
  readonly principal?: string;
  readonly revision?: string;
  readonly clientInfo?: Message;
  readonly capabilities?: Message;
  readonly server?: string;
}

/**
 * A client that implements the port and nothing else: it has no transport, no protocol era and no JSON-RPC. Requests
 * are methods with params, and everything that the gateway tells the client is recorded.
 */
export class InMemoryClient implements DownstreamClient {
  readonly hasSession = true;
  readonly principal: string;
  readonly revision: string;
  readonly changed: ListKind[] = [];
  /** Unsolicited notifications, byte for byte except for the edits. */
  readonly notifications: string[] = [];
  /** Input that no request of the client caused. */
  readonly inputs: ReceivedInput[] = [];
  isGone = false;
  takesPings = false;
  readonly #facts: ClientFacts;
  readonly #inFlight = new Set<InMemoryExchange>();
  #session: GatewaySession | undefined;

  constructor({ principal, revision, clientInfo, capabilities, server }: InMemoryClientOptions = {}) {
    this.principal = principal ?? 'somebody';
    this.revision = revision ?? '2025-11-25';
    const profile = { protocolVersion: this.revision, clientInfo: clientInfo ?? {}, capabilities: capabilities ?? {} };
    this.#facts = { profile, server };
  }

  /** Opens a session with the gateway. */
  static open(gateway: GatewayPort, options?: InMemoryClientOptions): InMemoryClient {
    const client = new InMemoryClient(options);
    client.#session = gateway.open(client, client.#facts);
    return client;
  }

  get inFlight(): number {
    return this.#inFlight.size;
  }

  sessionReplaced(session: GatewaySession): void {
    this.#session = session;
  }

  get session(): GatewaySession {
    if (this.#session === undefined) throw new Error('The client has no session');
    return this.#session;
  }

  request(method: string, params?: Message): InMemoryExchange {
    const exchange = new InMemoryExchange(method, params, this);
    this.#inFlight.add(exchange);
    this.session.serve(exchange);
    return exchange;
  }

  call(name: string, members: Message = {}): InMemoryExchange {
    return this.request('tools/call', { name, ...members });
  }

  notify(notification: NotificationEnvelope, edits: readonly Edit[] = []): void {
    this.notifications.push(textOf({ ...notification, edits }));
  }

  /** Tells the gateway something. */
  say(method: string, params?: Message): void {
    this.session.notified(notificationOf({ jsonrpc: '2.0', method, params }));
  }

  listChanged(kind: ListKind): void {
    this.changed.push(kind);
  }

  listAnnounced(_kind: ListKind, notification: NotificationEnvelope): void {
    this.notify(notification);
  }

  requireInput(input: InputRequest): WithdrawInput {
    return receive(input, this.inputs);
  }

  gone(): void {
    this.isGone = true;
  }

  ending(): void {}

  /** The client leaves: its requests are cancelled and its session ends. */
  close(): void {
    for (const exchange of this.#inFlight) exchange.cancel();
    for (const { input, isWithdrawn } of this.inputs) if (!isWithdrawn) input.fail(new RpcError(-32603, 'left'));
    this.session.close();
  }
}

/** Input that a server asked the client for. */
export interface ReceivedInput {
  readonly input: InputRequest;
  readonly method: string;
  readonly params: Message | undefined;
  isWithdrawn: boolean;
}

function receive(input: InputRequest, inputs: ReceivedInput[]): WithdrawInput {
  const { request, edits } = input;
  const message = JSON.parse(textOf(request.message(idText('0'), edits)));
  const received: ReceivedInput = { input, method: request.method, params: message.params, isWithdrawn: false };
  inputs.push(received);
  return () => {
    received.isWithdrawn = true;
  };
}

/** A request that never was a JSON-RPC message: the gateway gets its params, and its text only under another id. */
class InMemoryRequest implements RelayedRequest {
  readonly method: string;
  readonly bytes: Uint8Array;
  readonly params: Span | undefined;
  readonly tokens: RelayedRequest['tokens'];
  readonly progressToken: Span | undefined;

  /** `params` as text is raw JSON. */
  constructor(method: string, params: Message | string | undefined) {
    const text = typeof params === 'string' ? params : JSON.stringify(params ?? {});
    this.method = method;
    this.bytes = bytesOf(text);
    const span = { start: 0, end: this.bytes.length };
    this.params = params === undefined ? undefined : span;
    const at = (...path: string[]): Span | undefined => valuesAt(this.bytes, span, path)[0];
    this.progressToken = at('_meta', 'progressToken');
    this.tokens = {
      name: at('name'),
      uri: at('uri'),
      arguments: at('arguments'),
      refName: at('ref', 'name'),
      refUri: at('ref', 'uri'),
      cursor: at('cursor'),
      taskId: at('taskId'),
      task: at('task'),
      relatedTask: at('_meta', 'io.modelcontextprotocol/related-task', 'taskId'),
      level: at('level'),
      mode: at('mode'),
      elicitationId: at('elicitationId'),
      eraClientInfo: at('_meta', 'io.modelcontextprotocol/clientInfo'),
      eraCapabilities: at('_meta', 'io.modelcontextprotocol/clientCapabilities'),
      eraVersion: at('_meta', 'io.modelcontextprotocol/protocolVersion'),
      eraLogLevel: at('_meta', 'io.modelcontextprotocol/logLevel'),
      requestMeta: at('_meta'),
      inputResponses: at('inputResponses'),
      requestState: at('requestState'),
      notifications: at('notifications'),
      status: at('status'),
      requestProgressToken: this.progressToken,
      subscriptionId: at('_meta', 'io.modelcontextprotocol/subscriptionId'),
      protocolVersion: at('protocolVersion'),
      progressToken: at('progressToken'),
      progress: at('progress'),
      capabilities: at('capabilities'),
      clientInfo: at('clientInfo'),
      requestId: at('requestId'),
    };
  }

  message({ text, part }: TokenText, edits: readonly Edit[]): SplicedMessage {
    const { length } = this.bytes;
    const id = Buffer.from(text.subarray(part.start, part.end)).toString();
    const head = `{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(this.method)}`;
    if (this.params === undefined) {
      const whole = bytesOf(`${head}}`);
      return { bytes: whole, span: { start: 0, end: whole.length }, edits: [] };
    }
    const own: Edit[] = [
      { span: { start: 0, end: 0 }, text: bytesOf(`${head},"params":`) },
      { span: { start: length, end: length }, text: bytesOf('}') },
    ];
    if (this.progressToken !== undefined) own.push({ span: this.progressToken, text, part });
    return { bytes: this.bytes, span: { start: 0, end: length }, edits: [...own, ...edits] };
  }
}

/** An exchange that records what happens to its request. */
export class InMemoryExchange implements Exchange {
  readonly requestId = '1';
  readonly request: RelayedRequest;
  readonly client: DownstreamClient;
  readonly wantsProgress: boolean;
  logLevel: Exchange['logLevel'];
  takesInputRequests = false;
  elicited: readonly ('form' | 'url')[] = [];
  allowed: string | undefined;
  elicits = (mode: 'form' | 'url') => this.elicited.includes(mode);
  isSuspended = false;
  /** The raw result or error: of the server, or of the gateway. At most one. */
  readonly answers: string[] = [];
  /** The progress values. */
  readonly reports: number[] = [];
  /** Other messages that travelled with the answer. */
  readonly sent: string[] = [];
  /** Input that servers asked for because of this request. */
  readonly inputs: ReceivedInput[] = [];
  /** The backends that the request went to. */
  readonly sources: string[] = [];
  /** Leases of the request while it was written to servers. */
  readonly leases: string[] = [];
  keepsProgress = false;
  isCancelled = false;
  trail: Exchange['trail'];
  #onCancel: (notification?: NotificationEnvelope) => void = () => {};

  constructor(
    method = 'tools/call',
    params: Message | string | undefined = { name: 'read' },
    client?: DownstreamClient,
  ) {
    const request = new InMemoryRequest(method, params);
    this.request = request;
    this.wantsProgress = request.progressToken !== undefined;
    this.client = client ?? new InMemoryClient();
  }

  get conversation(): object {
    return this.client;
  }

  get received(): SplicedMessage {
    return unedited(this.request.bytes);
  }

  get isSettled(): boolean {
    return this.answers.length > 0 || this.isCancelled;
  }

  /** The answer as a value. */
  get value(): Message | undefined {
    const [answer] = this.answers;
    return answer === undefined ? undefined : JSON.parse(answer);
  }

  /** The facts of the failure, if the gateway answered a tool call with one. */
  get failure(): Message | undefined {
    return this.value?._meta?.['trunkline/failure'];
  }

  route(source: string): void {
    this.sources.push(source);
  }

  leaseRequest(): { release(): void } {
    this.leases.push('leased');
    return { release: () => void this.leases.push('released') };
  }

  answer(response: ResponseEnvelope, edits: readonly Edit[] = []): void {
    const { bytes, span, result, error } = response;
    const answer = textOf({ bytes, span: result ?? error ?? { start: 0, end: 0 }, edits });
    this.#settle(answer, { response, message: { bytes, span, edits } });
  }

  succeed(result: Uint8Array): void {
    this.#settle(Buffer.from(result).toString(), { result, message: unedited(result) });
  }

  fail(failure: RpcError | Failure): void {
    const isTool = !(failure instanceof RpcError) && this.request.method === 'tools/call';
    const error = failure instanceof RpcError ? failure : failureError(failure);
    const answer = isTool ? Buffer.from(failureResult(failure)).toString() : JSON.stringify(error);
    this.#settle(answer, { failure, message: unedited(bytesOf(answer)) });
  }

  progress({ bytes, tokens }: NotificationEnvelope): void {
    const { progress } = tokens;
    if (progress === undefined || (this.isSettled && !this.keepsProgress)) return;
    this.reports.push(Number(Buffer.from(bytes.subarray(progress.start, progress.end))));
  }

  keepProgress(): () => void {
    this.keepsProgress = true;
    return () => {
      this.keepsProgress = false;
    };
  }

  send(message: SplicedMessage): void {
    if (!this.isSettled) this.sent.push(textOf(message));
  }

  requireInput(input: InputRequest): WithdrawInput {
    return this.isSettled ? this.client.requireInput(input) : receive(input, this.inputs);
  }

  onCancel(listener: (notification?: NotificationEnvelope) => void): void {
    this.#onCancel = listener;
  }

  cancel(notification?: NotificationEnvelope): void {
    if (this.isSettled) return;
    this.isCancelled = true;
    this.#onCancel(notification);
    this.trail?.ended(CANCELLED);
  }

  #settle(answer: string, end: Partial<CallEnd>): void {
    if (this.isSettled) return;
    this.answers.push(answer);
    this.trail?.ended({ ...CANCELLED, ...end });
  }
}

const CANCELLED: CallEnd = { response: undefined, result: undefined, failure: undefined, message: undefined };

/** An id as the upstream side writes it. */
function idText(id: string): TokenText {
  const text = bytesOf(id);
  return { text, part: { start: 0, end: text.length } };
}

function textOf({ bytes, span, edits }: SplicedMessage): string {
  return Buffer.from(splice({ bytes, span, edits })).toString();
}
