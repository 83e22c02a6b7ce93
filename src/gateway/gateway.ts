import type { ChildConnection } from '../bridge/child-connection.js';
import type { Edit } from '../jsonrpc/splice.js';
import type { NotificationEnvelope } from '../mcp/envelope.js';
import type { Hmac } from '../mcp/exposed-name.js';
import { METHODS } from '../mcp/methods.js';
import { knowsTasks } from '../mcp/revisions.js';
import type { Clock } from '../timing/clock.js';
import type { Backend } from './backend.js';
import { BackendPool, type BackendPoolOptions } from './backend-pool.js';
import { type Catalogs, mergeCatalogs } from './catalogs.js';
import type { ChildRequest } from './child-request.js';
import { ChildRequests } from './child-requests.js';
import type { ClientConnection, ClientFacts, GatewayClient, GatewayPort } from './gateway-port.js';
import { ABOUT, instructionsOf } from './instructions.js';
import { LogRouting } from './log-routing.js';
import type { OwnTool } from './own-tool.js';
import { greetingOf } from './server-greeting.js';
import { Subscriptions } from './subscriptions.js';
import { Tasks } from './tasks.js';
import { View } from './view.js';

export interface GatewayOptions extends BackendPoolOptions {
  readonly clock: Clock;
  readonly ownTools: readonly OwnTool[];
  /** How long what is asked for first waits for servers that are still starting, in milliseconds. */
  readonly startupWaitMs: number;
  /** Seals what ends with us: cursors, and the ids of clients' tasks. */
  readonly hmac: Hmac;
  /** Seals the ids of servers' tasks under a key that outlives us: clients keep them. */
  readonly seal: Hmac;
  /** Something that every client is to be told; for one, that the configuration cannot be used. */
  readonly notice?: string;
}

/**
 * Many servers as one, for many clients: gives each client the backends that it may use and a view of them, and sees
 * that what a server says or asks reaches the clients it concerns.
 */
export class Gateway implements GatewayPort {
  readonly #options: GatewayOptions;
  readonly #pool: BackendPool;
  readonly #subscriptions = new Subscriptions();
  readonly #logs = new LogRouting();
  readonly #tasks: Tasks;
  readonly #childRequests: ChildRequests;
  /** By the backends that they are of. */
  readonly #views = new Map<string, View>();

  constructor(options: GatewayOptions) {
    this.#options = options;
    const { seal, hmac, servers } = options;
    const sharedByAll = new Set(servers.filter(({ sharing }) => sharing === 'all').map(({ key }) => key));
    this.#tasks = new Tasks({ seal, runSeal: hmac, isPersonal: ({ key }) => !sharedByAll.has(key) });
    this.#childRequests = new ChildRequests(this.#tasks);
    this.#pool = new BackendPool({
      ...options,
      create: (...which) => {
        const running = options.create(...which);
        this.#listenTo(running.backend);
        return running;
      },
    });
  }

  /** All servers, and which backends each has at the moment. */
  get pool(): Pick<BackendPool, 'keys' | 'has' | 'of' | 'isUnclaimed'> {
    return this.#pool;
  }

  /** The merged lists of the oldest backend of each server. */
  get catalogs(): Catalogs {
    const { ownTools, hmac } = this.#options;
    return mergeCatalogs({ backends: this.#oldest, ownTools, naming: 'exposed', paging: { hmac } });
  }

  /** Whether every server's first start has ended, one way or the other, or waits for a client to be told of. */
  get isReady(): boolean {
    return this.#oldest.every((backend) => backend.isStartSettled || this.#pool.isUnclaimed(backend));
  }

  /** Starts every server. */
  start(): void {
    this.#pool.start();
  }

  connect(client: GatewayClient, facts: ClientFacts): ClientConnection {
    const keys = facts.server === undefined ? [...this.#pool.keys] : [facts.server];
    const backends = keys.map((key) => this.#pool.claim(key, client, facts));
    const view = this.#viewOf(backends, facts.server !== undefined);
    view.clients.add(client);
    const [only] = backends;
    const isAlone = facts.server !== undefined && only !== undefined;
    return {
      offered: backends.flatMap((backend) => {
        const greeted = this.#greeted(backend);
        return greeted === undefined ? [] : [greeted.capabilities];
      }),
      instructions: this.#instructions(backends),
      greeting: isAlone ? greetingOf(only, this.#options.startupWaitMs) : undefined,
      serve: (exchange) => view.serve(exchange),
      notified: (notification) => this.#heard(client, backends, notification),
      close: () => this.#left(client, view),
    };
  }

  close(): void {
    for (const view of this.#views.values()) view.close();
    this.#pool.close();
    this.#views.clear();
  }

  get #oldest(): readonly Backend[] {
    return [...this.#pool.keys].flatMap((key) => this.#pool.of(key).slice(0, 1));
  }

  #listenTo(backend: Backend): void {
    backend.listen({
      listsChanged: () => this.#eachViewOf(backend, (view) => view.listsChanged()),
      startSettled: () => this.#eachViewOf(backend, (view) => view.startSettled()),
      attached: () => {
        this.#logs.restore(backend);
        this.#subscriptions.restore(backend);
      },
      detached: () => {
        this.#childRequests.drop(backend);
        this.#tasks.drop(backend);
      },
      asked: (asked) => this.#asked(backend, asked),
      notified: (notification) => this.#notified(backend, notification),
    });
  }

  #eachViewOf(backend: Backend, visit: (view: View) => void): void {
    for (const view of this.#views.values()) if (view.uses(backend)) visit(view);
  }

  #viewOf(backends: readonly Backend[], isAlone: boolean): View {
    const id = JSON.stringify([isAlone, ...backends.map((backend) => backend.id)]);
    const known = this.#views.get(id);
    if (known !== undefined) return known;
    const { clock, ownTools, startupWaitMs } = this.#options;
    const view = new View({
      clock,
      backends,
      naming: isAlone ? 'original' : 'exposed',
      ownTools: isAlone ? [] : ownTools,
      startupWaitMs,
      subscriptions: this.#subscriptions,
      logs: this.#logs,
      tasks: this.#tasks,
      hmac: this.#options.hmac,
    });
    this.#views.set(id, view);
    return view;
  }

  /** The client's own process, or another of the same server as long as that has not greeted us: they say the same. */
  #greeted(own: Backend): ChildConnection | undefined {
    const greeted = [own, ...this.#pool.of(own.key)].find(({ delivery }) => delivery.connection !== undefined);
    return greeted?.delivery.connection;
  }

  /** What each server that is ready says about its use follows what we say. */
  #instructions(backends: readonly Backend[]): string {
    const { notice } = this.#options;
    const parts = [ABOUT, ...(notice === undefined ? [] : [notice])];
    for (const backend of backends) {
      const { key, prefix } = backend;
      const text = this.#greeted(backend)?.instructions;
      if (text !== undefined) parts.push(instructionsOf(key, prefix, text));
    }
    return parts.join('\n\n');
  }

  /** What a client says of itself is for the servers that were told of it. */
  #heard(client: GatewayClient, backends: readonly Backend[], notification: NotificationEnvelope): void {
    if (notification.method === METHODS.taskStatus) {
      const holder = this.#tasks.ofClients.holderOf(client, notification);
      if (holder === undefined) return;
      const related = this.#tasks.towardServer(notification, client, holder.backend);
      holder.backend.delivery.connection?.forward(notification, [...holder.edits, ...related]);
      return;
    }
    const all = backends.map((backend) => ({
      backend,
      edits: this.#tasks.towardServer(notification, client, backend),
    }));
    // What belongs to a task concerns the server that has the task.
    const concerned = all.filter(({ edits }) => edits.length > 0);
    for (const { backend, edits } of concerned.length > 0 ? concerned : all) {
      // Roots are one client's: a server that several share would not know whose have changed.
      const isForNobody = notification.method === METHODS.rootsChanged && backend.clients.size > 1;
      if (isForNobody || !backend.clients.has(client)) continue;
      backend.delivery.connection?.forward(notification, edits);
    }
  }

  #left(client: GatewayClient, view: View): void {
    if (!view.clients.delete(client)) return;
    const backends = [...view.backends.values()];
    this.#subscriptions.drop(client, backends);
    this.#tasks.left(client, backends);
    this.#logs.drop(client);
    for (const backend of backends) {
      this.#pool.release(backend, client);
      this.#logs.adjust(backend);
    }
    if (view.clients.size > 0) return;
    view.close();
    for (const [id, each] of this.#views) if (each === view) this.#views.delete(id);
  }

  #asked(backend: Backend, asked: ChildRequest): void {
    if (asked.request.method === METHODS.listRoots) this.#pool.noteRootsAsked(backend);
    this.#childRequests.ask(backend, asked);
  }

  /** A notification goes the way of the one request that can have caused it; others see it unasked, or not at all. */
  #notified(backend: Backend, notification: NotificationEnvelope): void {
    if (notification.method === METHODS.resourceUpdated) {
      this.#subscriptions.notify(backend, notification, (client) => this.#aliasesOf(client, backend));
      this.#eachViewOf(backend, (view) => view.noteUpdated(notification, backend));
      return;
    }
    if (notification.method === METHODS.cancelled) {
      this.#childRequests.cancel(backend, notification);
      return;
    }
    const { method } = notification;
    const owner = this.#tasks.ownerOf(backend, notification);
    if (owner !== undefined) {
      if (owner.client !== undefined) this.#notifyOfTask(owner.client, backend, notification);
      return;
    }
    const elicited = this.#elicited(backend, notification);
    if (elicited !== undefined) {
      tell(elicited, backend, notification, []);
      return;
    }
    const { cause } = backend.delivery.atWork;
    const { bytes, span } = notification;
    for (const client of backend.clients) {
      if (method === METHODS.message && !this.#logs.isWanted(client, notification)) continue;
      if (cause?.client === client) cause.send({ bytes, span, edits: [] });
      else client.notify(notification);
    }
  }

  /** Under which URIs a client sees what this backend calls otherwise. */
  #aliasesOf(client: GatewayClient, backend: Backend): ReadonlyMap<string, string> | undefined {
    const view = [...this.#views.values()].find(({ clients }) => clients.has(client));
    return view?.catalogs.ui.of(backend.key);
  }

  #elicited(backend: Backend, notification: NotificationEnvelope): GatewayClient | undefined {
    if (notification.method !== METHODS.elicitationComplete) return undefined;
    const client = this.#childRequests.elicited(backend, notification);
    return client !== undefined && backend.clients.has(client) ? client : undefined;
  }

  /** It is for whose task it is; anybody else could not know the task. */
  #notifyOfTask(client: GatewayClient, backend: Backend, notification: NotificationEnvelope): void {
    const { method } = notification;
    const edits = [
      ...this.#tasks.ofServers.editsToward(client, backend, notification),
      ...this.#tasks.towardClient(notification, client, backend),
    ];
    const isUnknown = method === METHODS.taskStatus && !knowsTasks(client.revision);
    if (isUnknown || (method === METHODS.message && !this.#logs.isWanted(client, notification))) return;
    tell(client, backend, notification, edits);
  }
}

/** On the way of a request of this client's that is under way there, or unasked. */
function tell(
  client: GatewayClient,
  { delivery }: Backend,
  notification: NotificationEnvelope,
  edits: readonly Edit[],
): void {
  const { bytes, span } = notification;
  const via = delivery.atWork.latestOf(client);
  if (via === undefined) client.notify(notification, edits);
  else via.send({ bytes, span, edits });
}
