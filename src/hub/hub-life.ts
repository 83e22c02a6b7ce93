import type { GatewayConfig } from '../config/file/check-file.js';
import type { Cancel, Timers } from '../wire/timing/clock.js';
import type { Closing, HubRefusal } from './wire.js';

interface HubSettings {
  readonly hub: GatewayConfig['hub'];
  readonly hubIdleMs: number;
  readonly hubClients: number;
}

/** Time within which the first client must attach. The process that starts a hub attaches to it at once. */
const FIRST_CLIENT_WITHIN_MS = 30_000;
/** Time between two checks whether the configuration file still exists, while the hub has no clients. */
const LOOK_EVERY_MS = 10_000;

/** Decides when a hub ends: some time after its last client has left, or at a command or a signal. */
export class HubLife {
  readonly #clock: Timers;
  #settings: () => HubSettings | undefined = () => undefined;
  #hasConfig: () => boolean = () => true;
  #refusal: HubRefusal | undefined;
  #closing: Closing | undefined;
  #clients = 0;
  #cancelIdle: Cancel = () => {};
  #onOver: () => void = () => {};
  /** Resolves when the hub has to end. */
  readonly over: Promise<void>;
  /** Resolves after the time within which the first client must attach. */
  readonly unused: Promise<undefined>;

  constructor(clock: Timers) {
    this.#clock = clock;
    this.over = new Promise((resolve) => {
      this.#onOver = resolve;
    });
    this.unused = new Promise((resolve) => clock.schedule(FIRST_CLIENT_WITHIN_MS, () => resolve(undefined)));
  }

  /** The settings of the configuration; `undefined` before the configuration is read. */
  get settings(): HubSettings | undefined {
    return this.#settings();
  }

  /** Reason for which the hub takes no more clients; `undefined` while it takes them. */
  get refusal(): HubRefusal | undefined {
    return this.#refusal;
  }

  /** Reason that the remaining clients get at the end; `undefined` if they have to attach to another hub at once. */
  get closing(): Closing | undefined {
    return this.#closing;
  }

  /**
   * Call this when the configuration was read. `hasConfig` tells whether its file still exists. Without the file, no client can
   * come, so a hub without clients ends.
   */
  begin(settings: () => HubSettings, hasConfig: () => boolean): void {
    this.#settings = settings;
    this.#hasConfig = hasConfig;
    this.clientsChanged(this.#clients);
  }

  /** Takes the number of clients. Without a client, the time until the end of the hub begins. */
  clientsChanged(clients: number): void {
    this.#clients = clients;
    this.#cancelIdle();
    this.#cancelIdle = () => {};
    if (clients > 0) return;
    // A hub that refuses clients has no reason to wait for one.
    if (this.#refusal !== undefined) this.#onOver();
    else if (this.settings !== undefined) this.#wait(this.settings.hubIdleMs || Number.POSITIVE_INFINITY);
  }

  /** Waits for a client, for `leftMs` milliseconds at most, and ends the hub if its configuration file is gone. */
  #wait(leftMs: number): void {
    if (leftMs <= 0 || !this.#hasConfig()) {
      this.end('ending');
      return;
    }
    const stepMs = Math.min(leftMs, LOOK_EVERY_MS);
    this.#cancelIdle = this.#clock.schedule(stepMs, () => this.#wait(leftMs - stepMs));
  }

  /** Ends the hub at once. Later clients are refused with this reason. */
  end(because: HubRefusal): void {
    this.#refusal = because;
    this.#onOver();
  }

  /** Ends the hub because a user asks for it. Its clients start another hub only when they have a message to send. */
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
