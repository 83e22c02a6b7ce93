import type { ChildExit, Launched, LaunchFault } from '../../spec/launch.js';
import type { ServerSpec } from '../../spec/server-spec.js';
import type { AfterStop, ChildFailure, ChildPhase, ChildSnapshot, ChildState } from '../../spec/server-state.js';

/** Something that happened to a child, or a request about it. */
export type ChildEvent =
  | { readonly kind: 'startRequested' | 'restartRequested' | 'stopRequested' | 'restRequested' | 'demanded' }
  /** The package is installed; the spec is complete. */
  | { readonly kind: 'installed' }
  | { readonly kind: 'installFailed'; readonly reason: string }
  | {
      readonly kind:
        | 'spawned'
        | 'startBegan'
        | 'startAnswered'
        | 'becameReady'
        | 'endedByProbe'
        | 'suspected'
        | 'cleared'
        | 'startTimedOut'
        | 'stableReached'
        | 'groupGone'
        | 'retryDue';
      readonly generation: number;
    }
  | {
      readonly kind: 'lost';
      readonly generation: number;
      readonly reason: string;
      readonly fault: LaunchFault | 'moved';
    }
  | {
      readonly kind: 'startFailed';
      readonly generation: number;
      readonly reason: string;
      readonly fault: LaunchFault;
      /** Pause that the server wants before the next attempt, in milliseconds. */
      readonly retryAfterMs?: number | undefined;
    }
  | { readonly kind: 'foundUnfit'; readonly generation: number; readonly reason: string }
  | { readonly kind: 'exited'; readonly generation: number; readonly exit: ChildExit };

/** Work for the supervisor, in the order given. */
export type ChildEffect =
  /** Install the missing package and report the outcome. Cancelled when the child leaves the phase. */
  | { readonly kind: 'install' }
  | { readonly kind: 'launch'; readonly generation: number }
  /** Launch without waiting for a start slot, because a caller waits for it. */
  | { readonly kind: 'hurry' }
  /** End the group and report `groupGone`. A second request may shorten the time that the end takes. */
  | { readonly kind: 'endGroup'; readonly generation: number }
  /** Deliver `event` later. A phase has at most one timer, and a phase of another kind cancels it. */
  | { readonly kind: 'setTimer'; readonly delayMs: number; readonly event: ChildEvent }
  /** Cancel the timer of the phase. */
  | { readonly kind: 'clearTimer' };

/** A child that was never started. Its first generation is the one after `generation`. */
export function initialState(generation = 0): ChildState {
  return {
    generation,
    consecutiveFailures: 0,
    installFailures: 0,
    setbacks: 0,
    restarts: 0,
    countsAsRestart: true,
    lastExit: undefined,
    lastFailure: undefined,
    phase: { kind: 'stopped' },
  };
}

interface SupervisedChild {
  readonly spec: ServerSpec;
  readonly state: ChildState;
  readonly launched: Launched | undefined;
}

/** The facts about a child at this moment. */
export function toSnapshot({ spec, state, launched }: SupervisedChild): ChildSnapshot {
  const { phase, installFailures: _, setbacks: __, countsAsRestart: ___, ...facts } = state;
  return {
    ...facts,
    state: phase.kind,
    pid: launched?.pid,
    readySince: phase.kind === 'ready' || phase.kind === 'suspect' ? phase.readySince : undefined,
    retryAt: 'retryAt' in phase ? phase.retryAt : undefined,
    missing: spec.missing?.shown,
    installingSince: phase.kind === 'installing' ? phase.since : undefined,
  };
}

interface TransitionContext {
  readonly spec: ServerSpec;
  /** Monotonic, in milliseconds. */
  readonly now: number;
  /** Yields numbers in [0, 1). */
  readonly random: () => number;
}

interface Transition {
  /** The same object if nothing changed. */
  readonly state: ChildState;
  readonly effects: readonly ChildEffect[];
}

/** The delay after a failure of the host, such as a lack of file descriptors. */
const HOST_FAULT_DELAY_MS = 5_000;

/** The delay after a failure of the network. A laptop that wakes up should have its servers within two seconds. */
const NETWORK_DELAY_MS = 1_500;

/**
 * The delay after an answer that shows a remote server in trouble, and after each further session that the server forgot soon. It
 * grows, because the network works, and the server needs rest.
 */
const TROUBLE_RETRY = { firstDelayMs: 1_500, maxDelayMs: 30_000 };
/** The longest delay that a server can ask for. */
const MAX_RETRY_AFTER_MS = 3_600_000;
/** A session that was ready for this time was of use, so that earlier setbacks do not count. */
const USEFUL_SESSION_MS = 10_000;

/** The delay between failing installations. The usual cause is a missing network, which may return at any time. */
const INSTALL_RETRY = { firstDelayMs: 5_000, maxDelayMs: 300_000 };

/**
 * The whole policy of supervision as a pure function: the next state of a child after `event`, and the effects to carry out.
 *
 * Two rules always hold. Nothing is launched while a group of the child may exist. Each exit of a process is a failure, even with code 0,
 * unless the gateway requested the exit.
 */
export function transition(state: ChildState, event: ChildEvent, context: TransitionContext): Transition {
  if ('generation' in event && event.generation !== state.generation) return unchanged(state);
  const { phase } = state;
  const { spec, now } = context;
  switch (event.kind) {
    case 'startRequested':
      return onStartRequested(state, context);
    case 'restartRequested':
      return onRestartRequested(state, context);
    case 'stopRequested':
      return onStopRequested(state);
    case 'restRequested':
      return onRestRequested(state);
    case 'demanded':
      return onDemanded(state, context);
    case 'installed':
      return phase.kind === 'installing' ? launch({ ...state, installFailures: 0 }, context) : unchanged(state);
    case 'installFailed':
      return phase.kind === 'installing' ? failInstall(state, event.reason, context) : unchanged(state);
    case 'spawned':
      if (phase.kind !== 'starting') return unchanged(state);
      return enter(state, { kind: 'starting', spawnedAt: now });
    case 'startBegan':
      if (phase.kind !== 'starting') return unchanged(state);
      return {
        state,
        effects: [timer(spec.timeouts.startMs, { kind: 'startTimedOut', generation: state.generation })],
      };
    case 'startAnswered':
      return phase.kind === 'starting' ? { state, effects: [{ kind: 'clearTimer' }] } : unchanged(state);
    case 'becameReady':
      if (phase.kind !== 'starting') return unchanged(state);
      return enter(state, { kind: 'ready', readySince: now }, [stableTimer(state, context)]);
    case 'endedByProbe':
      return phase.kind === 'starting' ? endGroup(state, 'wake') : unchanged(state);
    case 'suspected':
      return phase.kind === 'ready' ? enter(state, { ...phase, kind: 'suspect' }) : unchanged(state);
    case 'cleared':
      if (phase.kind !== 'suspect') return unchanged(state);
      return enter(state, { ...phase, kind: 'ready' }, [stableTimer(state, context)]);
    case 'stableReached':
      if (phase.kind !== 'ready') return unchanged(state);
      return { state: { ...forgive(state), lastFailure: undefined }, effects: [] };
    case 'startFailed':
      if (phase.kind !== 'starting') return unchanged(state);
      return event.fault === 'server'
        ? fail(state, { reason: event.reason }, context)
        : failWithoutFault({ ...state, countsAsRestart: false }, event, event.fault, context);
    case 'lost':
      return onLost(state, event, context);
    case 'startTimedOut':
      return phase.kind === 'starting' ? fail(state, { reason: 'start-timeout' }, context) : unchanged(state);
    case 'foundUnfit':
      return isUp(phase) ? fail(state, { reason: event.reason, isUnfit: true }, context) : unchanged(state);
    case 'exited':
      return onExited(state, event.exit, context);
    case 'groupGone':
      return onGroupGone(state, context);
    case 'retryDue':
      return onRetryDue(state, context);
  }
}

function onStartRequested(state: ChildState, context: TransitionContext): Transition {
  const isDown = state.phase.kind === 'stopped' || state.phase.kind === 'idle';
  if (isDown) return launch(forgive(state), context);
  if (state.phase.kind === 'stopping') return endGroup(forgive(state), 'launch');
  return unchanged(state);
}

function onRestartRequested(state: ChildState, context: TransitionContext): Transition {
  if (state.phase.kind === 'installing') return unchanged(state);
  const forgiven = forgive(state);
  return mayHaveGroup(state.phase) ? endGroup(forgiven, 'launch') : relaunch(forgiven, context);
}

function forgive(state: ChildState): ChildState {
  return { ...state, consecutiveFailures: 0, setbacks: 0 };
}

function onStopRequested(state: ChildState): Transition {
  if (state.phase.kind === 'stopped') return unchanged(state);
  return mayHaveGroup(state.phase) ? endGroup(state, 'stopped') : enter(state, { kind: 'stopped' });
}

/** The child is not needed. It has not failed, and the next demand launches it. */
function onRestRequested(state: ChildState): Transition {
  if (state.phase.kind === 'ready') return endGroup(state, 'idle');
  return state.phase.kind === 'stopped' ? enter(state, { kind: 'idle' }) : unchanged(state);
}

function onDemanded(state: ChildState, context: TransitionContext): Transition {
  const { phase } = state;
  switch (phase.kind) {
    case 'idle':
      return hurried(launch(state, context));
    case 'starting':
      return { state, effects: [{ kind: 'hurry' }] };
    case 'stopping':
      return phase.next === 'idle' ? enter(state, { kind: 'stopping', next: 'wake' }) : unchanged(state);
    case 'parked':
    case 'blocked':
      // Ignores demands until `demandEveryMs` after the latest failure, because a start so soon would probably fail again.
      if (context.now - phase.enteredAt < context.spec.restart.demandEveryMs) return unchanged(state);
      return onRetryDue(state, context);
    case 'offline':
    case 'stopped':
    case 'installing':
    case 'ready':
    case 'suspect':
    case 'backoff':
      return unchanged(state);
  }
}

function hurried({ state, effects }: Transition): Transition {
  return { state, effects: [...effects, { kind: 'hurry' }] };
}

function onExited(state: ChildState, exit: ChildExit, context: TransitionContext): Transition {
  const noted = { ...state, lastExit: { ...exit, at: context.now } };
  return isUp(state.phase) ? fail(noted, { reason: 'exited', ...exit }, context) : { state: noted, effects: [] };
}

function onGroupGone(state: ChildState, context: TransitionContext): Transition {
  const { phase } = state;
  switch (phase.kind) {
    case 'stopping':
      return onStopped(state, phase.next, context);
    case 'backoff':
    case 'offline':
    case 'blocked':
    case 'parked':
      if (phase.awaiting === 'group-gone') return relaunch(state, context);
      return phase.awaiting === 'both' ? enter(state, { ...phase, awaiting: 'retry-time' }) : unchanged(state);
    case 'stopped':
    case 'installing':
    case 'idle':
    case 'starting':
    case 'ready':
    case 'suspect':
      return unchanged(state);
  }
}

function onStopped(state: ChildState, next: AfterStop, context: TransitionContext): Transition {
  switch (next) {
    case 'launch':
      return relaunch(state, context);
    case 'wake':
      return hurried(launch(state, context));
    case 'idle':
    case 'stopped':
      return enter(state, { kind: next });
  }
}

function onRetryDue(state: ChildState, context: TransitionContext): Transition {
  const { phase } = state;
  if (!('awaiting' in phase)) return unchanged(state);
  if (phase.awaiting === 'retry-time') return relaunch(state, context);
  return phase.awaiting === 'both' ? enter(state, { ...phase, awaiting: 'group-gone' }) : unchanged(state);
}

const NO_EXIT: ChildExit = { code: null, signal: null };

function fail(state: ChildState, failure: ChildFailure & Partial<ChildExit>, context: TransitionContext): Transition {
  const { now, random } = context;
  const { restart } = context.spec;
  const consecutiveFailures = state.consecutiveFailures + 1;
  const failed = { ...state, consecutiveFailures, lastFailure: { ...NO_EXIT, ...failure, at: now } };
  if (consecutiveFailures < restart.budget) {
    return enterBackoff(failed, now, backoffDelayMs(consecutiveFailures - 1, restart, random));
  }
  const beyondBudget = consecutiveFailures - restart.budget;
  const probeMs = Math.min(restart.parkedProbeMs * 2 ** beyondBudget, restart.parkedProbeMaxMs);
  return enter(
    failed,
    { kind: 'parked', enteredAt: now, retryAt: now + probeMs, awaiting: 'both' },
    endAndRetry(state, probeMs),
  );
}

/** Leaves `consecutiveFailures` as it is, because the child did not fail. */
function failWithoutFault(
  state: ChildState,
  { reason, retryAfterMs = 0 }: { readonly reason: string; readonly retryAfterMs?: number | undefined },
  fault: Exclude<LaunchFault, 'server'>,
  { now, random }: TransitionContext,
): Transition {
  const failed = { ...state, lastFailure: { reason, ...NO_EXIT, at: now, fault } };
  const { generation, setbacks } = state;
  switch (fault) {
    case 'host':
      return enterBackoff(failed, now, HOST_FAULT_DELAY_MS);
    case 'network':
      return enterOffline(failed, now, NETWORK_DELAY_MS);
    case 'trouble': {
      const delayMs = backoffDelayMs(setbacks, TROUBLE_RETRY, random);
      const wantedMs = Math.min(retryAfterMs, MAX_RETRY_AFTER_MS);
      return enterOffline({ ...failed, setbacks: setbacks + 1 }, now, Math.max(delayMs, wantedMs));
    }
    case 'blocked':
      return enter(failed, { kind: 'blocked', enteredAt: now, awaiting: 'both' }, [{ kind: 'endGroup', generation }]);
  }
}

/**
 * Handles the end of a connection, which does not count as a failure. Follows a server that has moved at once, and replaces a
 * forgotten session at once. If the server forgets the next session soon, too, a growing delay begins, because it may forget every one.
 */
function onLost(
  state: ChildState,
  event: Extract<ChildEvent, { kind: 'lost' }>,
  context: TransitionContext,
): Transition {
  const { phase } = state;
  const { now, random } = context;
  if (!isUp(phase)) return unchanged(state);
  if (event.fault === 'moved') return endGroup(state, 'wake');
  const wasUseful = 'readySince' in phase && now - phase.readySince >= USEFUL_SESSION_MS;
  const setbacks = wasUseful ? 0 : state.setbacks;
  const { fault, reason } = event;
  if (fault !== 'server') return failWithoutFault({ ...state, setbacks }, { reason }, fault, context);
  const next = { ...state, setbacks: setbacks + 1 };
  if (setbacks === 0) return endGroup(next, 'wake');
  const failed = { ...next, lastFailure: { reason, ...NO_EXIT, at: now, isUnfit: true } };
  return enterBackoff(failed, now, backoffDelayMs(setbacks - 1, TROUBLE_RETRY, random));
}

/** Parks the child with the delays of `INSTALL_RETRY`. Counts no failure and awaits no group, because nothing was started. */
function failInstall(state: ChildState, reason: string, { now, random }: TransitionContext): Transition {
  const installFailures = state.installFailures + 1;
  const delayMs = backoffDelayMs(installFailures - 1, INSTALL_RETRY, random);
  return enter(
    { ...state, installFailures, lastFailure: { reason, ...NO_EXIT, at: now } },
    { kind: 'parked', enteredAt: now, retryAt: now + delayMs, awaiting: 'retry-time' },
    [timer(delayMs, { kind: 'retryDue', generation: state.generation })],
  );
}

function enterOffline(state: ChildState, now: number, delayMs: number): Transition {
  return enter(state, { kind: 'offline', retryAt: now + delayMs, awaiting: 'both' }, endAndRetry(state, delayMs));
}

function enterBackoff(state: ChildState, now: number, delayMs: number): Transition {
  return enter(state, { kind: 'backoff', retryAt: now + delayMs, awaiting: 'both' }, endAndRetry(state, delayMs));
}

/** Ends the group in any case, because a child that exited may have left members of the group behind. */
function endAndRetry({ generation }: ChildState, delayMs: number): ChildEffect[] {
  return [{ kind: 'endGroup', generation }, timer(delayMs, { kind: 'retryDue', generation })];
}

function relaunch(state: ChildState, context: TransitionContext): Transition {
  // Counts no restart if the package is missing, or if the latest launch failed by no fault of the child, because the child did not run.
  const isRestart = context.spec.missing === undefined && state.countsAsRestart;
  const restarts = isRestart ? state.restarts + 1 : state.restarts;
  return launch({ ...state, restarts }, context);
}

function launch(state: ChildState, { spec, now }: TransitionContext): Transition {
  if (spec.missing !== undefined) return enter(state, { kind: 'installing', since: now }, [{ kind: 'install' }]);
  const generation = state.generation + 1;
  return enter({ ...state, generation, countsAsRestart: true }, { kind: 'starting', spawnedAt: undefined }, [
    { kind: 'launch', generation },
  ]);
}

function endGroup(state: ChildState, next: AfterStop): Transition {
  const effects: ChildEffect[] = [{ kind: 'endGroup', generation: state.generation }];
  const isUnderWay = state.phase.kind === 'stopping' && state.phase.next === next;
  return isUnderWay ? { state, effects } : enter(state, { kind: 'stopping', next }, effects);
}

function enter(state: ChildState, phase: ChildPhase, effects: readonly ChildEffect[] = []): Transition {
  return { state: { ...state, phase }, effects };
}

function unchanged(state: ChildState): Transition {
  return { state, effects: [] };
}

function timer(delayMs: number, event: ChildEvent): ChildEffect {
  return { kind: 'setTimer', delayMs, event };
}

/** The child counts as stable only after it was ready, and not suspect, for the whole time. */
function stableTimer({ generation }: ChildState, { spec }: TransitionContext): ChildEffect {
  return timer(spec.restart.stableAfterMs, { kind: 'stableReached', generation });
}

/** Whether the child should run, so that its end is a failure. */
function isUp(phase: ChildPhase): boolean {
  return phase.kind === 'starting' || phase.kind === 'ready' || phase.kind === 'suspect';
}

function mayHaveGroup(phase: ChildPhase): boolean {
  switch (phase.kind) {
    case 'stopped':
    case 'installing':
    case 'idle':
      return false;
    case 'backoff':
    case 'offline':
    case 'blocked':
    case 'parked':
      return phase.awaiting !== 'retry-time';
    case 'starting':
    case 'ready':
    case 'suspect':
    case 'stopping':
      return true;
  }
}

interface BackoffOptions {
  readonly firstDelayMs: number;
  readonly maxDelayMs: number;
}

/** Largest random deviation, as a share of the delay, so that servers that failed together do not restart together. */
const JITTER = 0.2;

/**
 * The delay before the next attempt, in milliseconds. It doubles with each attempt up to `maxDelayMs`. A random deviation of
 * up to ±20 % is added after that, so a limit of 30 s can become 36 s.
 *
 * @param attempt counts from 0
 * @param random yields numbers in [0, 1)
 */
export function backoffDelayMs(
  attempt: number,
  { firstDelayMs, maxDelayMs }: BackoffOptions,
  random: () => number,
): number {
  const delayMs = Math.min(firstDelayMs * 2 ** attempt, maxDelayMs);
  return delayMs * (1 + JITTER * (2 * random() - 1));
}
