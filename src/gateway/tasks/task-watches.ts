import type { DownstreamClient } from '../../downstream/port.js';
import { type OnInternalError, withErrorBoundaryAsync } from '../../host/errors/internal-error.js';
import type { UpstreamConnection } from '../../upstream/upstream-connection.js';
import { REMOVED, rewriteObject } from '../../wire/json/edit-members.js';
import { type Span, stringAt, valuesAt } from '../../wire/json/json-text.js';
import type { Edit } from '../../wire/json/splice.js';
import { RpcError } from '../../wire/jsonrpc/message.js';
import { claimsInTask } from '../../wire/mcp/claimed-facts.js';
import type { NotificationEnvelope } from '../../wire/mcp/envelope.js';
import { METHODS } from '../../wire/mcp/methods.js';
import { ownNotification, ownResponse } from '../../wire/mcp/relayed-request.js';
import { isModernRevision } from '../../wire/mcp/revisions.js';
import { signedInputs } from '../../wire/mcp/signed-questions.js';
import { isTerminal, replaceId } from '../../wire/mcp/task-id.js';
import type { Backend } from '../registry/backend.js';
import { TaskInputs, toTaskState } from './extension-task.js';
import type { ServerTasks } from './task-owners.js';

interface Watch {
  readonly client: DownstreamClient;
  /** The id under which the client knows the task. */
  readonly name: string;
  /** Called with whether this client's task reports its state, and with `false` if its process ends after that. */
  readonly settled: (agreed: boolean) => void;
}

interface WatchedTask {
  readonly watches: Set<Watch>;
  isAgreed: boolean;
  end: () => void;
  /** Number of states that the server has sent. */
  states: number;
}

/** Sends `notifications/tasks` to the clients that watch the task. Sealed ids protect the tasks of other users. */
export class TaskWatches {
  readonly #tasks: ServerTasks;
  readonly #onInternalError: OnInternalError | undefined;
  readonly #byBackend = new WeakMap<Backend, Map<string, WatchedTask>>();

  constructor(tasks: ServerTasks, onInternalError: OnInternalError | undefined) {
    this.#tasks = tasks;
    this.#onInternalError = onInternalError;
  }

  /** Watches a task of one of these servers for a client. Returns a function that ends the watch. */
  watch(watch: Watch, backends: ReadonlyMap<string, Backend>): () => void {
    const found = this.#tasks.named(watch.name, watch.client, backends);
    const connection = found?.backend.dispatcher.connection;
    const isOwn = found !== undefined && this.#tasks.isOf(watch.client, found.backend, found.original);
    if (!isOwn || connection === undefined || connection.isClosed) {
      watch.settled(false);
      return () => {};
    }
    const { backend, original } = found;
    const tasks = this.#byBackend.get(backend) ?? new Map<string, WatchedTask>();
    this.#byBackend.set(backend, tasks);
    const known = tasks.get(original);
    const watched: WatchedTask = known ?? { watches: new Set(), isAgreed: false, end: () => {}, states: 0 };
    tasks.set(original, watched);
    watched.watches.add(watch);
    if (watched.isAgreed) {
      watch.settled(true);
      // Asks for the state, because the server may have sent it before and may have nothing more to send.
      if (connection.watchTask === undefined) this.#ask(connection, backend, original, () => {});
    } else if (known === undefined) {
      watched.end = this.#ask(connection, backend, original, (agreed) => {
        if (tasks.get(original) !== watched) return;
        watched.isAgreed = agreed;
        if (!agreed) tasks.delete(original);
        for (const { settled } of [...watched.watches]) settled(agreed);
      });
    }
    return () => {
      if (!watched.watches.delete(watch) || watched.watches.size > 0 || tasks.get(original) !== watched) return;
      tasks.delete(original);
      watched.end();
    };
  }

  /** Relays a state from the server to the clients that watch the task and may see it. */
  notified(backend: Backend, notification: NotificationEnvelope): void {
    const { bytes, tokens, params } = notification;
    const original = stringAt(bytes, tokens.taskId);
    if (original === undefined || params === undefined) return;
    if (notification.method !== METHODS.taskState) {
      this.#stated(backend, original, bytes, params);
      return;
    }
    const [inputs] = valuesAt(bytes, params, ['inputRequests']);
    const signed = inputs === undefined ? [] : signedInputs(backend.key, bytes, inputs);
    // A client that asks for the state gets the reason why a question is not shown.
    if (!(signed instanceof RpcError))
      this.#tell(backend, original, notification, [...signed, ...claimsInTask(bytes, params)]);
    // The server reports nothing more about a finished task, so a later watch must ask the server again.
    const tasks = this.#byBackend.get(backend);
    if (tasks?.get(original)?.isAgreed === true && isTerminal(bytes, tokens.status)) tasks.delete(original);
  }

  /** Ends the watches of a process that has exited, because its tasks ended with it. */
  drop(backend: Backend): void {
    const tasks = this.#byBackend.get(backend);
    this.#byBackend.delete(backend);
    const all = [...(tasks?.values() ?? [])];
    tasks?.clear();
    for (const { watches } of all) for (const { settled } of [...watches]) settled(false);
  }

  #ask(
    connection: UpstreamConnection,
    backend: Backend,
    taskId: string,
    answered: (agreed: boolean) => void,
  ): () => void {
    if (connection.watchTask !== undefined) return connection.watchTask(taskId, answered);
    // These servers report every task that they have, so the gateway asks only whether the task exists.
    const known = connection.request(METHODS.getTask, { taskId }, backend.dispatcher.listTimeouts).then((outcome) => {
      const response = outcome.kind === 'answered' ? outcome.response : undefined;
      answered(response?.result !== undefined);
      if (response?.result === undefined) return;
      const { bytes, result, tokens } = response;
      // The server may have reported this state before the watch began, and may have nothing more to report.
      if (stringAt(bytes, tokens.resultStatus) !== 'working') this.#stated(backend, taskId, bytes, result);
    });
    void withErrorBoundaryAsync(known, this.#onInternalError);
    return () => {};
  }

  /** Relays the state of a task that a server of revision 2025-11-25 has sent. */
  #stated(backend: Backend, original: string, bytes: Uint8Array, { start, end }: Span): void {
    const watched = this.#byBackend.get(backend)?.get(original);
    if (watched === undefined) return;
    watched.states += 1;
    // Copies the state, because the memory of the message is reused soon.
    const told = this.#tellLegacy(backend, original, bytes.slice(start, end), watched, watched.states);
    void withErrorBoundaryAsync(told, this.#onInternalError);
  }

  /** Sends the state of a task of revision 2025-11-25 as `tasks/get` would answer it, unless a newer state has come. */
  async #tellLegacy(
    backend: Backend,
    original: string,
    state: Uint8Array,
    watched: WatchedTask,
    number: number,
  ): Promise<void> {
    const { dispatcher } = backend;
    const { connection } = dispatcher;
    const [watch] = watched.watches;
    if (connection === undefined || isModernRevision(connection.revision) || watch === undefined) return;
    const channel = this.#tasks.channelOf(original, backend);
    const inputs = channel instanceof TaskInputs ? channel : new TaskInputs(dispatcher.options.clock, watch.client);
    const task = rewriteObject(state, { start: 0, end: state.length }, { change: withoutMeta });
    const outcome = await toTaskState(ownResponse(task), { connection, dispatcher, inputs });
    if (outcome.kind === 'failed' || watched.states !== number) return;
    const { bytes, result } = outcome.response;
    if (result === undefined) return;
    const change = (name: string) => (name === 'resultType' ? REMOVED : undefined);
    const message = ownNotification(METHODS.taskState, rewriteObject(bytes, result, { change }));
    if (message?.params === undefined) return;
    this.#tell(backend, original, message, claimsInTask(message.bytes, message.params));
  }

  #tell(backend: Backend, original: string, notification: NotificationEnvelope, signed: readonly Edit[] = []): void {
    const { watches = [] } = this.#byBackend.get(backend)?.get(original) ?? {};
    for (const { client, name } of watches) {
      const isOwn = this.#tasks.isOf(client, backend, original);
      if (isOwn) client.notify(notification, [...signed, ...replaceId(notification.tokens.taskId, name)]);
    }
  }
}

function withoutMeta(name: string): typeof REMOVED | undefined {
  return name === '_meta' ? REMOVED : undefined;
}
