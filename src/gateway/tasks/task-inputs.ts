import {
  inputRequestMembers,
  isLiftable,
  MAX_UNANSWERED,
  refusedInput,
  TOO_MANY_UNANSWERED,
} from '../../downstream/input-requests.js';
import type { DownstreamClient, InputRequest, WithdrawInput } from '../../downstream/port.js';
import { isObject, readString, readText, type Span, toBytes, visitMembers } from '../../json/json-text.js';
import { join } from '../../jsonrpc/message.js';
import { RPC_CODES, RpcError } from '../../jsonrpc/rpc-error.js';
import { METHODS } from '../../mcp/methods.js';
import type { RelayedRequest } from '../../mcp/relayed-request.js';
import type { Clock } from '../../timing/clock.js';
import type { RequestTimeouts, UpstreamConnection } from '../../upstream/port.js';
import { madeResponse, scanOwn } from './made-response.js';
import type { TaskCarrier } from './server-tasks.js';

/** How long a request for the state of a task waits for what the task asks for, and then for more that comes with it. */
const ASK_MS = 1_000;
const GATHER_MS = 15;

/**
 * Input requests of a task whose server sends them as requests. The client reads them in the state of the task (`tasks/get`)
 * and answers them with `tasks/update`.
 */
export class TaskInputs implements TaskCarrier {
  readonly isSettled = false;
  readonly logLevel = 'off';
  client: DownstreamClient;
  readonly #clock: Clock;
  readonly #pending = new Map<string, { readonly input: InputRequest; readonly members: Uint8Array }>();
  #capabilities: Readonly<Record<string, unknown>> = {};
  #count = 0;
  /** Whether a request waits for the result of the task: the server asks its client along that request. */
  #isAwaited = false;
  /** Requests for the state of the task that wait for what it asks for. */
  readonly #waiting = new Set<() => void>();

  constructor(clock: Clock, client: DownstreamClient) {
    this.#clock = clock;
    this.client = client;
  }

  /** The client has sent a request about the task. What it declares there decides what it may be asked. */
  usedBy(client: DownstreamClient, { bytes, tokens: { eraCapabilities } }: RelayedRequest): void {
    this.client = client;
    const text = eraCapabilities === undefined ? '{}' : readText(bytes, eraCapabilities);
    this.#capabilities = JSON.parse(text) as Record<string, unknown>;
  }

  requireInput(input: InputRequest): WithdrawInput {
    const { method } = input.request;
    const isFull = this.#pending.size >= MAX_UNANSWERED;
    const refusal = isLiftable(method)
      ? (refusedInput(input.request, this.#capabilities) ?? (isFull ? TOO_MANY_UNANSWERED : undefined))
      : new RpcError(RPC_CODES.methodNotFound, `${method} cannot reach a client of this revision`);
    if (refusal !== undefined) {
      input.fail(refusal);
      return () => {};
    }
    this.#count += 1;
    const key = `input-${this.#count}`;
    this.#pending.set(key, { input, members: inputRequestMembers(input, scanOwn) });
    for (const asked of this.#waiting) asked();
    this.#waiting.clear();
    return () => {
      this.#pending.delete(key);
    };
  }

  /** The tasks of the extension send nothing but their state. */
  send(): void {}

  /** Everything that the task asks for now, as the JSON of `inputRequests`; `undefined` if that is nothing. */
  get requests(): Uint8Array | undefined {
    if (this.#pending.size === 0) return undefined;
    const entries = [...this.#pending].flatMap(([key, { members }], index) => [
      toBytes(`${index === 0 ? '' : ','}${JSON.stringify(key)}:{`),
      members,
      toBytes('}'),
    ]);
    return join([toBytes('{'), ...entries, toBytes('}')]);
  }

  /** The task requires input: lets the server ask, and waits a moment for its requests. */
  async gather(connection: UpstreamConnection, taskId: string, timeouts: RequestTimeouts): Promise<void> {
    if (!this.#isAwaited) {
      this.#isAwaited = true;
      void connection.request(METHODS.taskResult, { taskId }, timeouts).finally(() => {
        this.#isAwaited = false;
      });
    }
    if (this.#pending.size > 0) return;
    await new Promise<void>((resolve) => {
      const giveUp = this.#clock.schedule(ASK_MS, () => {
        this.#waiting.delete(asked);
        resolve();
      });
      const asked = () => {
        giveUp();
        this.#clock.schedule(GATHER_MS, resolve);
      };
      this.#waiting.add(asked);
    });
  }

  /** Answers the server's requests whose answers the client brings. Others were answered before, or never asked. */
  answer(bytes: Uint8Array, inputResponses: Span): void {
    if (!isObject(bytes, inputResponses)) return;
    const answers: [string, Span][] = [];
    visitMembers(bytes, inputResponses.start, Number.POSITIVE_INFINITY, (key, value) => {
      if (isObject(bytes, value)) answers.push([readString(bytes, key), value]);
    });
    for (const [key, { start, end }] of answers) {
      const input = this.#pending.get(key)?.input;
      this.#pending.delete(key);
      input?.answer(madeResponse(bytes.slice(start, end)), () => () => {});
    }
  }

  /** The task is done, and what it asked for is of no use any more. */
  end(): void {
    for (const { input } of this.#pending.values()) input.fail(DONE);
    this.#pending.clear();
  }
}

const DONE = new RpcError(RPC_CODES.internalError, 'The task has ended');
