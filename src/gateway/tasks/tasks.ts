import type { DownstreamClient, Exchange, GatewaySeals } from '../../downstream/port.js';
import type { OnInternalError } from '../../host/errors/internal-error.js';
import { type Span, stringAt } from '../../wire/json/json-text.js';
import type { Edit } from '../../wire/json/splice.js';
import type { NotificationEnvelope, RequestEnvelope, ResponseEnvelope } from '../../wire/mcp/envelope.js';
import type { RelayedRequest } from '../../wire/mcp/relayed-request.js';
import { replaceId } from '../../wire/mcp/task-id.js';
import type { Translation } from '../dispatch/call.js';
import type { Backend } from '../registry/backend.js';
import { TaskInputs } from './extension-task.js';
import { ClientTasks, ServerTasks } from './task-owners.js';
import { TaskWatches } from './task-watches.js';

type Message = RelayedRequest | RequestEnvelope | NotificationEnvelope | ResponseEnvelope;

/** Tasks of clients and of servers. Each side knows the tasks of the other side under ids that the gateway makes. */
export class Tasks {
  readonly ofServers: ServerTasks;
  readonly ofClients: ClientTasks;
  readonly watches: TaskWatches;
  readonly onInternalError: OnInternalError | undefined;

  /** `isPersonal` says whether only clients of one principal use the processes of this server. */
  constructor(
    { lasting, run, instance }: GatewaySeals,
    isPersonal: (backend: Backend) => boolean,
    onInternalError: OnInternalError | undefined,
  ) {
    this.onInternalError = onInternalError;
    this.ofServers = new ServerTasks(lasting, instance, isPersonal);
    this.ofClients = new ClientTasks(run, instance);
    this.watches = new TaskWatches(this.ofServers, onInternalError);
  }

  /**
   * Returns edits that put the id by which the server knows a task into a client's message, whichever side made the task. The
   * id of a task that is unknown, or not this client's, stays unchanged.
   */
  towardServer(message: Message, client: DownstreamClient, backend: Backend): Edit[] {
    const span = relatedTask(message);
    const name = stringAt(message.bytes, span);
    if (name === undefined) return [];
    const original = this.ofServers.originalOf(client, backend, name);
    return replaceId(span, original ?? this.ofClients.nameFor(client, backend, name));
  }

  /** Returns edits that put the id by which the client knows a task into a server's message, whichever side made the task. */
  towardClient(message: Message, client: DownstreamClient, backend: Backend): Edit[] {
    const span = relatedTask(message);
    const name = stringAt(message.bytes, span);
    if (name === undefined) return [];
    const found = this.ofClients.find(backend, name);
    const own = found?.client === client ? found.original : undefined;
    return replaceId(span, own ?? this.ofServers.nameFor(client, backend, name));
  }

  /** Returns the owner of the task that a server's message names; `undefined` if it names none. */
  ownerOf(backend: Backend, message: RequestEnvelope | NotificationEnvelope): ReturnType<ServerTasks['ownerOf']> {
    const name = stringAt(message.bytes, message.tokens.relatedTask);
    const found = name === undefined ? undefined : this.ofClients.find(backend, name);
    return found ?? this.ofServers.ownerOf(backend, message);
  }

  /** Returns the server's own id of the task that a client's request names. */
  taskOf({ client, request: { bytes, tokens } }: Exchange, backend: Backend): string | undefined {
    const name = stringAt(bytes, tokens.taskId);
    return name === undefined ? undefined : this.ofServers.originalOf(client, backend, name);
  }

  /** Returns the input requests of a task of revision 2025-11-25, for a client that uses the tasks extension of 2026-07-28. */
  inputsOf({ client, request }: Exchange, backend: Backend, original: string): TaskInputs {
    const channel = this.ofServers.channelOf(original, backend);
    const inputs = channel instanceof TaskInputs ? channel : new TaskInputs(backend.dispatcher.options.clock, client);
    inputs.usedBy(client, request);
    this.ofServers.useChannel(original, client, backend, inputs);
    return inputs;
  }

  translationOf(exchange: Exchange, backend: Backend): Translation {
    const { client, request } = exchange;
    return {
      answer: (response, keepProgress) => {
        const { createdTask } = response.tokens;
        const created = request.tokens.task === undefined ? undefined : stringAt(response.bytes, createdTask);
        if (created !== undefined) this.ofServers.created(created, client, backend, keepProgress());
        return [
          ...(created === undefined ? [] : replaceId(createdTask, this.ofServers.nameFor(client, backend, created))),
          ...this.ofServers.answered(response, exchange, backend),
          ...this.towardClient(response, client, backend),
        ];
      },
      progress: (notification) => this.towardClient(notification, client, backend),
      cancel: (notification) => this.towardServer(notification, client, backend),
    };
  }

  left(client: DownstreamClient, backends: Iterable<Backend>): void {
    this.ofServers.left(client, backends);
    this.ofClients.left(client);
  }

  drop(backend: Backend): void {
    this.ofServers.drop(backend);
    this.ofClients.drop(backend);
    this.watches.drop(backend);
  }
}

/** Returns the position at which a message names the task that it belongs to. */
function relatedTask(message: Message): Span | undefined {
  const isResponse = 'kind' in message && message.kind === 'response';
  return isResponse ? message.tokens.resultRelatedTask : message.tokens.relatedTask;
}
