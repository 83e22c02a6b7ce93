import type {
  ClientFacts,
  ClientOrigin,
  DownstreamClient,
  Exchange,
  GatewayDescription,
  GatewayPort,
  GatewaySeals,
  GatewaySession,
} from '../downstream/port.js';
import type { OnInternalError } from '../host/errors/internal-error.js';
import { type EventSink, NO_EVENTS } from '../host/observe/events/events.js';
import type { ListMode } from '../spec/list-modes.js';
import type { ServerRequest } from '../upstream/upstream-connection.js';
import type { NotificationEnvelope } from '../wire/mcp/envelope.js';
import type { ClientProfile } from '../wire/mcp/handshake.js';
import { type ListKind, METHODS } from '../wire/mcp/methods.js';
import { readMirroredParams } from '../wire/mcp/mirrored-params.js';
import type { Hmac } from '../wire/mcp/task-id.js';
import type { Clock } from '../wire/timing/clock.js';
import { type CallFeed, NO_CALLS, namesOf } from './call-feed.js';
import { type Catalogs, mergeCatalogs } from './catalog/catalog.js';
import { type NamedView, NamedViews, type NamedViewsOptions } from './catalog/tool-policy.js';
import type { ClientView, ViewSettings } from './client-view.js';
import { ClientViews } from './client-views.js';
import { describeServers, onlyHandshake } from './instructions.js';
import type { Backend, BackendListener, DescribedServer, ListenerFor, RunningBackend } from './registry/backend.js';
import { BackendPool, type BackendPoolOptions, type PoolChange } from './registry/backend-pool.js';
import { Draining } from './registry/draining.js';
import { LogLevelRouter } from './reverse/log-level-router.js';
import { NotificationRouter } from './reverse/notification-router.js';
import { ServerRequests } from './reverse/server-requests.js';
import { Subscriptions } from './reverse/subscriptions.js';
import { type OwnTool, offeredOf } from './routing/own-tool.js';
import type { RequestGate } from './routing/request-gate.js';
import { createSearchTools, FOUND, ListModes, mayGetSearch, unwrapCall } from './search/search-mode.js';
import { Tasks } from './tasks/tasks.js';

export interface GatewayOptions {
  readonly clock: Clock;
  readonly servers: BackendPoolOptions['servers'];
  /** The settings of the configuration, which `change` replaces. */
  readonly settings: GatewaySettings;
  /** Creates a backend with an id of its own. The handshake of its process waits for `profile`. */
  readonly create: (
    server: string,
    id: string,
    profile: Promise<ClientProfile>,
    listenerFor: ListenerFor,
    origin: ClientOrigin | undefined,
  ) => RunningBackend;
  /** The client profile that a server with `sharing: all` gets in the handshake. */
  readonly profileOfAll: ClientProfile;
  /** Time that a process without clients waits for the next client, in milliseconds. */
  readonly idleStopMs: number;
  readonly seals: OwnSeals;
  readonly onInternalError?: OnInternalError;
  readonly events?: EventSink;
  readonly calls?: CallFeed;
}

/** `lasting` seals the ids of servers' tasks, which clients may keep, and `run` those of clients' tasks, which end with the process. */
interface OwnSeals extends GatewaySeals {
  /** Seals cursors, each with a hash of its list. Gateways with the same key accept each other's cursors. */
  readonly cursors: Hmac;
}

/** Settings that a new configuration may change. */
export interface GatewaySettings extends ViewSettings, ConfiguredSettings {
  /** Gates of requests, in the order in which requests pass them. */
  readonly gates?: readonly RequestGate[];
}

export interface ConfiguredSettings {
  /** Longest wait of the first requests for servers that are still starting, in milliseconds. */
  readonly startupWaitMs: number;
  /** Text for the instructions of every client, for example that the configuration cannot be used. */
  readonly notice?: string | undefined;
  /** Views of the configuration. The object stays the same as long as the views do. */
  readonly views?: NamedViewsOptions | undefined;
  /** Form of the tool list for clients, unless their view says otherwise. */
  readonly mode?: ListMode | undefined;
  /** Size limit of the instructions for a client that sees all servers, in bytes. 0 leaves out the texts of servers. */
  readonly maxInstructionsBytes: number;
}

export interface ConnectedClient {
  readonly facts: ClientFacts;
  /** Name of the client's view of the configuration for the whole session; absent if the client sees everything. */
  readonly viewName: string | undefined;
  /** Start of the session, in milliseconds on the clock. */
  readonly since: number;
}

interface Connected extends ConnectedClient {
  view: ClientView;
}

/**
 * Gives each client its backends and a client view, and routes server requests and notifications.
 *
 * The room stands between the sessions of clients (`downstream/port.ts`) and the connections to servers (`upstream/upstream-connection.ts`).
 * Other rooms use this class, `PendingGateway` before it exists, `Backend`, the gateway's own tools and `CallFeed`. Begin here:
 * `open` leads to the clients, and `ClientView.serve` to the way of a request, with its target (`routing`), slot and attempts
 * (`dispatch`). `registry` has the processes and their sharing, `catalog` their lists, `search` the lists for search mode,
 * `tasks` the tasks of both sides, and `reverse` the requests and notifications of servers.
 */
export class Gateway implements GatewayPort {
  readonly seals: GatewaySeals;
  readonly #options: GatewayOptions;
  #settings: GatewaySettings;
  /** The gates of the present configuration. */
  readonly #gates: { all: readonly RequestGate[] };
  #namedViews: NamedViews;
  /** The tools of the gateway itself that only clients in search mode see. */
  readonly #searchTools = createSearchTools();
  readonly #events: EventSink;
  readonly #pool: BackendPool;
  readonly #subscriptions: Subscriptions;
  readonly #logs = new LogLevelRouter((client) => this.#clients.get(client)?.view.backends.values() ?? []);
  readonly #tasks: Tasks;
  readonly #serverRequests: ServerRequests;
  readonly #notifications: NotificationRouter;
  readonly #draining: Draining;
  readonly #clients = new Map<DownstreamClient, Connected>();
  readonly #views: ClientViews;
  readonly #modes = new ListModes();
  #isReady = false;

  constructor(options: GatewayOptions) {
    this.#options = options;
    const { clock, settings, seals, onInternalError, events = NO_EVENTS } = options;
    this.#settings = settings;
    this.#gates = { all: settings.gates ?? [] };
    this.#namedViews = new NamedViews(settings.views);
    this.seals = seals;
    this.#events = events;
    this.#draining = new Draining(clock);
    this.#subscriptions = new Subscriptions(onInternalError);
    this.#tasks = new Tasks(seals, ({ key }) => this.#pool.sharingOf(key) !== 'all', onInternalError);
    this.#serverRequests = new ServerRequests(this.#tasks, ({ key: server }, client, ask) =>
      (this.#settings.gates ?? []).reduceRight((inner, gate) => {
        const view = this.#clients.get(client)?.view.named;
        return gate.asking?.({ server, client, view }, inner) ?? inner;
      }, ask),
    );
    this.#notifications = new NotificationRouter({
      subscriptions: this.#subscriptions,
      logs: this.#logs,
      tasks: this.#tasks,
      serverRequests: this.#serverRequests,
      aliasesOf: (client, { key }) => this.#clients.get(client)?.view.catalogs.ui.aliasesOf(key),
    });
    this.#views = new ClientViews(
      {
        clock,
        paging: { hmac: seals.cursors },
        onInternalError,
        events,
        searchTools: this.#searchTools,
        modes: this.#modes,
        subscriptions: this.#subscriptions,
        logs: this.#logs,
        tasks: this.#tasks,
        getsAll: (client) => this.#clients.get(client)?.facts.view === '',
        namedOf: (client) => this.#clients.get(client)?.view.named,
        gates: this.#gates,
        viewOf: (client) => this.#clients.get(client)?.view,
      },
      () => this.#settings,
    );
    this.#pool = new BackendPool({
      ...options,
      create: (key, id, profile, origin) =>
        options.create(key, id, profile, (backend) => this.#listenerFor(backend), origin),
    });
  }

  get pool(): BackendPool {
    return this.#pool;
  }

  get clients(): Iterable<DownstreamClient> {
    return this.#clients.keys();
  }

  /** The same clients, with the facts about each. */
  get connected(): ReadonlyMap<DownstreamClient, ConnectedClient> {
    return this.#clients;
  }

  /** The merged lists of the oldest backend of each server that can run. */
  get catalogs(): Catalogs {
    return this.catalogsIn(undefined);
  }

  /** The same lists as clients of this view and this origin see them. */
  catalogsIn(named: NamedView | undefined, origin?: ClientOrigin): Catalogs {
    const { cursors } = this.#options.seals;
    const { ownTools } = this.#settings;
    const servers = this.#shownServers(named, origin);
    const own = offeredOf(ownTools, servers, named);
    return mergeCatalogs({
      servers,
      ownTools: own,
      searchTools: this.#searchTools,
      naming: 'exposed',
      view: named,
      paging: { hmac: cursors },
    });
  }

  /** Whether the first start of every server has ended or waits for a client. Stays true after that. */
  get isReady(): boolean {
    this.#isReady ||= this.#pool.oldest.every((backend) => backend.isStartSettled || this.#pool.isUnclaimed(backend));
    return this.#isReady;
  }

  start(): void {
    this.#pool.start();
  }

  open(client: DownstreamClient, facts: ClientFacts): GatewaySession {
    const viewName = this.viewNameFor(facts);
    const named = this.named(viewName);
    const isAlone = facts.server !== undefined;
    const backends = this.#claimAll(client, facts, named);
    const view = this.#views.of(backends, isAlone, named);
    view.clients.add(client);
    this.#modes.open(client, this.#modeOf(facts, named), facts.profile.clientInfo.name);
    const connected: Connected = { facts, viewName, view, since: this.#options.clock.now() };
    this.#clients.set(client, connected);
    this.#report('client.connected', connected);
    const maySearch = this.#modes.maySearch(client);
    const description = () =>
      this.#description(connected.view.backends.values(), connected.view.named, maySearch, (backend) =>
        this.#handshake(backend),
      );
    const serve = (this.#options.calls ?? NO_CALLS).session(connected);
    return {
      get offered() {
        return description().offered;
      },
      get instructions() {
        return description().instructions;
      },
      caching: (kind) => connected.view.lists.caching(kind, facts.user === undefined && this.#showsSame(kind)),
      handshake: () => (isAlone ? onlyHandshake(connected, this.#settings.startupWaitMs) : undefined),
      mirroredParams: (tool) => {
        const entry = connected.view.catalogs.tools.resolve(tool)?.entry;
        return entry === undefined ? [] : readMirroredParams(entry).params;
      },
      serve: maySearch ? unwrapping(serve) : serve,
      watchTask: (name, settled) => this.#tasks.watches.watch({ client, name, settled }, connected.view.backends),
      notified: (notification) => {
        const all = [...connected.view.backends.values(), ...this.#drainingOf(client)];
        this.#notifications.fromClient(client, all, notification, isAlone);
      },
      close: () => this.#left(client),
    };
  }

  describe(facts: ClientFacts): GatewayDescription {
    const all = this.#pool.describedServersFor(facts);
    if (facts.server !== undefined && this.#pool.has(facts.server)) {
      const { capabilities = {}, instructions = '' } = all.find(({ key }) => key === facts.server)?.handshake ?? {};
      return { offered: [capabilities], instructions };
    }
    const named = this.named(this.viewNameFor(facts));
    const isShown = this.#isShownTo(facts, named);
    return this.#description(
      all.filter(({ key }) => isShown(key)),
      named,
      mayGetSearch(this.#modeOf(facts, named), facts.profile.clientInfo.name),
      ({ handshake }) => handshake,
    );
  }

  /** Name of the view of a client with these facts; `undefined` if it sees everything. */
  viewNameFor({ server, view, profile }: ClientFacts): string | undefined {
    if (server !== undefined || view === '') return undefined;
    return view ?? this.#namedViews.nameFor(profile.clientInfo.name);
  }

  /** The view with this name; `undefined` without a name. */
  named(viewName: string | undefined): NamedView | undefined {
    return viewName === undefined ? undefined : this.#namedViews.of(viewName);
  }

  /** Finds tools as `trunkline__find_tools` does, for the operator, who sees what clients of this view see that work in the folder. */
  async find(args: unknown, viewName: string | undefined, folder?: string) {
    const named = this.named(viewName);
    const origin = folder === undefined ? undefined : { environment: {}, folder };
    const shown = this.#shownServers(named, origin);
    const backends = new Map(shown.map((backend) => [backend.key, backend]));
    const { findTools } = await import('./search/find-tools.js');
    const visible = { catalogs: this.catalogsIn(named, origin), backends, named };
    const result = findTools(args, visible, { ...FOUND, defined: FOUND.most });
    return { result, isStarting: shown.some(({ hasKnownLists }) => !hasKnownLists) };
  }

  /** Name under which a tool is listed; `undefined` for every other name. Without `server`: a tool of Trunkline's own. */
  exposedName(server: string | undefined, name: string): string | undefined {
    if (server === undefined) return this.#ownTools.find((tool) => tool.name === name)?.name;
    const entries = this.#pool.of(server)[0]?.knownListsAs('exposed').tools.entries ?? [];
    // A client that sees only this server uses the original names.
    return (entries.find(({ exposed }) => exposed === name) ?? entries.find(({ original }) => original === name))
      ?.exposed;
  }

  /** Applies a new configuration. Clients stay connected. Calls in flight on removed or replaced backends get 5 s to finish. */
  change(servers: PoolChange, settings: GatewaySettings): void {
    const hasOwnChanged = settings.ownTools !== this.#settings.ownTools;
    if (settings.views !== this.#settings.views) this.#namedViews = new NamedViews(settings.views);
    this.#settings = settings;
    this.#gates.all = settings.gates ?? [];
    const { retired, deferred } = this.#pool.change(servers);
    const before = this.#views.takeAll();
    const unused = [...this.#clients].flatMap((each) => this.#moveClient(...each, hasOwnChanged));
    const now = new Set(this.#views.all);
    const waiting = before.flatMap((view) => (now.has(view) ? [] : view.retire()));
    for (const view of now) view.begin();
    for (const running of [...retired, ...unused])
      this.#draining.begin(running, (exchange) => this.#serveElsewhere(exchange, running));
    for (const exchange of waiting) this.#clients.get(exchange.client)?.view.serve(exchange);
    for (const key of deferred) void this.#draining.untilGone(key).then(() => this.#pool.startDeferred(key));
    for (const [client, { facts }] of this.#clients) this.#dismiss(client, facts);
  }

  /** Ends the subscriptions of clients without a session, because the gateway is about to end. */
  endSubscriptions(): void {
    for (const client of this.#clients.keys()) client.ending();
  }

  close(): void {
    this.endSubscriptions();
    this.#settings.results?.close();
    this.#views.close();
    this.#draining.close();
    this.#pool.close();
  }

  get #ownTools(): readonly OwnTool[] {
    return [...this.#settings.ownTools, ...this.#searchTools];
  }

  #listenerFor(backend: Backend): BackendListener {
    return {
      listsChanged: (announced) => this.#views.eachOf(backend, (view) => view.listsChanged(announced)),
      listsAnnounced: (kinds, message) => this.#views.eachOf(backend, (view) => view.listsAnnounced(kinds, message)),
      unreadListsChanged: () => this.#views.eachOf(backend, (view) => view.unreadListsChanged()),
      startSettled: () => this.#views.eachOf(backend, (view) => view.startSettled()),
      attached: () => {
        this.#pool.noteHandshake(backend);
        this.#logs.restore(backend);
        this.#subscriptions.restore(backend);
      },
      detached: () => {
        this.#draining.detached(backend);
        this.#serverRequests.drop(backend);
        this.#tasks.drop(backend);
      },
      serverRequest: (request) => this.#relayRequest(backend, request),
      notification: (notification) => this.#relayNotification(backend, notification),
      wouldLoseState: () => this.#subscriptions.has(backend) || this.#tasks.ofServers.has(backend),
    };
  }

  /** Assigns a new client its backends. Throws if the one server that the client wants to see does not exist. */
  #claimAll(client: DownstreamClient, facts: ClientFacts, named: NamedView | undefined): Backend[] {
    const { server } = facts;
    const shown = server === undefined ? [...this.#pool.keys].filter(this.#isShownTo(facts, named)) : [server];
    const backends = shown.map((key) => this.#pool.claim(key, client, facts));
    // A new client has no log level yet, so it gets all messages of the servers.
    for (const backend of backends) this.#logs.adjust(backend);
    return backends;
  }

  /**
   * Assigns a client its backends after a change of the servers. The client keeps a backend that it may still use.
   * Returns the backends that no client uses any more. The caller must end them after their calls in flight.
   */
  #moveClient(client: DownstreamClient, connected: Connected, hasOwnChanged: boolean): readonly RunningBackend[] {
    const { facts, viewName, view } = connected;
    const isAlone = facts.server !== undefined;
    const named = this.named(viewName);
    const isShown = this.#isShownTo(facts, named);
    const old = [...view.backends.values()];
    const unused: RunningBackend[] = [];
    const leave = (before: Backend) => {
      const running = this.#pool.vacate(before, client);
      if (running !== undefined) unused.push(running);
      this.#logs.adjust(before);
    };
    const hidden = old.filter((before) => !isShown(before.key) && this.#pool.includes(before));
    this.#subscriptions.drop(client, hidden);
    for (const before of hidden) leave(before);
    const backends = [...this.#pool.keys].filter(isShown).map((key) => {
      const before = view.backends.get(key);
      if (before !== undefined && this.#pool.suits(before, facts)) return before;
      const now = this.#pool.claim(key, client, facts);
      this.#logs.adjust(now);
      if (before === undefined) return now;
      now.copyListsFrom(before);
      this.#subscriptions.move(client, before, now);
      // A retired backend keeps its clients until its last calls have ended. Any other backend goes on for other clients.
      if (this.#pool.includes(before)) leave(before);
      return now;
    });
    const isSame = backends.length === old.length && backends.every((backend, at) => backend === old[at]);
    const mayStay = isSame && named === view.named && (isAlone || !hasOwnChanged);
    if (mayStay && this.#views.keep(view)) return unused;
    connected.view = this.#views.of(backends, isAlone, named, view);
    connected.view.adopt(client, view);
    return unused;
  }

  /** Returns the handshake of the client's process or, until that process is ready, of another process that runs alike. */
  #handshake(own: Backend): Backend['handshake'] {
    const running = [own, ...this.#pool.alike(own)].find(({ dispatcher }) => dispatcher.connection !== undefined);
    return (running ?? own).handshake;
  }

  /** Describes these backends to a client, whose view is `named`. `saidBy` returns the handshake of a backend. */
  #description<Described extends DescribedServer>(
    backends: Iterable<Described>,
    named: NamedView | undefined,
    maySearch: boolean,
    saidBy: (backend: Described) => DescribedServer['handshake'],
  ): GatewayDescription {
    return describeServers([...backends], saidBy, named, { ...this.#settings, maySearch });
  }

  /** A client that sees one server, or that asks for everything as commands do, gets the whole list. */
  #modeOf({ server, view }: ClientFacts, named: NamedView | undefined): ListMode {
    if (server !== undefined || view === '') return 'direct';
    return named?.mode ?? this.#settings.mode ?? 'direct';
  }

  /** Whether all clients see the same list. With `auto`, the name of a client decides. */
  #showsSame(kind: ListKind): boolean {
    return this.#namedViews.areNone && !this.#pool.differs && (kind !== 'tools' || this.#settings.mode !== 'auto');
  }

  #shownServers(named: NamedView | undefined, origin: ClientOrigin | undefined): readonly Backend[] {
    return this.#pool.oldest.filter(({ key }) => this.#pool.isFor(key, origin) && named?.showsServer(key) !== false);
  }

  /** Returns whether a client has a server: the only one that it asks for, or those of its view and of the folder in which it works. */
  #isShownTo({ server, origin }: ClientFacts, named: NamedView | undefined): (key: string) => boolean {
    if (server !== undefined) return (key) => key === server && this.#pool.has(key);
    return (key) => named?.showsServer(key) !== false && this.#pool.isFor(key, origin);
  }

  #drainingOf(client: DownstreamClient): Backend[] {
    return [...this.#draining.backends].filter(({ clients }) => clients.has(client));
  }

  /** Serves a call on the new process, because the replaced one never got it. Fails the call if the server was removed. */
  #serveElsewhere(exchange: Exchange, { backend }: RunningBackend): void {
    const view = this.#clients.get(exchange.client)?.view;
    if (exchange.isSettled) return;
    if (view?.backends.has(backend.key) === true) view.serve(exchange);
    else backend.dispatcher.refuse(exchange, 'stopped');
  }

  /** Reports to a client that its view was removed, or its only server after all processes of that server have ended. */
  #dismiss(client: DownstreamClient, { server, view }: ClientFacts): void {
    if (view !== undefined && view !== '' && this.named(view)?.fault !== undefined) client.gone();
    if (server === undefined || this.#pool.has(server)) return;
    void this.#draining.untilGone(server).then(() => {
      if (this.#clients.has(client) && !this.#pool.has(server)) client.gone();
    });
  }

  #left(client: DownstreamClient): void {
    const connected = this.#clients.get(client);
    if (connected === undefined) return;
    const { view } = connected;
    this.#clients.delete(client);
    this.#report('client.left', connected);
    view.clients.delete(client);
    const backends = [...view.backends.values(), ...this.#drainingOf(client)];
    this.#tasks.left(client, backends);
    this.#subscriptions.drop(client, backends);
    this.#logs.drop(client);
    this.#settings.results?.left(client);
    for (const backend of backends) {
      this.#pool.release(backend, client);
      this.#logs.adjust(backend);
    }
    if (view.clients.size === 0) this.#views.end(view);
  }

  #report(kind: 'client.connected' | 'client.left', { facts, view: { named } }: Connected): void {
    if (!this.#events.wants(kind)) return;
    const { user } = facts;
    const client = { ...namesOf(facts), clients: this.#clients.size, ...(user && { [user.kind]: user.name }) };
    this.#events.emit({ kind, ...client, ...(named && { view: named.name, fault: named.fault }) });
  }

  #relayRequest(backend: Backend, serverRequest: ServerRequest): void {
    if (serverRequest.request.method === METHODS.listRoots) this.#pool.noteRootsRequest(backend);
    this.#serverRequests.relay(backend, serverRequest);
  }

  #relayNotification(backend: Backend, notification: NotificationEnvelope): void {
    if (notification.method === METHODS.resourceUpdated) {
      this.#views.eachOf(backend, (view) => view.noteUpdated(notification, backend));
    }
    this.#notifications.fromServer(backend, notification);
  }
}

/** Replaces a call of `trunkline__call_tool` with the call of the tool that it names, so that observers see this tool. */
function unwrapping(serve: GatewaySession['serve']): GatewaySession['serve'] {
  return (exchange) => {
    exchange.request = unwrapCall(exchange.request) ?? exchange.request;
    serve(exchange);
  };
}
