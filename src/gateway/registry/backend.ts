import type { FailureReason } from '../../downstream/failure.js';
import type { DownstreamClient, Exchange } from '../../downstream/port.js';
import type { NotificationEnvelope } from '../../mcp/envelope.js';
import { type ListKind, listsChangedBy } from '../../mcp/lists.js';
import type { UpstreamConnection } from '../../upstream/port.js';
import type { ServerRequest } from '../../upstream/server-request.js';
import type { CachedCatalogue, CatalogueContent } from '../catalog/cached-catalogue.js';
import type { ExposureRules } from '../catalog/exposed-list.js';
import { ListRefresh } from '../catalog/list-refresh.js';
import { OfferedLists } from '../catalog/offered-lists.js';
import { type ListNaming, NO_LISTS, type ServerLists } from '../catalog/server-lists.js';
import type { ApprovalFacts } from '../catalog/tool-approval.js';
import { Dispatcher, type DispatcherOptions } from '../dispatch/dispatcher.js';
import type { Handling } from '../dispatch/handling.js';
import { Lifecycle, type LifecycleState } from './availability.js';
import type { BackendListener } from './backend-listener.js';
import { ConnectionWaits } from './connection-waits.js';
import { IdleTimer } from './idle-timer.js';

/** What Trunkline does with a server, whatever runs for it. */
export interface BackendRules extends Pick<ExposureRules, 'policy' | 'approvals'>, Pick<DispatcherOptions, 'limits'> {
  readonly prefix: string;
  /** Whether the configuration says that this server answers a method which MCP does not define. */
  readonly answers?: (method: string) => boolean;
  /** Whether the configuration says that what the tools of this server say of themselves is true. */
  readonly isTrusted?: boolean;
  /** How long a process may go without a call before it is to rest; 0 for ever. */
  readonly idleStopMs?: number;
}

export interface BackendOptions extends ExposureRules, DispatcherOptions, BackendRules {
  /** Tells the processes of one server apart; the key, for the first. */
  readonly id: string;
  readonly prefix: string;
  /** This server can never run as it is configured. */
  readonly isMisconfigured: boolean;
  /** Asks for a start of a child that is not started by itself, or not tried any more. */
  readonly demandStart: () => void;
  /** Asks for the end of a process that nobody needs now; the next call demands it again. */
  readonly rest?: () => void;
  /** Told what the process offers whenever that was read. */
  readonly onListed?: (words: CatalogueContent) => void;
}

/**
 * One server as the gateway sees it: what it offers, and the way calls take to it.
 *
 * The processes behind it come and go; the backend stays for as long as the server is configured.
 */
export class Backend {
  readonly key: string;
  readonly id: string;
  readonly dispatcher: Dispatcher;
  /** The clients that share this backend. */
  readonly clients = new Set<DownstreamClient>();
  #options: BackendOptions;
  #listener: BackendListener | undefined;
  readonly #lifecycle: Lifecycle;
  readonly #lists: OfferedLists;
  readonly #refresh: ListRefresh;
  readonly #idleTimer: IdleTimer;
  /** What an earlier process said of itself, until one of this run is ready. */
  #cached: CachedCatalogue | undefined;
  readonly #waiting: ConnectionWaits;

  constructor(options: BackendOptions) {
    this.#options = options;
    this.key = options.key;
    this.id = options.id;
    this.dispatcher = new Dispatcher(options);
    this.#lifecycle = new Lifecycle({ isMisconfigured: options.isMisconfigured, dispatcher: this.dispatcher });
    this.#lists = new OfferedLists(options);
    this.#waiting = new ConnectionWaits(options.clock);
    this.#idleTimer = new IdleTimer({
      clock: options.clock,
      idleMs: options.idleStopMs ?? 0,
      isBusy: () =>
        this.dispatcher.inFlightCalls.size > 0 || this.dispatcher.queued > 0 || this.#listener?.isHeld() === true,
      onIdle: () => {
        this.#lifecycle.toRest();
        options.rest?.();
      },
    });
    this.#refresh = new ListRefresh({
      clock: options.clock,
      onFault: options.onFault,
      connection: () => this.dispatcher.connection,
      read: (connection, kinds) => this.#reload(connection, kinds),
    });
  }

  /** One listener, set once when the gateway is put together. */
  listen(listener: BackendListener): void {
    this.#listener = listener;
  }

  get prefix(): string {
    return this.#options.prefix;
  }

  get isMisconfigured(): boolean {
    return this.#options.isMisconfigured;
  }

  /** False while the first start is under way: a list made now may lack what this server offers. */
  get isStartSettled(): boolean {
    return this.#lifecycle.isStartSettled;
  }

  /** Whether no process is to be expected. Before it is started for the first time it is on its way. */
  get isGivenUp(): boolean {
    return this.#lifecycle.isGivenUp;
  }

  /** Whether something is known of what this server offers, or nothing will be for now. */
  get isListed(): boolean {
    return this.isStartSettled || this.#cached !== undefined;
  }

  /** Whether what is listed was read in an earlier run, and no process of this one has confirmed it yet. */
  get isFromLastRun(): boolean {
    return this.#cached !== undefined && !this.isGivenUp;
  }

  /** What the server said of itself: its process or, until there is one, that of an earlier run. */
  get handshake(): Pick<UpstreamConnection, 'capabilities' | 'instructions'> | undefined {
    return this.dispatcher.connection ?? this.#cached;
  }

  /** What this server contributes to the merged lists. One that is restarting keeps its place; one given up does not. */
  get lists(): ServerLists {
    return this.listsAs('exposed');
  }

  /** The same under either names. */
  listsAs(naming: ListNaming): ServerLists {
    return this.isGivenUp ? NO_LISTS : this.knownListsAs(naming);
  }

  /** What this server offers, or offered when it was last up. */
  knownListsAs(naming: ListNaming): ServerLists {
    return this.#lists.as(naming);
  }

  /** Shows what another one of this server offers until its own process has said what it does. */
  resemble(other: Backend): void {
    if (!this.isStartSettled && !this.dispatcher.hasBeenUp) this.#lists.resemble(other.#lists, this.#options);
  }

  /** Other rules from now on, for the process that there is. */
  follow(rules: BackendRules): void {
    this.#options = { ...this.#options, ...rules };
    this.dispatcher.limit(rules.limits);
    this.#lists.follow(this.#options);
    this.#idleTimer.limit(rules.idleStopMs ?? 0);
    this.#listener?.listsChanged();
  }

  /** Resolves when there is a process, or with why there is none to be expected, or none within `waitMs`. */
  untilAttached(waitMs: number): Promise<FailureReason | undefined> {
    const { absence } = this.#lifecycle;
    if (this.dispatcher.connection !== undefined || absence !== undefined) return Promise.resolve(absence);
    this.#demand();
    return this.#waiting.begin(waitMs, () => this.#lifecycle.delay);
  }

  /** Whether the configuration lets this tool through. */
  allows(originalName: string): boolean {
    return this.#options.policy(originalName);
  }

  /** Whether its tools have to be approved. */
  get needsApproval(): boolean {
    return this.#options.approvals !== undefined;
  }

  /** Why this tool must not be called, as nobody has approved what it is now; asked anew before each send. */
  rejectionReply(originalName: string): string | undefined {
    return this.#lists.rejectionReply(originalName);
  }

  /** How it stands with the approval of tools; absent where they need none. */
  get approval(): ApprovalFacts | undefined {
    return this.#options.approvals?.facts;
  }

  /** Whether the server calls this tool as a task only, as far as it has listed it. */
  isTaskOnly(originalName: string): boolean {
    return this.#lists.isTaskOnly(originalName);
  }

  /** Whether this tool may be called twice, as its server says, which has to be trusted for that. */
  isRepeatable(originalName: string): boolean {
    return this.#options.isTrusted === true && this.#lists.isRepeatable(originalName);
  }

  /** Whether a method that MCP does not define is this server's, by the configuration. */
  answers(method: string): boolean {
    return this.#options.answers?.(method) === true;
  }

  /** Offers what an earlier process did, until one of this run says what it offers. Resolves with what is wrong with it. */
  async showCached(kept: CachedCatalogue): Promise<string | undefined> {
    const fault = await this.#lists.loadCached(kept, this.dispatcher.listTimeouts);
    if (fault !== undefined) return fault;
    this.#cached = kept;
    this.#listener?.listsChanged();
    this.#listener?.startSettled();
    return undefined;
  }

  /** Reads what the child offers, before it is attached. Resolves with what is wrong, if it cannot be used. */
  async loadLists(connection: UpstreamConnection): Promise<string | undefined> {
    return await this.#lists.loadAll(connection, this.dispatcher.listTimeouts, () => {
      if (connection === this.dispatcher.connection) this.#tellLists();
    });
  }

  /** A process is ready to be called. */
  attach(connection: UpstreamConnection): void {
    this.dispatcher.connect(connection);
    this.#refresh.connected();
    this.#listener?.attached();
    this.#tellWaiting();
  }

  /** The process moved on in its life. In any state but `ready` there is none to call. */
  moved(state: LifecycleState): void {
    const { isGivenUp: wasGivenUp, isStartSettled: wasStartSettled } = this;
    if (state === 'ready') this.#cached = undefined;
    this.#lifecycle.moved(state);
    if (state === 'ready') this.#idleTimer.begin();
    else this.#idleTimer.end();
    if (state !== 'ready' && state !== 'suspect') this.#listener?.detached();
    if (state === 'ready') this.#tellLists();
    else if (wasGivenUp !== this.isGivenUp) this.#listener?.listsChanged();
    if (this.isGivenUp) this.#tellWaiting();
    // What came while nobody could be asked for a start yet.
    if (state === 'idle' && (this.dispatcher.queued > 0 || this.#waiting.size > 0)) this.#demand();
    if (!wasStartSettled && this.isStartSettled) this.#listener?.startSettled();
  }

  /** Somebody wants it now: a process that is not tried any more by itself is started. */
  wanted(): void {
    if (this.#lifecycle.state === 'parked') this.#options.demandStart();
  }

  /** Serves a request of a client. */
  serve(exchange: Exchange, handling: Handling): void {
    this.#demand();
    this.#idleTimer.used();
    exchange.route(this.id);
    // An installation takes longer than any call should wait.
    const absence = this.#lifecycle.state === 'installing' ? 'installing' : this.#lifecycle.absence;
    if (absence === undefined) this.dispatcher.serve(exchange, handling);
    else this.dispatcher.refuse(exchange, absence);
  }

  /** Something that the child asks. */
  asked(asked: ServerRequest): void {
    this.#listener?.asked(asked);
  }

  /** Something that the child said unasked. */
  notified(notification: NotificationEnvelope): void {
    const changed = listsChangedBy(notification.method);
    if (changed.length > 0) this.#refresh.changed(changed);
    else this.#listener?.notified(notification);
  }

  close(): void {
    this.#refresh.close();
    this.#idleTimer.end();
    this.dispatcher.close();
    this.#tellWaiting();
  }

  /** Somebody needs the process, and will wait for it. */
  #demand(): void {
    if (this.#lifecycle.heedsDemand) this.#options.demandStart();
  }

  #tellLists(): void {
    this.#listener?.listsChanged();
    const { connection } = this.dispatcher;
    const lists = this.#lists.raw;
    if (connection !== undefined && lists !== undefined)
      this.#options.onListed?.({ initializeResult: connection.initializeResult, lists });
  }

  #tellWaiting(): void {
    const absence = this.dispatcher.connection === undefined ? (this.#lifecycle.absence ?? 'stopped') : undefined;
    this.#waiting.tell(absence);
  }

  /** A list that cannot be read leaves the last one in force; calls will tell what is wrong with the child. */
  async #reload(connection: UpstreamConnection, kinds: readonly ListKind[]): Promise<void> {
    await Promise.all(kinds.map((kind) => this.#lists.load(connection, kind, this.dispatcher.listTimeouts)));
    if (connection === this.dispatcher.connection) this.#tellLists();
  }
}
