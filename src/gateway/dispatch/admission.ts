import PQueue from 'p-queue';
import type { FailureReason } from '../../downstream/failure.js';
import type { Exchange } from '../../downstream/port.js';
import type { CallLimits } from '../../spec/server-rules.js';
import type { UpstreamConnection } from '../../upstream/upstream-connection.js';
import { SharedLimit } from '../../wire/io/shared-limit.js';
import { requestedList } from '../../wire/mcp/methods.js';
import type { Clock } from '../../wire/timing/clock.js';
import { Deadlines, type Due } from '../../wire/timing/deadlines.js';
import type { Availability } from './availability.js';
import { Call, type CallHost, type Stage } from './call.js';
import { isInteractive, isTaskResultWait } from './in-flight-calls.js';

interface AdmissionHost {
  readonly limits: CallLimits;
  readonly fail: CallHost['fail'];
  readonly options: {
    readonly clock: Clock;
    readonly waiting?: SharedLimit | undefined;
  };
  readonly availability: Availability;
  /** Reason why no call may be sent now, such as an open circuit breaker. */
  readonly refusal: FailureReason | undefined;
}

/** Longest wait of a call for a restart. For the first start of a server, a call waits at most `CallLimits.timeoutMs`. */
const RESTART_WAIT_MS = 5_000;

/**
 * Limit of the requests that need no slot: task-result waits, because they cost the server no work, and requests for lists,
 * because they must not wait for calls.
 */
const MAX_WITHOUT_SLOT = 256;

/** Limits of the notifications that wait for a connection. Beyond them, new ones are dropped. */
const MAX_NOTIFICATIONS = 256;
const MAX_NOTIFICATION_BYTES = 1024 * 1024;

/**
 * Decides when a call may be sent to its server.
 *
 * A call takes a slot of the concurrency limit. At a server that sends requests to its callers, it then waits until no call of another
 * client is in flight. Then it waits for a connection. Each wait ends when the call is admitted, when its time is over, when the client
 * cancels the call, or when the server becomes unavailable. Notifications and readers of lists wait for a connection only.
 */
export class Admission {
  readonly #host: AdmissionHost;
  readonly #limit: ConcurrencyLimit<Call>;
  readonly #deadlines: Deadlines<Call | ConnectionWait>;
  /** Calls, notifications and readers that wait, at any stage. Those at one stage are in order of their arrival there. */
  readonly #waiting = new Set<Call | ConnectionWait>();
  #exclusive: ExclusiveClient | undefined;
  #withoutSlot = 0;

  constructor(host: AdmissionHost) {
    const { clock, waiting } = host.options;
    this.#host = host;
    this.#limit = new ConcurrencyLimit({
      ...host.limits,
      allWaiting: waiting,
      onSlot: (call, release) => this.#slotGranted(call, release),
    });
    this.#deadlines = new Deadlines(clock, (each) => this.#giveUp(each, undefined));
  }

  get queued(): number {
    return [...this.#waiting].filter((each) => each instanceof Call).length;
  }

  /** Whether a call waits at any stage, or a reader of lists waits for a connection. */
  get isAwaited(): boolean {
    return [...this.#waiting].some((each) => each instanceof Call || each.byteLength === undefined);
  }

  /** Whether there is no connection while calls or notifications wait. */
  get hasBacklog(): boolean {
    const isConnected = this.#host.availability.connection !== undefined;
    return !isConnected && [...this.#waiting].some((each) => each instanceof Call || each.byteLength !== undefined);
  }

  /**
   * Sends a notification over the next connection, in order with the waiting calls. Drops the notification if no connection
   * is expected, if none comes in time, or beyond the limits.
   */
  hold(byteLength: number, send: (connection: UpstreamConnection) => void): void {
    const { connection: open, failReason } = this.#host.availability;
    if (open !== undefined || failReason !== undefined) return;
    const held = [...this.#waiting].flatMap((each) => (each instanceof Call ? [] : (each.byteLength ?? [])));
    const bytes = held.reduce((sum, each) => sum + each, byteLength);
    if (held.length >= MAX_NOTIFICATIONS || bytes > MAX_NOTIFICATION_BYTES) return;
    const end = (connection: UpstreamConnection | FailureReason) => {
      if (typeof connection !== 'string') send(connection);
    };
    this.#wait({ stage: 'none', dueAt: 0, byteLength, end }, 'connection', this.#connectionWaitMs(false));
  }

  /** Resolves with `undefined` once a connection is open, or with the reason if none opened within `waitMs` milliseconds. */
  untilConnected(waitMs: number): Promise<FailureReason | undefined> {
    return new Promise((resolve) => {
      const end = (reason: UpstreamConnection | FailureReason) =>
        resolve(typeof reason === 'string' ? reason : undefined);
      this.#wait({ stage: 'none', dueAt: 0, end }, 'connection', waitMs);
    });
  }

  /** A process has completed its handshake. Admits the readers of lists; calls wait until the lists are read. */
  opened(connection: UpstreamConnection): void {
    for (const each of [...this.#waiting]) {
      if (each instanceof Call || each.byteLength !== undefined) continue;
      this.#endWait(each);
      each.end(connection);
    }
  }

  /** Applies the present limits of the host. The deadlines of waiting calls do not change. */
  configure(): void {
    this.#limit.configure(this.#host.limits);
  }

  /** Admits the calls that may make the server send a request from one client at a time, from now on. */
  serveOneClientAtATime(): void {
    this.#exclusive ??= new ExclusiveClient();
  }

  /** Admits the call and sends it, at once or later. */
  enter(call: Call): void {
    if (!needsNoSlot(call.exchange)) {
      const verdict = this.#limit.enter(call);
      if (verdict === 'waits') this.#wait(call, 'slot', this.#host.limits.maxWaitMs);
      else if (verdict !== 'granted') this.#host.fail(call.exchange, verdict, false);
    } else if (this.#withoutSlot >= MAX_WITHOUT_SLOT) {
      this.#host.fail(call.exchange, 'queue_full', false);
    } else {
      this.#withoutSlot += 1;
      call.release = this.#releaseWithoutSlot;
      this.connect(call);
    }
  }

  /** Sends a call over the present connection or the next one. The call must hold its slot. */
  connect(call: Call): void {
    const { connection, waitReason, failReason } = this.#host.availability;
    call.stage = 'none';
    if (waitReason !== undefined) this.#wait(call, 'connection', this.#connectionWaitMs(call.earlier !== undefined));
    else if (connection !== undefined) call.sendOver(connection);
    else {
      call.stage = 'connection';
      this.#fail(call, failReason);
    }
  }

  /** Releases the slot and the exclusive access of the call. Calling it again does nothing. */
  leave(call: Call): void {
    const { stage, release } = call;
    call.stage = 'none';
    call.release = undefined;
    if (stage === 'slot') this.#limit.withdraw(call);
    for (const next of this.#exclusive?.leave(call) ?? []) this.#exclusiveGranted(next);
    release?.();
  }

  withdraw(call: Call): boolean {
    if (!this.#waiting.has(call)) return false;
    this.#endWait(call);
    this.leave(call);
    return true;
  }

  /** Call this after each change of the server's availability. Sends or fails the calls that waited for the change. */
  availabilityChanged(): void {
    for (const each of [...this.#waiting]) {
      const { connection, waitReason, failReason } = this.#host.availability;
      if (!this.#waiting.has(each)) continue;
      if (failReason !== undefined) this.#giveUp(each, failReason);
      else if (connection !== undefined && waitReason === undefined && each.stage === 'connection') {
        this.#endWait(each);
        if (each instanceof Call) this.connect(each);
        else each.end(connection);
      }
    }
  }

  /** Ends the waits of calls and notifications. Returns the exchanges of the calls that no process has seen; the others fail. */
  takeUnsent(): Exchange[] {
    const unsent: Exchange[] = [];
    // The latest call leaves first, because the slot of an earlier call would admit a later one.
    for (const each of [...this.#waiting].reverse()) {
      if (each instanceof Call && each.earlier === undefined) {
        this.withdraw(each);
        unsent.push(each.exchange);
      } else if (each instanceof Call || each.byteLength !== undefined) this.#giveUp(each, undefined);
    }
    return unsent.reverse();
  }

  close(): void {
    this.#deadlines.close();
  }

  readonly #releaseWithoutSlot = (): void => {
    this.#withoutSlot -= 1;
  };

  #slotGranted(call: Call, release: () => void): void {
    const { exchange } = call;
    this.#endWait(call);
    call.stage = 'none';
    call.release = release;
    const refusal = exchange.isSettled ? undefined : this.#host.refusal;
    if (refusal !== undefined) this.#host.fail(exchange, refusal, false);
    if (exchange.isSettled) this.leave(call);
    else if (!isInteractive(exchange) || this.#exclusive?.enter(call) !== false) this.connect(call);
    else this.#wait(call, 'exclusive-client', this.#host.limits.maxWaitMs);
  }

  #exclusiveGranted(call: Call): void {
    this.#endWait(call);
    if (call.exchange.isSettled) this.leave(call);
    else this.connect(call);
  }

  #connectionWaitMs(isRepeated: boolean): number {
    const { connection, waitReason } = this.#host.availability;
    const isExpected = connection === undefined && waitReason !== undefined;
    const isFirstStart = isExpected && waitReason !== 'restarting' && !isRepeated;
    return isFirstStart ? this.#host.limits.timeoutMs : RESTART_WAIT_MS;
  }

  /** Reason for which no connection is usable now. */
  get #waitReason(): FailureReason {
    const { waitReason, failReason } = this.#host.availability;
    return waitReason ?? failReason ?? 'unresponsive';
  }

  #wait(each: Call | ConnectionWait, stage: Stage, forMs: number): void {
    each.stage = stage;
    each.dueAt = this.#host.options.clock.now() + forMs;
    this.#waiting.add(each);
    this.#deadlines.watch(each);
  }

  /** Removes a wait. Does not change the stage of a call, because `leave` decides by the stage. */
  #endWait(each: Call | ConnectionWait): void {
    this.#waiting.delete(each);
    this.#deadlines.unwatch(each);
  }

  /** Ends the wait with a failure. Without a reason, the failure is that the wait was too long. */
  #giveUp(each: Call | ConnectionWait, reason: FailureReason | undefined): void {
    this.#endWait(each);
    if (each instanceof Call) this.#fail(each, reason);
    else each.end(reason ?? this.#waitReason);
  }

  #fail(call: Call, reason: FailureReason | undefined): void {
    const { exchange, stage, earlier } = call;
    if (stage !== 'connection') this.#host.fail(exchange, reason ?? 'queue_timeout', false);
    else if (earlier !== undefined) this.#host.fail(exchange, 'child_exited', true, earlier);
    else this.#host.fail(exchange, reason ?? this.#waitReason, false);
    this.leave(call);
  }
}

/** Whether the request does not count toward the concurrency limit of the server. */
function needsNoSlot(exchange: Exchange): boolean {
  return isTaskResultWait(exchange) || requestedList(exchange.request.method) !== undefined;
}

/** A notification of a client, or a reader of lists, that waits for a connection. Neither needs a slot. */
interface ConnectionWait extends Due {
  stage: Stage;
  /** Length of a notification in bytes; `undefined` for a reader. */
  readonly byteLength?: number;
  /** Called with the connection, or with the reason if no connection opened. */
  readonly end: (end: UpstreamConnection | FailureReason) => void;
}

/**
 * Admits the calls of one client at a time, for a server that sends requests to its callers. With calls of two clients
 * in flight, the gateway could not tell which client a server request is for.
 *
 * The admitted client is served until its last call has ended. While any call waits, new calls queue behind it, also calls
 * of the admitted client.
 */
class ExclusiveClient {
  readonly #admitted = new Set<Call>();
  readonly #waiting = new Set<Call>();

  /** Admits the call now if possible, and queues it otherwise. Returns whether it was admitted. */
  enter(call: Call): boolean {
    const isFree = this.#waiting.size === 0 && this.#suits(call);
    (isFree ? this.#admitted : this.#waiting).add(call);
    return isFree;
  }

  /** Removes a call, admitted or not. Returns the waiting calls that are admitted now. */
  leave(call: Call): readonly Call[] {
    this.#admitted.delete(call);
    this.#waiting.delete(call);
    const next: Call[] = [];
    for (const each of this.#waiting) {
      if (!this.#suits(each)) break;
      this.#waiting.delete(each);
      this.#admitted.add(each);
      next.push(each);
    }
    return next;
  }

  #suits({ client }: Call): boolean {
    const [admitted] = this.#admitted;
    return admitted === undefined || admitted.client === client;
  }
}

interface ConcurrencyLimitOptions<Item> {
  /** Number of calls that may be in flight, and of those that may wait. */
  readonly concurrency: number;
  readonly maxQueued: number;
  readonly allWaiting?: SharedLimit | undefined;
  /** Called when a call gets its slot, which it must release once. */
  readonly onSlot: (call: Item, release: () => void) => void;
}

/** Number of withdrawn calls that may stay in p-queue, in addition to the number of waiting calls. */
const MAX_WITHDRAWN = 256;

/**
 * Limits the calls that are in flight to one server, and queues a bounded number of others in order of arrival.
 *
 * Uses p-queue: each call is a task, which ends when the call releases its slot. p-queue accepts any number of tasks, so
 * this class bounds the queue. As long as no call has to wait, calls are only counted, because a task would cost more than
 * the rest of the way through the gateway. When the first call has to wait, the counted calls become tasks.
 */
export class ConcurrencyLimit<Item> {
  readonly #queue: PQueue;
  readonly #allWaiting: SharedLimit;
  readonly #onSlot: ConcurrencyLimitOptions<Item>['onSlot'];
  #maxQueued: number;
  /** Number of calls in flight that are counted without a task of p-queue. */
  #direct = 0;
  /** Functions that end the tasks of the calls that began without a task. */
  readonly #ends: (() => void)[] = [];
  /** Waiting calls in order of arrival. Withdrawn calls are absent, although p-queue may still have their tasks. */
  readonly #waiting = new Set<Item>();

  constructor({ concurrency, maxQueued, allWaiting, onSlot }: ConcurrencyLimitOptions<Item>) {
    this.#queue = new PQueue({ concurrency });
    this.#maxQueued = maxQueued;
    this.#allWaiting = allWaiting ?? new SharedLimit(Number.POSITIVE_INFINITY);
    this.#onSlot = onSlot;
  }

  /** Number of calls that hold a slot. A released slot counts until p-queue passes it on, in a later microtask. */
  get running(): number {
    return this.#direct + this.#queue.pending;
  }

  get queued(): number {
    return this.#waiting.size;
  }

  /** Sets other limits. Calls beyond the new limits keep their slots or their places in the queue. */
  configure({ concurrency, maxQueued }: { readonly concurrency: number; readonly maxQueued: number }): void {
    this.#maxQueued = maxQueued;
    this.#queue.concurrency = concurrency;
  }

  /** Calls `onSlot` before it returns if a slot is free. Otherwise queues the call, unless a queue is full. */
  enter(call: Item): 'granted' | 'waits' | 'queue_full' | 'all_queues_full' {
    const queue = this.#queue;
    if (this.#direct < queue.concurrency && queue.pending + queue.size === 0) {
      this.#direct += 1;
      this.#onSlot(call, this.#releaseDirect);
      return 'granted';
    }
    for (; this.#direct > 0; this.#direct -= 1) this.#add((release) => this.#ends.push(release));
    if (queue.size === 0 && queue.pending < queue.concurrency) {
      this.#add((release) => this.#onSlot(call, release));
      return 'granted';
    }
    if (this.#waiting.size >= this.#maxQueued) return 'queue_full';
    if (!this.#allWaiting.tryAcquire(1)) return 'all_queues_full';
    this.#waiting.add(call);
    this.#addWaiting(call);
    return 'waits';
  }

  withdraw(call: Item): void {
    if (!this.#waiting.delete(call)) return;
    this.#allWaiting.release(1);
    if (this.#queue.size <= 2 * this.#waiting.size + MAX_WITHDRAWN) return;
    // While a server hangs, no slot becomes free, so the tasks of withdrawn calls would pile up.
    this.#queue.clear();
    for (const each of this.#waiting) this.#addWaiting(each);
  }

  #addWaiting(call: Item): void {
    this.#add((release) => {
      const isWaiting = this.#waiting.has(call);
      this.withdraw(call);
      if (isWaiting) this.#onSlot(call, release);
      else release();
    });
  }

  #add(begin: (release: () => void) => void): void {
    void this.#queue.add(() => new Promise<void>(begin));
  }

  readonly #releaseDirect = (): void => {
    const end = this.#ends.pop();
    if (end === undefined) this.#direct -= 1;
    else end();
  };
}
