import { LIST_KINDS, LISTS, type ListKind } from '../../mcp/lists.js';
import { isModernRevision } from '../../mcp/revisions.js';
import type { Cancel, Clock } from '../../timing/clock.js';
import type { RequestTimeouts, UpstreamConnection } from '../../upstream/port.js';
import { EMPTY_LIST, type ExposedList, type ExposureRules, exposeList, UNOFFERED_LIST } from './exposed-list.js';
import { listAllPages, type RawEntry, type ReceivedList } from './list-pages.js';
import { describeRefusal } from './tool-approval.js';

/** Entries of one server for each of the merged lists. */
export type ServerLists = Readonly<Record<ListKind, ExposedList>>;

export const NO_LISTS: ServerLists = {
  tools: EMPTY_LIST,
  prompts: EMPTY_LIST,
  resources: EMPTY_LIST,
  templates: EMPTY_LIST,
};

/** The kind of names that a client sees: exposed names or, for a client of one server alone, original names. */
export type ListNaming = 'exposed' | 'original';

/** Properties of a server for the merged lists. */
export interface ListedServer {
  readonly key: string;
  /** Prefix of the exposed names. Empty if names are exposed without a prefix. */
  readonly prefix: string;
  /** False until the first start has succeeded or failed. */
  readonly isStartSettled: boolean;
  /** Whether the lists are known, from the process or from the cache, or will stay unknown for now. */
  readonly hasKnownLists: boolean;
  /** The current entries. A restarting server keeps its entries; an unavailable one has none. */
  listsAs(naming: ListNaming): ServerLists;
  /** The latest known entries, also while the server is unavailable. */
  knownListsAs(naming: ListNaming): ServerLists;
  /** A client was shown this list. */
  listShown(kind: ListKind): void;
}

/** Where the lists of a server are read from: its connection or its cached catalogue. */
type ListSource = Pick<UpstreamConnection, 'offers' | 'request' | 'revision'>;

/** Why a list of a server could not be read. */
export interface ListFailure {
  readonly kind: ListKind;
  readonly method: string;
  /** The method, and what the server answered, or what became of the request. */
  readonly reason: string;
  /** Whether the answer was a broken or oversized message, which counts as a violation of the protocol. */
  readonly isBroken: boolean;
}

export interface OfferedListsOptions extends ExposureRules {
  readonly clock: Clock;
}

/** Longest wait for the lists other than tools, after the tools, before the server counts as started. */
const OTHER_LISTS_WAIT_MS = 1_000;

/**
 * All lists of one server, as far as they were read. A list that cannot be read stays as it was: as an earlier process or
 * an earlier run listed it, or empty.
 */
export class OfferedLists {
  #rules: ExposureRules;
  #lists: Readonly<Record<ListKind, ShownList>> = NO_SHOWN_LISTS;
  /** Entries as the server sent them. Absent for a list that it does not offer. */
  readonly #entries = new Map<ListKind, readonly RawEntry[]>();
  /** Where each list was last read from. */
  readonly #sources = new Map<ListKind, ListSource>();
  /** The latest reads that failed. */
  readonly #failures = new Map<ListKind, ListFailure & { readonly source: ListSource }>();
  readonly #clock: Clock;

  constructor(options: OfferedListsOptions) {
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
   * Why this tool must not be called now. `undefined` if it is approved, needs no approval, or no tool list was read yet.
   *
   * Definitions of another process or run say nothing about this one, so no tool of a `connection` may be called before
   * its tools were read.
   */
  approvalRefusal(originalName: string, connection: ListSource | undefined): string | undefined {
    const { approvals } = this.#rules;
    if (approvals === undefined) return undefined;
    if (connection !== undefined && this.#sources.get('tools') !== connection) {
      return describeRefusal('unread', approvals.facts);
    }
    if (this.#lists.tools === NO_SHOWN_LISTS.tools) return undefined;
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

  /** All lists as this source sent them; `undefined` if one of them was not read from it. */
  rawFrom(source: ListSource): ReadonlyMap<ListKind, readonly RawEntry[]> | undefined {
    return LIST_KINDS.every((kind) => this.#sources.get(kind) === source) ? this.#entries : undefined;
  }

  /** The lists whose latest read was from this source and failed. */
  failuresFrom(source: ListSource | undefined): readonly ListFailure[] {
    return [...this.#failures.values()].filter((failure) => failure.source === source);
  }

  /** Reads one list. Resolves with the reason if that fails; the list stays as it was then. */
  async load(source: ListSource, kind: ListKind, timeouts: RequestTimeouts): Promise<string | undefined> {
    const { capability, method } = LISTS[kind];
    const isOffered = source.offers(capability);
    const list = isOffered ? await listAllPages(source, LISTS[kind], timeouts) : undefined;
    // Some servers offer resources but do not implement `resources/templates/list`.
    const isMissing = list?.kind === 'failed' && list.isUnknown === true && kind !== 'tools';
    if (list?.kind === 'failed' && !isMissing) {
      const { reason, isBroken = false } = list;
      this.#failures.set(kind, { kind, source, method, reason, isBroken });
      return reason;
    }
    this.#failures.delete(kind);
    this.#sources.set(kind, source);
    const listed = list?.kind === 'listed' ? { ...list, isModern: isModernRevision(source.revision) } : undefined;
    const served = listed && new ServedList(kind, listed, this.#rules);
    this.#set(kind, served ?? fixedList(UNOFFERED_LIST));
    if (isOffered) this.#entries.set(kind, listed?.entries ?? []);
    else this.#entries.delete(kind);
    return undefined;
  }

  /**
   * Reads all lists at once. Resolves when each was read, or could not be read, or takes too long: a slow list does not
   * delay the server. `onLate` is called with each list whose read ends later.
   */
  async loadAll(source: ListSource, timeouts: RequestTimeouts, onLate: (kind: ListKind) => void): Promise<void> {
    let isOver = false;
    const read = async (kind: ListKind) => {
      await this.load(source, kind, timeouts);
      if (isOver) onLate(kind);
    };
    const tools = read('tools');
    const all = Promise.all([tools, ...LIST_KINDS.filter((kind) => kind !== 'tools').map(read)]);
    // A list may have many pages, each of which may take as long as the timeout.
    await this.#within(timeouts.maxMs, tools);
    await this.#within(OTHER_LISTS_WAIT_MS, all);
    isOver = true;
  }

  /** Reads all lists from the cache. Resolves with the reason if one of them fails; no list is shown then. */
  async loadCached(source: ListSource, timeouts: RequestTimeouts): Promise<string | undefined> {
    const faults = await Promise.all(LIST_KINDS.map((kind) => this.load(source, kind, timeouts)));
    const fault = faults.find((each) => each !== undefined);
    if (fault === undefined) return undefined;
    this.#lists = NO_SHOWN_LISTS;
    this.#entries.clear();
    this.#sources.clear();
    return fault;
  }

  /** Resolves with the work, or after this time. */
  async #within(waitMs: number, work: Promise<unknown>): Promise<void> {
    let cancel: Cancel = () => {};
    const isOver = new Promise<void>((resolve) => {
      cancel = this.#clock.schedule(waitMs, resolve);
    });
    await Promise.race([work, isOver]).finally(cancel);
  }

  #set(kind: ListKind, list: ShownList): void {
    this.#lists = { ...this.#lists, [kind]: list };
  }
}

function mapKinds<T>(make: (kind: ListKind) => T): Record<ListKind, T> {
  return { tools: make('tools'), prompts: make('prompts'), resources: make('resources'), templates: make('templates') };
}

const NO_SHOWN_LISTS: Readonly<Record<ListKind, ShownList>> = mapKinds(() => fixedList(EMPTY_LIST));

/** One list of a server, under exposed and under original names. */
interface ShownList extends Readonly<Record<ListNaming, ExposedList>> {
  /** Returns the same list under other rules. */
  withRules(rules: ExposureRules): ShownList;
}

/** A list that a server sent. */
class ServedList implements ShownList {
  readonly exposed: ExposedList;
  readonly withRules: (rules: ExposureRules) => ServedList;
  readonly #makeOriginal: () => ExposedList;
  #original: ExposedList | undefined;

  constructor(kind: ListKind, list: ReceivedList, rules: ExposureRules) {
    this.exposed = exposeList(kind, list, rules);
    this.withRules = (others) => new ServedList(kind, list, others);
    this.#makeOriginal = () => exposeList(kind, list, { ...rules, prefix: undefined });
  }

  /** Built on first use, because few clients use one server alone. */
  get original(): ExposedList {
    this.#original ??= this.#makeOriginal();
    return this.#original;
  }
}

/** Makes a list that is the same under both namings and all rules. */
function fixedList(list: ExposedList): ShownList {
  const shown: ShownList = { exposed: list, original: list, withRules: () => shown };
  return shown;
}
