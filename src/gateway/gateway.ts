import type { ChildConnection } from '../bridge/child-connection.js';
import type { OnFault } from '../bridge/contain.js';
import type { NotificationEnvelope } from '../mcp/envelope.js';
import type { Hmac } from '../mcp/exposed-name.js';
import { METHODS } from '../mcp/methods.js';
import type { Clock } from '../timing/clock.js';
import type { Backend } from './backend.js';
import { BackendPool, type BackendPoolOptions } from './backend-pool.js';
import { type Catalogs, mergeCatalogs } from './catalog/catalogs.js';
import type { ClientConnection, ClientFacts, GatewayClient, GatewayPort } from './gateway-port.js';
import { ABOUT, instructionsOf } from './instructions.js';
import { LogRouting } from './log-routing.js';
import { Notices } from './notices.js';
import type { ChildRequest } from './questions/child-request.js';
import { ChildRequests } from './questions/child-requests.js';
import { greetingOf } from './server-greeting.js';
import type { OwnTool } from './status/own-tool.js';
import { Subscriptions } from './subscriptions.js';
import { Tasks } from './tasks/tasks.js';
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
  /** Told of our own errors, each of which fails one request. */
  readonly onFault?: OnFault;
  /** Told how many tools of servers clients are shown, whenever that may have changed. */
  readonly onToolsListed?: (count: number) => void;
}

/**
 * Many servers as one, for many clients: gives each client the backends that it may use and a view of them, and sees
 * that what a server says or asks reaches the clients it concerns.
 */
export class Gateway implements GatewayPort {
  readonly #options: GatewayOptions;
  readonly #pool: BackendPool;
  readonly #subscriptions: Subscriptions;
  readonly #logs = new LogRouting();
  readonly #tasks: Tasks;
  readonly #childRequests: ChildRequests;
  readonly #notices: Notices;
  /** By the backends that they are of. */
  readonly #views = new Map<string, View>();

  constructor(options: GatewayOptions) {
    this.#options = options;
    const { seal, hmac, servers, onFault } = options;
    this.#subscriptions = new Subscriptions(onFault);
    const sharedByAll = new Set(servers.filter(({ sharing }) => sharing === 'all').map(({ key }) => key));
    this.#tasks = new Tasks({ seal, runSeal: hmac, isPersonal: ({ key }) => !sharedByAll.has(key) });
    this.#childRequests = new ChildRequests(this.#tasks);
    this.#notices = new Notices({
      subscriptions: this.#subscriptions,
      logs: this.#logs,
      tasks: this.#tasks,
      questions: this.#childRequests,
      aliasesOf: (client, { key }) => this.#viewFor(client)?.catalogs.ui.of(key),
    });
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
      notified: (notification) => this.#notices.fromClient(client, backends, notification),
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
      onFault: this.#options.onFault,
      onToolsListed: isAlone ? undefined : this.#options.onToolsListed,
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

  #notified(backend: Backend, notification: NotificationEnvelope): void {
    if (notification.method === METHODS.resourceUpdated) {
      this.#eachViewOf(backend, (view) => view.noteUpdated(notification, backend));
    }
    this.#notices.fromServer(backend, notification);
  }

  #viewFor(client: GatewayClient): View | undefined {
    return [...this.#views.values()].find(({ clients }) => clients.has(client));
  }
}
