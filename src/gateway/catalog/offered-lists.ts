import { type OnInternalError, withErrorBoundaryAsync } from '../../host/errors/internal-error.js';
import type { ListSource, RequestTimeouts, UpstreamConnection } from '../../upstream/upstream-connection.js';
import { declares } from '../../wire/mcp/handshake.js';
import { LISTS, type ListKind } from '../../wire/mcp/methods.js';
import { isModernRevision } from '../../wire/mcp/revisions.js';
import type { Cancel, Clock } from '../../wire/timing/clock.js';
import { Debounce } from '../../wire/timing/debounce.js';
import {
  describeRefusedCall,
  EMPTY_LIST,
  type ExposedList,
  type ExposureRules,
  exposeList,
  UNOFFERED_LIST,
} from './exposed-list.js';
import { isSame, listAllPages, type RawEntry, type ReceivedList } from './pagination.js';

export type ServerLists = Readonly<Record<ListKind, ExposedList>>;

/** The kind of names that a client sees: exposed names or, for a client of one server alone, original names. */
export type ListNaming = 'exposed' | 'original';

/** The reason why a list of a server could not be read. */
export interface ListFailure {
  readonly kind: ListKind;
  readonly method: string;
  /** The method, followed by the server's answer or by the failure of the request. */
  readonly reason: string;
  /** Whether the answer took too much memory. Three such answers within a minute restart the server. */
  readonly isExcessive: boolean;
}

interface OfferedListsOptions extends ExposureRules {
  readonly clock: Clock;
  readonly onInternalError?: OnInternalError | undefined;
  readonly connection: () => UpstreamConnection | undefined;
  readonly timeouts: () => RequestTimeouts;
  /** Whether the gateway needs the lists even if all clients read them from the server. */
  readonly areRequired: () => boolean;
  /** Called after the gateway has read lists that it had left unread. */
  readonly onCaughtUp: () => void;
  /** Called after a list of the current connection was read. `announced` has its kind if the server announced the change. */
  readonly onRead: (announced: readonly ListKind[]) => void;
}

/** Longest wait for prompts, resources and templates after the tools, in milliseconds. Then the server counts as started. */
const OTHER_LISTS_WAIT_MS = 1_000;

/**
 * All lists of one server. The gateway reads all lists of a new process. It reads one list again after the server
 * announced a change (`notifications/…/list_changed`), or after the read failed. A list that cannot be read keeps the
 * entries of an earlier process or run, or stays empty, and does not affect the other lists.
 *
 * While all clients read the lists from the server itself, the gateway leaves them unread, so that the server gets only
 * the requests of its clients. The gateway reads them once it needs them.
 */
export class OfferedLists {
  readonly #options: OfferedListsOptions;
  readonly #lists: Readonly<Record<ListKind, OfferedList>>;
  readonly #all: readonly OfferedList[];
  /** Whether the gateway relays requests for lists to the server, or merges the lists. `unknown` before the first client. */
  #use: 'unknown' | 'relayed' | 'merged' = 'unknown';
  /** The latest connection, if its lists were left unread. */
  #unread: UpstreamConnection | undefined;
  /** Whether the gateway is reading lists that it had left unread. */
  isCatchingUp = false;

  constructor(options: OfferedListsOptions) {
    this.#options = options;
    this.#lists = mapKinds((kind) => new OfferedList(kind, options));
    this.#all = Object.values(this.#lists);
  }

  as(naming: ListNaming): ServerLists {
    return mapKinds((kind) => this.#lists[kind].as(naming));
  }

  /** The tools under exposed names. Each call asks for them, so the other lists are not gathered. */
  get tools(): ExposedList {
    return this.#lists.tools.as('exposed');
  }

  /** Whether the lists of the latest connection were left unread. */
  get areUnread(): boolean {
    return this.#unread !== undefined;
  }

  /** The lists of the current connection whose latest read failed. */
  get failures(): readonly ListFailure[] {
    return this.#all.flatMap(({ failure }) => failure ?? []);
  }

  /** Number of announcements in a row after which this list was as before. */
  unchangedReads(kind: ListKind): number {
    return this.#lists[kind].unchanged;
  }

  /** The offered lists as the current connection sent them; `undefined` if one of them was not read from it. */
  get raw(): ReadonlyMap<ListKind, readonly RawEntry[]> | undefined {
    const connection = this.#options.connection();
    if (this.#all.some(({ source }) => source !== connection)) return undefined;
    return new Map(this.#all.flatMap(({ kind, entries }) => (entries === undefined ? [] : [[kind, entries] as const])));
  }

  /**
   * Returns the reason why a tool, a prompt or a listed resource must not be used now; `undefined` if it may be used.
   *
   * If the tools need approval, no tool of a connection may be called before the tools of that connection were read, because definitions of
   * another process or run say nothing about this process. Without a connection, the known lists decide.
   */
  approvalRefusal(kind: 'tools' | 'prompts' | 'resources', original: string): string | undefined {
    const list = this.#lists[kind];
    const { approvals } = list.rules;
    if (approvals === undefined) return undefined;
    const noun = kind.slice(0, -1);
    const listed = list.isKnown ? list.as('exposed').verdicts?.get(original) : undefined;
    // Servers have resources that they do not list.
    if (kind === 'resources' && listed === undefined) return undefined;
    const connection = this.#options.connection();
    if (connection !== undefined && list.source !== connection)
      return describeRefusedCall('unread', approvals.facts, noun);
    if (!list.isKnown) return undefined;
    const verdict = listed ?? 'unlisted';
    return verdict === 'approved' ? undefined : describeRefusedCall(verdict, approvals.facts, noun);
  }

  /** Shows the lists of another instance under the rules of this one, unless lists were read already. */
  copyFrom(other: OfferedLists): void {
    if (this.#all.some(({ isKnown }) => isKnown)) return;
    for (const list of this.#all) list.copyFrom(other.#lists[list.kind]);
  }

  configure(rules: ExposureRules): void {
    for (const list of this.#all) list.configure(rules);
  }

  /** Records that a client uses the server from now on. With `readsLists`, the client reads the lists from the server. */
  joined(readsLists: boolean): void {
    if (!readsLists) this.#use = 'merged';
    else if (this.#use === 'unknown') this.#use = 'relayed';
    this.catchUp();
  }

  /** Reads all lists of a new connection if they are needed. Call this before `connected`. Does not wait for slow lists. */
  async loadAll(connection: UpstreamConnection): Promise<void> {
    this.#unread = this.#areNeeded ? undefined : connection;
    if (this.areUnread) return;
    const timeouts = this.#options.timeouts();
    let isOver = false;
    const read = async (list: OfferedList) => {
      await list.load(connection, timeouts);
      if (!isOver || connection !== this.#options.connection()) return;
      list.settled();
      this.#options.onRead([]);
    };
    const { tools, ...others } = this.#lists;
    const ofTools = read(tools);
    const all = Promise.all([ofTools, ...Object.values(others).map(read)]);
    // A list may have many pages, each of which may take as long as the timeout.
    await this.#within(timeouts.maxMs, ofTools);
    await this.#within(OTHER_LISTS_WAIT_MS, all);
    isOver = true;
  }

  /** Reads all lists from the cache. If one of them fails, shows no list and resolves with the reason. */
  async loadCached(source: ListSource): Promise<string | undefined> {
    const faults = await Promise.all(this.#all.map((list) => list.load(source, this.#options.timeouts())));
    const fault = faults.find((each) => each !== undefined);
    if (fault !== undefined) for (const list of this.#all) list.forget();
    return fault;
  }

  /** Reads the lists that were left unread. Call this when the gateway may need them from now on. */
  catchUp(): void {
    const connection = this.#options.connection();
    if (connection === undefined || connection !== this.#unread || !this.#areNeeded) return;
    void withErrorBoundaryAsync(this.#catchUp(connection), this.#options.onInternalError);
  }

  /** Reads the tools again. Calls that need this at the same time share one read. Never rejects. */
  rereadTools(): Promise<void> {
    return this.#lists.tools.reread();
  }

  /** Call this when the server announced that these lists changed. Unread lists stay unread. */
  changed(kinds: readonly ListKind[]): void {
    if (!this.areUnread) for (const kind of kinds) this.#lists[kind].changed();
  }

  /** Call this when the connection whose lists were read is in use. */
  connected(): void {
    for (const list of this.#all) list.connected();
    this.catchUp();
  }

  /** Reads failed lists again, because the server may have them by now. Call this when a client uses the server. */
  used(): void {
    for (const list of this.#all) list.used();
  }

  /** Reads the list again if the server no longer lets it be cached. Call this when a client was shown the list. */
  shown(kind: ListKind): void {
    if (!this.areUnread) this.#lists[kind].shown();
  }

  close(): void {
    for (const list of this.#all) list.close();
  }

  get #areNeeded(): boolean {
    return this.#use !== 'relayed' || this.#options.areRequired();
  }

  async #catchUp(connection: UpstreamConnection): Promise<void> {
    this.isCatchingUp = true;
    await this.loadAll(connection).finally(() => {
      this.isCatchingUp = false;
    });
    if (connection === this.#options.connection()) this.connected();
    this.#options.onCaughtUp();
  }

  async #within(waitMs: number, work: Promise<unknown>): Promise<void> {
    let cancel: Cancel = () => {};
    const isOver = new Promise<void>((resolve) => {
      cancel = this.#options.clock.schedule(waitMs, resolve);
    });
    await Promise.race([work, isOver]).finally(cancel);
  }
}

function mapKinds<T>(make: (kind: ListKind) => T): Record<ListKind, T> {
  return { tools: make('tools'), prompts: make('prompts'), resources: make('resources'), templates: make('templates') };
}

export const NO_LISTS: ServerLists = mapKinds(() => EMPTY_LIST);

/**
 * Shortest time between two reads of a list, in milliseconds. Doubles with each announcement after which the list is as before, up
 * to `MAX_REFRESH_MS`, because some servers announce a change whenever they are asked for a list.
 */
const REFRESH_EVERY_MS = 250;
const MAX_REFRESH_MS = 30_000;

/** Shortest time between a read and another read that only the use of the server causes, in milliseconds. */
const USED_EVERY_MS = 5_000;

/** Pause after the first failed read, in milliseconds. Doubles with each further failure. */
const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 300_000;

/** Shortest pause after an excessive answer, in milliseconds. */
const EXCESSIVE_PAUSE_MS = 60_000;

/** Some servers offer resources but do not implement `resources/templates/list`. */
const NOT_IMPLEMENTED: ReceivedList = { entries: [], truncated: undefined, hint: UNOFFERED_LIST.hint };

/** One list of a server: its entries as they were received and as clients see them, and when to read it again. */
class OfferedList {
  readonly kind: ListKind;
  rules: ExposureRules;
  source: ListSource | undefined;
  readonly #options: OfferedListsOptions;
  /** `undefined` before the first list was read. */
  #received: ReceivedList | 'not-offered' | undefined;
  #exposed: Partial<Record<ListNaming, ExposedList>> = {};
  #failed: { readonly from: ListSource; readonly failure: ListFailure } | undefined;
  readonly #debounce: Debounce;
  /** Number of announcements in a row after which the list was as before. */
  unchanged = 0;
  /** Whether the server announced a change since the last read. Without a connection, the next connection reads the list. */
  #isStale = false;
  #isReading = false;
  #rereading: Promise<void> | undefined;
  #failures = 0;
  #settledAt = Number.NEGATIVE_INFINITY;
  #cancelRetry: Cancel = () => {};

  constructor(kind: ListKind, options: OfferedListsOptions) {
    const { clock, onInternalError } = options;
    this.kind = kind;
    this.rules = options;
    this.#options = options;
    this.#debounce = new Debounce({
      clock,
      everyMs: () => Math.min(REFRESH_EVERY_MS * 2 ** this.unchanged, MAX_REFRESH_MS),
      run: () => withErrorBoundaryAsync(this.#read(), onInternalError),
    });
  }

  get isKnown(): boolean {
    return this.#received !== undefined;
  }

  /** The entries as the server sent them; `undefined` if no list was read or the server does not offer this list. */
  get entries(): readonly RawEntry[] | undefined {
    return this.#received === 'not-offered' ? undefined : this.#received?.entries;
  }

  /** Reason why the latest read from the current connection failed. */
  get failure(): ListFailure | undefined {
    return this.#failed?.from === this.#options.connection() ? this.#failed?.failure : undefined;
  }

  /** Original names are built on first use, because few clients use one server alone. */
  as(naming: ListNaming): ExposedList {
    this.#exposed[naming] ??= this.#expose(naming);
    return this.#exposed[naming];
  }

  configure(rules: ExposureRules): void {
    this.rules = rules;
    this.#show(this.#received);
  }

  copyFrom(other: OfferedList): void {
    this.#show(other.#received);
  }

  forget(): void {
    this.source = undefined;
    this.#show(undefined);
  }

  /** Reads the list. If that fails, leaves the list as it was and resolves with the reason. */
  async load(source: ListSource, timeouts: RequestTimeouts): Promise<string | undefined> {
    const { kind } = this;
    const { capability, method } = LISTS[kind];
    const list = source.offers(capability) ? await listAllPages(source, LISTS[kind], timeouts) : undefined;
    const isMissing = list?.kind === 'failed' && list.isUnknown === true && !isRequired(this.kind, source);
    if (list?.kind === 'failed' && !isMissing) {
      const { reason, isExcessive = false } = list;
      this.#failed = { from: source, failure: { kind, method, reason, isExcessive } };
      return reason;
    }
    this.#failed = undefined;
    this.source = source;
    if (list === undefined) this.#show('not-offered');
    else if (list.kind === 'failed') this.#show(NOT_IMPLEMENTED);
    else this.#show({ ...list, isModern: isModernRevision(source.revision) });
    return undefined;
  }

  changed(): void {
    this.#isStale = true;
    this.#request();
  }

  connected(): void {
    this.#failures = 0;
    this.settled();
    if (this.#isStale) this.#request();
  }

  /** Call this when a read has ended. Plans the next read if it failed. */
  settled(): void {
    const { clock } = this.#options;
    this.#cancelRetry();
    this.#settledAt = clock.now();
    const { failure } = this;
    if (failure === undefined) {
      this.#failures = 0;
      return;
    }
    const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** this.#failures, MAX_PAUSE_MS);
    this.#failures += 1;
    this.#cancelRetry = clock.schedule(atLeast(pauseMs, failure), () => this.#request());
  }

  used(): void {
    const { failure } = this;
    if (failure === undefined || this.#isReading) return;
    if (this.#options.clock.now() - this.#settledAt >= atLeast(USED_EVERY_MS, failure)) this.#request();
  }

  shown(): void {
    const { freshUntil = Number.POSITIVE_INFINITY } = this.as('exposed').hint ?? {};
    const now = this.#options.clock.now();
    if (now < freshUntil || now - this.#settledAt < USED_EVERY_MS || this.#isReading) return;
    // `settled` has planned another read of a list that could not be read.
    if (this.failure === undefined) this.#request();
  }

  close(): void {
    this.#cancelRetry();
    this.#debounce.close();
  }

  /** Replaces the list, and checks its entries at once, because calls need the verdicts on them. */
  #show(received: ReceivedList | 'not-offered' | undefined): void {
    this.#received = received;
    this.#exposed = {};
    this.as('exposed');
  }

  #expose(naming: ListNaming): ExposedList {
    if (this.#received === undefined) return EMPTY_LIST;
    if (this.#received === 'not-offered') return UNOFFERED_LIST;
    const rules = naming === 'exposed' ? this.rules : { ...this.rules, prefix: undefined };
    return exposeList(this.kind, this.#received, rules);
  }

  #request(): void {
    if (this.#options.connection() !== undefined) this.#debounce.request();
  }

  reread(): Promise<void> {
    this.#rereading ??= withErrorBoundaryAsync(this.#read(), this.#options.onInternalError).finally(() => {
      this.#rereading = undefined;
    });
    return this.#rereading;
  }

  async #read(): Promise<void> {
    const { connection: current, timeouts, onRead } = this.#options;
    const connection = current();
    if (connection === undefined) return;
    const { entries } = this;
    const announced = this.#isStale ? [this.kind] : [];
    this.#isStale = false;
    this.#isReading = true;
    const fault = await this.load(connection, timeouts()).finally(() => {
      this.#isReading = false;
    });
    // The next connection reads the list when it starts.
    if (connection !== current()) return;
    this.settled();
    if (fault !== undefined) return;
    if (!isSameList(entries, this.entries)) this.unchanged = 0;
    else if (announced.length > 0) this.unchanged += 1;
    onRead(announced);
  }
}

function isSameList(before: readonly RawEntry[] = [], after: readonly RawEntry[] = []): boolean {
  return before.length === after.length && before.every(({ bytes }, at) => isSame(bytes, after[at]?.bytes));
}

/** Whether a server must implement a list. It must list the tools that it declares. */
function isRequired(kind: ListKind, { capabilities }: ListSource): boolean {
  return kind === 'tools' && declares(capabilities, kind);
}

function atLeast(pauseMs: number, { isExcessive }: ListFailure): number {
  return isExcessive ? Math.max(pauseMs, EXCESSIVE_PAUSE_MS) : pauseMs;
}
