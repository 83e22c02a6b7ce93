import type { ChildConnection } from '../bridge/child-connection.js';
import { containAsync } from '../bridge/contain.js';
import { listAllPages } from '../bridge/list-pages.js';
import type { NotificationEnvelope } from '../mcp/envelope.js';
import { LIST_KINDS, LISTS, type ListKind, listsChangedBy } from '../mcp/lists.js';
import type { Cancel } from '../timing/clock.js';
import { Paced } from '../timing/paced.js';
import { EMPTY_LIST, type ExposureRules } from './catalog/exposed-list.js';
import {
  fixedList,
  type ListNaming,
  NO_LISTS,
  ServedList,
  type ServerLists,
  type ShownList,
} from './catalog/server-lists.js';
import { Delivery, type DeliveryOptions } from './delivery/delivery.js';
import type { FailureReason } from './delivery/failure.js';
import type { Exchange, Handling } from './exchange.js';
import type { GatewayClient } from './gateway-port.js';
import type { ChildRequest } from './questions/child-request.js';

/** Where the process behind a backend is in its life, as far as the gateway needs to know. */
export type LifecycleState =
  | 'stopped'
  | 'installing'
  | 'starting'
  | 'ready'
  | 'suspect'
  | 'stopping'
  | 'backoff'
  | 'parked';

/** What Trunkline does with a server, whatever runs for it. */
export interface BackendRules extends Pick<ExposureRules, 'policy'>, Pick<DeliveryOptions, 'limits'> {
  readonly prefix: string;
  /** Whether the configuration says that this server answers a method which MCP does not define. */
  readonly answers?: (method: string) => boolean;
  /** Whether the configuration says that what the tools of this server say of themselves is true. */
  readonly isTrusted?: boolean;
}

export interface BackendOptions extends ExposureRules, DeliveryOptions, BackendRules {
  /** Tells the processes of one server apart; the key, for the first. */
  readonly id: string;
  readonly prefix: string;
  /** This server can never run as it is configured. */
  readonly isMisconfigured: boolean;
  /** Asks for a start of a child that is not tried any more by itself. */
  readonly demandStart: () => void;
}

/** Told of what the rest of the gateway has to know. */
export interface BackendListener {
  /** What this backend contributes to the merged lists may have changed. */
  listsChanged(): void;
  /** The first start has ended, one way or the other. */
  startSettled(): void;
  /** A new process is there, which knows nothing of what was asked of the last one. */
  attached(): void;
  /** The process is gone, and with it whatever it had asked. */
  detached(): void;
  /** The child asks something that only a client can answer. */
  asked(asked: ChildRequest): void;
  /** Something that the child said unasked, other than that a list changed. */
  notified(notification: NotificationEnvelope): void;
}

const OTHER_KINDS = LIST_KINDS.filter((kind) => kind !== 'tools');

/** How long the start of a server waits for these, once its tools are there. */
const OTHER_LISTS_WAIT_MS = 1_000;

/** A child that announces changes all the time is listened to this often. */
const REFRESH_EVERY_MS = 1_000;

/**
 * One server as the gateway sees it: what it offers, and the way calls take to it.
 *
 * The processes behind it come and go; the backend stays for as long as the server is configured.
 */
export class Backend {
  readonly key: string;
  readonly id: string;
  readonly delivery: Delivery;
  /** The clients that share this backend. */
  readonly clients = new Set<GatewayClient>();
  #options: BackendOptions;
  readonly #refresh: Paced;
  /** What is to be read again. While there is no connection, it waits for one. */
  readonly #stale = new Set<ListKind>();
  #listener: BackendListener | undefined;
  #state: LifecycleState = 'stopped';
  /** False while the package that it runs is not there: it is being installed, or could not be. */
  #isInstalled = true;
  #isStartSettled: boolean;
  #lists: Readonly<Record<ListKind, ShownList>> = NOTHING_SERVED;
  /** Told once, when there is a process or none is to be expected. */
  readonly #waiting = new Set<(absence: FailureReason | undefined) => void>();

  constructor(options: BackendOptions) {
    this.#options = options;
    this.key = options.key;
    this.id = options.id;
    this.delivery = new Delivery(options);
    this.#isStartSettled = options.isMisconfigured;
    this.#refresh = new Paced({
      clock: options.clock,
      delayMs: 0,
      everyMs: REFRESH_EVERY_MS,
      run: () => containAsync(this.#reload(), options.onFault),
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
    return this.#isStartSettled;
  }

  /** What this server contributes to the merged lists. One that is restarting keeps its place; one given up does not. */
  get lists(): ServerLists {
    return this.listsAs('exposed');
  }

  /** The same under either names. */
  listsAs(naming: ListNaming): ServerLists {
    return this.isGivenUp && this.#isStartSettled ? NO_LISTS : this.knownListsAs(naming);
  }

  /** What this server offers, or offered when it was last up. */
  knownListsAs(naming: ListNaming): ServerLists {
    const { tools, prompts, resources, templates } = this.#lists;
    return {
      tools: tools[naming],
      prompts: prompts[naming],
      resources: resources[naming],
      templates: templates[naming],
    };
  }

  /** Shows what another one of this server offers until its own process has said what it does. */
  resemble(other: Backend): void {
    if (this.#isStartSettled || this.delivery.hasBeenUp || this.#lists !== NOTHING_SERVED) return;
    this.#lists = mapKinds((kind) => other.#lists[kind].under(this.#options));
  }

  /** Other rules from now on, for the process that there is. */
  follow(rules: BackendRules): void {
    this.#options = { ...this.#options, ...rules };
    this.delivery.limit(rules.limits);
    this.#lists = mapKinds((kind) => this.#lists[kind].under(this.#options));
    this.#listener?.listsChanged();
  }

  /** Resolves when there is a process, or with why there is none to be expected, or none within `waitMs`. */
  untilAttached(waitMs: number): Promise<FailureReason | undefined> {
    if (this.delivery.connection !== undefined || this.#absence !== undefined) return Promise.resolve(this.#absence);
    return new Promise((resolve) => {
      const cancel = this.#options.clock.schedule(waitMs, () => {
        this.#waiting.delete(settle);
        resolve(this.#state === 'installing' ? 'installing' : this.isStartSettled ? 'restarting' : 'starting');
      });
      const settle = (absence: FailureReason | undefined) => {
        cancel();
        resolve(absence);
      };
      this.#waiting.add(settle);
    });
  }

  /** Whether the configuration lets this tool through. */
  allows(originalName: string): boolean {
    return this.#options.policy(originalName);
  }

  /** Whether the server calls this tool as a task only, as far as it has listed it. */
  isTaskOnly(originalName: string): boolean {
    return this.#lists.tools.exposed.taskOnly.has(originalName);
  }

  /** Whether this tool may be called twice, as its server says, which has to be trusted for that. */
  isRepeatable(originalName: string): boolean {
    return this.#options.isTrusted === true && this.#lists.tools.exposed.repeatable.has(originalName);
  }

  /** Whether a method that MCP does not define is this server's, by the configuration. */
  answers(method: string): boolean {
    return this.#options.answers?.(method) === true;
  }

  /** Reads what the child offers, before it is attached. Resolves with what is wrong, if it cannot be used. */
  async loadLists(connection: ChildConnection): Promise<string | undefined> {
    const others = Promise.all(OTHER_KINDS.map((kind) => this.#loadOrShow(connection, kind)));
    const toolsFault = await this.#load(connection, 'tools');
    if (toolsFault !== undefined) return toolsFault;
    await this.#awaitOthers(connection, others);
    return undefined;
  }

  /** A process is ready to be called. */
  attach(connection: ChildConnection): void {
    this.delivery.connect(connection);
    if (this.#stale.size > 0) this.#refresh.request();
    this.#listener?.attached();
    this.#tellWaiting();
  }

  /** The process moved on in its life. In any state but `ready` there is none to call. */
  moved(state: LifecycleState): void {
    const wasGivenUp = this.isGivenUp;
    const isFirstStart = !this.#isStartSettled;
    this.#isInstalled = state !== 'installing' && (this.#isInstalled || state === 'starting');
    this.#state = state;
    this.#isStartSettled ||= state !== 'starting' && state !== 'installing';
    if (state === 'parked' || state === 'stopped') this.delivery.giveUp(this.#isInstalled ? state : 'not_installed');
    else if (state === 'suspect') this.delivery.hold();
    else if (state === 'ready') this.delivery.resume();
    else this.delivery.disconnect(isFirstStart ? 'starting' : 'restarting');
    if (state !== 'ready' && state !== 'suspect') this.#listener?.detached();
    if (state === 'ready' || wasGivenUp !== this.isGivenUp) this.#listener?.listsChanged();
    if (this.isGivenUp) this.#tellWaiting();
    if (isFirstStart && this.#isStartSettled) this.#listener?.startSettled();
  }

  /** Somebody wants it now: a process that is not tried any more by itself is started. */
  wanted(): void {
    if (this.#state === 'parked') this.#options.demandStart();
  }

  /** Serves a request of a client. */
  serve(exchange: Exchange, handling: Handling): void {
    this.wanted();
    // An installation takes longer than any call should wait.
    const absence = this.#state === 'installing' ? 'installing' : this.#absence;
    if (absence === undefined) this.delivery.serve(exchange, handling);
    else this.delivery.refuse(exchange, absence);
  }

  /** Something that the child asks. */
  asked(asked: ChildRequest): void {
    this.#listener?.asked(asked);
  }

  /** Something that the child said unasked. */
  notified(notification: NotificationEnvelope): void {
    const changed = listsChangedBy(notification.method);
    if (changed.length === 0) {
      this.#listener?.notified(notification);
      return;
    }
    for (const kind of changed) this.#stale.add(kind);
    if (this.delivery.connection !== undefined) this.#refresh.request();
  }

  close(): void {
    this.#refresh.close();
    this.delivery.close();
    this.#tellWaiting();
  }

  /** Why no process is to be expected, if so. */
  get #absence(): FailureReason | undefined {
    if (this.isMisconfigured) return 'misconfigured';
    // Before it is started for the first time it is on its way, too.
    if (!this.isGivenUp || !this.#isStartSettled) return undefined;
    if (!this.#isInstalled) return 'not_installed';
    return this.#state === 'parked' ? 'parked' : 'stopped';
  }

  #tellWaiting(): void {
    const absence = this.delivery.connection === undefined ? (this.#absence ?? 'stopped') : undefined;
    for (const settle of this.#waiting) settle(absence);
    this.#waiting.clear();
  }

  /** Whether no process is to be expected. */
  get isGivenUp(): boolean {
    return this.#state === 'parked' || this.#state === 'stopped';
  }

  /** A server whose other lists are slow is used without them; they are added when they come. */
  async #awaitOthers(connection: ChildConnection, others: Promise<unknown>): Promise<void> {
    let isLate = false;
    let cancel: Cancel = () => {};
    const tooSlow = new Promise<void>((resolve) => {
      cancel = this.#options.clock.schedule(OTHER_LISTS_WAIT_MS, () => {
        isLate = true;
        resolve();
      });
    });
    const loaded = others.then(() => {
      cancel();
      if (isLate && connection === this.delivery.connection) this.#listener?.listsChanged();
    });
    await Promise.race([loaded, tooSlow]);
  }

  /** A server without its tools is of no use; of its other lists, an unreadable one is shown as such. */
  async #loadOrShow(connection: ChildConnection, kind: ListKind): Promise<void> {
    const reason = await this.#load(connection, kind);
    if (reason === undefined) return;
    const unreadable = { ...EMPTY_LIST, withheld: [{ name: LISTS[kind].method, reason }] };
    this.#lists = { ...this.#lists, [kind]: fixedList(unreadable) };
  }

  /** Resolves with what is wrong; the list that was there then stays as it is. */
  async #load(connection: ChildConnection, kind: ListKind): Promise<string | undefined> {
    const isOffered = connection.offers(LISTS[kind].capability);
    const list = isOffered ? await listAllPages(connection.ask, LISTS[kind], this.delivery.listPatience) : undefined;
    // Some servers have resources and know nothing of templates.
    const isMissing = list?.kind === 'failed' && list.isUnknown === true && kind !== 'tools';
    if (list?.kind === 'failed' && !isMissing) return list.reason;
    const served = list?.kind === 'listed' ? new ServedList(kind, list, this.#options) : fixedList(EMPTY_LIST);
    this.#lists = { ...this.#lists, [kind]: served };
    return undefined;
  }

  /** A list that cannot be read leaves the last one in force; calls will tell what is wrong with the child. */
  async #reload(): Promise<void> {
    const { connection } = this.delivery;
    if (connection === undefined) return;
    const kinds = [...this.#stale];
    this.#stale.clear();
    await Promise.all(kinds.map((kind) => this.#load(connection, kind)));
    if (connection === this.delivery.connection) this.#listener?.listsChanged();
  }
}

function mapKinds<T>(make: (kind: ListKind) => T): Record<ListKind, T> {
  return { tools: make('tools'), prompts: make('prompts'), resources: make('resources'), templates: make('templates') };
}

const NOTHING_SERVED = mapKinds(() => fixedList(EMPTY_LIST));
