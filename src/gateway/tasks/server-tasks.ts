import type { DownstreamClient, Exchange } from '../../downstream/port.js';
import { isString, readString, toBytes, valuesAt } from '../../json/json-text.js';
import { type Edit, splice } from '../../json/splice.js';
import { join } from '../../jsonrpc/message.js';
import { RPC_CODES, RpcError } from '../../jsonrpc/rpc-error.js';
import type { NotificationEnvelope, RequestEnvelope, ResponseEnvelope } from '../../mcp/envelope.js';
import { isTaskResult } from '../../mcp/extensions.js';
import { METHODS } from '../../mcp/methods.js';
import type { RelayedRequest } from '../../mcp/relayed-request.js';
import { type Hmac, idAt, isTerminal, replaceId, unwrapTaskId, wrapTaskId } from '../../mcp/task-id.js';
import { listAllPages } from '../catalog/list-pages.js';
import type { Backend } from '../registry/backend.js';
import type { Target } from '../routing/router.js';

interface ServerTasksOptions {
  readonly seal: Hmac;
  /** Whether only clients of one principal use this process. */
  readonly isPersonal: (backend: Backend) => boolean;
}

/**
 * Tasks that servers create for clients (revision 2025-11-25, and the extension of 2026-07-28): wraps their ids in sealed names that identify the owner,
 * and finds the client for a server's message about a task.
 */
export class ServerTasks {
  readonly #seal: Hmac;
  readonly #isPersonal: (backend: Backend) => boolean;
  readonly #registry = new TaskRegistry();

  constructor({ seal, isPersonal }: ServerTasksOptions) {
    this.#seal = seal;
    this.#isPersonal = isPersonal;
  }

  /** The id under which this client knows a server's task. */
  nameFor(client: DownstreamClient, { key }: Backend, original: string): string {
    return wrapTaskId({ maker: key, original }, client.principal, this.#seal);
  }

  /** The server's id for a task that the client names; `undefined` if it is not this client's task on this server. */
  originalOf(client: DownstreamClient, { key }: Backend, name: string): string | undefined {
    const origin = unwrapTaskId(name, client.principal, this.#seal);
    return origin?.maker === key ? origin.original : undefined;
  }

  /** The target of a request about one task. An id that does not belong to this client reaches no server. */
  target(
    { bytes, tokens, method }: RelayedRequest,
    client: DownstreamClient,
    backends: ReadonlyMap<string, Backend>,
  ): TaskTarget {
    const name = idAt(bytes, tokens.taskId);
    const origin = name === undefined ? undefined : unwrapTaskId(name, client.principal, this.#seal);
    const backend = origin === undefined ? undefined : backends.get(origin.maker);
    if (origin === undefined || backend === undefined) return new RpcError(RPC_CODES.invalidParams, 'Unknown task');
    this.#registry.requested(backend, origin.original, client, method === METHODS.taskResult);
    return { backend, edits: replaceId(tokens.taskId, origin.original) };
  }

  /** The task that the client names, if it belongs to this client as far as is known. */
  owned(
    name: string,
    client: DownstreamClient,
    backends: ReadonlyMap<string, Backend>,
  ): { readonly backend: Backend; readonly original: string } | undefined {
    const origin = unwrapTaskId(name, client.principal, this.#seal);
    const backend = origin === undefined ? undefined : backends.get(origin.maker);
    if (origin === undefined || backend === undefined) return undefined;
    return this.isOf(client, backend, origin.original) ? { backend, original: origin.original } : undefined;
  }

  /** The server's response to a request about a task; returns the edits that name the task as the client does. */
  answered(response: ResponseEnvelope, { client, request }: Exchange, backend: Backend): Edit[] {
    const { bytes, tokens, result } = response;
    const { method } = request;
    if (method === METHODS.taskResult) {
      const name = idAt(request.bytes, request.tokens.taskId);
      const original = name === undefined ? undefined : this.originalOf(client, backend, name);
      if (result !== undefined && original !== undefined) this.#registry.finish(backend, original);
      return [];
    }
    if (method !== METHODS.getTask && method !== METHODS.cancelTask && !isTaskResult(response)) return [];
    const id = idAt(bytes, tokens.resultTaskId);
    if (id !== undefined && isTerminal(bytes, tokens.resultStatus)) this.#registry.finish(backend, id);
    return id === undefined ? [] : replaceId(tokens.resultTaskId, this.nameFor(client, backend, id));
  }

  /** The client's request became this task. `end` ends its progress reports. */
  created(original: string, client: DownstreamClient, backend: Backend, end: () => void, carrier?: TaskCarrier): void {
    this.#registry.created(backend, original, client, end, carrier);
  }

  /** Carrier of the task's messages to its client, if the client's calls do not carry them. */
  carrierOf(original: string, backend: Backend): TaskCarrier | undefined {
    return this.#registry.find(backend, original)?.carrier;
  }

  /** The messages of the task reach this client along `carrier` from now on. */
  carry(original: string, client: DownstreamClient, backend: Backend, carrier: TaskCarrier): void {
    this.#registry.carry(backend, original, client, carrier);
  }

  /** The task is done. */
  finished(original: string, backend: Backend): void {
    this.#registry.finish(backend, original);
  }

  /** Edits of a server's task status notification for this client. */
  editsToward(client: DownstreamClient, backend: Backend, { bytes, tokens, method }: NotificationEnvelope): Edit[] {
    const id = method === METHODS.taskStatus ? idAt(bytes, tokens.taskId) : undefined;
    if (id === undefined) return [];
    if (isTerminal(bytes, tokens.status)) this.#registry.finish(backend, id);
    return replaceId(tokens.taskId, this.nameFor(client, backend, id));
  }

  /**
   * The owner of the task that a server's message names; `undefined` when it names none. Other clients could not do
   * anything with the message.
   */
  ownerOf(backend: Backend, { bytes, tokens, method }: RequestEnvelope | NotificationEnvelope): TaskOwner | undefined {
    const isStatus = method === METHODS.taskStatus;
    const id = idAt(bytes, isStatus ? tokens.taskId : tokens.relatedTask);
    if (id === undefined) return isStatus ? { client: undefined } : undefined;
    const known = this.#registry.find(backend, id);
    const carrier = known?.carrier;
    if (carrier?.isSettled === false) return { client: carrier.client, carrier };
    if (known?.client !== undefined) return { client: known.client, carrier };
    const { cause } = backend.dispatcher.inFlightCalls;
    // The server may mention a task before it has answered the request that created it.
    if (known === undefined && cause?.request.tokens.task !== undefined) return { client: cause.client };
    const [only, ...others] = backend.clients;
    const isOwner = others.length === 0 && (known === undefined || known.principal === only?.principal);
    return { client: isOwner ? only : undefined };
  }

  /** Answers with the client's tasks on all servers. */
  async list(exchange: Exchange, backends: Iterable<Backend>): Promise<void> {
    if (exchange.request.tokens.cursor !== undefined) {
      exchange.fail(new RpcError(RPC_CODES.invalidParams, 'Invalid cursor'));
      return;
    }
    const lists = await Promise.all([...backends].map((backend) => this.#entriesOf(backend, exchange.client)));
    const entries = lists.flat().flatMap((entry, index) => (index === 0 ? [entry] : [COMMA, entry]));
    exchange.succeed(join([LIST_HEAD, ...entries, LIST_TAIL]));
  }

  /** Whether the process has created tasks. */
  has(backend: Backend): boolean {
    return this.#registry.has(backend);
  }

  /** The client has left. */
  left(client: DownstreamClient, backends: Iterable<Backend>): void {
    for (const backend of backends) this.#registry.left(backend, client);
  }

  /** The process has exited, and its tasks ended with it. */
  drop(backend: Backend): void {
    this.#registry.drop(backend);
  }

  /** The tasks of one server; none if the server does not answer, so that the list has those of the other servers. */
  async #entriesOf(backend: Backend, client: DownstreamClient): Promise<Uint8Array[]> {
    const { connection, listTimeouts } = backend.dispatcher;
    if (connection?.offers('tasks.list') !== true) return [];
    const list = await listAllPages(connection, TASK_LIST, listTimeouts);
    if (list.kind === 'failed') return [];
    return list.entries.flatMap(({ bytes }) => {
      const span = { start: 0, end: bytes.length };
      const ids = valuesAt(bytes, span, ['taskId']).filter((id) => isString(bytes, id));
      const isOwn = ids.length > 0 && ids.every((id) => this.isOf(client, backend, readString(bytes, id)));
      const edits = ids.flatMap((id) => replaceId(id, this.nameFor(client, backend, readString(bytes, id))));
      return isOwn ? [splice({ bytes, span, edits })] : [];
    });
  }

  /** Whether the task is this client's. An unknown one is only if a single principal uses the process. */
  isOf(client: DownstreamClient, backend: Backend, original: string): boolean {
    const known = this.#registry.find(backend, original);
    return known === undefined ? this.#isPersonal(backend) : known.principal === client.principal;
  }
}

type TaskTarget = Pick<Target, 'backend' | 'edits'> | RpcError;

/** The owner of a task. `client` is `undefined` if the owner is not connected. */
interface TaskOwner {
  readonly client: DownstreamClient | undefined;
  readonly carrier?: TaskCarrier | undefined;
}

const TASK_LIST = { method: METHODS.listTasks, token: 'resultTasks' } as const;

const LIST_HEAD = toBytes('{"tasks":[');
const LIST_TAIL = toBytes(']}');
const COMMA = toBytes(',');

/** Takes the messages of one task to its client, where the calls of the client in general do not. */
export interface TaskCarrier extends Pick<Exchange, 'client' | 'isSettled' | 'logLevel' | 'requireInput' | 'send'> {
  /** The task is done. */
  end?(): void;
}

/** Limits of known tasks of one server: the oldest is forgotten first, and one with a longer id at once. */
const MAX_KNOWN = 1_024;
const MAX_ID_LENGTH = 1_024;

/** The owner of a server's task, as far as it is known. */
interface KnownTask {
  /** The principal of the owner, which stays known when the client has left. */
  readonly principal: string;
  readonly client: DownstreamClient | undefined;
  /** The client that created the task and gets its progress, until `end` is called. */
  readonly progress: { readonly client: DownstreamClient; readonly end: () => void } | undefined;
  /** Until the task is done. */
  readonly carrier?: TaskCarrier | undefined;
}

/**
 * The owners of servers' tasks, used to deliver what servers send about tasks on their own. It is not needed for requests
 * of clients: the task ids that clients get name their owners themselves.
 */
class TaskRegistry {
  readonly #byBackend = new WeakMap<Backend, Map<string, KnownTask>>();

  find(backend: Backend, original: string): KnownTask | undefined {
    return this.#byBackend.get(backend)?.get(original);
  }

  /** Whether the process has created tasks that are known. */
  has(backend: Backend): boolean {
    return (this.#byBackend.get(backend)?.size ?? 0) > 0;
  }

  /** The client's request became this task. `end` ends its progress reports. */
  created(
    backend: Backend,
    original: string,
    client: DownstreamClient,
    end: () => void,
    carrier: TaskCarrier | undefined,
  ): void {
    this.finish(backend, original);
    this.#set(backend, original, { principal: client.principal, client, progress: { client, end }, carrier });
  }

  /**
   * The client has sent a request about the task. The client becomes the owner if it waits for the result, because the
   * server requests of a task go to the client that waits, or if the task has no other owner.
   */
  requested(backend: Backend, original: string, client: DownstreamClient, isWaiting: boolean): void {
    const known = this.find(backend, original);
    if (known?.client !== undefined && !isWaiting) return;
    const { progress, carrier } = known ?? {};
    this.#set(backend, original, { principal: client.principal, client, progress, carrier });
  }

  /** The task is done. Its owner stays known, because the result may still be requested. */
  finish(backend: Backend, original: string): void {
    const known = this.find(backend, original);
    known?.progress?.end();
    if (known?.carrier === undefined) return;
    this.#set(backend, original, { ...known, carrier: undefined });
    known.carrier.end?.();
  }

  carry(backend: Backend, original: string, client: DownstreamClient, carrier: TaskCarrier): void {
    const { progress } = this.find(backend, original) ?? {};
    this.#set(backend, original, { principal: client.principal, client, progress, carrier });
  }

  /** The client has left. Another client of the same principal may ask for its tasks later. */
  left(backend: Backend, client: DownstreamClient): void {
    const tasks = this.#byBackend.get(backend);
    for (const [original, { principal, client: owner, progress, carrier }] of tasks ?? []) {
      const getsProgress = progress?.client === client;
      if (getsProgress) progress.end();
      if (!getsProgress && owner !== client) continue;
      const left = owner === client ? undefined : owner;
      tasks?.set(original, { principal, client: left, progress: getsProgress ? undefined : progress, carrier });
    }
  }

  /** The process has exited, and its tasks ended with it. */
  drop(backend: Backend): void {
    for (const { progress } of this.#byBackend.get(backend)?.values() ?? []) progress?.end();
    this.#byBackend.delete(backend);
  }

  #set(backend: Backend, original: string, task: KnownTask): void {
    const tasks = this.#byBackend.get(backend) ?? new Map<string, KnownTask>();
    this.#byBackend.set(backend, tasks);
    if (original.length <= MAX_ID_LENGTH) tasks.set(original, task);
    else endNews(task);
    for (const [oldest, each] of tasks) {
      if (tasks.size <= MAX_KNOWN) break;
      tasks.delete(oldest);
      endNews(each);
    }
  }
}

/** Ends the progress and the carrier of a task, whose messages have no receiver any more. */
function endNews({ progress, carrier }: KnownTask): void {
  for (const each of [progress, carrier]) each?.end?.();
}
