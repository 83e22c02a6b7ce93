import { type OnInternalError, withErrorBoundaryAsync } from '../../errors/error-boundary.js';
import { LIST_KINDS, LISTS, type ListKind } from '../../mcp/lists.js';
import type { Cancel, Clock } from '../../timing/clock.js';
import { Debounce } from '../../timing/debounce.js';
import type { RequestTimeouts, UpstreamConnection } from '../../upstream/port.js';
import { EMPTY_LIST, type ExposureRules } from './exposed-list.js';
import { listAllPages, type RawEntry } from './list-pages.js';
import { fixedList, type ListNaming, ServedList, type ServerLists, type ShownList } from './server-lists.js';
import { describeRefusal } from './tool-approval.js';

/** Where the lists of a server are read from: its connection or its cached catalogue. */
type ListSource = Pick<UpstreamConnection, 'offers' | 'request'>;

const OTHER_KINDS = LIST_KINDS.filter((kind) => kind !== 'tools');

/** Longest wait for the lists other than tools, after the tools are read, before the server counts as started. */
const OTHER_LISTS_WAIT_MS = 1_000;

/** All lists of one server, as far as they were read. */
export class OfferedLists {
  #rules: ExposureRules;
  #lists: Readonly<Record<ListKind, ShownList>> = NO_SHOWN_LISTS;
  /** Entries as the server sent them; `undefined` for a list that could not be read. */
  readonly #entries = new Map<ListKind, readonly RawEntry[] | undefined>();

  readonly #clock: Clock;

  constructor(options: ExposureRules & { readonly clock: Clock }) {
    this.#rules = options;
    this.#clock = options.clock;
  }

  /** Returns the lists under exposed or original names. */
  as(naming: ListNaming): ServerLists {
    const { tools, prompts, resources, templates } = this.#lists;
    return {
      tools: tools[naming],
      prompts: prompts[naming],
      resources: resources[naming],
      templates: templates[naming],
    };
  }

  /** Whether the server lists this tool with `execution.taskSupport: required`. */
  isTaskOnly(originalName: string): boolean {
    return this.#lists.tools.exposed.taskOnly.has(originalName);
  }

  /**
   * Why this tool must not be called. `undefined` if it is approved, needs no approval, or no tool list was read yet.
   */
  approvalRefusal(originalName: string): string | undefined {
    const { approvals } = this.#rules;
    if (approvals === undefined || this.#lists.tools === NO_SHOWN_LISTS.tools) return undefined;
    const verdict = this.#lists.tools.exposed.verdicts?.get(originalName) ?? 'unlisted';
    return verdict === 'approved' ? undefined : describeRefusal(verdict, approvals.facts);
  }

  /** Whether the annotations of this tool say that a call may be repeated. */
  isRepeatable(originalName: string): boolean {
    return this.#lists.tools.exposed.repeatable.has(originalName);
  }

  /** Shows the lists of another instance under these rules, unless lists were read already. */
  copyFrom(other: OfferedLists, rules: ExposureRules): void {
    if (this.#lists === NO_SHOWN_LISTS) this.#lists = mapKinds((kind) => other.#lists[kind].withRules(rules));
  }

  /** Applies other rules to the lists. */
  configure(rules: ExposureRules): void {
    this.#rules = rules;
    this.#lists = mapKinds((kind) => this.#lists[kind].withRules(rules));
  }

  /** All lists of the server as it sent them; `undefined` if one of them could not be read. */
  get raw(): ReadonlyMap<ListKind, readonly RawEntry[]> | undefined {
    const whole = new Map<ListKind, readonly RawEntry[]>();
    for (const [kind, entries] of this.#entries) {
      if (entries === undefined) return undefined;
      whole.set(kind, entries);
    }
    return whole;
  }

  /** Reads one list. Resolves with the reason if that fails; the list stays as it was then. */
  async load(source: ListSource, kind: ListKind, timeouts: RequestTimeouts): Promise<string | undefined> {
    const isOffered = source.offers(LISTS[kind].capability);
    const list = isOffered ? await listAllPages(source, LISTS[kind], timeouts) : undefined;
    // Some servers offer resources but do not implement `resources/templates/list`.
    const isMissing = list?.kind === 'failed' && list.isUnknown === true && kind !== 'tools';
    if (list?.kind === 'failed' && !isMissing) return list.reason;
    const isListed = list?.kind === 'listed';
    this.#set(kind, isListed ? new ServedList(kind, list, this.#rules) : fixedList(EMPTY_LIST));
    if (isOffered) this.#entries.set(kind, isListed ? list.entries : []);
    else this.#entries.delete(kind);
    return undefined;
  }

  /**
   * Reads all lists. Resolves with the reason if the tools cannot be read, because then the server cannot be used. Slow
   * lists other than tools do not delay the server: `onLate` is called when they arrive later.
   */
  async loadAll(source: ListSource, timeouts: RequestTimeouts, onLate: () => void): Promise<string | undefined> {
    const others = Promise.all(OTHER_KINDS.map((kind) => this.#loadOrShow(source, kind, timeouts)));
    const toolsFault = await this.load(source, 'tools', timeouts);
    if (toolsFault !== undefined) return toolsFault;
    await this.#awaitOthers(others, onLate);
    return undefined;
  }

  /** Reads all lists from the cache. Resolves with the reason if one of them fails; no list is shown then. */
  async loadCached(source: ListSource, timeouts: RequestTimeouts): Promise<string | undefined> {
    const faults = await Promise.all(LIST_KINDS.map((kind) => this.load(source, kind, timeouts)));
    const fault = faults.find((each) => each !== undefined);
    if (fault === undefined) return undefined;
    this.#lists = NO_SHOWN_LISTS;
    this.#entries.clear();
    return fault;
  }

  async #awaitOthers(others: Promise<unknown>, onLate: () => void): Promise<void> {
    let isLate = false;
    let cancel: Cancel = () => {};
    const tooSlow = new Promise<void>((resolve) => {
      cancel = this.#clock.schedule(OTHER_LISTS_WAIT_MS, () => {
        isLate = true;
        resolve();
      });
    });
    const loaded = others.then(() => {
      cancel();
      if (isLate) onLate();
    });
    await Promise.race([loaded, tooSlow]);
  }

  /** Reads a list other than tools. A list that cannot be read appears as withheld, with the reason. */
  async #loadOrShow(source: ListSource, kind: ListKind, timeouts: RequestTimeouts): Promise<void> {
    const reason = await this.load(source, kind, timeouts);
    if (reason === undefined) return;
    this.#set(kind, fixedList({ ...EMPTY_LIST, withheld: [{ name: LISTS[kind].method, reason }] }));
    this.#entries.set(kind, undefined);
  }

  #set(kind: ListKind, list: ShownList): void {
    this.#lists = { ...this.#lists, [kind]: list };
  }
}

function mapKinds<T>(make: (kind: ListKind) => T): Record<ListKind, T> {
  return { tools: make('tools'), prompts: make('prompts'), resources: make('resources'), templates: make('templates') };
}

const NO_SHOWN_LISTS: Readonly<Record<ListKind, ShownList>> = mapKinds(() => fixedList(EMPTY_LIST));

interface ListRefreshOptions {
  readonly clock: Clock;
  readonly onInternalError?: OnInternalError | undefined;
  /** The current connection; `undefined` while there is none. */
  readonly connection: () => UpstreamConnection | undefined;
  /** Reads these lists again. */
  readonly read: (connection: UpstreamConnection, kinds: readonly ListKind[]) => Promise<void>;
}

/** Shortest time between two reads. It bounds the load from a server that announces changes all the time. */
const REFRESH_EVERY_MS = 250;

/** Reads lists again after the server announced changes (`notifications/…/list_changed`). */
export class ListRefresh {
  readonly #options: ListRefreshOptions;
  /** Lists to read again, with the next connection if there is none now. */
  readonly #stale = new Set<ListKind>();
  readonly #debounce: Debounce;

  constructor(options: ListRefreshOptions) {
    this.#options = options;
    this.#debounce = new Debounce({
      clock: options.clock,
      everyMs: REFRESH_EVERY_MS,
      run: () => withErrorBoundaryAsync(this.#read(), options.onInternalError),
    });
  }

  /** Call this when the server announced that these lists changed. */
  changed(kinds: readonly ListKind[]): void {
    for (const kind of kinds) this.#stale.add(kind);
    if (this.#options.connection() !== undefined) this.#debounce.request();
  }

  /** Call this when there is a new connection. */
  connected(): void {
    if (this.#stale.size > 0) this.#debounce.request();
  }

  close(): void {
    this.#debounce.close();
  }

  async #read(): Promise<void> {
    const connection = this.#options.connection();
    if (connection === undefined) return;
    const kinds = [...this.#stale];
    this.#stale.clear();
    await this.#options.read(connection, kinds);
  }
}
