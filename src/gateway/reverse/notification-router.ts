import type { DownstreamClient } from '../../downstream/port.js';
import type { Edit } from '../../json/splice.js';
import type { NotificationEnvelope } from '../../mcp/envelope.js';
import { METHODS } from '../../mcp/methods.js';
import { knowsTasks } from '../../mcp/revisions.js';
import type { Backend } from '../registry/backend.js';
import type { Tasks } from '../tasks/tasks.js';
import type { LogLevelRouter } from './log-level-router.js';
import type { ServerRequests } from './server-requests.js';
import type { Subscriptions } from './subscriptions.js';

export interface NotificationRouterOptions {
  readonly subscriptions: Subscriptions;
  readonly logs: LogLevelRouter;
  readonly tasks: Tasks;
  readonly serverRequests: ServerRequests;
  /** Under which URIs a client sees what this backend calls otherwise. */
  readonly aliasesOf: (client: DownstreamClient, backend: Backend) => ReadonlyMap<string, string> | undefined;
}

/** What servers and clients say unasked: whom it reaches, and what is replaced in it on the way. */
export class NotificationRouter {
  readonly #options: NotificationRouterOptions;

  constructor(options: NotificationRouterOptions) {
    this.#options = options;
  }

  /** What a client says of itself is for the servers that were told of it. */
  fromClient(client: DownstreamClient, backends: readonly Backend[], notification: NotificationEnvelope): void {
    const { tasks } = this.#options;
    if (notification.method === METHODS.taskStatus) {
      const holder = tasks.ofClients.holderOf(client, notification);
      if (holder === undefined) return;
      const related = tasks.towardServer(notification, client, holder.backend);
      holder.backend.dispatcher.connection?.notify(notification, [...holder.edits, ...related]);
      return;
    }
    const all = backends.map((backend) => ({ backend, edits: tasks.towardServer(notification, client, backend) }));
    // What belongs to a task concerns the server that has the task.
    const concerned = all.filter(({ edits }) => edits.length > 0);
    for (const { backend, edits } of concerned.length > 0 ? concerned : all) {
      // Roots are one client's: a server that several share would not know whose have changed.
      const isForNobody = notification.method === METHODS.rootsChanged && backend.clients.size > 1;
      if (isForNobody || !backend.clients.has(client)) continue;
      backend.dispatcher.connection?.notify(notification, edits);
    }
  }

  /** What a server says is for whom it names, else for whose request can have caused it, and else for all its clients. */
  fromServer(backend: Backend, notification: NotificationEnvelope): void {
    const { subscriptions, serverRequests, tasks, aliasesOf } = this.#options;
    if (notification.method === METHODS.resourceUpdated) {
      subscriptions.notify(backend, notification, (client) => aliasesOf(client, backend));
      return;
    }
    if (notification.method === METHODS.cancelled) {
      serverRequests.cancel(backend, notification);
      return;
    }
    const owner = tasks.ownerOf(backend, notification);
    if (owner !== undefined) {
      if (owner.client !== undefined) this.#tellOfTask(owner.client, backend, notification);
      return;
    }
    const elicited = this.#elicited(backend, notification);
    if (elicited === undefined) this.#tellAll(backend, notification);
    else tell(elicited, backend, notification, []);
  }

  /** The client whose request can have caused it gets it on the way of its answer, and the others unasked. */
  #tellAll({ clients, dispatcher }: Backend, notification: NotificationEnvelope): void {
    const { cause } = dispatcher.inFlightCalls;
    const { bytes, span } = notification;
    for (const client of clients) {
      if (!this.#isWanted(client, notification)) continue;
      if (cause?.client === client) cause.send({ bytes, span, edits: [] });
      else client.notify(notification);
    }
  }

  #elicited(backend: Backend, notification: NotificationEnvelope): DownstreamClient | undefined {
    if (notification.method !== METHODS.elicitationComplete) return undefined;
    const client = this.#options.serverRequests.elicited(backend, notification);
    return client !== undefined && backend.clients.has(client) ? client : undefined;
  }

  /** It is for whose task it is; anybody else could not know the task. */
  #tellOfTask(client: DownstreamClient, backend: Backend, notification: NotificationEnvelope): void {
    const { tasks } = this.#options;
    const edits = [
      ...tasks.ofServers.editsToward(client, backend, notification),
      ...tasks.towardClient(notification, client, backend),
    ];
    const isKnown = notification.method !== METHODS.taskStatus || knowsTasks(client.revision);
    if (isKnown && this.#isWanted(client, notification)) tell(client, backend, notification, edits);
  }

  #isWanted(client: DownstreamClient, notification: NotificationEnvelope): boolean {
    return notification.method !== METHODS.message || this.#options.logs.isWanted(client, notification);
  }
}

/** On the way of a request of this client's that is under way there, or unasked. */
function tell(
  client: DownstreamClient,
  { dispatcher }: Backend,
  notification: NotificationEnvelope,
  edits: readonly Edit[],
): void {
  const { bytes, span } = notification;
  const via = dispatcher.inFlightCalls.latestOf(client);
  if (via === undefined) client.notify(notification, edits);
  else via.send({ bytes, span, edits });
}
