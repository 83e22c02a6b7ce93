import type { DownstreamClient } from '../../downstream/port.js';
import { type Span, stringAt, visitElements } from '../../json/json-text.js';
import type { Edit } from '../../json/splice.js';
import type { NotificationEnvelope, RequestEnvelope, ResponseEnvelope } from '../../mcp/envelope.js';
import { METHODS } from '../../mcp/methods.js';
import { type Hmac, isTerminal, replaceId, unwrapTaskId, wrapTaskId } from '../../mcp/task-id.js';
import type { Backend } from '../registry/backend.js';
import type { Target } from '../routing/router.js';
import { remember, renamedEntry, taskList } from './server-tasks.js';

/** The tasks of one client. */
interface TasksOfClient {
  /** Identifies the client in the sealed task ids. */
  readonly maker: string;
  /** By the client's own ids. */
  readonly tasks: Map<string, ClientTask>;
}

interface ClientTask {
  /** The server that the task was created for. */
  readonly backend: Backend;
  /** Ends its progress reports. */
  readonly end: () => void;
}

/**
 * Tasks that clients create for servers (revision 2025-11-25): wraps their ids in sealed names that identify the client,
 * because several clients may share a server.
 */
export class ClientTasks {
  readonly #seal: Hmac;
  readonly #byClient = new Map<DownstreamClient, TasksOfClient>();
  #count = 0;

  constructor(seal: Hmac) {
    this.#seal = seal;
  }

  /** The id under which this server knows a client's task; `undefined` if it was not created for this server. */
  nameFor(client: DownstreamClient, backend: Backend, original: string): string | undefined {
    const known = this.#byClient.get(client);
    if (known === undefined || known.tasks.get(original)?.backend !== backend) return undefined;
    return wrapTaskId({ maker: known.maker, original }, backend.id, this.#seal);
  }

  /** The client and its own id for a task that a server names. */
  find(backend: Backend, name: string): FoundTask | undefined {
    const origin = unwrapTaskId(name, backend.id, this.#seal);
    const [client] = [...this.#byClient].find(([, { maker }]) => maker === origin?.maker) ?? [];
    // A server may still use a name of an earlier run, in which the same maker was another client.
    const isKnown = origin && client && this.nameFor(client, backend, origin.original) === name;
    return isKnown ? { client, original: origin.original } : undefined;
  }

  /** The client that a server's request about one task is for. */
  target(
    { bytes, tokens }: RequestEnvelope,
    backend: Backend,
  ): { client: DownstreamClient; edits: Edit[] } | undefined {
    const name = stringAt(bytes, tokens.taskId);
    const found = name === undefined ? undefined : this.find(backend, name);
    return found && { client: found.client, edits: replaceId(tokens.taskId, found.original) };
  }

  /**
   * Edits of a client's response before the server gets it. Calling `keepProgress` relays the client's progress after
   * the response, until the function it returns is called.
   */
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

  /** The server that a client's task status notification is for; `undefined` if no server waits for it. */
  holderOf(
    client: DownstreamClient,
    { bytes, tokens }: NotificationEnvelope,
  ): Pick<Target, 'backend' | 'edits'> | undefined {
    const id = stringAt(bytes, tokens.taskId);
    const task = id === undefined ? undefined : this.#byClient.get(client)?.tasks.get(id);
    if (id === undefined || task === undefined) return undefined;
    if (isTerminal(bytes, tokens.status)) task.end();
    return { backend: task.backend, edits: replaceId(tokens.taskId, this.nameFor(client, task.backend, id)) };
  }

  /** The client has left, and its tasks ended with it. */
  left(client: DownstreamClient): void {
    this.#byClient.delete(client);
  }

  /** The process has exited. The next one does not know the tasks that were created for it. */
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

  #of(client: DownstreamClient): TasksOfClient {
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
    const entries: Uint8Array[] = [];
    visitElements(bytes, list.start, Number.POSITIVE_INFINITY, ({ start, end }) => {
      entries.push(...renamedEntry(bytes.subarray(start, end), (id) => this.nameFor(client, backend, id)));
    });
    return [{ span: list, text: taskList(entries) }];
  }
}

interface FoundTask {
  readonly client: DownstreamClient;
  /** The client's own id for the task. */
  readonly original: string;
}
