import type { Hmac } from '../../../mcp/task-id.js';
import type { Cancel, Clock } from '../../../timing/clock.js';

/** How many calls may wait for input: of one principal, and in all. */
const MAX_PER_PRINCIPAL = 64;
const MAX_CALLS = 1_024;
/** How long the answer of a call is kept for a client that lost it, and how many answers are. */
const ANSWER_KEPT_MS = 60_000;
const MAX_ANSWERED = 256;

/** The calls that asked their clients for input, by their ids. They live in this process. */
export class SuspendedCalls<C extends { readonly principal: string }> {
  readonly #clock: Clock;
  readonly #calls = new Map<string, C>();
  readonly #perPrincipal = new Map<string, number>();
  /** Calls that were answered, the oldest first, and how to keep them no longer. */
  readonly #answered = new Map<string, Cancel>();
  #count = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Calls that wait for input or for their answer. */
  get size(): number {
    return this.#calls.size - this.#answered.size;
  }

  /** Whether another call of this principal may ask for input. */
  admits(principal: string): boolean {
    return this.size < MAX_CALLS && (this.#perPrincipal.get(principal) ?? 0) < MAX_PER_PRINCIPAL;
  }

  /** An unguessable id that no other call had. */
  nextId(seal: Hmac): string {
    this.#count += 1;
    return seal(`suspended call ${this.#count}`).slice(0, 22);
  }

  find(id: string): C | undefined {
    return this.#calls.get(id);
  }

  add(id: string, call: C): void {
    this.#calls.set(id, call);
    this.#perPrincipal.set(call.principal, (this.#perPrincipal.get(call.principal) ?? 0) + 1);
  }

  /** The call has its answer, and its client may have lost it on the way. */
  answered(id: string): void {
    const call = this.#calls.get(id);
    if (call === undefined || this.#answered.has(id)) return;
    this.#release(call.principal);
    this.#answered.set(
      id,
      this.#clock.schedule(ANSWER_KEPT_MS, () => this.#forget(id)),
    );
    for (const oldest of this.#answered.keys()) {
      if (this.#answered.size <= MAX_ANSWERED) break;
      this.#forget(oldest);
    }
  }

  /** The call has ended without an answer for anybody. */
  delete(id: string): void {
    const call = this.#calls.get(id);
    if (call === undefined || this.#answered.has(id)) return;
    this.#calls.delete(id);
    this.#release(call.principal);
  }

  #forget(id: string): void {
    this.#answered.get(id)?.();
    this.#answered.delete(id);
    this.#calls.delete(id);
  }

  #release(principal: string): void {
    const left = (this.#perPrincipal.get(principal) ?? 1) - 1;
    if (left === 0) this.#perPrincipal.delete(principal);
    else this.#perPrincipal.set(principal, left);
  }
}
