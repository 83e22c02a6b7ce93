import type { DownstreamClient, Exchange } from '../../downstream/port.js';
import type { Span } from '../../json/json-text.js';
import type { Edit } from '../../json/splice.js';
import type { NotificationEnvelope, RequestEnvelope, ResponseEnvelope } from '../../mcp/envelope.js';
import type { Hmac } from '../../mcp/exposed-name.js';
import type { RelayedRequest } from '../../mcp/relayed-request.js';
import type { Translation } from '../dispatch/handling.js';
import type { Backend } from '../registry/backend.js';
import { ClientTasks } from './client-tasks.js';
import { ServerTasks } from './server-tasks.js';
import { idAt, replaceId } from './task-id-edits.js';

export interface TasksOptions {
  /** Under a key that outlives us: clients keep the ids of servers' tasks. */
  readonly seal: Hmac;
  /** Under a key of this run alone: a client's tasks end with it. */
  readonly runSeal: Hmac;
  /** Whether only one person's clients ever use this process. */
  readonly isPersonal: (backend: Backend) => boolean;
}

type Message = RelayedRequest | RequestEnvelope | NotificationEnvelope | ResponseEnvelope;

/**
 * The tasks of both sides (revision 2025-11-25), and what has to be replaced in any message that belongs to one: each
 * side knows the other's tasks under names that we give them.
 */
export class Tasks {
  readonly ofServers: ServerTasks;
  readonly ofClients: ClientTasks;

  constructor({ seal, runSeal, isPersonal }: TasksOptions) {
    this.ofServers = new ServerTasks({ seal, isPersonal });
    this.ofClients = new ClientTasks(runSeal);
  }

  /** Names the task that a client's message belongs to as the server does. What we did not name may mean something. */
  towardServer(message: Message, client: DownstreamClient, backend: Backend): Edit[] {
    const span = relatedTask(message);
    const name = idAt(message.bytes, span);
    if (name === undefined) return [];
    const original = this.ofServers.originalOf(client, backend, name);
    return replaceId(span, original ?? this.ofClients.nameFor(client, backend, name));
  }

  /** Names the task that a server's message belongs to as the client does. */
  towardClient(message: Message, client: DownstreamClient, backend: Backend): Edit[] {
    const span = relatedTask(message);
    const name = idAt(message.bytes, span);
    if (name === undefined) return [];
    const found = this.ofClients.find(backend, name);
    const own = found?.client === client ? found.original : undefined;
    return replaceId(span, own ?? this.ofServers.nameFor(client, backend, name));
  }

  /** The client that a server's message is for because of the task that it names; `undefined` when it names none. */
  ownerOf(backend: Backend, message: RequestEnvelope | NotificationEnvelope): ReturnType<ServerTasks['ownerOf']> {
    const name = idAt(message.bytes, message.tokens.relatedTask);
    const maker = name === undefined ? undefined : this.ofClients.find(backend, name);
    return maker ?? this.ofServers.ownerOf(backend, message);
  }

  /** What is replaced on the way of an exchange that has to do with tasks. */
  translationOf(exchange: Exchange, backend: Backend): Translation {
    const { client, request } = exchange;
    return {
      answer: (response, keepProgress) => {
        const { createdTask } = response.tokens;
        const made = request.tokens.task === undefined ? undefined : idAt(response.bytes, createdTask);
        if (made !== undefined) this.ofServers.made(made, client, backend, keepProgress());
        return [
          ...(made === undefined ? [] : replaceId(createdTask, this.ofServers.nameFor(client, backend, made))),
          ...this.ofServers.answered(response, exchange, backend),
          ...this.towardClient(response, client, backend),
        ];
      },
      progress: (notification) => this.towardClient(notification, client, backend),
      cancel: (notice) => this.towardServer(notice, client, backend),
    };
  }

  /** Whether the process has made tasks, whose results end with it. */
  has(backend: Backend): boolean {
    return this.ofServers.has(backend);
  }

  /** The client is gone. */
  left(client: DownstreamClient, backends: Iterable<Backend>): void {
    this.ofServers.left(client, backends);
    this.ofClients.left(client);
  }

  /** The process is gone. */
  drop(backend: Backend): void {
    this.ofServers.drop(backend);
    this.ofClients.drop(backend);
  }
}

/** The place where a message names the task that it belongs to. */
function relatedTask(message: Message): Span | undefined {
  const isResponse = 'kind' in message && message.kind === 'response';
  return isResponse ? message.tokens.resultRelatedTask : message.tokens.relatedTask;
}
