import type { Cancel, Clock } from '../timing/clock.js';

/** What a read costs besides the work on its content, in milliseconds: to wake up, to read and to be called. */
export const READ_MS = 0.01;
/** What a byte costs besides the work on its line: to be read, and to be written to clients later. */
export const READ_MS_PER_BYTE = 0.0008 / 1024;

/** The part of the time that all accounts together may spend. */
const SHARE = 0.08;
/** What an account saves up while it spends nothing, in milliseconds. */
const BURST_MS = 10;
/** After so much work of all accounts in one turn of the event loop, they wait for the next turn, in milliseconds. */
const TURN_MS = 1;
/** A single charge that the machine made longer, such as one that another process interrupted, pauses no longer. */
const MAX_DEBT_MS = 250;
/** Shorter pauses would cost more than they save. */
const MIN_PAUSE_MS = 4;
/** A flood that lasts for so long is reported. */
const ENDLESS_MS = 60_000;
/** A flood is over when there was no pause for so long. */
const REST_MS = 1_000;

export interface WorkAccountListener {
  /** The account has to wait: its owner must cause no more work. */
  pause(): void;
  /** The account need not wait any more. */
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
 *
 * What the accounts have saved up is not spent at once: after a millisecond of work, all wait until everybody else had a
 * turn.
 */
export class WorkBudget {
  readonly #clock: Clock;
  /** The accounts that are not full. */
  readonly #needy = new Set<WorkAccount>();
  readonly #paused = new Set<WorkAccount>();
  readonly #nextTurn: (task: () => void) => void;
  /** The accounts that wait for the next turn. */
  readonly #held = new Set<WorkAccount>();
  #turnMs = 0;
  /** When the last work of it was done. */
  #spentAt = 0;
  #paidAt = 0;
  #cancelTimer: Cancel = () => {};
  #timerAt = Number.POSITIVE_INFINITY;

  /** `nextTurn` runs a task when everything else that is ready has had its turn. */
  constructor(clock: Clock, nextTurn: (task: () => void) => void) {
    this.#clock = clock;
    this.#nextTurn = nextTurn;
  }

  account(listener: WorkAccountListener): WorkAccount {
    return new WorkAccount(this.#clock, listener, {
      spent: (account, workMs) => this.#spent(account, workMs),
      isTurnOver: (account) => this.#isTurnOver(account),
      closed: (account) => this.#closed(account),
    });
  }

  #closed(account: WorkAccount): void {
    this.#needy.delete(account);
    this.#paused.delete(account);
    this.#held.delete(account);
    if (this.#paused.size > 0) return;
    this.#cancelTimer();
    this.#timerAt = Number.POSITIVE_INFINITY;
  }

  #spent(account: WorkAccount, workMs: number): void {
    const now = this.#clock.now();
    this.#pay(now);
    this.#needy.add(account);
    this.#spendTurn(account, workMs, now);
    account.settle(now);
    if (!account.isPaused) return;
    this.#paused.add(account);
    this.#schedule(now);
  }

  /**
   * Time that was spent on something else counts against the work. So turns need not be told apart, and nobody waits
   * who leaves others half of the time.
   */
  #spendTurn(spender: WorkAccount, workMs: number, now: number): void {
    const wasOver = this.#turnMs >= TURN_MS;
    const othersMs = wasOver ? 0 : Math.max(0, now - this.#spentAt - workMs);
    this.#spentAt = now;
    this.#turnMs = Math.max(0, this.#turnMs - othersMs) + workMs;
    if (this.#turnMs < TURN_MS) return;
    for (const account of wasOver ? [spender] : this.#needy) this.#hold(account);
    if (wasOver) return;
    this.#nextTurn(() => {
      this.#turnMs = 0;
      const held = [...this.#held];
      this.#held.clear();
      for (const account of held) account.release();
    });
  }

  #isTurnOver(account: WorkAccount): boolean {
    if (this.#turnMs < TURN_MS) return false;
    this.#hold(account);
    return true;
  }

  #hold(account: WorkAccount): void {
    this.#held.add(account);
    account.hold();
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
  spent(account: WorkAccount, workMs: number): void;
  isTurnOver(account: WorkAccount): boolean;
  closed(account: WorkAccount): void;
}

/** The work that one server causes. */
export class WorkAccount {
  readonly #clock: Clock;
  readonly #listener: WorkAccountListener;
  readonly #owner: AccountOwner;
  #balance = BURST_MS;
  #pausedAt: number | undefined;
  #isHeld = false;
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

  /** Whether the account is in debt, and waits until that is repaid. */
  get isPaused(): boolean {
    return this.#pausedAt !== undefined;
  }

  /** Whether the account waits: for the next turn, or because it is in debt. */
  get isWaiting(): boolean {
    return this.#isHeld || this.isPaused;
  }

  /** Whether no more work may be done now. The account waits then, although it has spent nothing. */
  mustWait(): boolean {
    return !this.#isClosed && (this.isWaiting || this.#owner.isTurnOver(this));
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
    this.#owner.spent(this, workMs);
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

  /** Waits for the next turn. */
  hold(): void {
    if (this.#isHeld) return;
    const wasWaiting = this.isWaiting;
    this.#isHeld = true;
    if (!wasWaiting) this.#listener.pause();
  }

  /** The next turn has come. */
  release(): void {
    this.#isHeld = false;
    if (!this.isWaiting) this.#listener.resume();
  }

  /** The server is gone, and its last output is read: nothing is charged or paused any more. */
  close(): void {
    const wasWaiting = this.isWaiting;
    this.#isClosed = true;
    this.#owner.closed(this);
    this.#isHeld = false;
    if (this.isPaused) this.#resume();
    else if (wasWaiting) this.#listener.resume();
  }

  #pause(now: number): void {
    this.#pausedAt = now;
    this.#isTroubled = true;
    if (now - this.#resumedAt > REST_MS) this.#floodSince = now;
    if (!this.#isHeld) this.#listener.pause();
    if (this.#isReported || now - this.#floodSince < ENDLESS_MS) return;
    this.#isReported = true;
    this.#listener.endless();
  }

  #resume(): void {
    this.#pausedMs = this.pausedMs;
    this.#pausedAt = undefined;
    this.#resumedAt = this.#clock.now();
    if (!this.#isHeld) this.#listener.resume();
  }
}
