import type { Cancel, Clock } from '../timing/clock.js';

/** What a read costs besides the work on its content, in milliseconds: to wake up, to read and to be called. */
export const READ_MS = 0.01;
/** What a byte costs besides the work on its line: to be read, and to be written to clients later. */
export const READ_MS_PER_BYTE = 0.0008 / 1024;

/** The part of the time that all accounts together may spend. */
const SHARE = 0.08;
/** What an account saves up while it spends nothing, in milliseconds. */
const BURST_MS = 10;
/** A single charge that the machine made longer, such as one that another process interrupted, pauses no longer. */
const MAX_DEBT_MS = 250;
/** Shorter pauses would cost more than they save. */
const MIN_PAUSE_MS = 4;
/** A flood that lasts for so long is reported. */
const ENDLESS_MS = 60_000;
/** A flood is over when there was no pause for so long. */
const REST_MS = 1_000;

export interface WorkAccountListener {
  /** The account is in debt: its owner must cause no more work. */
  pause(): void;
  /** The debt is repaid. */
  resume(): void;
  /** The account has been in debt again and again for a minute, without a second of rest. Called once. */
  endless(): void;
}

/**
 * The time that the gateway spends on output of servers that answers nothing: blank lines, log lines, notifications.
 *
 * Each server has an account. Its work is measured and charged, and while the account is in debt, nobody reads what the
 * server writes. So a flood waits in the pipe and in the server instead of delaying its neighbors. All accounts live on
 * one income, a share of the time that passes, which is divided evenly among those that are not full. Five floods
 * therefore take no more time than one.
 */
export class WorkBudget {
  readonly #clock: Clock;
  /** The accounts that are not full. */
  readonly #needy = new Set<WorkAccount>();
  readonly #paused = new Set<WorkAccount>();
  #paidAt = 0;
  #cancelTimer: Cancel = () => {};
  #timerAt = Number.POSITIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  account(listener: WorkAccountListener): WorkAccount {
    return new WorkAccount(this.#clock, listener, {
      spent: (account) => this.#spent(account),
      closed: (account) => this.#closed(account),
    });
  }

  #closed(account: WorkAccount): void {
    this.#needy.delete(account);
    this.#paused.delete(account);
    if (this.#paused.size > 0) return;
    this.#cancelTimer();
    this.#timerAt = Number.POSITIVE_INFINITY;
  }

  #spent(account: WorkAccount): void {
    const now = this.#clock.now();
    this.#pay(now);
    this.#needy.add(account);
    account.settle(now);
    if (!account.isPaused) return;
    this.#paused.add(account);
    this.#schedule(now);
  }

  /** Divides the income since the last payment. What nobody needs is lost. */
  #pay(now: number): void {
    let income = (now - this.#paidAt) * SHARE;
    this.#paidAt = now;
    while (income > 1e-6 && this.#needy.size > 0) {
      const part = income / this.#needy.size;
      for (const account of [...this.#needy]) {
        income -= account.receive(part);
        if (account.isFull) this.#needy.delete(account);
      }
    }
  }

  #schedule(now: number): void {
    if (this.#paused.size === 0) return;
    const debts = [...this.#paused].map(({ debtMs }) => debtMs);
    const delayMs = Math.max(MIN_PAUSE_MS, (Math.min(...debts) * this.#needy.size) / SHARE);
    if (now + delayMs >= this.#timerAt) return;
    this.#cancelTimer();
    this.#timerAt = now + delayMs;
    this.#cancelTimer = this.#clock.schedule(delayMs, () => {
      this.#timerAt = Number.POSITIVE_INFINITY;
      const later = this.#clock.now();
      this.#pay(later);
      for (const account of [...this.#paused]) {
        account.settle(later);
        if (!account.isPaused) this.#paused.delete(account);
      }
      this.#schedule(later);
    });
  }
}

interface AccountOwner {
  spent(account: WorkAccount): void;
  closed(account: WorkAccount): void;
}

/** The work that one server causes. */
export class WorkAccount {
  readonly #clock: Clock;
  readonly #listener: WorkAccountListener;
  readonly #owner: AccountOwner;
  #balance = BURST_MS;
  #pausedAt: number | undefined;
  #pausedMs = 0;
  #chargedMs = 0;
  #isTroubled = false;
  /** When the first pause of the flood began, and when the last one ended. */
  #floodSince = 0;
  #resumedAt = Number.NEGATIVE_INFINITY;
  #isReported = false;
  #isClosed = false;

  constructor(clock: Clock, listener: WorkAccountListener, owner: AccountOwner) {
    this.#clock = clock;
    this.#listener = listener;
    this.#owner = owner;
  }

  get isPaused(): boolean {
    return this.#pausedAt !== undefined;
  }

  /** Whether the account was in debt and has not saved up the full amount since. */
  get isTroubled(): boolean {
    return this.#isTroubled;
  }

  get isFull(): boolean {
    return this.#balance >= BURST_MS;
  }

  get debtMs(): number {
    return Math.max(0, -this.#balance);
  }

  /** All work that was charged, in milliseconds. */
  get chargedMs(): number {
    return this.#chargedMs;
  }

  /** How long the account has been paused, all pauses together, in milliseconds. */
  get pausedMs(): number {
    return this.#pausedMs + (this.#pausedAt === undefined ? 0 : this.#clock.now() - this.#pausedAt);
  }

  /** Charges work, in milliseconds. May call `pause` before it returns. */
  charge(workMs: number): void {
    if (this.#isClosed) return;
    this.#chargedMs += workMs;
    this.#balance = Math.max(-MAX_DEBT_MS, this.#balance - workMs);
    this.#owner.spent(this);
  }

  /** Takes what it needs of an amount. Returns how much that was. */
  receive(ms: number): number {
    const taken = Math.min(ms, BURST_MS - this.#balance);
    this.#balance = taken < ms ? BURST_MS : this.#balance + taken;
    if (this.isFull) this.#isTroubled = false;
    return taken;
  }

  /** Pauses or resumes, as the balance demands. */
  settle(now: number): void {
    if (this.#balance < 0 === this.isPaused) return;
    if (this.isPaused) this.#resume();
    else this.#pause(now);
  }

  /** The server is gone, and its last output is read: nothing is charged or paused any more. */
  close(): void {
    this.#isClosed = true;
    this.#owner.closed(this);
    if (this.isPaused) this.#resume();
  }

  #pause(now: number): void {
    this.#pausedAt = now;
    this.#isTroubled = true;
    if (now - this.#resumedAt > REST_MS) this.#floodSince = now;
    this.#listener.pause();
    if (this.#isReported || now - this.#floodSince < ENDLESS_MS) return;
    this.#isReported = true;
    this.#listener.endless();
  }

  #resume(): void {
    this.#pausedMs = this.pausedMs;
    this.#pausedAt = undefined;
    this.#resumedAt = this.#clock.now();
    this.#listener.resume();
  }
}
