import type { Exchange } from '../../downstream/exchange.js';
import type { FailureReason } from '../../downstream/failure.js';
import type { SharedLimit } from '../../io/shared-limit.js';
import type { Clock } from '../../timing/clock.js';
import { Deadlines } from '../../timing/deadlines.js';
import type { UpstreamConnection } from '../../upstream/port.js';
import { type Availability, connectionOf, unavailableBecause } from './availability.js';
import type { Call, CallLimits, Stage } from './call.js';
import { ConcurrencyLimit } from './concurrency-limit.js';
import { ExclusiveClient } from './exclusive-client.js';
import { isInteractive, isTaskResultWait } from './in-flight-calls.js';

export interface AdmissionOptions {
  readonly clock: Clock;
  readonly limits: CallLimits;
  /** Counts the waiting calls of all servers together. */
  readonly allWaiting?: SharedLimit | undefined;
  readonly availability: () => Availability;
  /** Why no call may be sent now, such as an open circuit breaker. */
  readonly refusal: () => FailureReason | undefined;
  /** Sends a call that was admitted. It holds its slot until `leave`. */
  readonly start: (call: Call, connection: UpstreamConnection) => void;
  /** Answers a call that will not be sent now. `sent` is whether an earlier process may have seen it. */
  readonly fail: (exchange: Exchange, reason: FailureReason, sent: boolean) => void;
  /** A client gave up a call that waited. */
  readonly onCancelled: () => void;
}

/** How long a call waits for a server that restarts. For a first start, it waits as long as for an answer. */
const RESTART_WAIT_MS = 5_000;

/** Requests that wait for the result of a task cost the server nothing, so they take no slot. */
const MAX_TASK_RESULT_WAITS = 256;

/**
 * Decides when a call may be sent to its server.
 *
 * A call takes a slot of the concurrency limit, then waits until no other client's call is in flight (where the server
 * needs that), then for a connection. Each of these waits has an end: admission, a timeout, the client's cancellation, or
 * that the server is given up.
 */
export class Admission {
  readonly #options: AdmissionOptions;
  readonly #limit: ConcurrencyLimit;
  readonly #deadlines: Deadlines<Call>;
  /** Calls that wait for anything, in order of arrival. */
  readonly #waiting = new Set<Call>();
  readonly #connectionWaits = new Set<() => void>();
  #limits: CallLimits;
  #exclusive: ExclusiveClient<Call> | undefined;
  #taskResultWaits = 0;

  constructor(options: AdmissionOptions) {
    const { clock, limits, allWaiting } = options;
    this.#options = options;
    this.#limits = limits;
    this.#limit = new ConcurrencyLimit({ ...limits, allWaiting });
    this.#deadlines = new Deadlines(clock, (call) => this.#giveUp(call, undefined));
  }

  /** Calls that wait. */
  get queued(): number {
    return this.#waiting.size;
  }

  /** Whether anybody waits for a connection or for a slot behind one. */
  get isAwaited(): boolean {
    return this.#waiting.size > 0 || this.#connectionWaits.size > 0;
  }

  /** Sets other limits. Calls that wait keep the deadlines they have. */
  configure(limits: CallLimits): void {
    this.#limits = limits;
    this.#limit.configure(limits);
  }

  /** From now on, calls that may make the server send a request come from one client at a time. */
  serveOneClientAtATime(): void {
    this.#exclusive ??= new ExclusiveClient((call) => this.#exclusiveGranted(call));
  }

  /** Sends the call as soon as it may be sent, at once if nothing is in its way. */
  enter(call: Call): void {
    if (isTaskResultWait(call.exchange)) {
      this.#enterTaskResultWait(call);
    } else if (this.#limit.takeDirect()) {
      call.slot = 'direct';
      this.#slotGranted(call);
    } else {
      this.#queue(call);
    }
  }

  /** Sends a call again that still holds its slot: its connection has ended. */
  retry(call: Call): void {
    this.#connect(call);
  }

  /** Gives back whatever the call holds. Calling it again does nothing. */
  leave(call: Call): void {
    const { slot } = call;
    call.slot = undefined;
    if (call.stage === 'exclusive-client') this.#exclusive?.withdraw(call);
    call.stage = 'none';
    if (call.isExclusive) {
      call.isExclusive = false;
      this.#exclusive?.leave();
    }
    if (slot === 'direct') this.#limit.releaseDirect();
    else slot?.release();
    if (call.isTaskResultWait) {
      call.isTaskResultWait = false;
      this.#taskResultWaits -= 1;
    }
  }

  /** The server's availability has changed: a connection is there, or none will come. */
  availabilityChanged(): void {
    const { reach } = this.#options.availability();
    if (reach.kind === 'connected') {
      for (const call of [...this.#waiting]) {
        if (call.stage !== 'connection') continue;
        this.#endWait(call);
        this.#connect(call);
      }
    } else if (reach.kind === 'unavailable') {
      for (const call of [...this.#waiting]) this.#giveUp(call, reach.reason);
    }
    if (reach.kind === 'connected' || reach.kind === 'unavailable')
      for (const settle of this.#connectionWaits) settle();
  }

  /** Resolves when a connection is there, or with why none will come, or why none came within `waitMs`. */
  untilConnected(waitMs: number): Promise<FailureReason | undefined> {
    const { availability, clock } = this.#options;
    return new Promise((resolve) => {
      const settle = () => {
        cancel();
        this.#connectionWaits.delete(settle);
        const now = availability();
        resolve(connectionOf(now) === undefined ? waitReason(now) : undefined);
      };
      const cancel = clock.schedule(waitMs, settle);
      this.#connectionWaits.add(settle);
    });
  }

  /** Ends the waits of all calls that no process has seen, and returns their exchanges. The other calls fail. */
  takeUnsent(): Exchange[] {
    const handed: Exchange[] = [];
    for (const call of [...this.#waiting]) {
      if (call.earlier !== undefined) {
        this.#giveUp(call, undefined);
        continue;
      }
      this.#endWait(call);
      this.leave(call);
      handed.push(call.exchange);
    }
    return handed;
  }

  close(): void {
    this.#deadlines.close();
  }

  #enterTaskResultWait(call: Call): void {
    if (this.#taskResultWaits >= MAX_TASK_RESULT_WAITS) {
      this.#options.fail(call.exchange, 'queue_full', false);
      return;
    }
    this.#taskResultWaits += 1;
    call.isTaskResultWait = true;
    this.#connect(call);
  }

  #queue(call: Call): void {
    const slot = this.#limit.wait(() => {
      this.#endWait(call);
      this.#slotGranted(call);
    });
    if (typeof slot === 'string') {
      this.#options.fail(call.exchange, slot, false);
      return;
    }
    call.slot = slot;
    this.#wait(call, 'slot', this.#limits.maxWaitMs);
  }

  #slotGranted(call: Call): void {
    const { exchange } = call;
    const refusal = exchange.isSettled ? undefined : this.#options.refusal();
    if (refusal !== undefined) this.#options.fail(exchange, refusal, false);
    if (exchange.isSettled) {
      this.leave(call);
      return;
    }
    const exclusive = this.#exclusive;
    if (exclusive === undefined || !isInteractive(exchange)) {
      this.#connect(call);
    } else if (exclusive.enter(call)) {
      call.isExclusive = true;
      this.#connect(call);
    } else {
      this.#wait(call, 'exclusive-client', this.#limits.maxWaitMs);
    }
  }

  #exclusiveGranted(call: Call): void {
    this.#endWait(call);
    call.isExclusive = true;
    if (call.exchange.isSettled) this.leave(call);
    else this.#connect(call);
  }

  #connect(call: Call): void {
    const { reach } = this.#options.availability();
    if (reach.kind === 'connected') {
      this.#options.start(call, reach.connection);
      return;
    }
    if (reach.kind === 'unavailable') {
      call.stage = 'connection';
      this.#fail(call, reach.reason);
      this.leave(call);
      return;
    }
    const isFirstStart = reach.kind === 'expected' && reach.reason !== 'restarting' && call.earlier === undefined;
    this.#wait(call, 'connection', isFirstStart ? this.#limits.idleTimeoutMs : RESTART_WAIT_MS);
  }

  #wait(call: Call, stage: Stage, forMs: number): void {
    call.stage = stage;
    call.dueAt = this.#options.clock.now() + forMs;
    this.#waiting.add(call);
    this.#deadlines.watch(call);
    call.exchange.onCancel(() => {
      if (!this.#waiting.has(call)) return;
      this.#waiting.delete(call);
      this.#deadlines.unwatch(call);
      this.#options.onCancelled();
      this.leave(call);
    });
  }

  #endWait(call: Call): void {
    this.#waiting.delete(call);
    this.#deadlines.unwatch(call);
    call.stage = 'none';
  }

  /** The call waits no longer: the server is given up for this reason or, without a reason, the wait was too long. */
  #giveUp(call: Call, reason: FailureReason | undefined): void {
    this.#waiting.delete(call);
    this.#deadlines.unwatch(call);
    this.#fail(call, reason);
    this.leave(call);
  }

  #fail({ exchange, stage, earlier }: Call, reason: FailureReason | undefined): void {
    const { fail, availability } = this.#options;
    if (stage !== 'connection') fail(exchange, reason ?? 'queue_timeout', false);
    else if (earlier !== undefined) fail(exchange, 'child_exited', true);
    else fail(exchange, reason ?? waitReason(availability()), false);
  }
}

/** Why there is no connection now. */
function waitReason(availability: Availability): FailureReason {
  const { reach } = availability;
  if (reach.kind === 'expected') return reach.reason;
  return unavailableBecause(availability) ?? 'unresponsive';
}
