import { LIST_KINDS, LISTS, type ListKind } from '../../mcp/lists.js';
import type { Cancel, Clock } from '../../timing/clock.js';
import type { UpstreamConnection } from '../../upstream/port.js';
import type { RequestTimeouts } from '../../upstream/request.js';
import { EMPTY_LIST, type ExposureRules } from './exposed-list.js';
import { listAllPages, type RawEntry } from './list-pages.js';
import { fixedList, type ListNaming, ServedList, type ServerLists, type ShownList } from './server-lists.js';
import { describeRefusal } from './tool-approval.js';

/** Whom a server's lists are read from: its process, or what was kept of an earlier one. */
export type ListSource = Pick<UpstreamConnection, 'offers' | 'ask'>;

const OTHER_KINDS = LIST_KINDS.filter((kind) => kind !== 'tools');

/** How long the start of a server waits for these, once its tools are there. */
const OTHER_LISTS_WAIT_MS = 1_000;

/** What one server offers, as far as it was read. */
export class OfferedLists {
  #rules: ExposureRules;
  #lists: Readonly<Record<ListKind, ShownList>> = NO_SHOWN_LISTS;
  /** As the server spelt them; `undefined` for a list that could not be read. */
  readonly #entries = new Map<ListKind, readonly RawEntry[] | undefined>();

  readonly #clock: Clock;

  constructor(options: ExposureRules & { readonly clock: Clock }) {
    this.#rules = options;
    this.#clock = options.clock;
  }

  as(naming: ListNaming): ServerLists {
    const { tools, prompts, resources, templates } = this.#lists;
    return {
      tools: tools[naming],
      prompts: prompts[naming],
      resources: resources[naming],
      templates: templates[naming],
    };
  }

  /** Whether the server calls this tool as a task only, as far as it has listed it. */
  isTaskOnly(originalName: string): boolean {
    return this.#lists.tools.exposed.taskOnly.has(originalName);
  }

  /** Why this tool may not be called, where tools have to be approved. Nothing is known before a list was read. */
  approvalRefusal(originalName: string): string | undefined {
    const { approvals } = this.#rules;
    if (approvals === undefined || this.#lists.tools === NO_SHOWN_LISTS.tools) return undefined;
    const verdict = this.#lists.tools.exposed.verdicts?.get(originalName) ?? 'unlisted';
    return verdict === 'approved' ? undefined : describeRefusal(verdict, approvals.facts);
  }

  /** Whether this tool may be called twice, as its server says. */
  isRepeatable(originalName: string): boolean {
    return this.#lists.tools.exposed.repeatable.has(originalName);
  }

  /** Shows what others do under these rules, as long as nothing was read. */
  copyFrom(other: OfferedLists, rules: ExposureRules): void {
    if (this.#lists === NO_SHOWN_LISTS) this.#lists = mapKinds((kind) => other.#lists[kind].withRules(rules));
  }

  /** Other rules from now on. */
  configure(rules: ExposureRules): void {
    this.#rules = rules;
    this.#lists = mapKinds((kind) => this.#lists[kind].withRules(rules));
  }

  /** All lists that the server has, as it spelt them; `undefined` when one of them could not be read. */
  get raw(): ReadonlyMap<ListKind, readonly RawEntry[]> | undefined {
    const whole = new Map<ListKind, readonly RawEntry[]>();
    for (const [kind, entries] of this.#entries) {
      if (entries === undefined) return undefined;
      whole.set(kind, entries);
    }
    return whole;
  }

  /** Resolves with what is wrong; the list that was there then stays as it is. */
  async load(source: ListSource, kind: ListKind, timeouts: RequestTimeouts): Promise<string | undefined> {
    const isOffered = source.offers(LISTS[kind].capability);
    const list = isOffered ? await listAllPages(source.ask, LISTS[kind], timeouts) : undefined;
    // Some servers have resources and know nothing of templates.
    const isMissing = list?.kind === 'failed' && list.isUnknown === true && kind !== 'tools';
    if (list?.kind === 'failed' && !isMissing) return list.reason;
    const isListed = list?.kind === 'listed';
    this.#set(kind, isListed ? new ServedList(kind, list, this.#rules) : fixedList(EMPTY_LIST));
    if (isOffered) this.#entries.set(kind, isListed ? list.entries : []);
    else this.#entries.delete(kind);
    return undefined;
  }

  /**
   * Reads all lists. Resolves with what is wrong when there are no tools, without which a server is of no use. One whose
   * other lists are slow is used without them; `onLate` is called when they have come.
   */
  async loadAll(source: ListSource, timeouts: RequestTimeouts, onLate: () => void): Promise<string | undefined> {
    const others = Promise.all(OTHER_KINDS.map((kind) => this.#loadOrShow(source, kind, timeouts)));
    const toolsFault = await this.load(source, 'tools', timeouts);
    if (toolsFault !== undefined) return toolsFault;
    await this.#awaitOthers(others, onLate);
    return undefined;
  }

  /** Reads what was kept of an earlier process. Resolves with what is wrong; nothing is offered then. */
  async loadCached(source: ListSource, timeouts: RequestTimeouts): Promise<string | undefined> {
    const internalErrors = await Promise.all(LIST_KINDS.map((kind) => this.load(source, kind, timeouts)));
    const fault = internalErrors.find((each) => each !== undefined);
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

  /** Of the lists besides tools, one that cannot be read is shown as such. */
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
