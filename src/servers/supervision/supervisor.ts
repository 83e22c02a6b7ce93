import {
  type Installer,
  type Installing,
  type Launched,
  type Launcher,
  type StopLadder,
  toStopLadder,
} from '../../spec/launch.js';
import type { ServerSpec } from '../../spec/server-spec.js';
import type { ChildSnapshot, ChildState } from '../../spec/server-state.js';
import type { Cancel, Clock } from '../../wire/timing/clock.js';
import { type ChildEffect, type ChildEvent, initialState, toSnapshot, transition } from './transition.js';

/*
 * Servers: the processes of servers. `supervision` decides when a server starts, restarts and rests (`transition.ts` is the whole
 * policy), `process` starts and ends process groups and families, `sandbox` confines them, and `packages` installs npm packages.
 * The composition root, the doctor and the commands use this room; `Launcher` of `spec` connects it with `upstream`.
 */

export interface SupervisorOptions {
  readonly clock: Clock;
  /** Yields numbers in [0, 1). */
  readonly random: () => number;
  readonly launcher: Launcher;
  /** Required if a spec has a `missing` package. */
  readonly installer?: Installer;
  /** Number of start slots. A child holds one for 1 s at most while it starts. */
  readonly startLimit: number;
  /** Called after every change, in the same tick as its cause. Must not throw. */
  readonly onChange: (key: string, snapshot: ChildSnapshot) => void;
  /** Called once for a start that takes longer than 2.5 s. */
  readonly onSlowStart?: (key: string) => void;
}

interface Child {
  /** Replaced when a missing package is installed, or when the configuration changes. */
  spec: ServerSpec;
  state: ChildState;
  installing: Installing | undefined;
  launched: Launched | undefined;
  cancelTimer: Cancel;
  /** Called when the phase `stopping` is over. */
  stopWaiters: (() => void)[];
}

/**
 * Keeps children running: passes each event to `transition` and carries out the effects.
 *
 * A key that was not added is an error, except in calls that traffic causes, which may come late.
 */
export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #slots: StartSlots;
  readonly #children = new Map<string, Child>();
  /** The highest generation of the removed children, so that a key that is added again never reuses one. */
  #lastRetiredGeneration = 0;
  /** Set by `stopAll`. From then on nothing is launched. */
  #finalLadder: StopLadder | undefined;
  #tasks: (() => void)[] = [];
  #isRunningTasks = false;

  constructor(options: SupervisorOptions) {
    const { clock, startLimit, onSlowStart } = options;
    this.#options = options;
    this.#slots = new StartSlots({ clock, limit: startLimit, onSlow: onSlowStart });
  }

  /** Adds a child, in state `stopped`. */
  add(spec: ServerSpec): void {
    if (this.#children.has(spec.key)) throw new Error(`Child "${spec.key}" is already supervised`);
    this.#children.set(spec.key, {
      spec,
      state: initialState(this.#lastRetiredGeneration),
      installing: undefined,
      launched: undefined,
      cancelTimer: () => {},
      stopWaiters: [],
    });
  }

  /** Replaces the timeouts and the restart policy of a child. A changed command takes effect with the next launch. */
  adjust(spec: ServerSpec): void {
    this.#child(spec.key).spec = spec;
  }

  /** Number of start slots. A child holds one for 1 s at most while it starts. */
  set startLimit(limit: number) {
    this.#slots.limit = limit;
  }

  /** Stops a child and removes it. The key may be added again afterwards. */
  async remove(key: string): Promise<void> {
    const child = this.#child(key);
    // Stops the child again if a start was requested while its group ended, because no removed child may run.
    while (child.state.phase.kind !== 'stopped') await this.#stop(child);
    this.#children.delete(key);
    this.#lastRetiredGeneration = Math.max(this.#lastRetiredGeneration, child.state.generation);
  }

  start(key: string): void {
    this.#request(this.#child(key), { kind: 'startRequested' });
  }

  /** Restarts the child in any phase, and clears its failures. */
  restart(key: string): void {
    this.#request(this.#child(key), { kind: 'restartRequested' });
  }

  /** Ends a ready child, or makes a stopped child idle. The next demand launches it. This is not a failure. */
  rest(key: string): void {
    const child = this.#children.get(key);
    if (child !== undefined) this.#request(child, { kind: 'restRequested' });
  }

  /** Reports that a caller waits for the child. An idle child is launched; a parked or blocked one may be tried at once. */
  demand(key: string): void {
    const child = this.#children.get(key);
    if (child !== undefined) this.#request(child, { kind: 'demanded' });
  }

  /** Stops a child. Resolves once its group is gone. */
  async stop(key: string): Promise<void> {
    await this.#stop(this.#child(key));
  }

  /**
   * Stops all children at once and launches none afterwards. Resolves once every group is gone. Calling again
   * with shorter times brings the signals forward.
   */
  async stopAll(ladder: StopLadder): Promise<void> {
    this.#finalLadder = ladder;
    await Promise.all([...this.#children.values()].map((child) => this.#stop(child)));
  }

  snapshot(key: string): ChildSnapshot {
    return toSnapshot(this.#child(key));
  }

  /** Milliseconds until a failed child is launched again. Absent if no launch is planned, or if the child was removed. */
  retryInMs(key: string): number | undefined {
    const child = this.#children.get(key);
    const retryAt = child === undefined ? undefined : toSnapshot(child).retryAt;
    return retryAt === undefined ? undefined : Math.max(0, retryAt - this.#options.clock.now());
  }

  #child(key: string): Child {
    const child = this.#children.get(key);
    if (child === undefined) throw new Error(`Child "${key}" is not supervised`);
    return child;
  }

  #request(child: Child, event: ChildEvent): void {
    if (this.#finalLadder === undefined) this.#dispatch(child, event);
  }

  #stop(child: Child): Promise<void> {
    return new Promise((resolve) => {
      this.#run(() => {
        this.#step(child, { kind: 'stopRequested' });
        if (child.state.phase.kind === 'stopping') child.stopWaiters.push(resolve);
        else resolve();
      });
    });
  }

  #dispatch(child: Child, event: ChildEvent): void {
    this.#run(() => this.#step(child, event));
  }

  /** Runs one task at a time. A task that a launcher or `onChange` adds during a step runs after that step. */
  #run(task: () => void): void {
    this.#tasks.push(task);
    if (this.#isRunningTasks) return;
    this.#isRunningTasks = true;
    try {
      for (let next = this.#tasks.shift(); next !== undefined; next = this.#tasks.shift()) next();
    } finally {
      this.#isRunningTasks = false;
    }
  }

  #step(child: Child, event: ChildEvent): void {
    const before = child.state;
    const context = { spec: child.spec, now: this.#options.clock.now(), random: this.#options.random };
    const { state, effects } = transition(before, event, context);
    child.state = state;
    const { kind } = state.phase;
    if (kind !== before.phase.kind) child.cancelTimer();
    if (kind !== 'installing') {
      child.installing?.cancel();
      child.installing = undefined;
    }
    if (kind !== 'starting') this.#slots.release(child.spec.key);
    for (const effect of effects) this.#carryOut(child, effect);
    if (state !== before) this.#options.onChange(child.spec.key, toSnapshot(child));
    if (kind !== 'stopping') for (const resolve of child.stopWaiters.splice(0)) resolve();
  }

  #carryOut(child: Child, effect: ChildEffect): void {
    switch (effect.kind) {
      case 'install':
        this.#install(child);
        return;
      case 'launch':
        this.#slots.request(
          child.spec.key,
          () => this.#run(() => this.#launch(child, effect.generation)),
          child.spec.kind !== 'remote',
        );
        return;
      case 'hurry':
        this.#slots.hurry(child.spec.key);
        return;
      case 'endGroup':
        this.#endGroup(child, effect.generation);
        return;
      case 'setTimer':
        child.cancelTimer();
        child.cancelTimer = this.#options.clock.schedule(effect.delayMs, () => this.#dispatch(child, effect.event));
        return;
      case 'clearTimer':
        child.cancelTimer();
        return;
    }
  }

  #install(child: Child): void {
    const installing = this.#options.installer?.install(child.spec);
    if (installing === undefined) throw new Error(`No installer for the package of "${child.spec.key}"`);
    child.installing = installing;
    void installing.outcome.then((outcome) => {
      // The installation was cancelled meanwhile.
      if (child.installing !== installing) return;
      if (outcome.kind === 'installed') child.spec = outcome.spec;
      this.#dispatch(
        child,
        outcome.kind === 'installed' ? { kind: 'installed' } : { kind: 'installFailed', reason: outcome.reason },
      );
    });
  }

  #launch(child: Child, generation: number): void {
    const { state } = child;
    // A stop may have come between the launch effect and this task.
    if (state.phase.kind !== 'starting' || state.generation !== generation) return;
    child.launched = this.#options.launcher.launch(child.spec, generation, {
      began: () => this.#dispatch(child, { kind: 'startBegan', generation }),
      answered: () => this.#dispatch(child, { kind: 'startAnswered', generation }),
      ready: () => this.#dispatch(child, { kind: 'becameReady', generation }),
      failed: ({ fault = 'server', ...failure }) =>
        this.#dispatch(child, { kind: 'startFailed', generation, fault, ...failure }),
      endedByProbe: () => this.#dispatch(child, { kind: 'endedByProbe', generation }),
      suspected: () => this.#dispatch(child, { kind: 'suspected', generation }),
      cleared: () => this.#dispatch(child, { kind: 'cleared', generation }),
      unfit: (reason) => this.#dispatch(child, { kind: 'foundUnfit', generation, reason }),
      exited: (exit) => this.#dispatch(child, { kind: 'exited', generation, exit }),
      lost: (fault, reason) => this.#dispatch(child, { kind: 'lost', generation, fault, reason }),
    });
    this.#dispatch(child, { kind: 'spawned', generation });
  }

  #endGroup(child: Child, generation: number): void {
    const { launched } = child;
    const reportGone = () => this.#dispatch(child, { kind: 'groupGone', generation });
    // A child that still waits for its start slot has no group.
    if (launched === undefined) {
      reportGone();
      return;
    }
    void launched.end(this.#finalLadder ?? toStopLadder(child.spec.timeouts)).then(() => {
      if (child.launched === launched) child.launched = undefined;
      reportGone();
    });
  }
}

export interface StartSlotsOptions {
  readonly clock: Clock;
  /** Number of start slots. A start holds its slot for 1 s at most. */
  readonly limit: number;
  /** Called once for a start that takes longer than 2.5 s. */
  readonly onSlow?: ((key: string) => void) | undefined;
}

/** Time for which a start keeps its slot, because a server that waits for a network must not hold up the others. */
const MAX_HELD_MS = 1_000;
/** Less than the default of `gateway.startupWait`, so that a slow server is noted even if the client leaves then. */
const SLOW_AFTER_MS = 2_500;
/** An urgent start, for which a caller waits, delays other starts for this long at most. */
const MAX_URGENT_MS = 500;

/** A start that has begun and is not known to be slow. */
interface Start {
  readonly begunAt: number;
  hasSlot: boolean;
  /** Whether a caller waits for it. */
  isUrgent: boolean;
  cancelTimer: Cancel;
}

/**
 * Gives slots to starts, first come, first served, so that few starts run at once. A start for which a caller waits goes first: it
 * begins at once, and no other start begins beside it for half a second.
 */
export class StartSlots {
  readonly #clock: Clock;
  readonly #onSlow: StartSlotsOptions['onSlow'];
  #limit: number;
  /** In order of arrival. */
  readonly #waiting = new Map<string, () => void>();
  readonly #starts = new Map<string, Start>();
  /** Cancels the timer that ends the pause beside an urgent start. Set while no start may begin. */
  #cancelPause: Cancel | undefined;

  constructor({ clock, limit, onSlow }: StartSlotsOptions) {
    this.#clock = clock;
    this.#limit = limit;
    this.#onSlow = onSlow;
  }

  set limit(limit: number) {
    this.#limit = limit;
    this.#fill();
  }

  /**
   * Calls `start` when a slot is free, which may be at once. The slot is held until `release`, for 1 s at most. A start that
   * costs this machine little, such as a connection to another one, needs no slot and begins at once.
   */
  request(key: string, start: () => void, needsSlot = true): void {
    if (!needsSlot) {
      this.#add(key, false);
      start();
      return;
    }
    this.#waiting.set(key, start);
    this.#fill();
  }

  /**
   * Runs this start now if it has not begun, because a caller waits for it. Begins no others until it is over, for half a second at most.
   */
  hurry(key: string): void {
    const run = this.#waiting.get(key);
    const start = run === undefined ? this.#starts.get(key) : this.#add(key);
    if (start === undefined) return;
    const elapsedMs = this.#clock.now() - start.begunAt;
    if (!start.isUrgent && elapsedMs < MAX_URGENT_MS) {
      start.isUrgent = true;
      this.#pause(MAX_URGENT_MS - elapsedMs);
    }
    run?.();
  }

  /** Frees the slot of a start that is over, or withdraws the request of one that is not wanted any more. */
  release(key: string): void {
    this.#waiting.delete(key);
    const start = this.#starts.get(key);
    if (start === undefined) return;
    this.#starts.delete(key);
    start.cancelTimer();
    if (start.isUrgent && !this.#isAnyUrgent()) this.#endPause();
    this.#fill();
  }

  #isAnyUrgent(): boolean {
    const now = this.#clock.now();
    return [...this.#starts.values()].some(({ isUrgent, begunAt }) => isUrgent && now < begunAt + MAX_URGENT_MS);
  }

  /** Begins no start for this time. A new pause replaces the one before. */
  #pause(delayMs: number): void {
    this.#endPause();
    this.#cancelPause = this.#clock.schedule(delayMs, () => {
      this.#endPause();
      this.#fill();
    });
  }

  #endPause(): void {
    this.#cancelPause?.();
    this.#cancelPause = undefined;
  }

  #fill(): void {
    for (const [key, run] of this.#waiting) {
      const held = [...this.#starts.values()].filter(({ hasSlot }) => hasSlot).length;
      if (held >= this.#limit || this.#cancelPause !== undefined) return;
      this.#add(key);
      run();
    }
  }

  #add(key: string, hasSlot = true): Start {
    this.#waiting.delete(key);
    const start: Start = { begunAt: this.#clock.now(), hasSlot, isUrgent: false, cancelTimer: () => {} };
    this.#starts.set(key, start);
    start.cancelTimer = this.#clock.schedule(MAX_HELD_MS, () => {
      start.hasSlot = false;
      start.cancelTimer = this.#clock.schedule(SLOW_AFTER_MS - MAX_HELD_MS, () => {
        this.#starts.delete(key);
        this.#onSlow?.(key);
      });
      this.#fill();
    });
    return start;
  }
}
