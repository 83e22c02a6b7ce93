import { listAllPages } from '../bridge/list-pages.js';
import { valuesAt } from '../jsonrpc/json-path.js';
import { isString, readString, type Span, toBytes } from '../jsonrpc/json-text.js';
import { join } from '../jsonrpc/message.js';
import { RPC_CODES, RpcError } from '../jsonrpc/rpc-error.js';
import { type Edit, splice } from '../jsonrpc/splice.js';
import type { NotificationEnvelope, RequestEnvelope, ResponseEnvelope } from '../mcp/envelope.js';
import type { Hmac } from '../mcp/exposed-name.js';
import { METHODS } from '../mcp/methods.js';
import { unwrapTaskId, wrapTaskId } from '../mcp/task-id.js';
import type { Backend } from './backend.js';
import type { EditAnswer, Exchange } from './exchange.js';
import type { GatewayClient } from './gateway-port.js';
import type { Target } from './router.js';
import { TaskRegistry } from './task-registry.js';

/**
 * The tasks that servers make for clients (revision 2025-11-25): shows their ids under names that tell whose they are,
 * and finds the client for what a server says about one.
 */
export class ServerTasks {
  readonly #seal: Hmac;
  readonly #registry = new TaskRegistry();

  constructor(seal: Hmac) {
    this.#seal = seal;
  }

  /** Where a request about one task goes. An id that is not of this client's tasks reaches no server. */
  target(
    { bytes, tokens }: RequestEnvelope,
    client: GatewayClient,
    backends: ReadonlyMap<string, Backend>,
  ): TaskTarget {
    const { taskId } = tokens;
    const id = taskId !== undefined && isString(bytes, taskId) ? readString(bytes, taskId) : undefined;
    const origin = id === undefined ? undefined : unwrapTaskId(id, client.principal, this.#seal);
    const backend = origin === undefined ? undefined : backends.get(origin.maker);
    if (taskId === undefined || origin === undefined || backend === undefined) {
      return new RpcError(RPC_CODES.invalidParams, 'Unknown task');
    }
    this.#registry.note(backend, origin.original, client);
    return { backend, edits: [{ span: taskId, text: toBytes(JSON.stringify(origin.original)) }] };
  }

  /** What a request says about the task it belongs to, as the server knows it. */
  editsFor({ bytes, tokens }: RequestEnvelope | NotificationEnvelope, client: GatewayClient, backend: Backend): Edit[] {
    return this.#unwrapped(bytes, tokens.relatedTask, client, backend);
  }

  /** The same for an answer of the client's. */
  editsForAnswer({ bytes, tokens }: ResponseEnvelope, client: GatewayClient, backend: Backend): Edit[] {
    return this.#unwrapped(bytes, tokens.resultRelatedTask, client, backend);
  }

  /** Replaces the ids of tasks in what the server answers to this exchange, and notes whose they are. */
  editAnswer(backend: Backend, exchange: Exchange): EditAnswer {
    const { client, request } = exchange;
    return ({ bytes, tokens }) => {
      const { createdTask, resultTaskId, resultStatus, resultRelatedTask } = tokens;
      const isAboutTask = TASK_METHODS.has(request.method);
      const made = request.tokens.task === undefined ? undefined : createdTask;
      const asked = isAboutTask ? resultTaskId : undefined;
      if (made !== undefined && isString(bytes, made)) {
        this.#registry.note(backend, readString(bytes, made), client, exchange.outlive());
      }
      if (asked !== undefined && isString(bytes, asked) && isTerminal(bytes, resultStatus)) {
        this.#registry.finish(backend, readString(bytes, asked));
      }
      return [made, asked, resultRelatedTask].flatMap((span) => this.#wrapped(bytes, span, client, backend));
    };
  }

  /** The client that a message of a server's concerns because of the task that it names. */
  clientOf(
    backend: Backend,
    { bytes, tokens, method }: RequestEnvelope | NotificationEnvelope,
  ): GatewayClient | undefined {
    const span = method === METHODS.taskStatus ? tokens.taskId : tokens.relatedTask;
    if (span === undefined || !isString(bytes, span)) return undefined;
    const client = this.#registry.find(backend, readString(bytes, span))?.client;
    return client !== undefined && backend.clients.has(client) ? client : undefined;
  }

  /** What has to be replaced in a message of the server's for this client. */
  editsToward(client: GatewayClient, backend: Backend, message: RequestEnvelope | NotificationEnvelope): Edit[] {
    const { bytes, tokens, method } = message;
    const own = method === METHODS.taskStatus ? tokens.taskId : undefined;
    if (own !== undefined && isString(bytes, own) && isTerminal(bytes, tokens.status)) {
      this.#registry.finish(backend, readString(bytes, own));
    }
    return [own, tokens.relatedTask].flatMap((span) => this.#wrapped(bytes, span, client, backend));
  }

  /** Answers with the tasks of all servers that belong to whoever asks. */
  async list(exchange: Exchange, backends: Iterable<Backend>): Promise<void> {
    if (exchange.request.tokens.cursor !== undefined) {
      exchange.fail(new RpcError(RPC_CODES.invalidParams, 'Invalid cursor'));
      return;
    }
    const lists = await Promise.all([...backends].map((backend) => this.#entriesOf(backend, exchange.client)));
    const entries = lists.flat().flatMap((entry, index) => (index === 0 ? [entry] : [COMMA, entry]));
    exchange.succeed(join([LIST_HEAD, ...entries, LIST_TAIL]));
  }

  /** The process is gone, and its tasks with it. */
  drop(backend: Backend): void {
    this.#registry.drop(backend);
  }

  /** None of a server that does not answer: its tasks are missing, those of the others are not. */
  async #entriesOf(backend: Backend, client: GatewayClient): Promise<Uint8Array[]> {
    const { connection, listPatience } = backend.delivery;
    if (connection?.offers('tasks.list') !== true) return [];
    const list = await listAllPages(connection.ask, TASK_LIST, listPatience);
    if (list.kind === 'failed') return [];
    return list.entries.flatMap(({ bytes, span }) => {
      const ids = valuesAt(bytes, span, ['taskId']).filter((id) => isString(bytes, id));
      const isOwn = ids.length > 0 && ids.every((id) => this.#isOf(client, backend, readString(bytes, id)));
      const edits = ids.flatMap((id) => this.#wrapped(bytes, id, client, backend));
      return isOwn ? [splice({ bytes, span, edits })] : [];
    });
  }

  /** A task that nobody is known to have made can be seen by a client that has the process to itself. */
  #isOf(client: GatewayClient, backend: Backend, original: string): boolean {
    const owner = this.#registry.find(backend, original)?.client;
    return owner === undefined ? backend.clients.size === 1 : owner.principal === client.principal;
  }

  #wrapped(bytes: Uint8Array, span: Span | undefined, client: GatewayClient, { key }: Backend): Edit[] {
    if (span === undefined || !isString(bytes, span)) return [];
    const id = wrapTaskId({ maker: key, original: readString(bytes, span) }, client.principal, this.#seal);
    return [{ span, text: toBytes(JSON.stringify(id)) }];
  }

  /** What we did not wrap stays as it is: it means nothing to us, and may to the server. */
  #unwrapped(bytes: Uint8Array, span: Span | undefined, client: GatewayClient, { key }: Backend): Edit[] {
    if (span === undefined || !isString(bytes, span)) return [];
    const origin = unwrapTaskId(readString(bytes, span), client.principal, this.#seal);
    return origin?.maker === key ? [{ span, text: toBytes(JSON.stringify(origin.original)) }] : [];
  }
}

type TaskTarget = Pick<Target, 'backend' | 'edits'> | RpcError;

/** Requests about one task, by its id. */
export const TASK_METHODS: ReadonlySet<string> = new Set([METHODS.getTask, METHODS.taskResult, METHODS.cancelTask]);

const TASK_LIST = { method: METHODS.listTasks, token: 'resultTasks' } as const;

const TERMINAL = new Set(['completed', 'failed', 'cancelled']);

function isTerminal(bytes: Uint8Array, status: Span | undefined): boolean {
  return status !== undefined && isString(bytes, status) && TERMINAL.has(readString(bytes, status));
}

const LIST_HEAD = toBytes('{"tasks":[');
const LIST_TAIL = toBytes(']}');
const COMMA = toBytes(',');
