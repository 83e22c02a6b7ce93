import { type OnInternalError, withErrorBoundaryAsync } from '../../errors/error-boundary.js';
import type { ListKind } from '../../mcp/lists.js';
import type { Clock } from '../../timing/clock.js';
import { Debounce } from '../../timing/debounce.js';
import type { UpstreamConnection } from '../../upstream/port.js';

export interface ListRefreshOptions {
  readonly clock: Clock;
  readonly onInternalError?: OnInternalError | undefined;
  /** Where lists can be read now; absent while there is no process. */
  readonly connection: () => UpstreamConnection | undefined;
  /** Reads these lists again. */
  readonly read: (connection: UpstreamConnection, kinds: readonly ListKind[]) => Promise<void>;
}

/** A child that announces changes all the time is listened to this often. */
const REFRESH_EVERY_MS = 1_000;

/** Reads again the lists that a child says have changed. */
export class ListRefresh {
  readonly #options: ListRefreshOptions;
  /** What is to be read again. While there is no connection, it waits for one. */
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

  /** The child says that these are not what they were. */
  changed(kinds: readonly ListKind[]): void {
    for (const kind of kinds) this.#stale.add(kind);
    if (this.#options.connection() !== undefined) this.#debounce.request();
  }

  /** There is a connection. */
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
