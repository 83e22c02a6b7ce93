import { stringAt, toBytes } from '../../wire/json/json-text.js';
import { type Edit, type SplicedMessage, splice } from '../../wire/json/splice.js';
import { RPC_CODES, RpcError } from '../../wire/jsonrpc/message.js';
import { isErrorResponse, type RequestEnvelope, type ResponseEnvelope, scanOwn } from '../../wire/mcp/envelope.js';
import { METHODS } from '../../wire/mcp/methods.js';
import { EnvelopeRequest } from '../../wire/mcp/relayed-request.js';
import type { Clock } from '../../wire/timing/clock.js';
import {
  canElicit,
  lackingCapability,
  refusedInput,
  requiredCapabilities,
  withCapabilities,
} from '../input-requests.js';
import type { ElicitationMode, Exchange, GatewaySeals, InputRequest, WithdrawInput } from '../port.js';
import { WireExchange, type WireExchangeOptions } from '../wire-exchange.js';
import { InputRounds, type SuspendedCalls } from './input-rounds.js';
import { type ClientExchange, type ModernClient, NOT_ASKING, requestedLogLevel } from './modern-client.js';
import { SERVER_STATE, type StateContext, sealState, stateContext, type VisitState } from './request-state.js';
import { UrlVisits, wantsVisits } from './url-visits.js';

/** Parts that the requests of one session share. */
export interface ExchangeContext {
  readonly calls: SuspendedCalls;
  readonly seals: () => GatewaySeals;
  readonly serve: (exchange: ModernExchange) => void;
  /** Reports that the client got a request for input as the answer. The call goes on after that. */
  readonly onSuspended: (exchange: ModernExchange) => void;
}

export interface ModernExchangeOptions extends WireExchangeOptions {
  readonly client: ModernClient;
  readonly shared: ExchangeContext;
  /** The server's own state, if the request brings it back in the gateway's form. */
  readonly serverState?: string | undefined;
  /** Present if the client comes back from a visit of URLs. */
  readonly visit?: VisitState | undefined;
}

/** The methods whose results may require input. See the page basic/patterns/mrtr of revision 2026-07-28. */
const INTERACTIVE: ReadonlySet<string> = new Set([METHODS.callTool, METHODS.getPrompt, METHODS.readResource]);

const TOO_MANY = new RpcError(RPC_CODES.internalError, 'Too many calls wait for input of their clients');

/** A request of a client that speaks a revision without a handshake. */
export class ModernExchange extends WireExchange implements ClientExchange {
  declare readonly client: ModernClient;
  logLevel: Exchange['logLevel'];
  readonly takesInputRequests = true;
  protected readonly form: ModernClient['form'];
  readonly #options: ModernExchangeOptions;
  readonly #clock: Clock;
  #rounds: InputRounds | undefined;
  #visits: UrlVisits | undefined;
  /** Undeclared capabilities that the server needed for this request. */
  #lacking: Readonly<Record<string, unknown>> | undefined;

  constructor(options: ModernExchangeOptions) {
    const { envelope, serverState } = options;
    super(serverState === undefined ? options : { ...options, request: new ResumedRequest(envelope, serverState) });
    this.#options = options;
    this.#clock = options.clock;
    this.form = options.client.form;
    this.logLevel = requestedLogLevel(envelope);
  }

  get isSuspended(): boolean {
    return this.#rounds?.isSuspended === true;
  }

  /** Identifies the conversation. Over HTTP, several programs of one user may state the same facts. */
  get conversation(): object {
    return this.#options.reply.isShared ? this.client : this;
  }

  /** Whether a server may ask the client because of this request. */
  get isInteractive(): boolean {
    return INTERACTIVE.has(this.request.method);
  }

  elicits(mode: ElicitationMode): boolean {
    return this.isInteractive && canElicit(mode, this.#options.client.profile.capabilities);
  }

  /** Answers the request. A server's state is sealed, so that only this client can bring it back. */
  override answer(response: ResponseEnvelope, edits: readonly Edit[] = [], server?: Uint8Array): void {
    const { bytes, tokens, error } = response;
    const visits = error !== undefined && this.isInteractive && wantsVisits(response) && this.#visit(response, edits);
    if (visits === 'later') return;
    if (visits) {
      super.answer(visits);
      return;
    }
    if (this.#lacking !== undefined && isErrorResponse(response)) {
      const because = `The server asked for capabilities that the client does not declare (${namesOf(this.#lacking)}), and failed`;
      super.answer(lackingCapability(response, edits, { required: this.#lacking, because }));
      return;
    }
    const { resultState } = tokens;
    const state = stringAt(bytes, resultState);
    if (resultState === undefined || state === undefined) {
      super.answer(response, edits, server);
      return;
    }
    const { lasting } = this.#options.shared.seals();
    const sealed = sealState(SERVER_STATE, state, this.#context, lasting);
    super.answer(response, [...edits, { span: resultState, text: toBytes(JSON.stringify(sealed)) }], server);
  }

  requireInput(input: InputRequest): WithdrawInput {
    const { client, shared } = this.#options;
    const { calls } = shared;
    const isFull = this.#rounds === undefined && !calls.admits(client.principal);
    const lack = refusedInput(input.request, client.profile.capabilities);
    const refusal = this.isInteractive ? (isFull ? TOO_MANY : lack) : NOT_ASKING;
    if (refusal !== undefined) {
      // Records the lack only if no other call can be the cause. Roots do not count, because many servers request them at their start.
      if (refusal === lack && input.request.method !== METHODS.listRoots && client.isOnly(this)) {
        this.#lacking = withCapabilities(this.#lacking ?? {}, requiredCapabilities(input.request));
      }
      input.fail(refusal);
      return () => {};
    }
    this.#rounds ??= this.#beginRounds();
    return this.#rounds.requireInput(input);
  }

  /** Handles a server's refusal that demands a visit of URLs. */
  #visit(refused: ResponseEnvelope, edits: readonly Edit[]): ReturnType<UrlVisits['next']> {
    const { client, visit, shared } = this.#options;
    const { seals, serve } = shared;
    this.#visits ??= new UrlVisits({
      clock: this.#clock,
      seal: seals().lasting,
      context: this.#context,
      state: visit,
      capabilities: client.profile.capabilities,
      sendAgain: () => serve(this),
    });
    const edited = scanOwn(splice({ ...refused, edits }));
    const next = this.#visits.next(edited.kind === 'response' ? edited : refused);
    if (next === 'later') this.onCancel(() => this.#visits?.cancel());
    return next;
  }

  /** The context of the request in the form of the client, because the gateway may have replaced the request. */
  get #context(): StateContext {
    return stateContext(this.client.principal, new EnvelopeRequest(this.#options.envelope));
  }

  #beginRounds(): InputRounds {
    const { envelope, reply, shared } = this.#options;
    const { calls, seals, onSuspended } = shared;
    const { lasting, run, instance } = seals();
    const rounds = new InputRounds({
      clock: this.#clock,
      calls,
      seal: lasting,
      id: calls.nextId(run),
      instance,
      context: this.#context,
      first: { envelope, reply },
      inputRequired: (members) => this.form.inputRequired(members),
      onSuspended: () => onSuspended(this),
      onResumed: (again) => {
        this.logLevel = requestedLogLevel(again);
      },
      cancel: (notification) => this.cancel(notification),
    });
    this.redirect(rounds);
    return rounds;
  }
}

function namesOf(capabilities: Readonly<Record<string, unknown>>): string {
  return Object.entries(capabilities)
    .flatMap(([name, value]) => {
      const modes = Object.keys(Object(value));
      return modes.length === 0 ? [name] : modes.map((mode) => `${name}.${mode}`);
    })
    .join(', ');
}

/** A request that brings back a server's state. The server gets its own text. */
class ResumedRequest extends EnvelopeRequest {
  readonly #state: string;

  constructor(envelope: RequestEnvelope, state: string) {
    super(envelope);
    this.#state = state;
  }

  /** The bytes have the state in the gateway's form, so they must not be written anew. */
  override get whole(): undefined {
    return undefined;
  }

  override message(id: Parameters<EnvelopeRequest['message']>[0], edits: readonly Edit[]): SplicedMessage {
    const span = this.tokens.requestState;
    const own = span === undefined ? [] : [{ span, text: toBytes(JSON.stringify(this.#state)) }];
    return super.message(id, [...edits, ...own]);
  }
}
