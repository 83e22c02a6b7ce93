import type { UpstreamConnection } from '../../upstream/port.js';

/** A client's notification that waits for a process. No process has seen it. */
export interface HeldNotification {
  readonly byteLength: number;
  /** Sends the notification, if its client is still there. */
  readonly send: (connection: UpstreamConnection) => void;
}

interface Queued extends HeldNotification {
  readonly arrival: number;
  readonly dueAt: number;
}

const MAX_NOTIFICATIONS = 256;
const MAX_BYTES = 1024 * 1024;

/** Notifications that came while no process ran, in their order. Beyond the limits, new ones are dropped. */
export class HeldNotifications {
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
