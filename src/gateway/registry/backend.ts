import type { FailureReason } from '../../downstream/failure.js';
import type { DownstreamClient, Exchange } from '../../downstream/port.js';
import type { NotificationEnvelope } from '../../mcp/envelope.js';
import { type ListKind, listsChangedBy } from '../../mcp/lists.js';
import type { ServerRequest, UpstreamConnection } from '../../upstream/port.js';
import type { CachedCatalogue, CatalogueContent } from '../catalog/cached-catalogue.js';
import type { ExposureRules } from '../catalog/exposed-list.js';
import { ListRefresh, OfferedLists } from '../catalog/offered-lists.js';
import { type ListNaming, NO_LISTS, type ServerLists } from '../catalog/server-lists.js';
import type { ApprovalFacts } from '../catalog/tool-approval.js';
import { type ServerState, startsOnDemand, unavailableBecause } from '../dispatch/availability.js';
import { Dispatcher, type DispatcherOptions } from '../dispatch/dispatcher.js';
import type { Handling } from '../dispatch/handling.js';
import type { BackendListener } from './backend-listener.js';
import { IdleTimer } from './idle-timer.js';
import { OpenConnection } from './open-connection.js';

/** Rules of the configuration for one server. They may change while its process runs. */
export interface BackendRules extends Pick<ExposureRules, 'policy' | 'approvals'>, Pick<DispatcherOptions, 'limits'> {
  readonly prefix: string;
  /** Whether the configuration says that this server answers a method which MCP does not define. */
  readonly answers?: (method: string) => boolean;
  /** Whether the configuration trusts the annotations of this server's tools (`readOnlyHint`, `idempotentHint`). */
  readonly isTrusted?: boolean;
  /** Milliseconds without a call after which the process is stopped. 0 means never. */
  readonly idleStopMs?: number;
}

export interface BackendOptions extends ExposureRules, DispatcherOptions, BackendRules {
  /** Unique among the instances of all servers. The first instance of a server has the server's key. */
  readonly id: string;
  readonly prefix: string;
  /** Whether the configuration of this server is wrong, so that it can never run. */
  readonly isMisconfigured: boolean;
  /** Requests a start of the process, ahead of starts that no call waits for. */
  readonly demandStart: () => void;
  /** Requests a stop of the idle process. The next call requests a start again. */
  readonly idleStop?: () => void;
  /** Called with the server's lists each time they were read from the process. */
  readonly onListsRead?: (content: CatalogueContent) => void;
  /** Makes the listener that this backend reports to. Without it, the reports are dropped. */
  readonly listenerFor?: ListenerFor | undefined;
}

/** Makes the listener of a backend that is being created. */
export type ListenerFor = (backend: Backend) => BackendListener;

/**
 * One instance of a server: its lists, and the dispatch of calls to it.
 *
 * A backend outlives its processes: each restart attaches a new process to the same backend.
 */
export class Backend {
  readonly key: string;
  readonly id: string;
  readonly dispatcher: Dispatcher;
  /** The clients that share this backend. */
  readonly clients = new Set<DownstreamClient>();
  #options: BackendOptions;
  readonly #listener: BackendListener | undefined;
  readonly #lists: OfferedLists;
  readonly #refresh: ListRefresh;
  readonly #idleTimer: IdleTimer;
  readonly #open = new OpenConnection();
  /** The catalogue of an earlier run, until a process of this run is ready. */
  #cached: CachedCatalogue | undefined;

  constructor(options: BackendOptions) {
    this.#options = options;
    this.key = options.key;
    this.id = options.id;
    this.dispatcher = new Dispatcher(options);
    this.#listener = options.listenerFor?.(this);
    this.#lists = new OfferedLists(options);
    this.#idleTimer = new IdleTimer({
      clock: options.clock,
      idleMs: options.idleStopMs ?? 0,
      isBusy: () =>
        this.dispatcher.inFlightCalls.size > 0 ||
        this.dispatcher.queued > 0 ||
        this.#listener?.wouldLoseState() === true,
      onIdle: () => {
        this.dispatcher.idleStop();
        options.idleStop?.();
      },
    });
    this.#refresh = new ListRefresh({
      clock: options.clock,
      onInternalError: options.onInternalError,
      connection: () => this.dispatcher.connection,
      read: (connection, kinds) => this.#reload(connection, kinds),
    });
  }

  get prefix(): string {
    return this.#options.prefix;
  }

  get isMisconfigured(): boolean {
    return this.#options.isMisconfigured;
  }

  /** False until the first start has succeeded or failed. A list merged before may lack this server's entries. */
  get isStartSettled(): boolean {
    return this.dispatcher.availability.isStartSettled;
  }

  /** Whether no process will come, so that calls fail at once. False before the first start. */
  get isUnavailable(): boolean {
    return unavailableBecause(this.dispatcher.availability) !== undefined;
  }

  /** Whether the lists are known, from the process or from the cache, or will stay unknown for now. */
  get hasKnownLists(): boolean {
    return this.isStartSettled || this.#cached !== undefined;
  }

  /** Whether the lists come from the cache of an earlier run, and no process of this run has confirmed them yet. */
  get isFromCache(): boolean {
    return this.#cached !== undefined && !this.isUnavailable;
  }

  /** Capabilities and instructions from the initialize result of the process or, without a process, from the cache. */
  get handshake(): Pick<UpstreamConnection, 'capabilities' | 'instructions'> | undefined {
    return this.dispatcher.connection ?? this.#cached;
  }

  /** The entries under exposed names. */
  get lists(): ServerLists {
    return this.listsAs('exposed');
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
    return this.#lists.approvalRefusal(originalName);
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
    this.#cached = catalogue;
    this.#listener?.listsChanged();
    this.#listener?.startSettled();
    return undefined;
  }

  /** Reads the lists of a process before `attach`. Resolves with the reason if the process cannot be used. */
  async loadLists(connection: UpstreamConnection): Promise<string | undefined> {
    return await this.#lists.loadAll(connection, this.dispatcher.listTimeouts, () => {
      if (connection === this.dispatcher.connection) this.#announceLists();
    });
  }

  /** Sends calls over this connection from now on. Its handshake is done and its lists are read. */
  attach(connection: UpstreamConnection): void {
    this.dispatcher.connect(connection);
    this.#refresh.connected();
    this.#listener?.attached();
  }

  /** Takes over a new state from the supervisor. */
  stateChanged(state: ServerState): void {
    const { isUnavailable: wasUnavailable, isStartSettled: wasStartSettled } = this;
    if (state === 'ready') this.#cached = undefined;
    this.dispatcher.stateChanged(state);
    if (state === 'ready') this.#idleTimer.start();
    else this.#idleTimer.stop();
    if (state !== 'ready' && state !== 'suspect') this.#listener?.detached();
    if (state === 'ready') this.#announceLists();
    else if (wasUnavailable !== this.isUnavailable) this.#listener?.listsChanged();
    // Requests that came before the server could be started wait for it.
    if (state === 'idle' && this.dispatcher.isAwaited) this.#demand();
    if (!wasStartSettled && this.isStartSettled) this.#listener?.startSettled();
  }

  /** Starts a parked server, because a new client uses it. */
  startIfParked(): void {
    if (this.dispatcher.availability.state === 'parked') this.#options.demandStart();
  }

  /** Serves a client request. */
  serve(exchange: Exchange, handling: Handling): void {
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
    this.#refresh.changed(changed);
  }

  close(): void {
    this.#refresh.close();
    this.#idleTimer.stop();
    this.dispatcher.close();
  }

  /** Starts a server that starts on demand, or makes it start sooner. */
  #demand(): void {
    if (startsOnDemand(this.dispatcher.availability)) this.#options.demandStart();
  }

  #announceLists(announced: readonly ListKind[] = []): void {
    this.#listener?.listsChanged(announced);
    const { initializeResult } = this.dispatcher.connection ?? {};
    const lists = this.#lists.raw;
    if (initializeResult !== undefined && lists !== undefined) this.#options.onListsRead?.({ initializeResult, lists });
  }

  /** Reads changed lists again. A list that cannot be read stays as it was; a broken server shows in its calls. */
  async #reload(connection: UpstreamConnection, kinds: readonly ListKind[]): Promise<void> {
    await Promise.all(kinds.map((kind) => this.#lists.load(connection, kind, this.dispatcher.listTimeouts)));
    if (connection === this.dispatcher.connection) this.#announceLists(kinds);
  }
}
