import type { FailureReason } from '../../downstream/failure.js';
import type { DownstreamClient, Exchange } from '../../downstream/port.js';
import type { SharedLimit } from '../../io/shared-limit.js';
import type { Clock } from '../../timing/clock.js';
import { Deadlines } from '../../timing/deadlines.js';
import type { UpstreamConnection } from '../../upstream/port.js';
import { type AttemptContext, isInteractive, needsNoSlot } from './attempt.js';
import { type Availability, connectionOf, waitReason } from './availability.js';
import type { Call, CallLimits, Stage } from './call.js';
import { ConcurrencyLimit } from './concurrency-limit.js';

interface AdmissionOptions {
  readonly clock: Clock;
  readonly limits: CallLimits;
  /** Counts the waiting calls of all servers together. */
  readonly allWaiting?: SharedLimit | undefined;
  readonly availability: () => Availability;
  /** Why no call may be sent now, such as an open circuit breaker. */
  readonly refusal: () => FailureReason | undefined;
  /** Sends an admitted call. The call holds its slot until `leave`. */
  readonly start: (call: Call, connection: UpstreamConnection) => void;
  /** Answers a call that will not be sent now. `sent` is whether an earlier process may have seen it. */
  readonly fail: AttemptContext['fail'];
  /** A client cancelled a call that waited. */
  readonly onCancelled: () => void;
}

/** How long a call waits for a restart. For the first start of a server, a call waits as long as for an answer. */
const RESTART_WAIT_MS = 5_000;

/**
 * Limit of the requests that take no slot: those that wait for a task result, which cost the server no work, and lists,
 * which must not wait for long calls.
 */
const MAX_WITHOUT_SLOT = 256;

/**
 * Decides when a call may be sent to its server.
 *
 * A call takes a slot of the concurrency limit. Then, if the server needs that, it waits until no call of another
 * client is in flight. Then it waits for a connection. Each wait ends with admission, a timeout, the client's
 * cancellation, or the server becoming unavailable.
 */
export class Admission {
  readonly #options: AdmissionOptions;
  readonly #limit: ConcurrencyLimit;
  readonly #deadlines: Deadlines<Call>;
  /** Waiting calls of every stage, in order of arrival. */
  readonly #waiting = new Set<Call>();
  readonly #connectionWaits: ConnectionWaits;
  readonly #held = new HeldNotifications();
  #limits: CallLimits;
  #exclusive: ExclusiveClient<Call> | undefined;
  #withoutSlot = 0;

  constructor(options: AdmissionOptions) {
    const { clock, limits, allWaiting, availability } = options;
    this.#options = options;
    this.#limits = limits;
    this.#limit = new ConcurrencyLimit({ ...limits, allWaiting });
    this.#connectionWaits = new ConnectionWaits(clock, availability);
    this.#deadlines = new Deadlines(clock, (call) => this.#giveUp(call, undefined));
  }

  /** Number of waiting calls. */
  get queued(): number {
    return this.#waiting.size;
  }

  /** Whether a call waits at any stage, or `untilConnected` waits for a connection. */
  get isAwaited(): boolean {
    return this.#waiting.size > 0 || this.#connectionWaits.size > 0;
  }

  /** Whether calls or notifications wait for the next connection. */
  get hasBacklog(): boolean {
    return connectionOf(this.#options.availability()) === undefined && this.#waiting.size + this.#held.size > 0;
  }

  /** Sends a notification over the next connection, in its place among the calls that wait for it, and as long. */
  hold(notification: HeldNotification): void {
    if (this.#options.availability().reach.kind !== 'expected') return;
    const dueAt = this.#options.clock.now() + this.#connectionWaitMs(false);
    this.#held.add(notification, dueAt);
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

  /** Sends the call as soon as it is admitted, which may be at once. */
  enter(call: Call): void {
    if (needsNoSlot(call.exchange)) {
      this.#enterWithoutSlot(call);
    } else if (this.#limit.takeDirect()) {
      call.slot = 'direct';
      this.#slotGranted(call);
    } else {
      this.#queue(call);
    }
  }

  /** Sends a call again after its connection ended. The call still holds its slot. */
  retry(call: Call): void {
    this.#connect(call);
  }

  /** Releases the slot and the exclusive access of the call. Calling it again does nothing. */
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
    if (call.isWithoutSlot) {
      call.isWithoutSlot = false;
      this.#withoutSlot -= 1;
    }
  }

  /** Call this after each change of the server's availability. Sends or fails the calls that waited for it. */
  availabilityChanged(): void {
    const { reach } = this.#options.availability();
    if (reach.kind === 'connected') {
      for (const call of [...this.#waiting]) {
        if (call.stage !== 'connection') continue;
        this.#held.sendBefore(call.arrival, reach.connection, this.#options.clock.now());
        this.#endWait(call);
        this.#connect(call);
      }
      this.#held.sendBefore(Number.POSITIVE_INFINITY, reach.connection, this.#options.clock.now());
    } else if (reach.kind === 'unavailable') {
      this.#held.clear();
      for (const call of [...this.#waiting]) this.#giveUp(call, reach.reason);
    }
    if (reach.kind === 'connected' || reach.kind === 'unavailable') this.#connectionWaits.settle();
  }

  /** Like `ConnectionWaits.untilConnected`. */
  untilConnected(waitMs: number): Promise<FailureReason | undefined> {
    return this.#connectionWaits.untilConnected(waitMs);
  }

  /** Removes all waiting calls. Returns the exchanges of those that no process has seen; the other calls fail. */
  takeUnsent(): Exchange[] {
    const unsent: Exchange[] = [];
    this.#held.clear();
    // The latest call first: none that leaves lets one behind it in.
    for (const call of [...this.#waiting].reverse()) {
      if (call.earlier !== undefined) {
        this.#giveUp(call, undefined);
        continue;
      }
      this.#stopWaiting(call);
      this.leave(call);
      unsent.push(call.exchange);
    }
    return unsent.reverse();
  }

  close(): void {
    this.#deadlines.close();
  }

  #enterWithoutSlot(call: Call): void {
    if (this.#withoutSlot >= MAX_WITHOUT_SLOT) {
      this.#options.fail(call.exchange, 'queue_full', false);
      return;
    }
    this.#withoutSlot += 1;
    call.isWithoutSlot = true;
    this.#connect(call);
  }

  #queue(call: Call): void {
    const slot = this.#limit.enter((granted) => {
      if (call.stage === 'slot') this.#endWait(call);
      call.slot = granted;
      this.#slotGranted(call);
    });
    if (typeof slot === 'string') {
      this.#options.fail(call.exchange, slot, false);
    } else if (slot.isWaiting) {
      call.slot = slot;
      this.#wait(call, 'slot', this.#limits.maxWaitMs);
    }
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
    this.#wait(call, 'connection', this.#connectionWaitMs(call.earlier !== undefined));
  }

  #connectionWaitMs(isRepeated: boolean): number {
    const { reach } = this.#options.availability();
    const isFirstStart = reach.kind === 'expected' && reach.reason !== 'restarting' && !isRepeated;
    return isFirstStart ? this.#limits.timeoutMs : RESTART_WAIT_MS;
  }

  #wait(call: Call, stage: Stage, forMs: number): void {
    call.stage = stage;
    call.arrival = this.#held.nextArrival();
    call.dueAt = this.#options.clock.now() + forMs;
    this.#waiting.add(call);
    this.#deadlines.watch(call);
    call.exchange.onCancel(() => {
      if (!this.#waiting.has(call)) return;
      this.#stopWaiting(call);
      this.#options.onCancelled();
      this.leave(call);
    });
  }

  /** The call goes on, because it got what it waited for. */
  #endWait(call: Call): void {
    this.#stopWaiting(call);
    call.stage = 'none';
  }

  /** The call keeps its stage, from which `leave` learns what to release. */
  #stopWaiting(call: Call): void {
    this.#waiting.delete(call);
    this.#deadlines.unwatch(call);
  }

  /** Ends the wait of the call with a failure: for this reason or, without a reason, because the wait was too long. */
  #giveUp(call: Call, reason: FailureReason | undefined): void {
    this.#stopWaiting(call);
    this.#fail(call, reason);
    this.leave(call);
  }

  #fail({ exchange, stage, earlier }: Call, reason: FailureReason | undefined): void {
    const { fail, availability } = this.#options;
    if (stage !== 'connection') fail(exchange, reason ?? 'queue_timeout', false);
    else if (earlier !== undefined) fail(exchange, 'child_exited', true, earlier);
    else fail(exchange, reason ?? waitReason(availability()), false);
  }
}

/**
 * Admits the calls of one client at a time, for a server that sends requests to its callers. With calls of two clients
 * in flight, the gateway could not tell which client a server request is for.
 *
 * The admitted client keeps the server until its last call is done. While any call waits, new calls queue behind it.
 */
export class ExclusiveClient<WaitingCall extends ExclusiveCall> {
  readonly #waiting = new Set<WaitingCall>();
  readonly #onAdmitted: (call: WaitingCall) => void;
  #client: DownstreamClient | undefined;
  #calls = 0;

  /** `onAdmitted` is called for a call that had to wait. */
  constructor(onAdmitted: (call: WaitingCall) => void) {
    this.#onAdmitted = onAdmitted;
  }

  /** Admits the call now if possible, and queues it otherwise. Returns whether it was admitted. */
  enter(call: WaitingCall): boolean {
    const isFree = this.#calls === 0 || (this.#client === call.client && this.#waiting.size === 0);
    if (isFree) this.#admit(call);
    else this.#waiting.add(call);
    return isFree;
  }

  /** Removes a waiting call. This may admit the calls behind it, if they belong to the admitted client. */
  withdraw(call: WaitingCall): void {
    if (this.#waiting.delete(call)) this.#admitNext();
  }

  /** Ends an admitted call. */
  leave(): void {
    this.#calls -= 1;
    this.#admitNext();
  }

  #admitNext(): void {
    for (const call of this.#waiting) {
      if (this.#calls > 0 && call.client !== this.#client) return;
      this.#waiting.delete(call);
      this.#admit(call);
      this.#onAdmitted(call);
    }
  }

  #admit({ client }: WaitingCall): void {
    this.#client = client;
    this.#calls += 1;
  }
}

/** A client's notification that waits for a process. No process has seen it. */
export interface HeldNotification {
  readonly byteLength: number;
  /** Sends the notification, if its client is still there. */
  readonly send: (connection: UpstreamConnection) => void;
}

/** Waits for a connection to a server without a call, such as those of the gateway's own list requests. */
class ConnectionWaits {
  readonly #clock: Clock;
  readonly #availability: () => Availability;
  readonly #waits = new Set<() => void>();

  constructor(clock: Clock, availability: () => Availability) {
    this.#clock = clock;
    this.#availability = availability;
  }

  get size(): number {
    return this.#waits.size;
  }

  /**
   * Resolves with `undefined` once there is a connection. Resolves with a reason if no connection will come, or if none
   * came within `waitMs` milliseconds.
   */
  untilConnected(waitMs: number): Promise<FailureReason | undefined> {
    return new Promise((resolve) => {
      const settle = () => {
        cancel();
        this.#waits.delete(settle);
        const now = this.#availability();
        resolve(connectionOf(now) === undefined ? waitReason(now) : undefined);
      };
      const cancel = this.#clock.schedule(waitMs, settle);
      this.#waits.add(settle);
    });
  }

  /** Ends all waits. Call this when there is a connection, or when none will come. */
  settle(): void {
    for (const settle of this.#waits) settle();
  }
}

/** A call that may wait until the calls of another client are done. */
interface ExclusiveCall {
  readonly client: DownstreamClient;
}

interface Queued extends HeldNotification {
  readonly arrival: number;
  readonly dueAt: number;
}

const MAX_NOTIFICATIONS = 256;

const MAX_BYTES = 1024 * 1024;

/** Notifications that came while no process ran, in their order. Beyond the limits, new ones are dropped. */
class HeldNotifications {
  #queued: Queued[] = [];
  #bytes = 0;
  #arrivals = 0;

  get size(): number {
    return this.#queued.length;
  }

  /** The place of what arrives now, among notifications and calls. */
  nextArrival(): number {
    this.#arrivals += 1;
    return this.#arrivals;
  }

  /** Queues a notification. It is too old to be sent from `dueAt` on, in milliseconds on the clock. */
  add(notification: HeldNotification, dueAt: number): void {
    const bytes = this.#bytes + notification.byteLength;
    if (this.#queued.length >= MAX_NOTIFICATIONS || bytes > MAX_BYTES) return;
    this.#bytes = bytes;
    this.#queued.push({ ...notification, dueAt, arrival: this.nextArrival() });
  }

  /** Sends those that arrived before `arrival`, except those that are too old. */
  sendBefore(arrival: number, connection: UpstreamConnection, now: number): void {
    const count = this.#queued.findIndex((each) => each.arrival >= arrival);
    for (const { send, byteLength, dueAt } of this.#queued.splice(0, count < 0 ? this.#queued.length : count)) {
      this.#bytes -= byteLength;
      if (now < dueAt) send(connection);
    }
  }

  clear(): void {
    this.#queued = [];
    this.#bytes = 0;
  }
}
