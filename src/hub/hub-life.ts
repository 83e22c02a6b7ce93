import type { GatewayConfig } from '../config/file/checked-file.js';
import type { Cancel, Clock } from '../timing/clock.js';
import type { Closing, Refusal } from './wire.js';

type Settings = Pick<GatewayConfig, 'hub' | 'hubIdleMs' | 'hubClients'>;

/** The process that starts a hub attaches to it at once. */
const FIRST_CLIENT_WITHIN_MS = 30_000;
/** A hub without clients looks for its configuration file so often. */
const LOOK_EVERY_MS = 10_000;

/** Decides when a hub ends: its last client has been gone for a while, or somebody tells it to end. */
export class HubLife {
  readonly #clock: Pick<Clock, 'schedule'>;
  #settings: () => Settings | undefined = () => undefined;
  #hasConfig: () => boolean = () => true;
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

  /** Reason for which no client is taken any more. */
  get refusal(): Refusal | undefined {
    return this.#refusal;
  }

  /** Message for the remaining clients at the end; `undefined` if they need another hub at once. */
  get closing(): Closing | undefined {
    return this.#closing;
  }

  /** The configuration is read. Without its file, no client can come: `hasConfig` says whether it is still there. */
  begin(settings: () => Settings, hasConfig: () => boolean): void {
    this.#settings = settings;
    this.#hasConfig = hasConfig;
    this.clientsChanged(this.#clients);
  }

  clientsChanged(clients: number): void {
    this.#clients = clients;
    this.#cancelIdle();
    this.#cancelIdle = () => {};
    if (clients > 0) return;
    // A hub that refuses clients has no reason to wait for one.
    if (this.#refusal !== undefined) this.#onOver();
    else if (this.settings !== undefined) this.#wait(this.settings.hubIdleMs || Number.POSITIVE_INFINITY);
  }

  /** Waits for a client as long as one can come. */
  #wait(leftMs: number): void {
    if (leftMs <= 0 || !this.#hasConfig()) {
      this.end('ending');
      return;
    }
    const stepMs = Math.min(leftMs, LOOK_EVERY_MS);
    this.#cancelIdle = this.#clock.schedule(stepMs, () => this.#wait(leftMs - stepMs));
  }

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
