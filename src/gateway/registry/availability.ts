import type { FailureReason } from '../../downstream/failure.js';
import type { Dispatcher } from '../dispatch/dispatcher.js';

/** Where the process behind a backend is in its life, as far as the gateway needs to know. */
export type LifecycleState =
  | 'stopped'
  | 'idle'
  | 'installing'
  | 'starting'
  | 'ready'
  | 'suspect'
  | 'stopping'
  | 'backoff'
  | 'parked';

export interface LifecycleOptions {
  /** There can never be a process. */
  readonly isMisconfigured: boolean;
  /** What has to know whether calls can be sent now, later or not at all. */
  readonly dispatcher: Pick<Dispatcher, 'giveUp' | 'hold' | 'resume' | 'disconnect'>;
}

/** What the life of the process behind a backend means for those who want to call it. */
export class Lifecycle {
  readonly #isMisconfigured: boolean;
  readonly #dispatcher: LifecycleOptions['dispatcher'];
  #state: LifecycleState = 'stopped';
  /** False while the package that it runs is not there: it is being installed, or could not be. */
  #isInstalled = true;
  #isStartSettled: boolean;
  #delay: 'starting' | 'restarting' = 'starting';

  constructor({ isMisconfigured, dispatcher }: LifecycleOptions) {
    this.#isMisconfigured = isMisconfigured;
    this.#dispatcher = dispatcher;
    this.#isStartSettled = isMisconfigured;
  }

  get state(): LifecycleState {
    return this.#state;
  }

  /** False while the first start is under way. */
  get isStartSettled(): boolean {
    return this.#isStartSettled;
  }

  /** Whether no process is to be expected. Before it is started for the first time it is on its way. */
  get isGivenUp(): boolean {
    return this.#state === 'parked' || (this.#state === 'stopped' && this.#isStartSettled);
  }

  /** Whether it makes a difference that somebody needs the process. */
  get heedsDemand(): boolean {
    return DEMANDED.has(this.#state);
  }

  /** Why no process is to be expected, if so. */
  get absence(): FailureReason | undefined {
    if (this.#isMisconfigured) return 'misconfigured';
    if (!this.isGivenUp) return undefined;
    if (!this.#isInstalled) return 'not_installed';
    return this.#state === 'parked' ? 'parked' : 'stopped';
  }

  /** What those are told who have waited for a process in vain. */
  get delay(): FailureReason {
    return this.#state === 'installing' ? 'installing' : this.#delay;
  }

  /** The process moved on. In any state but `ready` there is none to call. */
  moved(state: LifecycleState): void {
    this.#isInstalled = state !== 'installing' && (this.#isInstalled || state === 'starting');
    this.#state = state;
    this.#isStartSettled ||= state !== 'starting' && state !== 'installing';
    if (state === 'idle') this.#delay = 'starting';
    if (state === 'parked' || state === 'stopped') this.#dispatcher.giveUp(this.#isInstalled ? state : 'not_installed');
    else if (state === 'suspect') this.#dispatcher.hold();
    else if (state === 'ready') this.#dispatcher.resume();
    else this.#dispatcher.disconnect(this.#delay);
    if (state === 'ready' || state === 'backoff') this.#delay = 'restarting';
  }

  /** The process is to rest: the next one is not a restart. */
  toRest(): void {
    this.#delay = 'starting';
  }
}

/** Where it makes a difference that somebody needs the process. */
const DEMANDED: ReadonlySet<LifecycleState> = new Set(['idle', 'starting', 'stopping', 'parked']);
