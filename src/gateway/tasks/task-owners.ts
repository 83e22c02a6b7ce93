import type { DownstreamClient, Exchange } from '../../downstream/port.js';
import {
  elementsOf,
  isString,
  readString,
  readText,
  type Span,
  stringAt,
  toBytes,
  valuesAt,
} from '../../wire/json/json-text.js';
import { type Edit, splice } from '../../wire/json/splice.js';
import { join, jsonArray, RPC_CODES, RpcError } from '../../wire/jsonrpc/message.js';
import type { NotificationEnvelope, RequestEnvelope, ResponseEnvelope } from '../../wire/mcp/envelope.js';
import { isTaskResult } from '../../wire/mcp/extensions.js';
import { METHODS, TASK_METHODS } from '../../wire/mcp/methods.js';
import type { RelayedRequest } from '../../wire/mcp/relayed-request.js';
import { type Hmac, isTerminal, replaceId, unwrapTaskId, wrapTaskId } from '../../wire/mcp/task-id.js';
import { asksFirstPage, listAllPages } from '../catalog/pagination.js';
import type { Backend } from '../registry/backend.js';
import type { Target } from '../routing/router.js';

/** Tasks that servers create for clients, under sealed ids that identify the owner. */
export class ServerTasks {
  readonly #seal: Hmac;
  readonly #instance: string;
  readonly #isPersonal: (backend: Backend) => boolean;
  /** Tasks by the servers' ids. Only messages of servers need them, because the ids that clients use name the owners. */
  readonly #byBackend = new WeakMap<Backend, Map<string, KnownTask>>();

  /** `instance` is the name of this process. `isPersonal` says whether only clients of one principal use a process. */
  constructor(seal: Hmac, instance: string, isPersonal: (backend: Backend) => boolean) {
    this.#seal = seal;
    this.#instance = instance;
    this.#isPersonal = isPersonal;
  }

  nameFor(client: DownstreamClient, backend: Backend, original: string): string {
    const instance = this.#find(backend, original)?.instance ?? this.#instance;
    return wrapTaskId({ maker: backend.key, instance, original }, client.principal, this.#seal);
  }

  /** Returns the server's id for a task that the client names; `undefined` if the task is not this client's. */
  originalOf(client: DownstreamClient, { key }: Backend, name: string): string | undefined {
    const origin = unwrapTaskId(name, client.principal, this.#seal);
    return origin?.maker === key ? origin.original : undefined;
  }

  /**
   * Returns backend and original id of a task that the client names; `undefined` if the id was not made for this client.
   * `instance` is the process that made the id, if that is not this process.
   */
  named(name: string, client: DownstreamClient, backends: Backends) {
    const origin = unwrapTaskId(name, client.principal, this.#seal);
    const backend = origin && backends.get(origin.maker);
    if (origin === undefined || backend === undefined) return undefined;
    const { original, instance } = origin;
    return { backend, original, instance: instance === this.#instance ? undefined : instance };
  }

  /**
   * Returns the target of a request about one task. An id that does not belong to this client reaches no server.
   *
   * The client becomes the owner if the task has no other owner, or if the client waits for the result, because the
   * server requests of a task go to the client that waits.
   */
  target({ bytes, tokens, method }: RelayedRequest, client: DownstreamClient, backends: Backends): Target | RpcError {
    const name = stringAt(bytes, tokens.taskId);
    const found = name === undefined ? undefined : this.named(name, client, backends);
    if (found === undefined) return new RpcError(RPC_CODES.invalidParams, 'Unknown task');
    const { backend, original, instance } = found;
    const known = this.#find(backend, original);
    const { client: owner = client } = method === METHODS.taskResult ? {} : (known ?? {});
    this.#set(backend, original, { ...known, principal: owner.principal, client: owner, instance });
    return { backend, edits: replaceId(tokens.taskId, original) };
  }

  /** Handles the server's response to a request about a task. Returns the edits that name the task as the client does. */
  answered(response: ResponseEnvelope, exchange: Exchange, backend: Backend): Edit[] {
    const { bytes, tokens, result, error } = response;
    const { client, request } = exchange;
    const { method } = request;
    if (error !== undefined) return this.#refused(response, exchange, backend);
    if (method === METHODS.taskResult) {
      const name = stringAt(request.bytes, request.tokens.taskId);
      const original = name === undefined ? undefined : this.originalOf(client, backend, name);
      if (result !== undefined && original !== undefined) this.finished(original, backend);
      return [];
    }
    if (method !== METHODS.getTask && method !== METHODS.cancelTask && !isTaskResult(response)) return [];
    const id = stringAt(bytes, tokens.resultTaskId);
    if (id !== undefined && isTerminal(bytes, tokens.resultStatus)) this.finished(id, backend);
    return id === undefined ? [] : replaceId(tokens.resultTaskId, this.nameFor(client, backend, id));
  }

  /** Records that the client's request became this task. `end` ends its progress reports. */
  created(original: string, client: DownstreamClient, backend: Backend, end: () => void, channel?: TaskChannel): void {
    this.finished(original, backend);
    this.#set(backend, original, { principal: client.principal, client, progress: { client, end }, channel });
  }

  /** Channel for the task's messages to its client, if the client's calls do not carry them. */
  channelOf(original: string, backend: Backend): TaskChannel | undefined {
    return this.#find(backend, original)?.channel;
  }

  /** Sends the messages of the task to this client along `channel` from now on. */
  useChannel(original: string, client: DownstreamClient, backend: Backend, channel: TaskChannel): void {
    this.#set(backend, original, { ...this.#find(backend, original), principal: client.principal, client, channel });
  }

  /** Records that the task is done. Its owner stays known, because the result may still be requested. */
  finished(original: string, backend: Backend): void {
    const known = this.#find(backend, original);
    known?.progress?.end();
    if (known?.channel === undefined) return;
    this.#set(backend, original, { ...known, channel: undefined });
    known.channel.end?.();
  }

  /** Returns the edits of a server's task status notification for this client. */
  editsToward(client: DownstreamClient, backend: Backend, { bytes, tokens, method }: NotificationEnvelope): Edit[] {
    const id = method === METHODS.taskStatus ? stringAt(bytes, tokens.taskId) : undefined;
    if (id === undefined) return [];
    if (isTerminal(bytes, tokens.status)) this.finished(id, backend);
    return replaceId(tokens.taskId, this.nameFor(client, backend, id));
  }

  /** Returns the owner of the task that a server's message names, who alone can use the task; `undefined` if it names none. */
  ownerOf(backend: Backend, { bytes, tokens, method }: RequestEnvelope | NotificationEnvelope): TaskOwner | undefined {
    const isStatus = method === METHODS.taskStatus;
    const id = stringAt(bytes, isStatus ? tokens.taskId : tokens.relatedTask);
    if (id === undefined) return isStatus ? { client: undefined } : undefined;
    const known = this.#find(backend, id);
    const channel = known?.channel;
    if (channel?.isSettled === false) return { client: channel.client, channel };
    if (known?.client !== undefined) return { client: known.client, channel };
    const { cause } = backend.dispatcher.inFlightCalls;
    // The server may mention a task before it has answered the request that created it.
    if (known === undefined && cause?.request.tokens.task !== undefined) return { client: cause.client };
    const [only, ...others] = backend.clients;
    const isOwner = others.length === 0 && (known === undefined || known.principal === only?.principal);
    return { client: isOwner ? only : undefined };
  }

  /** Returns edits that explain the error of a server that does not know a task of another process of the gateway. */
  #refused({ bytes, tokens, error }: ResponseEnvelope, { client, request }: Exchange, backend: Backend): Edit[] {
    const code = tokens.errorCode === undefined ? undefined : readText(bytes, tokens.errorCode);
    const isAboutTask = TASK_METHODS.has(request.method) && code === String(RPC_CODES.invalidParams);
    const name = isAboutTask ? stringAt(request.bytes, request.tokens.taskId) : undefined;
    const original = name === undefined ? undefined : this.originalOf(client, backend, name);
    if (error === undefined || original === undefined) return [];
    if (this.#find(backend, original)?.instance === undefined) return [];
    return [{ span: error, text: toBytes(JSON.stringify(TASK_ELSEWHERE)) }];
  }

  async list(exchange: Exchange, backends: Iterable<Backend>): Promise<void> {
    if (!asksFirstPage(exchange.request)) {
      exchange.fail(new RpcError(RPC_CODES.invalidParams, 'Invalid cursor'));
      return;
    }
    const lists = await Promise.all([...backends].map((backend) => this.#entriesOf(backend, exchange.client)));
    exchange.succeed(join([LIST_HEAD, jsonArray(lists.flat()), LIST_TAIL]));
  }

  /** Whether the process has created tasks, whose results would be lost if it stopped. */
  has(backend: Backend): boolean {
    return (this.#byBackend.get(backend)?.size ?? 0) > 0;
  }

  /** Records that the client has left. Another client of the same principal may ask for its tasks later. */
  left(client: DownstreamClient, backends: Iterable<Backend>): void {
    for (const backend of backends) {
      for (const [original, task] of this.#byBackend.get(backend) ?? []) {
        const owner = task.client === client ? undefined : task.client;
        const progress = task.progress?.client === client ? undefined : task.progress;
        if (progress !== task.progress) task.progress?.end();
        this.#set(backend, original, { ...task, client: owner, progress });
      }
    }
  }

  /** Forgets the tasks of a process that has exited. */
  drop(backend: Backend): void {
    for (const { progress } of this.#byBackend.get(backend)?.values() ?? []) progress?.end();
    this.#byBackend.delete(backend);
  }

  /** Reads the tasks of one server. Returns none if it fails, so that the merged list has those of other servers. */
  async #entriesOf(backend: Backend, client: DownstreamClient): Promise<Uint8Array[]> {
    const { connection, listTimeouts } = backend.dispatcher;
    if (connection?.offers('tasks.list') !== true) return [];
    const list = await listAllPages(connection, TASK_LIST, listTimeouts);
    if (list.kind === 'failed') return [];
    const nameOf = (id: string) => (this.isOf(client, backend, id) ? this.nameFor(client, backend, id) : undefined);
    return list.entries.flatMap(({ bytes }) => renamedEntry(bytes, nameOf));
  }

  /** Whether the task is this client's. An unknown task is, if a single principal uses the process. */
  isOf(client: DownstreamClient, backend: Backend, original: string): boolean {
    const known = this.#find(backend, original);
    return known === undefined ? this.#isPersonal(backend) : known.principal === client.principal;
  }

  #find(backend: Backend, original: string): KnownTask | undefined {
    return this.#byBackend.get(backend)?.get(original);
  }

  #set(backend: Backend, original: string, task: KnownTask): void {
    const tasks = this.#byBackend.get(backend) ?? new Map<string, KnownTask>();
    this.#byBackend.set(backend, tasks);
    remember(tasks, original, task, ({ progress, channel }) => {
      progress?.end();
      channel?.end?.();
    });
  }
}

type Backends = ReadonlyMap<string, Backend>;

/** The owner of a task. `client` is `undefined` if the owner is not connected. */
interface TaskOwner {
  readonly client: DownstreamClient | undefined;
  readonly channel?: TaskChannel | undefined;
}

const TASK_ELSEWHERE = new RpcError(
  RPC_CODES.invalidParams,
  'Another process of Trunkline made this task, and the server of this process does not know the task. Either the server that ran the task has ended, or the task still runs elsewhere. Whether the task took effect is unknown: check before repeating it',
);

const TASK_LIST = { method: METHODS.listTasks, token: 'resultTasks' } as const;

const LIST_HEAD = toBytes('{"tasks":');
const LIST_TAIL = toBytes('}');

/** Sends the messages of one task to its client, if the other calls of the client do not carry them. */
export interface TaskChannel {
  readonly client: Exchange['client'];
  readonly isSettled: boolean;
  readonly logLevel: Exchange['logLevel'];
  readonly requireInput: Exchange['requireInput'];
  readonly send: Exchange['send'];
  end?(): void;
}

interface KnownTask {
  /** The principal of the owner, which stays known after the client has left. */
  readonly principal: string;
  readonly client: DownstreamClient | undefined;
  /** The process of the gateway that named the task, if that is not this process. */
  readonly instance?: string | undefined;
  /** The client that created the task and gets its progress, until `end` is called. */
  readonly progress?: { readonly client: DownstreamClient; readonly end: () => void } | undefined;
  readonly channel?: TaskChannel | undefined;
}

/** Limits of the known tasks of one maker. The oldest is forgotten first. A task with a longer id is not remembered. */
const MAX_KNOWN = 1_024;
const MAX_ID_LENGTH = 1_024;

/** Adds a task to those of its maker. Calls `forget` for each task that is forgotten. */
function remember<Task>(tasks: Map<string, Task>, id: string, task: Task, forget: (task: Task) => void): void {
  if (id.length <= MAX_ID_LENGTH) tasks.set(id, task);
  else forget(task);
  const [oldest] = tasks;
  if (tasks.size <= MAX_KNOWN || oldest === undefined) return;
  tasks.delete(oldest[0]);
  forget(oldest[1]);
}

/** Returns the entry of a task list under the id that the other side knows; nothing if `nameOf` has no id. */
function renamedEntry(bytes: Uint8Array, nameOf: (id: string) => string | undefined): Uint8Array[] {
  const span = { start: 0, end: bytes.length };
  const ids = valuesAt(bytes, span, ['taskId']).filter((id) => isString(bytes, id));
  const edits = ids.flatMap((id) => replaceId(id, nameOf(readString(bytes, id))));
  return ids.length > 0 && edits.length === ids.length ? [splice({ bytes, span, edits })] : [];
}

interface ClientTask {
  readonly backend: Backend;
  readonly end: () => void;
}

/** Tasks that clients create for servers (revision 2025-11-25), under sealed ids that identify the client. */
export class ClientTasks {
  readonly #seal: Hmac;
  readonly #instance: string;
  /** The tasks of each client by its own ids. `maker` identifies the client in the sealed ids. */
  readonly #byClient = new Map<DownstreamClient, { readonly maker: string; readonly tasks: Map<string, ClientTask> }>();
  #count = 0;

  constructor(seal: Hmac, instance: string) {
    this.#seal = seal;
    this.#instance = instance;
  }

  /** Returns the id under which this server knows a client's task; `undefined` if the task was not made for it. */
  nameFor(client: DownstreamClient, backend: Backend, original: string): string | undefined {
    const known = this.#byClient.get(client);
    if (known === undefined || known.tasks.get(original)?.backend !== backend) return undefined;
    return wrapTaskId({ maker: known.maker, instance: this.#instance, original }, backend.id, this.#seal);
  }

  /** Returns the client of a task that a server names, and the client's own id of the task. */
  find(backend: Backend, name: string): { client: DownstreamClient; original: string } | undefined {
    const origin = unwrapTaskId(name, backend.id, this.#seal);
    const [client] = [...this.#byClient].find(([, { maker }]) => maker === origin?.maker) ?? [];
    // A server may still use a name from an earlier run, in which the same maker was another client.
    const isKnown = origin && client && this.nameFor(client, backend, origin.original) === name;
    return isKnown ? { client, original: origin.original } : undefined;
  }

  /** Returns the client for a server's request about one task. */
  target(
    { bytes, tokens }: RequestEnvelope,
    backend: Backend,
  ): { client: DownstreamClient; edits: Edit[] } | undefined {
    const name = stringAt(bytes, tokens.taskId);
    const found = name === undefined ? undefined : this.find(backend, name);
    return found && { client: found.client, edits: replaceId(tokens.taskId, found.original) };
  }

  /** Returns the edits of a client's response. `keepProgress` relays later progress, until the returned function is called. */
  answered(
    request: RequestEnvelope,
    { bytes, tokens, result }: ResponseEnvelope,
    client: DownstreamClient,
    backend: Backend,
    keepProgress: () => () => void,
  ): Edit[] {
    const edit = (span: Span | undefined) => {
      const id = stringAt(bytes, span);
      return replaceId(span, id === undefined ? undefined : this.nameFor(client, backend, id));
    };
    switch (request.method) {
      case METHODS.listTasks:
        return this.#ownEntries(bytes, tokens.resultTasks, client, backend);
      case METHODS.taskResult:
        if (result !== undefined) this.#finish(client, this.#taskOf(request, backend));
        return [];
      case METHODS.getTask:
      case METHODS.cancelTask:
        if (isTerminal(bytes, tokens.resultStatus)) this.#finish(client, this.#taskOf(request, backend));
        return edit(tokens.resultTaskId);
      default: {
        const created = request.tokens.task === undefined ? undefined : stringAt(bytes, tokens.createdTask);
        if (created === undefined) return [];
        this.#note(client, created, { backend, end: keepProgress() });
        return edit(tokens.createdTask);
      }
    }
  }

  /** Returns the server for a client's task status notification; `undefined` if no server waits for it. */
  holderOf(client: DownstreamClient, { bytes, tokens }: NotificationEnvelope): Target | undefined {
    const id = stringAt(bytes, tokens.taskId);
    const task = id === undefined ? undefined : this.#byClient.get(client)?.tasks.get(id);
    if (id === undefined || task === undefined) return undefined;
    if (isTerminal(bytes, tokens.status)) task.end();
    return { backend: task.backend, edits: replaceId(tokens.taskId, this.nameFor(client, task.backend, id)) };
  }

  left(client: DownstreamClient): void {
    this.#byClient.delete(client);
  }

  /** Forgets the tasks that were created for a process, because the next process does not know them. */
  drop(backend: Backend): void {
    for (const { tasks } of this.#byClient.values()) {
      for (const [id, task] of tasks) {
        if (task.backend !== backend) continue;
        task.end();
        tasks.delete(id);
      }
    }
  }

  #taskOf(request: RequestEnvelope, backend: Backend): string | undefined {
    const name = stringAt(request.bytes, request.tokens.taskId);
    return name === undefined ? undefined : this.find(backend, name)?.original;
  }

  #finish(client: DownstreamClient, original: string | undefined): void {
    if (original !== undefined) this.#byClient.get(client)?.tasks.get(original)?.end();
  }

  #note(client: DownstreamClient, original: string, task: ClientTask): void {
    const { tasks } = this.#of(client);
    tasks.get(original)?.end();
    remember(tasks, original, task, ({ end }) => end());
  }

  #of(client: DownstreamClient) {
    const known = this.#byClient.get(client);
    if (known !== undefined) return known;
    this.#count += 1;
    // No server's key contains this character.
    const added = { maker: `~${this.#count}`, tasks: new Map<string, ClientTask>() };
    this.#byClient.set(client, added);
    return added;
  }

  /** Removes the tasks that were created for other servers from a client's list. */
  #ownEntries(bytes: Uint8Array, list: Span | undefined, client: DownstreamClient, backend: Backend): Edit[] {
    if (list === undefined) return [];
    const entries = elementsOf(bytes, list).flatMap(({ start, end }) => {
      return renamedEntry(bytes.subarray(start, end), (id) => this.nameFor(client, backend, id));
    });
    return [{ span: list, text: jsonArray(entries) }];
  }
}
