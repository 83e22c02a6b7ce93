/** `modern`: the protocol revisions without a handshake. `legacy`: those that begin with `initialize`. */
export type EraName = 'legacy' | 'modern';

/** Result of a start that asked the server for its era. */
export interface EraVerdict {
  readonly era: EraName;
  /** The server's own version. Another version may speak another era. */
  readonly version: string | undefined;
  /** Expiry of a cached verdict, as an ISO date. Absent if the verdict counts until it proves wrong. */
  readonly until?: string | undefined;
}

export interface EraSource {
  /**
   * `configured`: the configuration sets it. `transport`: the configured transport has no other era. `asked`: this start
   * asked the server. `cached`: an earlier start asked the server. `exited`: the server exits when it is asked.
   */
  readonly kind: 'configured' | 'transport' | 'asked' | 'cached' | 'exited';
  /** Expiry of a cached verdict, as in `EraVerdict`. */
  readonly until?: string | undefined;
}

/** Stores the verdict about one server from start to start. */
export interface EraVerdicts {
  /** Returns `undefined` if there is no verdict, or if it has expired. */
  find(): EraVerdict | undefined;
  put(verdict: EraVerdict): void;
  forget(): void;
}

/**
 * Knowledge about the era of one server, over all its starts.
 *
 * The probe is a `server/discover` request. Some legacy servers exit if the first message is not `initialize`. Such an exit
 * is the fault of the probe, so the next start begins with `initialize`.
 */
export class ServerEra {
  #setting: EraName | 'auto';
  #isOfTransport = false;
  readonly #verdicts: EraVerdicts;
  #known: EraVerdict | undefined;
  #isProbing = false;
  #hasProbeFailed = false;
  #hasBegunAsKnown = false;

  /** Without `verdicts`, the verdict is kept in memory. */
  constructor(setting: EraName | 'auto', verdicts: EraVerdicts = createMemory()) {
    this.#setting = setting;
    this.#verdicts = verdicts;
  }

  /** Whether the configuration decides, so that no other era is tried. */
  get isFixed(): boolean {
    return this.#setting !== 'auto';
  }

  get source(): EraSource {
    if (this.isFixed) return { kind: this.#isOfTransport ? 'transport' : 'configured' };
    if (!this.#hasBegunAsKnown) return { kind: 'asked' };
    return this.#hasProbeFailed ? { kind: 'exited' } : { kind: 'cached', until: this.#known?.until };
  }

  /** Fixes the era, because the configured transport has no other. */
  fixByTransport(era: EraName): void {
    this.#isOfTransport = this.#setting !== era || this.#isOfTransport;
    this.#setting = era;
  }

  /** Begins a start. Returns the era to begin with, or `undefined` if the server has to be asked. */
  begin(): EraName | undefined {
    this.#isProbing = false;
    if (this.#setting !== 'auto') return this.#setting;
    this.#known = this.#verdicts.find();
    const era = this.#hasProbeFailed ? 'legacy' : this.#known?.era;
    this.#hasBegunAsKnown = era !== undefined;
    return era;
  }

  /** Notes that this start sends the probe as its first message. */
  probing(): void {
    this.#isProbing = true;
  }

  /** Stores the era of the server. If a legacy server has another version than before, the next start asks it again. */
  opened({ era, version }: EraVerdict): void {
    this.#isProbing = false;
    if (this.isFixed) return;
    const known = this.#known;
    // The connection has another era than this start began with, so the server was asked after all.
    if (era !== (this.#hasProbeFailed ? 'legacy' : known?.era)) this.#hasBegunAsKnown = false;
    if (known?.era === era && known.version === version) return;
    if (known?.era === 'legacy' && era === 'legacy') this.#verdicts.forget();
    else this.#verdicts.put({ era, version });
  }

  /** Forgets the era, because it was wrong. The next start asks the server. */
  forget(): void {
    this.#hasProbeFailed = false;
    this.#verdicts.forget();
  }

  /** Notes the end of a launch. Returns `true` once, if the probe may have ended the server. */
  ended(): boolean {
    if (!this.#isProbing || this.#hasProbeFailed) return false;
    this.#isProbing = false;
    this.#hasProbeFailed = true;
    return true;
  }
}

function createMemory(): EraVerdicts {
  let known: EraVerdict | undefined;
  return {
    find: () => known,
    put: (verdict) => {
      known = verdict;
    },
    forget: () => {
      known = undefined;
    },
  };
}
