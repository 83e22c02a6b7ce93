import type { GatewayConfig } from '../config/config.js';
import type { Closing, Refusal } from '../hub/wire.js';
import type { Cancel, Clock } from '../timing/clock.js';

type Settings = Pick<GatewayConfig, 'hub' | 'hubIdleMs' | 'hubClients'>;

/** The process that starts a hub attaches to it at once. */
const FIRST_CLIENT_WITHIN_MS = 30_000;

/** How long a hub goes on: until its last client has been gone for a while, or somebody tells it to end. */
export class HubLife {
  readonly #clock: Pick<Clock, 'schedule'>;
  #settings: () => Settings | undefined = () => undefined;
  #refusal: Refusal | undefined;
  #closing: Closing | undefined;
  #clients = 0;
  #cancelIdle: Cancel = () => {};
  #onOver: () => void = () => {};
  /** Resolves when the hub has to end. */
  readonly over: Promise<void>;
  /** Resolves if no client comes at all. */
  readonly unused: Promise<undefined>;

  constructor(clock: Pick<Clock, 'schedule'>) {
    this.#clock = clock;
    this.over = new Promise((resolve) => {
      this.#onOver = resolve;
    });
    this.unused = new Promise((resolve) => clock.schedule(FIRST_CLIENT_WITHIN_MS, () => resolve(undefined)));
  }

  /** The settings of the configuration, once it is read. */
  get settings(): Settings | undefined {
    return this.#settings();
  }

  /** Why no client is taken any more. */
  get refusal(): Refusal | undefined {
    return this.#refusal;
  }

  /** What the clients that are still there are told at the end; `undefined` if they need another hub at once. */
  get closing(): Closing | undefined {
    return this.#closing;
  }

  /** The configuration is read. */
  begin(settings: () => Settings): void {
    this.#settings = settings;
    this.clientsChanged(this.#clients);
  }

  clientsChanged(clients: number): void {
    this.#clients = clients;
    this.#cancelIdle();
    this.#cancelIdle = () => {};
    const idleMs = this.settings?.hubIdleMs ?? 0;
    if (clients > 0) return;
    // A hub that refuses clients has no reason to wait for one.
    if (this.#refusal !== undefined) this.#onOver();
    else if (idleMs > 0) this.#cancelIdle = this.#clock.schedule(idleMs, () => this.end('ending'));
  }

  /** Ends the hub. */
  end(because: Refusal): void {
    this.#refusal = because;
    this.#onOver();
  }

  /** A person ends the hub. Its clients need no other one until they have something to send. */
  stop(): void {
    this.#closing = 'stopped';
    this.end('ending');
  }

  /** Ends the hub once its last client has left. */
  endAfterClients(): void {
    this.#refusal = 'ending';
    this.clientsChanged(this.#clients);
  }
}
