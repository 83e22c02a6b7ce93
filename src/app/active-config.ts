import type { Config } from '../config/resolve/config.js';
import type { ConfigFacts } from '../gateway/status/status.js';
import type { Clock } from '../timing/clock.js';

export interface ActiveConfigOptions {
  readonly clock: Clock;
  readonly config: Config;
  /** The report about a configuration file that is rejected as a whole. */
  readonly fault: string | undefined;
  /** Whether HTTP is served. Its limits are read once, when the listener opens. */
  readonly servesHttp: boolean;
}

/** The configuration that is active, and the state of its file. */
export class ActiveConfig {
  readonly #options: ActiveConfigOptions;
  #config: Config;
  #fault: { readonly report: string; readonly since: number } | undefined;
  /** Whether any configuration was accepted yet. */
  #isSound: boolean;
  #reloads = 0;

  constructor(options: ActiveConfigOptions) {
    const { clock, config, fault } = options;
    this.#options = options;
    this.#config = config;
    this.#isSound = fault === undefined;
    this.#fault = fault === undefined ? undefined : { report: fault, since: clock.now() };
  }

  get config(): Config {
    return this.#config;
  }

  /** A notice for every client, while no configuration was accepted. */
  get notice(): string | undefined {
    if (this.#isSound || this.#fault === undefined) return undefined;
    return `The configuration cannot be used:\n${this.#fault.report}`;
  }

  get facts(): ConfigFacts {
    return {
      file: this.#config.file,
      fault: this.#fault && { ...this.#fault, isPreviousInForce: this.#isSound },
      reloads: this.#reloads,
      needsRestart: this.needsRestart,
    };
  }

  /** Changed settings that take effect when Trunkline is restarted. */
  get needsRestart(): readonly string[] {
    const { config, servesHttp } = this.#options;
    const { http, sealKeyFile } = this.#config.gateway;
    const now: Readonly<Record<string, number>> = { ...http };
    const isOther = Object.entries(config.gateway.http).some(([name, value]) => now[name] !== value);
    return [
      ...(servesHttp && isOther ? ['gateway.http'] : []),
      ...(sealKeyFile === config.gateway.sealKeyFile ? [] : ['gateway.sealKeyFile']),
    ];
  }

  /** The file is accepted; `isOther` says whether its meaning has changed. */
  accept(config: Config, isOther: boolean): void {
    this.#config = config;
    this.#fault = undefined;
    this.#isSound = true;
    if (isOther) this.#reloads += 1;
  }

  /** The file is rejected. Returns false when the same report was given before. */
  refuse(report: string): boolean {
    if (this.#fault?.report === report) return false;
    this.#fault = { report, since: this.#fault?.since ?? this.#options.clock.now() };
    return true;
  }
}
