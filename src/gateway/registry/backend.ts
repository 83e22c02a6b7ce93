import type { FailureReason } from '../../downstream/failure.js';
import type { DownstreamClient, Exchange } from '../../downstream/port.js';
import type { NotificationEnvelope } from '../../mcp/envelope.js';
import { LIST_KINDS, type ListKind, listsChangedBy } from '../../mcp/lists.js';
import type { ServerRequest, UpstreamConnection } from '../../upstream/port.js';
import type { CachedCatalogue } from '../catalog/cached-catalogue.js';
import { ListReader } from '../catalog/list-reader.js';
import { type ListFailure, OfferedLists } from '../catalog/offered-lists.js';
import { type ListNaming, NO_LISTS, type ServerLists } from '../catalog/server-lists.js';
import type { ApprovalFacts } from '../catalog/tool-approval.js';
import { type ServerState, startsOnDemand, unavailableBecause } from '../dispatch/availability.js';
import { Dispatcher } from '../dispatch/dispatcher.js';
import type { Handling } from '../dispatch/handling.js';
import type { BackendListener } from './backend-listener.js';
import { type BackendOptions, type BackendRules, needsLists } from './backend-options.js';
import { FirstStart } from './first-start.js';
import { IdleTimer } from './idle-timer.js';
import { OpenConnection } from './open-connection.js';

/** Makes the listener that a new backend reports to. */
export type ListenerFor = (backend: Backend) => BackendListener;

/**
 * One instance of a server: its lists, and the dispatch of calls to it. A backend outlives its processes: each restart
 * attaches a new process to the same backend.
 */
export class Backend {
  readonly key: string;
  readonly id: string;
  readonly dispatcher: Dispatcher;
  /** The clients that share this backend. */
  readonly clients = new Set<DownstreamClient>();
  readonly firstStart: FirstStart;
  #options: BackendOptions;
  readonly #listener: BackendListener | undefined;
  readonly #lists: OfferedLists;
  readonly #reader: ListReader;
  readonly #idleTimer: IdleTimer;
  readonly #open = new OpenConnection();
  readonly listShown = (kind: ListKind) => this.#reader.shown(kind);

  constructor(options: BackendOptions & { readonly listenerFor?: ListenerFor | undefined }) {
    this.#options = options;
    this.key = options.key;
    this.id = options.id;
    this.dispatcher = new Dispatcher(options);
    this.firstStart = new FirstStart(options);
    this.#listener = options.listenerFor?.(this);
    this.#lists = new OfferedLists(options);
    this.#idleTimer = new IdleTimer({
      clock: options.clock,
      idleMs: options.idleStopMs ?? 0,
      isBusy: () => this.dispatcher.isBusy || this.#listener?.wouldLoseState() === true,
      onIdle: () => {
        this.dispatcher.idleStop();
        options.idleStop?.();
      },
    });
    this.#reader = new ListReader({
      ...options,
      lists: this.#lists,
      connection: () => this.dispatcher.connection,
      timeouts: () => this.dispatcher.listTimeouts,
      areRequired: () => needsLists(this.rules),
      onCaughtUp: () => {
        // Clients that read the lists from the server know them.
        this.#announceLists(LIST_KINDS);
        this.#listener?.startSettled();
      },
      onRead: (announced) => this.#announceLists(announced),
    });
  }

  get prefix(): string {
    return this.#options.prefix;
  }

  /**
   * False until the first start has succeeded or failed, and while lists are read that no client needed before. A list
   * merged before may lack this server's entries.
   */
  get isStartSettled(): boolean {
    return this.dispatcher.availability.isStartSettled && !this.#reader.isCatchingUp;
  }

  /** Whether no process will come, so that calls fail at once. False before the first start. */
  get isUnavailable(): boolean {
    return unavailableBecause(this.dispatcher.availability) !== undefined;
  }

  /** Whether the lists are known, from the process or from the cache, or will stay unknown for now. */
  get hasKnownLists(): boolean {
    return this.isStartSettled || this.firstStart.isEnough;
  }

  /** Whether the lists come from the cache of an earlier run, and no process of this run has confirmed them yet. */
  get isFromCache(): boolean {
    return this.firstStart.catalogue !== undefined && !this.isUnavailable;
  }

  /** What the initialize result of the process says or, without a process, the cached one. */
  get handshake(): Pick<UpstreamConnection, 'capabilities' | 'instructions' | 'serverInfo'> | undefined {
    return this.dispatcher.connection ?? this.firstStart.catalogue;
  }

  /** The entries under exposed or original names. A restarting server keeps its entries; an unavailable one has none. */
  listsAs(naming: ListNaming): ServerLists {
    return this.isUnavailable ? NO_LISTS : this.knownListsAs(naming);
  }

  /** The latest known lists, also while the server is unavailable. */
  knownListsAs(naming: ListNaming): ServerLists {
    return this.#lists.as(naming);
  }

  /** Shows the lists of another instance of this server until this instance has read its own lists. */
  copyListsFrom(other: Backend): void {
    if (!this.isStartSettled && !this.dispatcher.hasBeenUp) this.#lists.copyFrom(other.#lists, this.#options);
  }

  /** Applies other rules to the running process. */
  configure(rules: BackendRules): void {
    this.#options = { ...this.#options, ...rules };
    this.dispatcher.configure(rules.limits);
    this.#lists.configure(this.#options);
    this.#idleTimer.configure(rules.idleStopMs ?? 0);
    this.#listener?.listsChanged();
    if (this.#reader.areUnread) this.#listener?.unreadListsChanged();
    this.#reader.catchUp();
  }

  /** A client uses this server from now on. With `readsLists`, the client reads the lists from the server itself. */
  join(client: DownstreamClient, readsLists: boolean): void {
    this.clients.add(client);
    this.#reader.joined(readsLists);
  }

  /**
   * Starts the server if it starts on demand. Resolves with `undefined` once a connection is open, or with the reason if
   * none will come or none came within `waitMs` milliseconds.
   */
  untilOpen(waitMs: number): Promise<FailureReason | undefined> {
    const reason = unavailableBecause(this.dispatcher.availability);
    if (this.openConnection !== undefined || reason !== undefined) return Promise.resolve(reason);
    this.#demand();
    return this.#open.untilNext(this.dispatcher.untilConnected(waitMs));
  }

  /** The connection, also before its lists are read. */
  get openConnection(): UpstreamConnection | undefined {
    return this.dispatcher.connection ?? this.#open.current;
  }

  /** A process has completed its handshake. */
  opened(connection: UpstreamConnection): void {
    this.#open.set(connection);
  }

  get rules(): BackendRules {
    return this.#options;
  }

  /** Why this tool must not be called: its current definition is not approved. Call this before each send. */
  approvalRefusal(originalName: string): string | undefined {
    return this.#lists.approvalRefusal(originalName, this.dispatcher.connection);
  }

  /** State of the tool approvals; absent if the tools need no approval. */
  get approval(): ApprovalFacts | undefined {
    return this.#options.approvals?.facts;
  }

  /** Whether the server lists this tool with `execution.taskSupport: required`. */
  isTaskOnly(originalName: string): boolean {
    return this.#lists.isTaskOnly(originalName);
  }

  /** Whether a call of this tool may be repeated: its annotations say so, and the configuration trusts the server. */
  isRepeatable(originalName: string): boolean {
    return this.#options.isTrusted === true && this.#lists.isRepeatable(originalName);
  }

  /**
   * Shows the lists of an earlier run until a process of this run is ready. Resolves with the reason if the cached
   * catalogue cannot be used.
   */
  async loadCached(catalogue: CachedCatalogue): Promise<string | undefined> {
    const fault = await this.#lists.loadCached(catalogue, this.dispatcher.listTimeouts);
    if (fault !== undefined) return fault;
    this.firstStart.catalogue = catalogue;
    this.#listener?.listsChanged();
    this.#listener?.startSettled();
    return undefined;
  }

  /** No list waits for the first start of this server: in the last run, it was not ready. */
  expectLate(): void {
    this.firstStart.isLate = true;
    this.#listener?.startSettled();
  }

  /** A list was shown without this server, unless its lists are known. No list of this run waits for it again. */
  missedFirstList(): void {
    if (!this.hasKnownLists) this.firstStart.isLate = true;
  }

  /** Reads the lists of a process before `attach`, if needed. A list that cannot be read is read again later. */
  async loadLists(connection: UpstreamConnection): Promise<void> {
    await this.#reader.loadAll(connection);
  }

  /** The lists that the process offers and that could not be read. */
  get listFailures(): readonly ListFailure[] {
    return this.#lists.failuresFrom(this.dispatcher.connection);
  }

  /** Sends calls over this connection from now on. Its handshake is done and its lists were requested. */
  attach(connection: UpstreamConnection): void {
    const isRestart = this.dispatcher.hasBeenUp;
    this.dispatcher.connect(connection);
    this.#reader.connected();
    this.#listener?.attached();
    if (isRestart && this.#reader.areUnread) this.#listener?.unreadListsChanged();
  }

  /** Takes over a new state from the supervisor. */
  stateChanged(state: ServerState): void {
    const { isUnavailable: wasUnavailable, isStartSettled: wasStartSettled } = this;
    this.firstStart.stateChanged(state);
    this.dispatcher.stateChanged(state);
    if (state === 'ready') this.#idleTimer.start();
    else this.#idleTimer.stop();
    if (state !== 'ready' && state !== 'suspect') this.#listener?.detached();
    if (state === 'ready') this.#announceLists();
    else if (wasUnavailable !== this.isUnavailable) this.#listener?.listsChanged();
    // Requests that came before the server could be started wait for it.
    if ((state === 'idle' || state === 'starting') && this.dispatcher.isAwaited) this.#demand();
    if (!wasStartSettled && this.isStartSettled) this.#listener?.startSettled();
  }

  /** Starts a parked server, because a new client uses it. */
  startIfParked(): void {
    if (this.dispatcher.availability.state === 'parked') this.#options.demandStart();
  }

  /** Serves a client request, unless it must not be sent. A refused request starts no process. */
  serve(exchange: Exchange, handling: Handling): void {
    this.#reader.used();
    const refusal = handling.refusal?.();
    if (refusal !== undefined) {
      this.dispatcher.refuse(exchange, 'not_approved', refusal);
      return;
    }
    this.#demand();
    this.#idleTimer.used();
    exchange.route(this.id);
    // Calls do not wait for an installation, which may take minutes.
    const { availability } = this.dispatcher;
    const reason = availability.state === 'installing' ? 'installing' : unavailableBecause(availability);
    if (reason === undefined) this.dispatcher.serve(exchange, handling);
    else this.dispatcher.refuse(exchange, reason);
  }

  /** Handles a server request that only a client can answer. */
  serverRequest(request: ServerRequest): void {
    this.#listener?.serverRequest(request);
  }

  /** Handles a notification of the server. */
  notification(notification: NotificationEnvelope): void {
    const changed = listsChangedBy(notification.method);
    if (changed.length === 0) {
      this.#listener?.notification(notification);
      return;
    }
    this.#listener?.listsAnnounced(changed, notification);
    this.#reader.changed(changed);
  }

  close(): void {
    this.firstStart.close();
    this.#reader.close();
    this.#idleTimer.stop();
    this.dispatcher.close();
  }

  /** Starts a server that starts on demand, or makes it start sooner. */
  #demand(): void {
    if (startsOnDemand(this.dispatcher.availability)) this.#options.demandStart();
  }

  #announceLists(announced: readonly ListKind[] = []): void {
    this.#listener?.listsChanged(announced);
    const { connection } = this.dispatcher;
    const lists = connection && this.#lists.rawFrom(connection);
    if (connection !== undefined && lists !== undefined)
      this.#options.onListsRead?.({ initializeResult: connection.initializeResult, lists });
  }
}
