import { type OnInternalError, withErrorBoundaryAsync } from '../../errors/error-boundary.js';
import type { ListKind } from '../../mcp/lists.js';
import type { Clock } from '../../timing/clock.js';
import { Debounce } from '../../timing/debounce.js';
import type { UpstreamConnection } from '../../upstream/port.js';

export interface ListRefreshOptions {
  readonly clock: Clock;
  readonly onInternalError?: OnInternalError | undefined;
  /** The current connection; `undefined` while there is none. */
  readonly connection: () => UpstreamConnection | undefined;
  /** Reads these lists again. */
  readonly read: (connection: UpstreamConnection, kinds: readonly ListKind[]) => Promise<void>;
}

/** Shortest time between two reads. It bounds the load from a server that announces changes all the time. */
const REFRESH_EVERY_MS = 1_000;

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
      delayMs: 0,
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
