import { REASONS } from '../../downstream/failure.js';
import type { DownstreamClient, Exchange } from '../../downstream/port.js';
import type { Backend } from '../../gateway/registry/backend.js';
import { readText, toBytes } from '../../wire/json/json-text.js';
import { jsonObject, RPC_CODES, RpcError } from '../../wire/jsonrpc/message.js';
import type { ResponseEnvelope } from '../../wire/mcp/envelope.js';
import { ownRequest } from '../../wire/mcp/relayed-request.js';
import type { Clock } from '../../wire/timing/clock.js';
import {
  INVOKE_INTERCEPTOR,
  type Interceptor,
  LIST_INTERCEPTORS,
  MalformedAnswer,
  type Phase,
  readInterceptors,
  readVerdict,
  type Verdict,
} from './protocol.js';

/** Limit of a message that is shown to interceptors, in bytes. A larger one is treated as if the guard had failed. */
export const MAX_PAYLOAD_BYTES = 1024 * 1024;
/** Limit of an answer: a message that became larger, and room for what is around it. */
const MAX_ANSWER_BYTES = 2 * MAX_PAYLOAD_BYTES;
const MAX_PAGES = 10;

/** The guard could not look at a message. The message is a clause whose subject is the guard. */
export class GuardFailed extends Error {}

/** A question about one message. */
export interface Question {
  readonly event: string;
  readonly phase: Phase;
  /** The params of a request, or the result of a response, as JSON. */
  readonly payload: Uint8Array;
  readonly context: Readonly<Record<string, unknown>>;
  /** The key of the server whose message it is. */
  readonly server: string;
  /** Aborted when nobody waits for the answer any more. */
  readonly over: AbortSignal;
}

export interface GuardOptions {
  readonly key: string;
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly failsOpen: boolean;
  /** The guard's process; `undefined` if it has none. */
  readonly backend: () => Backend | undefined;
}

/** A server with interceptors, as a client of it. Its calls take slots and count for its circuit breaker like those of any server. */
export class Guard {
  readonly options: GuardOptions;
  /** The reason for which the latest question failed, as a clause. `undefined` once one was answered. */
  fault: string | undefined;
  /** The list, and the connection over which it was read. */
  #listed: { readonly connection: unknown; readonly all: readonly Interceptor[] } | undefined;

  constructor(options: GuardOptions) {
    this.options = options;
  }

  get key(): string {
    return this.options.key;
  }

  /** The interceptors of the present process. Rejects with a `GuardFailed`. */
  async interceptors(over: AbortSignal): Promise<readonly Interceptor[]> {
    const { known } = this;
    if (known !== undefined) return known;
    const all = await this.#checked(() => this.#list(over));
    this.#listed = { connection: this.#connection, all };
    return all;
  }

  /** The interceptors of the present process, if it was asked already. */
  get known(): readonly Interceptor[] | undefined {
    const connection = this.#connection;
    return connection !== undefined && this.#listed?.connection === connection ? this.#listed.all : undefined;
  }

  get #connection(): unknown {
    return this.options.backend()?.dispatcher.connection;
  }

  /** Asks one interceptor. Rejects with a `GuardFailed`. */
  async ask(interceptor: Interceptor, question: Question): Promise<Verdict> {
    const { event, phase, payload, context, server, over } = question;
    if (payload.length > MAX_PAYLOAD_BYTES)
      throw new GuardFailed(`it was not asked, because the message has more than ${MAX_PAYLOAD_BYTES} bytes`);
    const { name } = interceptor;
    const { timeoutMs } = this.options;
    const others = { name, event, phase, timeoutMs, context, _meta: { 'trunkline/server': server } };
    const members = Object.entries(others).map(([key, value]) => [key, toBytes(JSON.stringify(value))] as const);
    const params = jsonObject([...members, ['payload', payload]]);
    const result = () => this.#request(INVOKE_INTERCEPTOR, params, over);
    return await this.#checked(async () => readVerdict(await result(), interceptor, phase));
  }

  async #list(over: AbortSignal): Promise<readonly Interceptor[]> {
    const all: Interceptor[] = [];
    let cursor: string | undefined;
    for (let pages = 0; pages < MAX_PAGES; pages += 1) {
      const page = readInterceptors(
        await this.#request(LIST_INTERCEPTORS, cursor === undefined ? {} : { cursor }, over),
      );
      all.push(...page.all);
      cursor = page.next;
      if (cursor === undefined) break;
    }
    if (cursor !== undefined) throw new MalformedAnswer('its list has too many pages');
    if (all.length === 0) throw new MalformedAnswer('it has no interceptors');
    if (new Set(all.map(({ name }) => name)).size < all.length)
      throw new MalformedAnswer('two of its interceptors have the same name');
    return all;
  }

  async #checked<T>(work: () => Promise<T>): Promise<T> {
    try {
      const done = await work();
      this.fault = undefined;
      return done;
    } catch (error) {
      if (!(error instanceof MalformedAnswer) && !(error instanceof GuardFailed)) throw error;
      this.fault = error.message;
      throw new GuardFailed(error.message);
    }
  }

  /** Resolves with the result of a request to the guard. */
  #request(method: string, params: unknown, over: AbortSignal): Promise<unknown> {
    const backend = this.options.backend();
    return new Promise((resolve, reject) => {
      if (backend === undefined) {
        reject(new GuardFailed('it has no process'));
        return;
      }
      const invocation = new Invocation(ownRequest(method, params), (answer) => {
        cancelTimer();
        over.removeEventListener('abort', abort);
        if (answer instanceof GuardFailed) reject(answer);
        else resolve(answer);
      });
      const abort = () => invocation.cancel('nobody waits for its answer any more');
      // Once the request is sent, the guard's own timeout applies, which is the same and counts for its breaker.
      const cancelTimer = this.options.clock.schedule(this.options.timeoutMs, () => {
        if (!invocation.isSent) invocation.cancel('it did not start, or was busy, for too long');
      });
      over.addEventListener('abort', abort);
      if (over.aborted) abort();
      else backend.serve(invocation, { edits: [] });
    });
  }
}

/** One request to a guard. */
class Invocation implements Exchange {
  readonly request: Exchange['request'];
  readonly requestId = '0';
  readonly client = INVOKER;
  readonly isSuspended = false;
  readonly wantsProgress = false;
  readonly logLevel = undefined;
  readonly takesInputRequests = false;
  elicits(): boolean {
    return false;
  }

  isSettled = false;
  isSent = false;
  readonly trail: NonNullable<Exchange['trail']> = {
    routed: () => {},
    sending: () => undefined,
    sent: () => {
      this.isSent = true;
    },
    attemptEnded: () => {},
    ended: () => {},
  };
  readonly #settled: (answer: unknown) => void;
  #onCancel: () => void = () => {};

  constructor(request: ReturnType<typeof ownRequest>, settled: (answer: unknown) => void) {
    this.request = request;
    this.#settled = settled;
  }

  get received() {
    return this.request.message({ text: ID, part: { start: 0, end: 1 } }, []);
  }

  get conversation(): object {
    return this;
  }

  answer({ bytes, span, result, error, tokens }: ResponseEnvelope): void {
    if (span.end - span.start > MAX_ANSWER_BYTES) this.#settle(new GuardFailed('its answer is too large'));
    else if (result !== undefined) this.#settle(JSON.parse(readText(bytes, result)));
    else {
      const code = tokens.errorCode === undefined ? 'none' : readText(bytes, tokens.errorCode);
      const lacks = code === String(RPC_CODES.methodNotFound) ? ', as a server without interceptors does' : '';
      this.#settle(new GuardFailed(`it answered with an error (code ${error === undefined ? 'none' : code})${lacks}`));
    }
  }

  succeed(result: Uint8Array): void {
    this.#settle(JSON.parse(readText(result, { start: 0, end: result.length })));
  }

  fail(reason: Parameters<Exchange['fail']>[0]): void {
    const because =
      reason instanceof RpcError ? 'could not be asked' : REASONS[reason.reason].sentence.replace(/\.$/, '');
    this.#settle(new GuardFailed(`it ${because}`));
  }

  cancel(because: string): void {
    const isOpen = !this.isSettled;
    this.#settle(new GuardFailed(because));
    if (isOpen) this.#onCancel();
  }

  onCancel(listener: () => void): void {
    this.#onCancel = listener;
  }

  requireInput(input: Parameters<Exchange['requireInput']>[0]): () => void {
    input.fail(new RpcError(RPC_CODES.methodNotFound, 'An interceptor cannot ask anybody'));
    return () => {};
  }

  route(): void {}
  leaseRequest(): undefined {}
  progress(): void {}
  keepProgress(): () => void {
    return () => {};
  }
  send(): void {}

  #settle(answer: unknown): void {
    if (this.isSettled) return;
    this.isSettled = true;
    this.#settled(answer);
  }
}

const ID = toBytes('0');

/** Trunkline itself, as the client of its guards. It gets no messages besides answers. */
const INVOKER: DownstreamClient = {
  principal: 'trunkline',
  revision: '2025-11-25',
  hasSession: true,
  inFlight: 0,
  takesPings: false,
  listChanged: () => {},
  listAnnounced: () => {},
  notify: () => {},
  requireInput: (input) => {
    input.fail(new RpcError(RPC_CODES.methodNotFound, 'An interceptor cannot ask anybody'));
    return () => {};
  },
  sessionReplaced: () => {},
  gone: () => {},
  ending: () => {},
};
