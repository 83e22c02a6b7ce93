/** `modern`: the protocol revisions without a handshake. `legacy`: those that begin with `initialize`. */
export type Era = 'legacy' | 'modern';

/** Era that a server speaks, as a start has found out. */
export interface EraVerdict {
  readonly era: Era;
  /** The version that the server gave itself; another version may speak another era. */
  readonly version: string | undefined;
  /** Until when a cached verdict counts, as an ISO date; absent if it counts until it proves wrong. */
  readonly until?: string | undefined;
}

/** Origin of the decision for an era. */
export interface EraSource {
  /**
   * `configured`: the configuration says so. `transport`: the transport of the configuration has this era only. `asked`: this
   * start asked the server. `cached`: an earlier start did. `exited`: the server exits when it is asked.
   */
  readonly kind: 'configured' | 'transport' | 'asked' | 'cached' | 'exited';
  /** Of a cached verdict, as above. */
  readonly until?: string | undefined;
}

/** Store of the verdicts from start to start. */
export interface EraVerdicts {
  /** `undefined` if there is none, or if it is too old to be trusted. */
  find(): EraVerdict | undefined;
  put(verdict: EraVerdict): void;
  forget(): void;
}

/**
 * Knowledge about the era of one server, over all its starts.
 *
 * A server is asked with `server/discover`, which a legacy server may not survive: some exit if anything but `initialize`
 * comes first. Such an end is the fault of the probe, so the next start opens with `initialize`.
 */
export class ServerEra {
  #setting: Era | 'auto';
  #isOfTransport = false;
  readonly #verdicts: EraVerdicts;
  #known: EraVerdict | undefined;
  #isProbing = false;
  #hasProbeFailed = false;
  #hasBegunAsKnown = false;

  /** Without `verdicts`, they are kept for as long as the process runs. */
  constructor(setting: Era | 'auto', verdicts: EraVerdicts = createMemory()) {
    this.#setting = setting;
    this.#verdicts = verdicts;
  }

  /** Whether the configuration decides, so that nothing else is tried. */
  get isFixed(): boolean {
    return this.#setting !== 'auto';
  }

  /** Origin of the decision at the latest start. */
  get source(): EraSource {
    if (this.isFixed) return { kind: this.#isOfTransport ? 'transport' : 'configured' };
    if (!this.#hasBegunAsKnown) return { kind: 'asked' };
    return this.#hasProbeFailed ? { kind: 'exited' } : { kind: 'cached', until: this.#known?.until };
  }

  /** The transport that the configuration asks for has this era only. */
  fixByTransport(era: Era): void {
    this.#isOfTransport = this.#setting !== era || this.#isOfTransport;
    this.#setting = era;
  }

  /** A start begins. Returns the era to begin with; `undefined` if the server has to be asked. */
  begin(): Era | undefined {
    this.#isProbing = false;
    if (this.#setting !== 'auto') return this.#setting;
    this.#known = this.#verdicts.find();
    const era = this.#hasProbeFailed ? 'legacy' : this.#known?.era;
    this.#hasBegunAsKnown = era !== undefined;
    return era;
  }

  /** The server is being asked, before anything else. */
  probing(): void {
    this.#isProbing = true;
  }

  /** The server speaks this era. A legacy server with another version than before is asked again at the next start. */
  opened({ era, version }: EraVerdict): void {
    this.#isProbing = false;
    if (this.isFixed) return;
    const known = this.#known;
    // Opened in another era than it began with: the server was asked after all.
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

  /** The launch has ended. Returns whether the probe may have ended it. Only the first such end counts for that. */
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
