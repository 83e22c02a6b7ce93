import type { Clock } from '../../timing/clock.js';
import { Deadlines } from '../../timing/deadlines.js';
import { GONE, SHUTTING_DOWN } from './refusal.js';
import type { Session } from './session.js';

export type SessionEnd = 'deleted' | 'expired' | 'refused' | 'removed' | 'shutdown';

export interface SessionsOptions {
  readonly clock: Clock;
  readonly maxSessions: number;
  readonly onEnded: (reason: SessionEnd, left: number) => void;
}

/** The sessions by their ids. One timer ends idle ones. */
export class Sessions {
  readonly #options: SessionsOptions;
  readonly #sessions = new Map<string, Session>();
  readonly #idle: Deadlines<Session>;

  constructor(options: SessionsOptions) {
    this.#options = options;
    this.#idle = new Deadlines(options.clock, (session) => this.#checkIdle(session));
  }

  get size(): number {
    return this.#sessions.size;
  }

  get isFull(): boolean {
    return this.#sessions.size >= this.#options.maxSessions;
  }

  add(session: Session): void {
    this.#sessions.set(session.id, session);
    this.#idle.watch(session);
  }

  /** The session, if it belongs to this principal and endpoint. For others it does not exist. */
  find(id: string, principal: string, endpoint: string | undefined): Session | undefined {
    const session = this.#sessions.get(id);
    if (session === undefined || !session.belongsTo(principal, endpoint)) return undefined;
    session.touch();
    return session;
  }

  end(session: Session, reason: SessionEnd): void {
    if (!this.#sessions.delete(session.id)) return;
    this.#idle.unwatch(session);
    session.close(reason === 'shutdown' ? SHUTTING_DOWN : GONE);
    this.#options.onEnded(reason, this.#sessions.size);
  }

  close(): void {
    for (const session of [...this.#sessions.values()]) this.end(session, 'shutdown');
    this.#idle.close();
  }

  #checkIdle(session: Session): void {
    if (!session.isBusy) {
      this.end(session, 'expired');
      return;
    }
    session.touch();
    this.#idle.watch(session);
  }
}
