import type { RequestRules } from '../../config/rules/request-rules.js';
import type { FailureReason } from '../../downstream/failure.js';
import type { DownstreamClient, Exchange } from '../../downstream/port.js';
import type { CallLimits, ResultLimits, ServerRules } from '../../spec/server-rules.js';
import type { ServerState } from '../../spec/server-state.js';
import type { ApprovalFacts, ToolApprovals } from '../../spec/tool-approvals.js';
import type {
  HandshakeAnswer,
  ListSource,
  ServerRequest,
  UpstreamConnection,
} from '../../upstream/upstream-connection.js';
import type { NotificationEnvelope } from '../../wire/mcp/envelope.js';
import { LIST_KINDS, type ListKind, listsChangedBy } from '../../wire/mcp/methods.js';
import type { MirroredParam } from '../../wire/mcp/mirrored-params.js';
import { hasHandshake, isModernRevision, knowsTasks } from '../../wire/mcp/revisions.js';
import type { ListedServer } from '../catalog/catalog.js';
import type { ExposureRules, ToolRules } from '../catalog/exposed-list.js';
import {
  type ListFailure,
  type ListNaming,
  NO_LISTS,
  OfferedLists,
  type ServerLists,
} from '../catalog/offered-lists.js';
import type { RawEntry } from '../catalog/pagination.js';
import { createToolPolicy } from '../catalog/tool-policy.js';
import { ToolShaping } from '../catalog/tool-shaping.js';
import type { Handling } from '../dispatch/call.js';
import { type CallRules, Dispatcher, type DispatcherOptions } from '../dispatch/dispatcher.js';
import type { LoginOffer, OfferedLogin } from '../dispatch/login-offer.js';
import { FirstStart } from './first-start.js';
import { IdleTimer } from './idle-timer.js';

export type { OfferedLogin };

/** Initialize result and lists of one server, byte for byte as the server sent them. */
export interface CatalogueContent {
  readonly initializeResult: Uint8Array;
  readonly lists: ReadonlyMap<ListKind, readonly RawEntry[]>;
}

export type ListenerFor = (backend: Backend) => BackendListener;

/** One instance of a server: its lists, and the dispatch of calls to it. A backend outlives its processes. */
export class Backend implements ListedServer {
  readonly key: string;
  readonly id: string;
  readonly dispatcher: Dispatcher;
  readonly clients = new Set<DownstreamClient>();
  readonly firstStart: FirstStart;
  #options: BackendOptions;
  readonly #listener: BackendListener | undefined;
  readonly lists: OfferedLists;
  readonly #idleTimer: IdleTimer;
  /** Time of the latest call, in milliseconds on the clock. */
  #usedAt = Number.NEGATIVE_INFINITY;
  /** Connection of the latest process, from its handshake on. Calls use the connection only after its lists were read. */
  #opened: UpstreamConnection | undefined;
  #lastHandshake: HandshakeAnswer | undefined;
  #loginOffer: Promise<LoginOffer> | undefined;

  constructor(options: BackendOptions & { readonly listenerFor?: ListenerFor | undefined }) {
    this.#options = options;
    this.key = options.key;
    this.id = options.id;
    this.dispatcher = new Dispatcher(options);
    this.firstStart = new FirstStart(options.onStartMissed);
    this.#listener = options.listenerFor?.(this);
    this.#idleTimer = new IdleTimer({
      clock: options.clock,
      idleMs: options.idleStopMs ?? 0,
      usedAt: () => this.#usedAt,
      isBusy: () => this.dispatcher.isBusy || this.#listener?.wouldLoseState() === true,
      onIdle: () => {
        this.dispatcher.idleStop();
        options.idleStop?.();
      },
    });
    this.lists = new OfferedLists({
      ...options,
      connection: () => this.dispatcher.connection,
      timeouts: () => this.dispatcher.listTimeouts,
      areRequired: () => needsLists(this.rules, this.openConnection?.revision),
      onCaughtUp: () => {
        // Only the merged lists are new. Clients that read the lists from the server know them already.
        this.#announceLists(LIST_KINDS);
        this.#listener?.startSettled();
      },
      onRead: (announced) => this.#announceLists(announced),
    });
  }

  get prefix(): string {
    return this.#options.prefix;
  }

  get isStartSettled(): boolean {
    return this.dispatcher.availability.isStartSettled && !this.lists.isCatchingUp;
  }

  /**
   * Whether the server cannot run, so that its tools leave the lists and its calls fail at once. False before the first start, and
   * for a remote server that is unreachable or wants a login, because its tools stay listed.
   */
  get isUnavailable(): boolean {
    const reason = this.dispatcher.availability.failReason;
    return reason !== undefined && reason !== 'unreachable' && reason !== 'login_required';
  }

  get needsLogin(): boolean {
    return this.dispatcher.availability.failReason === 'login_required';
  }

  get hasKnownLists(): boolean {
    return this.isStartSettled || this.firstStart.isEnough;
  }

  /** Whether the lists come from the cache of an earlier run, and no process of this run has confirmed them yet. */
  get isFromCache(): boolean {
    return this.firstStart.catalogue !== undefined && !this.isUnavailable;
  }

  /** Content of the initialize result of the process or, without a process, of the cached one, or of the last process. */
  get handshake(): HandshakeAnswer | undefined {
    const { connection } = this.dispatcher;
    const said = connection ?? this.firstStart.catalogue ?? (this.isUnavailable ? undefined : this.#lastHandshake);
    return said && this.approved(said);
  }

  /** The handshake without its texts for models, if they need approval and have none. */
  approved(said: HandshakeAnswer): HandshakeAnswer {
    const { approvals } = this.#options;
    const { capabilities, instructions, serverInfo } = said;
    const texts = [instructions, serverInfo?.title, serverInfo?.description];
    if (approvals === undefined || texts.every((text) => text === undefined)) return said;
    const verdicts = approvals.judge(new Map([['', JSON.stringify(texts)]]), 'instructions');
    if (verdicts.get('') === 'approved') return said;
    return { capabilities, instructions: undefined, serverInfo: { title: undefined, description: undefined } };
  }

  /** The approved handshake of the last process; before the first one, that of the backend that was passed to `expect`. */
  get lastHandshake(): HandshakeAnswer | undefined {
    return this.#lastHandshake && this.approved(this.#lastHandshake);
  }

  listsAs(naming: ListNaming): ServerLists {
    return this.isUnavailable ? NO_LISTS : this.knownListsAs(naming);
  }

  knownListsAs(naming: ListNaming): ServerLists {
    return this.lists.as(naming);
  }

  /** Shows the lists of another instance of this server until this instance has read its own lists. */
  copyListsFrom(other: Backend): void {
    if (!this.isStartSettled && !this.dispatcher.hasBeenUp) this.lists.copyFrom(other.lists);
  }

  /** Describes the server as the last process of another instance did, until this one has a process. */
  expect(other: Backend): void {
    this.#lastHandshake ??= other.lastHandshake;
    this.copyListsFrom(other);
  }

  configure(rules: BackendRules): void {
    this.#options = { ...this.#options, ...rules };
    this.dispatcher.configure(rules);
    this.lists.configure(this.#options);
    this.#idleTimer.configure(rules.idleStopMs ?? 0);
    this.#listener?.listsChanged();
    if (this.lists.areUnread) this.#listener?.unreadListsChanged();
    this.lists.catchUp();
  }

  /** Records that a client uses this server from now on. With `readsLists`, the client reads the lists from the server. */
  join(client: DownstreamClient, readsLists: boolean): void {
    this.clients.add(client);
    this.lists.joined(readsLists);
  }

  /** Starts the server on demand. Resolves with the reason if no connection is open within `waitMs` milliseconds. */
  untilOpen(waitMs: number): Promise<FailureReason | undefined> {
    const reason = this.dispatcher.availability.failReason;
    if (this.openConnection !== undefined || reason !== undefined) return Promise.resolve(reason);
    this.#demand();
    return this.dispatcher.admission.untilConnected(waitMs);
  }

  /** The connection, also before its lists are read. */
  get openConnection(): UpstreamConnection | undefined {
    return this.dispatcher.connection ?? (this.#opened?.isClosed === false ? this.#opened : undefined);
  }

  opened(connection: UpstreamConnection): void {
    this.#opened = connection;
    this.dispatcher.admission.opened(connection);
  }

  get rules(): BackendRules {
    return this.#options;
  }

  get approval(): ApprovalFacts | undefined {
    return this.#options.approvals?.facts;
  }

  /** Parameters of this tool that the server wants repeated in headers, as only servers over HTTP do. */
  mirroredParams(originalName: string): readonly MirroredParam[] {
    return this.knownListsAs('exposed').tools.mirrored.get(originalName) ?? [];
  }

  /** Reads the tools again, because a call of one had other headers than the server wants. Never rejects. */
  rereadTools(): Promise<void> {
    return this.lists.rereadTools();
  }

  /** Whether a call of this tool by a client of this revision may become a task that the client has not asked for. */
  mayMakeTask(originalName: string, revision: string | undefined): boolean {
    const { connection } = this.dispatcher;
    // Without a process, neither its revision nor its tools are known yet.
    return connection === undefined || isModernRevision(connection.revision) || this.lacksTasks(originalName, revision);
  }

  /** Whether the tool runs only as a task, and clients of this revision have no such tasks. */
  lacksTasks(originalName: string, revision: string | undefined): boolean {
    return !knowsTasks(revision) && this.lists.tools.taskOnly.has(originalName);
  }

  /** Whether a call of this tool may be repeated, because the configuration or a trusted server says so. */
  isRepeatable(originalName: string): boolean {
    return this.lists.tools.repeatable.has(originalName);
  }

  /**
   * Shows the lists of an earlier run until a process is ready. With `isOfOthers`, they were read for another client, so the first
   * list still waits for the server. Resolves with the reason if they cannot be used.
   */
  async loadCached(catalogue: ListSource, { isOfOthers = false } = {}): Promise<string | undefined> {
    const fault = await this.lists.loadCached(catalogue);
    if (fault !== undefined) return fault;
    this.firstStart.catalogue = catalogue;
    this.firstStart.isOfOthers = isOfOthers;
    this.#listener?.listsChanged();
    this.#listener?.startSettled();
    return undefined;
  }

  /** Lets no list wait for the first start of this server, because the server was not ready in the last run. */
  expectLate(): void {
    this.firstStart.isLate = true;
    this.#listener?.startSettled();
  }

  /** Records that a list was shown before the lists of this server were known. No list of this run waits for it again. */
  missedFirstList(): void {
    if (!this.hasKnownLists) this.firstStart.isLate = true;
  }

  /** Reads the lists of a process before `attach`, if needed. A list that cannot be read is read again later. */
  async loadLists(connection: UpstreamConnection): Promise<void> {
    await this.lists.loadAll(connection);
  }

  get listFailures(): readonly ListFailure[] {
    return this.lists.failures;
  }

  /** Sends calls over this connection from now on. Its handshake is done and its lists were requested. */
  attach(connection: UpstreamConnection): void {
    const isRestart = this.dispatcher.hasBeenUp;
    this.dispatcher.connect(connection);
    const { capabilities, instructions, serverInfo } = connection;
    this.#lastHandshake = { capabilities, instructions, serverInfo };
    this.approved(connection);
    this.lists.connected();
    this.#listener?.attached();
    if (isRestart && this.lists.areUnread) this.#listener?.unreadListsChanged();
  }

  stateChanged(state: ServerState): void {
    const { isUnavailable: wasUnavailable, isStartSettled: wasStartSettled } = this;
    this.firstStart.stateChanged(state);
    this.dispatcher.stateChanged(state);
    if (state === 'ready') this.#idleTimer.start();
    else this.#idleTimer.stop();
    if (state !== 'ready' && state !== 'suspect') this.#listener?.detached();
    if (state === 'ready') this.#announceLists();
    else if (wasUnavailable !== this.isUnavailable) this.#listener?.listsChanged();
    // Starts the server for requests that came before it could be started.
    if ((state === 'idle' || state === 'starting') && this.dispatcher.admission.isAwaited) this.#demand();
    if (!wasStartSettled && this.isStartSettled) this.#listener?.startSettled();
  }

  /** Starts a parked server, because a new client uses it. */
  startIfParked(): void {
    if (this.dispatcher.availability.state === 'parked') this.#options.demandStart();
  }

  /** Serves a client request, unless it must not be sent. A refused request starts no process. */
  serve(exchange: Exchange, handling: Handling): void {
    this.lists.used();
    exchange.trail?.routed(this.key, this.id, this.#options.isRemote === true);
    const refusal = handling.refusal?.();
    if (refusal !== undefined) {
      this.dispatcher.refuse(exchange, refusal.reason, refusal);
      return;
    }
    this.#demand();
    this.#usedAt = this.#options.clock.now();
    exchange.route(this.id);
    // Calls do not wait for an installation, which may take minutes.
    const { availability } = this.dispatcher;
    const reason = availability.state === 'installing' ? 'installing' : availability.failReason;
    const serve = () => this.dispatcher.serve(exchange, handling);
    const refuse = () => reason && this.dispatcher.refuse(exchange, reason);
    if (reason === undefined) serve();
    else if (reason !== 'login_required' || !this.#offersLogin(exchange, serve, refuse)) refuse();
  }

  /** Offers the login at the server to the client of a call. Returns false if no client can be offered one. */
  #offersLogin(...call: Parameters<LoginOffer['make']>): boolean {
    const { beginLogin } = this.#options;
    if (beginLogin === undefined) return false;
    // Loaded with the first offer, because few servers need a login.
    this.#loginOffer ??= import('../dispatch/login-offer.js').then(
      (loaded) => new loaded.LoginOffer(this.key, beginLogin),
    );
    void this.#loginOffer.then((offer) => offer.make(...call));
    return true;
  }

  serverRequest(request: ServerRequest): void {
    this.#listener?.serverRequest(request);
  }

  notification(notification: NotificationEnvelope): void {
    const changed = listsChangedBy(notification.method);
    if (changed.length === 0) {
      this.#listener?.notification(notification);
      return;
    }
    this.#listener?.listsAnnounced(changed, notification);
    this.lists.changed(changed);
  }

  close(): void {
    this.firstStart.close();
    this.lists.close();
    this.#idleTimer.stop();
    this.dispatcher.close();
  }

  #demand(): void {
    if (this.dispatcher.availability.startsOnDemand) this.#options.demandStart();
  }

  #announceLists(announced: readonly ListKind[] = []): void {
    this.#listener?.listsChanged(announced);
    const { connection } = this.dispatcher;
    const lists = connection && this.lists.raw;
    if (connection !== undefined && lists !== undefined)
      this.#options.onListsRead?.({ initializeResult: connection.initializeResult, lists });
  }
}

export interface BackendListener {
  /** The entries for the merged lists may have changed. The server itself announced the changes of the `announced` lists. */
  listsChanged(announced?: readonly ListKind[]): void;
  /** The server announced that these lists changed. Their entries are not read yet. */
  listsAnnounced(kinds: readonly ListKind[], notification: NotificationEnvelope): void;
  /** The lists may have changed, but are not read, because all clients of this backend read them from the server. */
  unreadListsChanged(): void;
  /** The first start succeeded or failed, or the cached catalogue of an earlier run was loaded. */
  startSettled(): void;
  /** A new process is connected. It knows neither the subscriptions nor the log level of the process before it. */
  attached(): void;
  /** The process is gone, and its open requests and tasks with it. */
  detached(): void;
  /** The server sent a request that only a client can answer. */
  serverRequest(request: ServerRequest): void;
  /** The server sent a notification other than a list change. */
  notification(notification: NotificationEnvelope): void;
  /** Whether a stop of the process would lose state, such as subscriptions and tasks, although no call is in flight. */
  wouldLoseState(): boolean;
}

interface BackendOptions extends ExposureRules, DispatcherOptions, BackendRules {
  /** Unique among the instances of all servers. The first instance of a server has the server's key. */
  readonly id: string;
  readonly prefix: string;
  readonly isMisconfigured: boolean;
  /** Requests a start of the process. It goes ahead of starts that no call waits for. */
  readonly demandStart: () => void;
  /** Requests a stop of the idle process. The next call requests a start again. */
  readonly idleStop?: () => void;
  /** Called with the server's lists after each read from the process. */
  readonly onListsRead?: (content: CatalogueContent) => void;
  /** Called at most once: when the start has failed or is slow, and the last run has cached no catalogue. */
  readonly onStartMissed?: () => void;
  /** Begins a login at the server. Absent if no client of this server can be offered one. */
  readonly beginLogin?: (() => Promise<OfferedLogin>) | undefined;
}

/** A backend, and control of the process behind it. */
export interface RunningBackend {
  readonly backend: Backend;
  /** Starts the process, which the supervisor then keeps running, or lets it wait for a call. Called once. */
  start(waitsForCall: boolean): void;
  /** Stops the process for good. Resolves when it is gone. */
  end(): Promise<void>;
}

export interface DescribedServer {
  readonly key: string;
  readonly prefix: string;
  readonly handshake: HandshakeAnswer | undefined;
  listsAs(naming: ListNaming): ServerLists;
}

/** The `ServerRules` of one server, prepared for use. They may change while its process runs. */
export interface BackendRules extends ToolRules, CallRules {
  readonly prefix: string;
  /** Whether the configuration says that this server answers a method which MCP does not define. */
  readonly answers?: (method: string) => boolean;
  /** Milliseconds without a call after which the process is stopped. 0 means never. */
  readonly idleStopMs?: number;
  readonly results?: ResultLimits;
  readonly callRules?: RequestRules | undefined;
}

/** Prepares the rules of a resolved entry for use. See `ToolShaping` for `onWarnings`. */
export function toBackendRules(
  rules: ServerRules,
  limits: CallLimits,
  approvals: ToolApprovals | undefined,
  onWarnings: (warnings: readonly string[]) => void,
): BackendRules {
  const { prefix, spec, tools, methods, shapes, trusted, idleStopMs, results, passHeaders } = rules;
  return {
    prefix,
    limits,
    approvals,
    isTrusted: trusted,
    isRemote: spec?.kind === 'remote',
    idleStopMs,
    results,
    passHeaders,
    policy: createToolPolicy(tools),
    answers: createToolPolicy({ allow: methods, deny: [] }),
    shaping: shapes && new ToolShaping(shapes, onWarnings),
  };
}

/** Whether the rules, or the headers of calls over HTTP, need the server's list of tools. */
function needsLists({ approvals, isTrusted, shaping, isRemote }: BackendRules, revision: string | undefined): boolean {
  const hasHeaders = isRemote === true && !hasHandshake(revision);
  return approvals !== undefined || isTrusted === true || shaping !== undefined || hasHeaders;
}
