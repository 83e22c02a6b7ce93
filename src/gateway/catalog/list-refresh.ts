import type { ChildConnection } from '../../bridge/child-connection.js';
import { containAsync, type OnFault } from '../../bridge/contain.js';
import type { ListKind } from '../../mcp/lists.js';
import type { Clock } from '../../timing/clock.js';
import { Paced } from '../../timing/paced.js';

export interface ListRefreshOptions {
  readonly clock: Clock;
  readonly onFault?: OnFault | undefined;
  /** Where lists can be read now; absent while there is no process. */
  readonly connection: () => ChildConnection | undefined;
  /** Reads these lists again. */
  readonly read: (connection: ChildConnection, kinds: readonly ListKind[]) => Promise<void>;
}

/** A child that announces changes all the time is listened to this often. */
const REFRESH_EVERY_MS = 1_000;

/** Reads again the lists that a child says have changed. */
export class ListRefresh {
  readonly #options: ListRefreshOptions;
  /** What is to be read again. While there is no connection, it waits for one. */
  readonly #stale = new Set<ListKind>();
  readonly #paced: Paced;

  constructor(options: ListRefreshOptions) {
    this.#options = options;
    this.#paced = new Paced({
      clock: options.clock,
      delayMs: 0,
      everyMs: REFRESH_EVERY_MS,
      run: () => containAsync(this.#read(), options.onFault),
    });
  }

  /** The child says that these are not what they were. */
  changed(kinds: readonly ListKind[]): void {
    for (const kind of kinds) this.#stale.add(kind);
    if (this.#options.connection() !== undefined) this.#paced.request();
  }

  /** There is a connection. */
  connected(): void {
    if (this.#stale.size > 0) this.#paced.request();
  }

  close(): void {
    this.#paced.close();
  }

  async #read(): Promise<void> {
    const connection = this.#options.connection();
    if (connection === undefined) return;
    const kinds = [...this.#stale];
    this.#stale.clear();
    await this.#options.read(connection, kinds);
  }
}
