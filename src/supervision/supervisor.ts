import type { Cancel, Clock } from '../timing/clock.js';
import { type ChildSnapshot, toSnapshot } from './child-snapshot.js';
import type { ChildSpec } from './child-spec.js';
import { type ChildEffect, type ChildEvent, type ChildState, initialState } from './child-state.js';
import type { Installer, Installing } from './installer.js';
import { type Launched, type Launcher, type StopLadder, toStopLadder } from './launcher.js';
import { StartSlots } from './start-slots.js';
import { transition } from './transition.js';

export interface SupervisorOptions {
  readonly clock: Clock;
  /** Yields numbers in [0, 1). */
  readonly random: () => number;
  readonly launcher: Launcher;
  /** Needed for children that lack something only. */
  readonly installer?: Installer;
  /** How many children may be starting at once. */
  readonly startLimit: number;
  /** Called after every change, in the same tick as its cause. Must not throw. */
  readonly onChange: (key: string, snapshot: ChildSnapshot) => void;
}

interface Child {
  /** Another one once what it lacked was installed, or the configuration has changed. */
  spec: ChildSpec;
  state: ChildState;
  installing: Installing | undefined;
  launched: Launched | undefined;
  cancelTimer: Cancel;
  /** Called once the group is no longer being ended. */
  stopWaiters: (() => void)[];
}

/**
 * Keeps children alive: feeds what happens to them into `transition` and carries out the effects.
 *
 * Naming a key that was not added is an error, except where the call comes from traffic and may simply be late.
 */
export class Supervisor {
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #launcher: Launcher;
  readonly #installer: Installer | undefined;
  readonly #onChange: SupervisorOptions['onChange'];
  readonly #slots: StartSlots;
  readonly #children = new Map<string, Child>();
  /** Where the generations of added children begin, so that a key that comes back never reuses one. */
  #lastRetiredGeneration = 0;
  /** Set by `stopAll`, for good: from then on nothing is launched. */
  #finalLadder: StopLadder | undefined;
  #tasks: (() => void)[] = [];
  #isRunningTasks = false;

  constructor({ clock, random, launcher, installer, startLimit, onChange }: SupervisorOptions) {
    this.#clock = clock;
    this.#random = random;
    this.#launcher = launcher;
    this.#installer = installer;
    this.#onChange = onChange;
    this.#slots = new StartSlots({ clock, limit: startLimit });
  }

  /** Makes a child known, in state `stopped`. */
  add(spec: ChildSpec): void {
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

  /** Has other patience with a child from now on, or restarts it otherwise. What is run stays the same until it is launched anew. */
  adjust(spec: ChildSpec): void {
    this.#child(spec.key).spec = spec;
  }

  /** How many children may be starting at once. */
  set startLimit(limit: number) {
    this.#slots.limit = limit;
  }

  /** Stops a child and forgets it. The key may be added again afterwards. */
  async remove(key: string): Promise<void> {
    const child = this.#child(key);
    // A start requested while the group was being ended must not leave a child that nobody knows.
    while (child.state.phase.kind !== 'stopped') await this.#stop(child);
    this.#children.delete(key);
    this.#lastRetiredGeneration = Math.max(this.#lastRetiredGeneration, child.state.generation);
  }

  start(key: string): void {
    this.#request(this.#child(key), { kind: 'startRequested' });
  }

  /** Launches the child anew, whatever it is doing, and forgets its failures. */
  restart(key: string): void {
    this.#request(this.#child(key), { kind: 'restartRequested' });
  }

  /** Ends the child, if it is ready, or does not start it at all, until it is demanded; this counts as no failure. */
  rest(key: string): void {
    const child = this.#children.get(key);
    if (child !== undefined) this.#request(child, { kind: 'restRequested' });
  }

  /** Says that somebody waits for the child: one that is idle is launched, one that is parked may be tried at once. */
  demand(key: string): void {
    const child = this.#children.get(key);
    if (child !== undefined) this.#request(child, { kind: 'demanded' });
  }

  /** Resolves once the child's group is gone, which takes as long as its launcher needs to end it. */
  async stop(key: string): Promise<void> {
    await this.#stop(this.#child(key));
  }

  /**
   * Stops all children at once and for good; resolves once every group is gone. Called again with a shorter ladder,
   * it hastens the end.
   */
  async stopAll(ladder: StopLadder): Promise<void> {
    this.#finalLadder = ladder;
    await Promise.all([...this.#children.values()].map((child) => this.#stop(child)));
  }

  snapshot(key: string): ChildSnapshot {
    return toSnapshot(this.#child(key));
  }

  /** Time until a failed child is launched again by itself; absent when that is not planned. */
  retryInMs(key: string): number | undefined {
    const { retryAt } = this.snapshot(key);
    return retryAt === undefined ? undefined : Math.max(0, retryAt - this.#clock.now());
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

  /** One step at a time: what a launcher or `onChange` causes in the middle of a step comes after it. */
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
    const context = { spec: child.spec, now: this.#clock.now(), random: this.#random };
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
    if (state !== before) this.#onChange(child.spec.key, toSnapshot(child));
    if (kind !== 'stopping') for (const resolve of child.stopWaiters.splice(0)) resolve();
  }

  #carryOut(child: Child, effect: ChildEffect): void {
    switch (effect.kind) {
      case 'install':
        this.#install(child);
        return;
      case 'launch':
        this.#slots.request(child.spec.key, () => this.#run(() => this.#launch(child, effect.generation)));
        return;
      case 'hurry':
        this.#slots.hurry(child.spec.key);
        return;
      case 'endGroup':
        this.#endGroup(child, effect.generation);
        return;
      case 'setTimer':
        child.cancelTimer();
        child.cancelTimer = this.#clock.schedule(effect.delayMs, () => this.#dispatch(child, effect.event));
        return;
    }
  }

  #install(child: Child): void {
    const installing = this.#installer?.install(child.spec);
    if (installing === undefined) throw new Error(`Nobody installs what "${child.spec.key}" lacks`);
    child.installing = installing;
    void installing.outcome.then((outcome) => {
      // It was given up meanwhile.
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
    child.launched = this.#launcher.launch(child.spec, generation, {
      began: () => this.#dispatch(child, { kind: 'startBegan', generation }),
      ready: () => this.#dispatch(child, { kind: 'becameReady', generation }),
      failed: ({ reason, hostFault = false }) =>
        this.#dispatch(child, { kind: 'startFailed', generation, reason, hostFault }),
      suspected: () => this.#dispatch(child, { kind: 'suspected', generation }),
      cleared: () => this.#dispatch(child, { kind: 'cleared', generation }),
      unfit: (reason) => this.#dispatch(child, { kind: 'recycleRequested', generation, reason }),
      exited: (exit) => this.#dispatch(child, { kind: 'exited', generation, exit }),
    });
    this.#dispatch(child, { kind: 'spawned', generation });
  }

  #endGroup(child: Child, generation: number): void {
    const { launched } = child;
    const reportGone = () => this.#dispatch(child, { kind: 'groupGone', generation });
    // A child that still waited for its start slot has no group.
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
