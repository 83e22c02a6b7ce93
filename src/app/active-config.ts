import type { Config } from '../config/config.js';
import type { ConfigFacts } from '../gateway/status/status-facts.js';
import type { Clock } from '../timing/clock.js';

export interface ActiveConfigOptions {
  readonly clock: Clock;
  readonly config: Config;
  /** What is wrong with the file, when nothing of it could be used. */
  readonly fault: string | undefined;
  /** Whether HTTP is served, whose limits are settled when it is opened. */
  readonly servesHttp: boolean;
}

/** Which configuration holds, and what is to be said about the file that it comes from. */
export class ActiveConfig {
  readonly #options: ActiveConfigOptions;
  #config: Config;
  #fault: { readonly report: string; readonly since: number } | undefined;
  /** Whether any file could be used yet. */
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

  /** What every client is to be told, as long as there is nothing that it could use. */
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

  /** Settings that are in the file and not in force. */
  get needsRestart(): readonly string[] {
    const { config, servesHttp } = this.#options;
    if (!servesHttp) return [];
    const now: Readonly<Record<string, number>> = { ...this.#config.gateway.http };
    const isOther = Object.entries(config.gateway.http).some(([name, value]) => now[name] !== value);
    return isOther ? ['gateway.http'] : [];
  }

  /** The file can be used; `isOther` tells whether it means something else than before. */
  accept(config: Config, isOther: boolean): void {
    this.#config = config;
    this.#fault = undefined;
    this.#isSound = true;
    if (isOther) this.#reloads += 1;
  }

  /** The file cannot be used. Returns whether that is news. */
  refuse(report: string): boolean {
    if (this.#fault?.report === report) return false;
    this.#fault = { report, since: this.#fault?.since ?? this.#options.clock.now() };
    return true;
  }
}
