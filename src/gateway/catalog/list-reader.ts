import { type OnInternalError, withErrorBoundaryAsync } from '../../errors/internal-error.js';
import { LIST_KINDS, type ListKind } from '../../mcp/lists.js';
import type { Cancel, Clock } from '../../timing/clock.js';
import { Debounce } from '../../timing/debounce.js';
import type { RequestTimeouts, UpstreamConnection } from '../../upstream/port.js';
import type { ListFailure, OfferedLists } from './offered-lists.js';

export interface ListReaderOptions {
  readonly clock: Clock;
  readonly onInternalError?: OnInternalError | undefined;
  readonly lists: OfferedLists;
  /** The current connection; `undefined` while there is none. */
  readonly connection: () => UpstreamConnection | undefined;
  readonly timeouts: () => RequestTimeouts;
  /** Whether the gateway needs the lists even if all clients read them from the server. */
  readonly areRequired: () => boolean;
  /** Called when lists were read that were left unread before. */
  readonly onCaughtUp: () => void;
  /** Called when a list of the current connection was read. `announced` has it if the server announced the change. */
  readonly onRead: (announced: readonly ListKind[]) => void;
}

/** Shortest time between two reads of a list. It bounds the load from a server that announces changes all the time. */
const REFRESH_EVERY_MS = 250;

/** Shortest time from a read to the next one that only the use of the server asks for. */
const USED_EVERY_MS = 5_000;

/** The pause after a failed read. It doubles with each further failure. */
const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 300_000;

/** The least pause after a broken answer. Three of them within a minute would restart the server. */
const BROKEN_PAUSE_MS = 60_000;

/**
 * Reads the lists of a server: all of them from a new process, and one of them again after the server announced a change
 * (`notifications/…/list_changed`) or the read failed. A list that fails or takes long does not concern the others.
 *
 * While all clients read the lists from the server itself, the lists stay unread here: the server gets the requests of
 * its clients and no others. The reader catches up when the gateway needs the lists.
 */
export class ListReader {
  readonly #options: ListReaderOptions;
  readonly #kinds: ReadonlyMap<ListKind, RepeatedRead>;
  /** The lists whose latest read failed. */
  readonly #failing = new Set<RepeatedRead>();
  /** Whether clients read the lists from the server, or see them merged. `unknown` before the first client. */
  #use: 'unknown' | 'relayed' | 'merged' = 'unknown';
  /** The latest connection, if its lists were left unread. */
  #unread: UpstreamConnection | undefined;
  #isCatchingUp = false;

  constructor(options: ListReaderOptions) {
    this.#options = options;
    this.#kinds = new Map(LIST_KINDS.map((kind) => [kind, new RepeatedRead(options, kind, this.#failing)]));
  }

  /** Whether the lists of the latest connection were left unread. */
  get areUnread(): boolean {
    return this.#unread !== undefined;
  }

  /** Whether lists are being read that were left unread before. */
  get isCatchingUp(): boolean {
    return this.#isCatchingUp;
  }

  /**
   * Reads all lists of a process before `connected`, if they are needed. Resolves when each was read or could not be, or
   * takes too long.
   */
  async loadAll(connection: UpstreamConnection): Promise<void> {
    const { lists, timeouts, onRead } = this.#options;
    this.#unread = this.#areNeeded ? undefined : connection;
    if (this.areUnread) return;
    await lists.loadAll(connection, timeouts(), (kind) => {
      if (connection !== this.#options.connection()) return;
      this.#kinds.get(kind)?.settled();
      onRead([]);
    });
  }

  /** A client uses the server from now on. With `readsLists`, the client reads the lists from the server. */
  joined(readsLists: boolean): void {
    if (!readsLists) this.#use = 'merged';
    else if (this.#use === 'unknown') this.#use = 'relayed';
    this.catchUp();
  }

  /** Call this when the lists may be needed from now on. Reads those that were left unread. */
  catchUp(): void {
    const { connection: current, onInternalError } = this.#options;
    const connection = current();
    if (connection === undefined || connection !== this.#unread || !this.#areNeeded) return;
    void withErrorBoundaryAsync(this.#catchUp(connection), onInternalError);
  }

  /** Call this when the server announced that these lists changed. Unread lists stay unread. */
  changed(kinds: readonly ListKind[]): void {
    if (this.areUnread) return;
    for (const kind of kinds) this.#kinds.get(kind)?.changed();
  }

  /** Call this when the connection whose lists were read is in use. */
  connected(): void {
    for (const list of this.#kinds.values()) list.connected();
    this.catchUp();
  }

  /** Call this when a client uses the server: a list that failed may be there by now. */
  used(): void {
    for (const list of this.#failing) list.used();
  }

  /** Call this when a client was shown a list: one that the server does not let be cached any longer is read again. */
  shown(kind: ListKind): void {
    if (!this.areUnread) this.#kinds.get(kind)?.shown();
  }

  close(): void {
    for (const list of this.#kinds.values()) list.close();
  }

  get #areNeeded(): boolean {
    return this.#use !== 'relayed' || this.#options.areRequired();
  }

  async #catchUp(connection: UpstreamConnection): Promise<void> {
    this.#isCatchingUp = true;
    await this.loadAll(connection).finally(() => {
      this.#isCatchingUp = false;
    });
    if (connection === this.#options.connection()) this.connected();
    this.#options.onCaughtUp();
  }
}

/** One list, and when to read it again. */
class RepeatedRead {
  readonly #options: ListReaderOptions;
  readonly #kind: ListKind;
  readonly #failing: Set<RepeatedRead>;
  readonly #debounce: Debounce;
  /** The server announced a change. Without a connection, the next one reads the list. */
  #isStale = false;
  #isReading = false;
  /** Failed reads in a row. */
  #failures = 0;
  /** When the latest read ended. */
  #settledAt = Number.NEGATIVE_INFINITY;
  #cancelRetry: Cancel = () => {};

  constructor(options: ListReaderOptions, kind: ListKind, failing: Set<RepeatedRead>) {
    const { clock, onInternalError } = options;
    this.#options = options;
    this.#kind = kind;
    this.#failing = failing;
    this.#debounce = new Debounce({
      clock,
      everyMs: REFRESH_EVERY_MS,
      run: () => withErrorBoundaryAsync(this.#read(), onInternalError),
    });
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

  /** A read has ended. Plans the next one if it failed. */
  settled(): void {
    const { clock } = this.#options;
    this.#cancelRetry();
    this.#settledAt = clock.now();
    const failure = this.#failure;
    if (failure === undefined) {
      this.#failures = 0;
      this.#failing.delete(this);
      return;
    }
    const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** this.#failures, MAX_PAUSE_MS);
    this.#failures += 1;
    this.#failing.add(this);
    this.#cancelRetry = clock.schedule(atLeast(pauseMs, failure), () => this.#request());
  }

  used(): void {
    const failure = this.#failure;
    if (failure === undefined || this.#isReading) return;
    if (this.#options.clock.now() - this.#settledAt >= atLeast(USED_EVERY_MS, failure)) this.#request();
  }

  shown(): void {
    const { clock, lists } = this.#options;
    const { freshUntil = Number.POSITIVE_INFINITY } = lists.as('exposed')[this.#kind].hint ?? {};
    const now = clock.now();
    if (now < freshUntil || now - this.#settledAt < USED_EVERY_MS || this.#isReading) return;
    // A list that could not be read is read again on its own.
    if (this.#failure === undefined) this.#request();
  }

  close(): void {
    this.#cancelRetry();
    this.#debounce.close();
  }

  get #failure(): ListFailure | undefined {
    const { lists, connection } = this.#options;
    return lists.failuresFrom(connection()).find(({ kind }) => kind === this.#kind);
  }

  #request(): void {
    if (this.#options.connection() !== undefined) this.#debounce.request();
  }

  async #read(): Promise<void> {
    const { lists, connection: current, timeouts, onRead } = this.#options;
    const connection = current();
    if (connection === undefined) return;
    const announced = this.#isStale ? [this.#kind] : [];
    this.#isStale = false;
    this.#isReading = true;
    const fault = await lists.load(connection, this.#kind, timeouts()).finally(() => {
      this.#isReading = false;
    });
    // The start of the next connection has read the list.
    if (connection !== current()) return;
    this.settled();
    if (fault === undefined) onRead(announced);
  }
}

function atLeast(pauseMs: number, { isBroken }: ListFailure): number {
  return isBroken ? Math.max(pauseMs, BROKEN_PAUSE_MS) : pauseMs;
}
