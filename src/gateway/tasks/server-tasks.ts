import type { DownstreamClient, Exchange } from '../../downstream/port.js';
import { valuesAt } from '../../json/json-path.js';
import { isString, readString, toBytes } from '../../json/json-text.js';
import { type Edit, splice } from '../../json/splice.js';
import { join } from '../../jsonrpc/message.js';
import { RPC_CODES, RpcError } from '../../jsonrpc/rpc-error.js';
import type { NotificationEnvelope, RequestEnvelope, ResponseEnvelope } from '../../mcp/envelope.js';
import type { Hmac } from '../../mcp/exposed-name.js';
import { METHODS } from '../../mcp/methods.js';
import type { RelayedRequest } from '../../mcp/relayed-request.js';
import { unwrapTaskId, wrapTaskId } from '../../mcp/task-id.js';
import { listAllPages } from '../catalog/list-pages.js';
import type { Backend } from '../registry/backend.js';
import type { Target } from '../routing/router.js';
import { idAt, isTerminal, replaceId } from './task-id-edits.js';
import { TaskRegistry } from './task-registry.js';

export interface ServerTasksOptions {
  readonly seal: Hmac;
  /** Whether only one person's clients ever use this process. */
  readonly isPersonal: (backend: Backend) => boolean;
}

/**
 * The tasks that servers make for clients (revision 2025-11-25): shows their ids under names that tell whose they are,
 * and finds the client for what a server says about one.
 */
export class ServerTasks {
  readonly #seal: Hmac;
  readonly #isPersonal: (backend: Backend) => boolean;
  readonly #registry = new TaskRegistry();

  constructor({ seal, isPersonal }: ServerTasksOptions) {
    this.#seal = seal;
    this.#isPersonal = isPersonal;
  }

  /** The name under which this client knows a task of the server's. */
  nameFor(client: DownstreamClient, { key }: Backend, original: string): string {
    return wrapTaskId({ maker: key, original }, client.principal, this.#seal);
  }

  /** How the server knows what the client calls so; `undefined` if that is no task of the server's for this client. */
  originalOf(client: DownstreamClient, { key }: Backend, name: string): string | undefined {
    const origin = unwrapTaskId(name, client.principal, this.#seal);
    return origin?.maker === key ? origin.original : undefined;
  }

  /** Where a request about one task goes. An id that is not of this client's tasks reaches no server. */
  target(
    { bytes, tokens, method }: RelayedRequest,
    client: DownstreamClient,
    backends: ReadonlyMap<string, Backend>,
  ): TaskTarget {
    const name = idAt(bytes, tokens.taskId);
    const origin = name === undefined ? undefined : unwrapTaskId(name, client.principal, this.#seal);
    const backend = origin === undefined ? undefined : backends.get(origin.maker);
    if (origin === undefined || backend === undefined) return new RpcError(RPC_CODES.invalidParams, 'Unknown task');
    this.#registry.asked(backend, origin.original, client, method === METHODS.taskResult);
    return { backend, edits: replaceId(tokens.taskId, origin.original) };
  }

  /** The server answers: the request may have become a task, or the answer is about one. */
  answered({ bytes, tokens, result }: ResponseEnvelope, { client, request }: Exchange, backend: Backend): Edit[] {
    const { method } = request;
    if (method === METHODS.taskResult) {
      const name = idAt(request.bytes, request.tokens.taskId);
      const original = name === undefined ? undefined : this.originalOf(client, backend, name);
      if (result !== undefined && original !== undefined) this.#registry.finish(backend, original);
      return [];
    }
    if (method !== METHODS.getTask && method !== METHODS.cancelTask) return [];
    const id = idAt(bytes, tokens.resultTaskId);
    if (id !== undefined && isTerminal(bytes, tokens.resultStatus)) this.#registry.finish(backend, id);
    return id === undefined ? [] : replaceId(tokens.resultTaskId, this.nameFor(client, backend, id));
  }

  /** The request has become this task; `end` ends the reports of its progress. */
  made(original: string, client: DownstreamClient, backend: Backend, end: () => void): void {
    this.#registry.made(backend, original, client, end);
  }

  /** The task is done. */
  finished(original: string, backend: Backend): void {
    this.#registry.finish(backend, original);
  }

  /** What has to be replaced in a server's news of a task for this client. */
  editsToward(client: DownstreamClient, backend: Backend, { bytes, tokens, method }: NotificationEnvelope): Edit[] {
    const id = method === METHODS.taskStatus ? idAt(bytes, tokens.taskId) : undefined;
    if (id === undefined) return [];
    if (isTerminal(bytes, tokens.status)) this.#registry.finish(backend, id);
    return replaceId(tokens.taskId, this.nameFor(client, backend, id));
  }

  /**
   * The client that a message of a server's concerns because of the task that it names; `undefined` when it names none.
   * Nobody but whose task it is could know what to do with it.
   */
  ownerOf(backend: Backend, { bytes, tokens, method }: RequestEnvelope | NotificationEnvelope): TaskOwner | undefined {
    const isStatus = method === METHODS.taskStatus;
    const id = idAt(bytes, isStatus ? tokens.taskId : tokens.relatedTask);
    if (id === undefined) return isStatus ? { client: undefined } : undefined;
    const known = this.#registry.find(backend, id);
    if (known?.client !== undefined) return { client: known.client };
    const { cause } = backend.dispatcher.inFlightCalls;
    // The server may speak of a task before it has answered the request that becomes it.
    if (known === undefined && cause?.request.tokens.task !== undefined) return { client: cause.client };
    const [only, ...others] = backend.clients;
    const isMeant = others.length === 0 && (known === undefined || known.principal === only?.principal);
    return { client: isMeant ? only : undefined };
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

  /** Whether the process has made tasks. */
  has(backend: Backend): boolean {
    return this.#registry.has(backend);
  }

  /** The client is gone. */
  left(client: DownstreamClient, backends: Iterable<Backend>): void {
    for (const backend of backends) this.#registry.left(backend, client);
  }

  /** The process is gone, and its tasks with it. */
  drop(backend: Backend): void {
    this.#registry.drop(backend);
  }

  /** None of a server that does not answer: its tasks are missing, those of the others are not. */
  async #entriesOf(backend: Backend, client: DownstreamClient): Promise<Uint8Array[]> {
    const { connection, listTimeouts } = backend.dispatcher;
    if (connection?.offers('tasks.list') !== true) return [];
    const list = await listAllPages(connection.ask, TASK_LIST, listTimeouts);
    if (list.kind === 'failed') return [];
    return list.entries.flatMap(({ bytes, span }) => {
      const ids = valuesAt(bytes, span, ['taskId']).filter((id) => isString(bytes, id));
      const isOwn = ids.length > 0 && ids.every((id) => this.#isOf(client, backend, readString(bytes, id)));
      const edits = ids.flatMap((id) => replaceId(id, this.nameFor(client, backend, readString(bytes, id))));
      return isOwn ? [splice({ bytes, span, edits })] : [];
    });
  }

  /** Whose task it is that nobody is known to have made is clear only where there is one person. */
  #isOf(client: DownstreamClient, backend: Backend, original: string): boolean {
    const known = this.#registry.find(backend, original);
    return known === undefined ? this.#isPersonal(backend) : known.principal === client.principal;
  }
}

type TaskTarget = Pick<Target, 'backend' | 'edits'> | RpcError;

/** Whose task it is; nobody's who is there, if there is no client. */
interface TaskOwner {
  readonly client: DownstreamClient | undefined;
}

const TASK_LIST = { method: METHODS.listTasks, token: 'resultTasks' } as const;

const LIST_HEAD = toBytes('{"tasks":[');
const LIST_TAIL = toBytes(']}');
const COMMA = toBytes(',');
