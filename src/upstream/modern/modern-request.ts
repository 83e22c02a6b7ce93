import { membersOf, readText, stringAt, toBytes, valuesAt } from '../../wire/json/json-text.js';
import type { Edit, SplicedMessage } from '../../wire/json/splice.js';
import { join, notificationMessage, RPC_CODES, RpcError } from '../../wire/jsonrpc/message.js';
import type { NotificationEnvelope, ResponseEnvelope } from '../../wire/mcp/envelope.js';
import { METHODS } from '../../wire/mcp/methods.js';
import { withoutResultMembers } from '../../wire/mcp/older-revisions.js';
import type { CloseReason, EndedBecause, Outcome } from '../../wire/mcp/outcome.js';
import {
  type AskedInput,
  type InputRequest,
  ownResponse,
  type RelayedRequest,
  readAsked,
  toolError,
  type WithdrawInput,
} from '../../wire/mcp/relayed-request.js';
import { LATEST_LEGACY_REVISION, MODERN_CODES, resourceNotFoundCode } from '../../wire/mcp/revisions.js';
import type { Cancel, Clock } from '../../wire/timing/clock.js';
import type { Channel } from '../dialect.js';
import type { RequestHandler, RequestTimeouts, SentRequest } from '../upstream-connection.js';
import { modernMessage, type RequestMeta, sentText } from './modern-messages.js';

/** Shared by the requests of one connection. */
export interface RequestContext {
  readonly channel: Channel;
  readonly clock: Clock;
  readonly meta: RequestMeta;
  readonly mintId: () => string;
  /** Requests without a message in flight, because they wait for input, or for the pause before they are sent again. */
  readonly suspended: Set<ModernRequest>;
  /** Selects another revision, because the server does not support the present one. Returns `false` if there is none. */
  reselect(response: ResponseEnvelope): boolean;
}

interface ModernRequestOptions {
  readonly request: RelayedRequest;
  readonly edits: readonly Edit[];
  readonly timeouts: RequestTimeouts;
  readonly handler: RequestHandler;
}

/** Limit of the rounds in which one request asks its client for input. */
const MAX_ROUNDS = 10;
/** Pause before a request is sent again without new input. It doubles each time. */
const FIRST_PAUSE_MS = 250;
const MAX_PAUSE_MS = 5_000;

/**
 * One request to a modern server. For a legacy client, it is sent again each time that the server requires input.
 *
 * A modern server requires input with its result. A modern client gets this result unchanged. For a legacy client, the input
 * is requested with server requests, such as `elicitation/create`, and the request is then sent again with the input.
 */
export class ModernRequest implements RequestHandler, SentRequest {
  readonly sentAt: number;
  readonly takesInputRequests = false;
  readonly #context: RequestContext;
  readonly #options: ModernRequestOptions;
  /** The latest send of the request. */
  #sent: SentRequest | undefined;
  #isInFlight = false;
  #sends = 0;
  #round: InputRound | undefined;
  #rounds = 0;
  #pauseMs = FIRST_PAUSE_MS;
  #cancelTimer: Cancel | undefined;
  #more: Uint8Array | undefined;
  #progressed: number | undefined;
  #hasReselected = false;
  #isSettled = false;
  readonly #acceptedUrls = new Set<string>();
  #mintedIds: readonly string[] = [];

  constructor(context: RequestContext, options: ModernRequestOptions) {
    this.#context = context;
    this.#options = options;
    this.#progressed = options.handler.progressed;
    this.sentAt = context.clock.now();
  }

  get progressed(): number | undefined {
    return this.#progressed;
  }

  get passedHeaders(): RequestHandler['passedHeaders'] {
    return this.#options.handler.passedHeaders;
  }

  /** Lease for the first send. A later send needs none, because the request's memory stays valid until its answer. */
  get lease(): RequestHandler['lease'] {
    return this.#sends === 1 ? this.#options.handler.lease : undefined;
  }

  /** Sends the request for the first time. Returns `undefined` if it cannot be sent, as `UpstreamConnection.send`. */
  begin(): SentRequest | undefined {
    this.#send(this.#options.timeouts);
    return this.#sent === undefined ? undefined : this;
  }

  settle(outcome: Outcome): void {
    this.#isInFlight = false;
    if (outcome.kind === 'failed') {
      // The server has seen the request, even if it has not seen this send.
      this.#settle(this.#sends > 1 ? { ...outcome, sent: true } : outcome);
      return;
    }
    const { response } = outcome;
    if (response.error !== undefined) this.#failed(response, outcome);
    else if (requiresInput(response) && this.#options.handler.takesInputRequests !== true) this.#requireInput(response);
    else this.#settle(outcome);
  }

  sent(message: SplicedMessage): void {
    this.#options.handler.sent?.(message);
  }

  progress(notification: NotificationEnvelope, value: number): void {
    this.#progressed = value;
    this.#options.handler.progress?.(notification, value);
  }

  cancel(notice?: NotificationEnvelope, edits?: readonly Edit[]): void {
    if (this.#isInFlight) this.#sent?.cancel(notice, edits);
    else this.#stop({ kind: 'failed', reason: 'cancelled', sent: true });
  }

  keepProgress(): () => void {
    return this.#sent?.keepProgress() ?? (() => {});
  }

  /** Fails a suspended request, because the connection is closed. */
  closed(reason: CloseReason, because: EndedBecause | undefined): void {
    this.#stop({ kind: 'failed', reason, sent: true, because });
  }

  #send(timeouts: RequestTimeouts): void {
    const { channel, meta } = this.#context;
    const { request, edits } = this.#options;
    this.#sends += 1;
    this.#isInFlight = true;
    this.#sent = channel.send(modernMessage(request, meta, this.#more), edits, timeouts, this);
  }

  #failed(response: ResponseEnvelope, outcome: Outcome): void {
    const { errorCode } = response.tokens;
    const isUnsupported =
      errorCode !== undefined && readText(response.bytes, errorCode) === String(MODERN_CODES.unsupportedRevision);
    if (!isUnsupported) {
      this.#settle(outcome);
    } else if (!this.#hasReselected && this.#context.reselect(response)) {
      this.#hasReselected = true;
      this.#sendAgain();
    } else {
      const message = 'The server no longer supports a protocol revision that Trunkline speaks';
      this.#answer(new RpcError(RPC_CODES.internalError, message));
    }
  }

  #requireInput(response: ResponseEnvelope): void {
    const { mintId, clock } = this.#context;
    const { handler } = this.#options;
    const { asked, state } = readRequiredInput(response, mintId);
    if (asked.length === 0 && state === undefined) {
      this.#refuseInput('does not say which input it requires');
      return;
    }
    this.#context.suspended.add(this);
    this.#mintedIds = [...this.#mintedIds, ...asked.flatMap(({ elicitationId }) => elicitationId ?? [])];
    const isPrompting = asked.some(({ url }) => url === undefined || !this.#acceptedUrls.has(url));
    if (isPrompting) this.#rounds += 1;
    if (this.#rounds > MAX_ROUNDS) {
      this.#refuseInput(`asked for input more than ${MAX_ROUNDS} times`);
      return;
    }
    const repeat = (responses: Uint8Array | undefined) => {
      this.#more = inputMembers(responses, state);
      if (isPrompting) this.#sendAgain();
      else this.#pause();
    };
    if (asked.length === 0) {
      repeat(undefined);
      return;
    }
    this.#cancelTimer = clock.schedule(Math.max(0, this.#remainingMs), () => this.#stop(TIMEOUT));
    this.#round = new InputRound({
      asked,
      requireInput: handler.requireInput && ((input) => handler.requireInput?.(input) ?? (() => {})),
      isAccepted: (url) => this.#acceptedUrls.has(url),
      accepted: (url) => this.#acceptedUrls.add(url),
      onEnd: (end) => {
        this.#cancelTimer?.();
        if (end.kind === 'complete') repeat(end.responses);
        else this.#refuse(end);
      },
    });
    this.#round.begin();
  }

  /** Waits before the next send, because the server asks for nothing and has no result yet. */
  #pause(): void {
    const delayMs = this.#pauseMs;
    this.#pauseMs = Math.min(2 * delayMs, MAX_PAUSE_MS);
    const { clock } = this.#context;
    const isTooLong = delayMs >= this.#remainingMs;
    this.#cancelTimer = clock.schedule(Math.max(0, Math.min(delayMs, this.#remainingMs)), () => {
      if (isTooLong) this.#stop(TIMEOUT);
      else this.#sendAgain();
    });
  }

  #sendAgain(): void {
    const { idleMs } = this.#options.timeouts;
    this.#round = undefined;
    this.#context.suspended.delete(this);
    if (this.#remainingMs <= 0) this.#settle(TIMEOUT);
    else this.#send({ idleMs, maxMs: this.#remainingMs });
  }

  /** Ends the request, because the server required input in an invalid way. `conduct` follows *the server* in messages. */
  #refuseInput(conduct: string): void {
    const error = new RpcError(RPC_CODES.internalError, `The server ${conduct}`);
    this.#refuse({ method: 'input', error, message: `it ${conduct}` });
  }

  /** Ends the request without the input. A `tools/call` gets a tool result with the reason, any other method an error. */
  #refuse({ method, error, message }: RefusedInput): void {
    if (this.#options.request.method !== METHODS.callTool) this.#answer(error, 'error');
    else this.#answer(toolError(`The tool needs ${method} from the client, but: ${message}`));
  }

  #answer(...content: Parameters<typeof ownResponse>): void {
    this.#settle({ kind: 'answered', response: ownResponse(...content), at: this.#context.clock.now() });
  }

  /** Ends a suspended request. */
  #stop(outcome: Outcome): void {
    if (this.#isSettled) return;
    this.#round?.withdraw();
    this.#settle(outcome);
  }

  #settle(outcome: Outcome): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    this.#cancelTimer?.();
    const { suspended } = this.#context;
    if (suspended.size > 0) suspended.delete(this);
    const { handler, request, edits } = this.#options;
    if (outcome.kind === 'answered')
      for (const elicitationId of this.#mintedIds)
        handler.send?.(notificationMessage(METHODS.elicitationComplete, { elicitationId }));
    if (outcome.kind === 'failed' || handler.takesInputRequests === true) {
      handler.settle(outcome);
    } else {
      const { kind, response, at } = outcome;
      handler.settle({ kind, response, at, edits: legacyAnswer(response, request, edits) });
    }
  }

  get #remainingMs(): number {
    return this.sentAt + this.#options.timeouts.maxMs - this.#context.clock.now();
  }
}

const TIMEOUT: Outcome = { kind: 'failed', reason: 'timeout', sent: true };

function inputMembers(responses: Uint8Array | undefined, state: Uint8Array | undefined): Uint8Array {
  const parts = responses === undefined ? [] : [toBytes('"inputResponses":'), responses];
  if (state !== undefined) parts.push(toBytes(`${responses === undefined ? '' : ','}"requestState":`), state);
  return join(parts);
}

/** Returns the edits that turn a modern server's response into one for a client with a handshake. */
function legacyAnswer(response: ResponseEnvelope, request: RelayedRequest, sent: readonly Edit[]): readonly Edit[] {
  if (response.error === undefined) return withoutResultMembers(response);
  return request.method === METHODS.readResource ? notFound(response, sentText(request, sent, 'uri')) : [];
}

/**
 * Replaces the code of an error about an unknown resource by the code of legacy revisions. Modern servers answer with the
 * code for invalid params, which can mean other mistakes, so the error must name the requested URI.
 */
function notFound({ bytes, error, tokens: { errorCode } }: ResponseEnvelope, uri: string | undefined): readonly Edit[] {
  if (error === undefined || errorCode === undefined) return [];
  if (readText(bytes, errorCode) !== String(RPC_CODES.invalidParams)) return [];
  const named = valuesAt(bytes, error, ['data', 'uri']);
  const isSame = named.some((span) => stringAt(bytes, span) === uri);
  return isSame ? [{ span: errorCode, text: NOT_FOUND }] : [];
}

const NOT_FOUND = toBytes(String(resourceNotFoundCode(LATEST_LEGACY_REVISION)));

interface RequiredInput {
  readonly asked: readonly NamedInput[];
  /** The JSON string with its quotes. It must be sent back byte for byte. */
  readonly state: Uint8Array | undefined;
}

/** An input, and the server's name for it as JSON. */
interface NamedInput extends AskedInput {
  readonly key: Uint8Array;
}

function requiresInput({ bytes, tokens: { resultType } }: ResponseEnvelope): boolean {
  if (resultType === undefined || resultType.end - resultType.start < INPUT_REQUIRED.length) return false;
  return stringAt(bytes, resultType) === INPUT_REQUIRED;
}

const INPUT_REQUIRED = 'input_required';

/** Reads a result that requires input. Returns copies, because the memory of a response is soon used again. */
function readRequiredInput(
  { bytes, tokens: { inputRequests, resultState } }: ResponseEnvelope,
  mintId: () => string,
): RequiredInput {
  const asked = membersOf(bytes, inputRequests).map(([, value, key]): NamedInput => {
    return { key: bytes.slice(key.start, key.end), ...readAsked(bytes, value, mintId) };
  });
  return { asked, state: resultState && bytes.slice(resultState.start, resultState.end) };
}

/** The input that a client gave, or the error that ends the request. */
export type RoundEnd =
  | { readonly kind: 'complete'; readonly responses: Uint8Array }
  | (RefusedInput & { readonly kind: 'refused' });

interface RefusedInput {
  readonly method: string;
  readonly error: Uint8Array | RpcError;
  readonly message: string;
}

export interface InputRoundOptions {
  readonly asked: readonly NamedInput[];
  readonly requireInput: ((input: InputRequest) => WithdrawInput) | undefined;
  /** Whether the person has accepted this page before. A page is shown once only. */
  readonly isAccepted: (url: string) => boolean;
  readonly accepted: (url: string) => void;
  /** Called once. */
  readonly onEnd: (end: RoundEnd) => void;
}

/** Asks a client for everything that one result requires, all at once. */
export class InputRound {
  readonly #options: InputRoundOptions;
  readonly #answers: (Uint8Array | undefined)[];
  #withdraws: WithdrawInput[] = [];
  #isOver = false;

  constructor(options: InputRoundOptions) {
    this.#options = options;
    this.#answers = options.asked.map(() => undefined);
  }

  begin(): void {
    for (const [index, asked] of this.#options.asked.entries()) if (!this.#isOver) this.#ask(index, asked);
  }

  /** Withdraws the requests to the client, because the input is no longer needed. */
  withdraw(): void {
    this.#isOver = true;
    for (const withdraw of this.#withdraws.splice(0)) withdraw();
  }

  #ask(index: number, { method, request, url }: NamedInput): void {
    const { requireInput, isAccepted, accepted } = this.#options;
    if (url !== undefined && isAccepted(url)) {
      this.#answered(index, ACCEPTED);
      return;
    }
    const refused = (error: Uint8Array | RpcError, message: string) => {
      // A failed elicitation counts as cancelled by the person. Other kinds of input have no such answer.
      if (method === METHODS.elicit) this.#answered(index, CANCELLED);
      else this.#end({ kind: 'refused', method, error, message });
    };
    if (request === undefined || requireInput === undefined) {
      const message = request === undefined ? `A server may not ask for ${method}` : 'No client can give input here';
      this.#end({ kind: 'refused', method, error: new RpcError(RPC_CODES.internalError, message), message });
      return;
    }
    const withdraw = requireInput({
      request,
      edits: [],
      answer: ({ bytes, result, error }) => {
        const at = result ?? error ?? { start: 0, end: 0 };
        const text = bytes.slice(at.start, at.end);
        if (result === undefined) {
          refused(text, memberOf(text, 'message') ?? 'the client refused');
          return;
        }
        if (url !== undefined && memberOf(text, 'action') === 'accept') accepted(url);
        this.#answered(index, text);
      },
      fail: (error) => refused(error, error.message),
      progress: () => {},
    });
    this.#withdraws.push(withdraw);
    // The client may refuse before `requireInput` returns.
    if (this.#isOver) this.withdraw();
  }

  #answered(index: number, result: Uint8Array): void {
    this.#answers[index] = result;
    if (this.#answers.some((answer) => answer === undefined)) return;
    const members = this.#options.asked.flatMap(({ key }, at) => {
      return [toBytes(at === 0 ? '{' : ','), key, toBytes(':'), this.#answers[at] ?? CANCELLED];
    });
    this.#end({ kind: 'complete', responses: join([...members, toBytes('}')]) });
  }

  #end(end: RoundEnd): void {
    if (this.#isOver) return;
    this.#withdraws = end.kind === 'complete' ? [] : this.#withdraws;
    this.withdraw();
    this.#options.onEnd(end);
  }
}

const ACCEPTED = toBytes('{"action":"accept"}');
const CANCELLED = toBytes('{"action":"cancel"}');

function memberOf(object: Uint8Array, name: string): string | undefined {
  return stringAt(object, valuesAt(object, { start: 0, end: object.length }, [name])[0]);
}
