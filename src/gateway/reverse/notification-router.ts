import type { DownstreamClient, Exchange } from '../../downstream/port.js';
import type { SentNotification, UpstreamConnection } from '../../upstream/upstream-connection.js';
import type { Span } from '../../wire/json/json-text.js';
import type { Edit } from '../../wire/json/splice.js';
import type { NotificationEnvelope } from '../../wire/mcp/envelope.js';
import { isDefinedNotification, METHODS, mayReachServers } from '../../wire/mcp/methods.js';
import { withoutEraMembers } from '../../wire/mcp/older-revisions.js';
import { knowsTasks } from '../../wire/mcp/revisions.js';
import type { Backend } from '../registry/backend.js';
import type { TaskChannel } from '../tasks/task-owners.js';
import type { Tasks } from '../tasks/tasks.js';
import { type LogLevelRouter, reachesLevel } from './log-level-router.js';
import type { ServerRequests } from './server-requests.js';
import type { Subscriptions } from './subscriptions.js';

export interface NotificationRouterOptions {
  readonly subscriptions: Subscriptions;
  readonly logs: LogLevelRouter;
  readonly tasks: Tasks;
  readonly serverRequests: ServerRequests;
  /** The URIs under which a client sees a backend's resources, by their original URIs. */
  readonly aliasesOf: (client: DownstreamClient, backend: Backend) => ReadonlyMap<string, string> | undefined;
}

/** Routes notifications of servers and clients, and replaces task ids and URIs in them. */
export class NotificationRouter {
  readonly #options: NotificationRouterOptions;

  constructor(options: NotificationRouterOptions) {
    this.#options = options;
  }

  /**
   * Sends a client's notification to the client's servers, or to the server of the task that the notification names. With `mayWait`, the
   * notification waits with the client's calls for a server that is starting. Otherwise, such a server does not get the notification.
   */
  fromClient(
    client: DownstreamClient,
    backends: readonly Backend[],
    notification: NotificationEnvelope,
    mayWait: boolean,
  ): void {
    const { tasks } = this.#options;
    if (!mayReachServers(notification.method, 'notification')) return;
    if (notification.method === METHODS.taskStatus) {
      const holder = tasks.ofClients.holderOf(client, notification);
      if (holder === undefined) return;
      const related = tasks.towardServer(notification, client, holder.backend);
      holder.backend.dispatcher.connection?.notify(notification, [...holder.edits, ...related]);
      return;
    }
    const sent = forEitherEra(notification);
    const all = backends.map((backend) => ({ backend, edits: tasks.towardServer(notification, client, backend) }));
    // A notification about a task goes only to the server of the task.
    const concerned = all.filter(({ edits }) => edits.length > 0);
    for (const { backend, edits } of concerned.length > 0 ? concerned : all) {
      // A server that several clients share cannot know whose roots have changed.
      const isAmbiguous = notification.method === METHODS.rootsChanged && backend.clients.size > 1;
      if (isAmbiguous || !backend.clients.has(client)) continue;
      const { openConnection, dispatcher } = backend;
      // A task ends with its process, so no other process knows the task that the edits name.
      const waits = mayWait && edits.length === 0 && (openConnection === undefined || dispatcher.admission.hasBacklog);
      if (waits) hold(client, backend, sent);
      else openConnection?.notify(sent, edits);
    }
  }

  /** Sends a server's notification to the owner of the thing that it names, or else to all clients of the server. */
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
    const isTaskState = notification.method === METHODS.taskState;
    if (isTaskState || notification.method === METHODS.taskStatus) tasks.watches.notified(backend, notification);
    if (isTaskState) return;
    const owner = tasks.ownerOf(backend, notification);
    if (owner !== undefined) {
      if (owner.client !== undefined) this.#notifyOwner(owner.client, owner.channel, backend, notification);
      return;
    }
    const elicited = this.#elicited(backend, notification);
    if (elicited === undefined) this.#notifyAll(backend, notification);
    else if (elicited.hasSession) {
      notify(elicited, backend.dispatcher.inFlightCalls.latestOf(elicited), notification, []);
    }
  }

  /** Sends a notification to all clients that want it: along the call that may have caused it, and otherwise unsolicited. */
  #notifyAll({ clients, dispatcher }: Backend, notification: NotificationEnvelope): void {
    const { cause } = dispatcher.inFlightCalls;
    const { bytes, span } = notification;
    const [first, ...others] = clients;
    // A message may quote the call of a user, so it goes to no other user. Without a certain cause, no client gets it.
    const isOfSeveralUsers = others.some(({ principal }) => principal !== first?.principal);
    const ofCause = cause === undefined ? [] : [cause.client];
    for (const client of isOfSeveralUsers ? ofCause : clients) {
      if (!this.#isWanted(client, notification, cause?.client === client ? cause : undefined)) continue;
      if (cause?.client === client) cause.send({ bytes, span, edits: [] });
      else client.notify(notification);
    }
  }

  #elicited(backend: Backend, notification: NotificationEnvelope): DownstreamClient | undefined {
    if (notification.method !== METHODS.elicitationComplete) return undefined;
    const client = this.#options.serverRequests.elicited(backend, notification);
    return client !== undefined && backend.clients.has(client) ? client : undefined;
  }

  /** Sends a notification about a task to the owner only, because no other client knows the task. */
  #notifyOwner(
    client: DownstreamClient,
    channel: TaskChannel | undefined,
    backend: Backend,
    notification: NotificationEnvelope,
  ): void {
    const { tasks } = this.#options;
    const edits = [
      ...tasks.ofServers.editsToward(client, backend, notification),
      ...tasks.towardClient(notification, client, backend),
    ];
    const isKnown = notification.method !== METHODS.taskStatus || (client.hasSession && knowsTasks(client.revision));
    const via = channel?.isSettled === false ? channel : backend.dispatcher.inFlightCalls.latestOf(client);
    if (isKnown && this.#isWanted(client, notification, via)) notify(client, via, notification, edits);
  }

  /** A client without a session wants only those that its calls caused: log messages, and notifications that MCP does not define. */
  #isWanted(
    client: DownstreamClient,
    notification: NotificationEnvelope,
    cause: { readonly logLevel: Exchange['logLevel'] } | undefined,
  ): boolean {
    const { logs } = this.#options;
    const isLog = notification.method === METHODS.message;
    if (client.hasSession) return !isLog || logs.isWanted(client, notification);
    if (cause === undefined) return false;
    return isLog ? reachesLevel(notification, cause.logLevel) : !isDefinedNotification(notification.method);
  }
}

/** Sends the notification to the next process, if the client is still there. */
function hold(client: DownstreamClient, { clients, dispatcher }: Backend, notification: SentNotification): void {
  const { bytes, span, method, legacyEdits = [] } = notification;
  const moved = ({ start, end }: Span) => ({ start: start - span.start, end: end - span.start });
  const held: SentNotification = {
    // Copies the notification, because its memory is reused before the next process exists.
    bytes: bytes.slice(span.start, span.end),
    span: moved(span),
    method,
    legacyEdits: legacyEdits.map((edit) => ({ ...edit, span: moved(edit.span) })),
  };
  const send = (connection: UpstreamConnection) => {
    if (clients.has(client)) connection.notify(held);
  };
  dispatcher.admission.hold(held.bytes.length, send);
}

/** Adds edits for legacy servers, which remove the members that a client without a handshake puts into each notification. */
function forEitherEra(notification: NotificationEnvelope): SentNotification {
  const { bytes, span, method, tokens } = notification;
  const legacyEdits = tokens.eraVersion === undefined ? undefined : withoutEraMembers(notification);
  return { bytes, span, method, legacyEdits };
}

/** Sends the notification along a call of this client, or unsolicited. */
function notify(
  client: DownstreamClient,
  via: { readonly send: Exchange['send'] } | undefined,
  notification: NotificationEnvelope,
  edits: readonly Edit[],
): void {
  const { bytes, span } = notification;
  if (via === undefined) client.notify(notification, edits);
  else via.send({ bytes, span, edits });
}
