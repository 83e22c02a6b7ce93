import type { ClientProfile } from '../mcp/client-profile.js';
import type { Envelope, Rejection } from '../mcp/envelope.js';
import type { ChooseEra, Era, EraSession, TransportSession } from './transport.js';

/** One client's sessions, one for each era that it uses. A session opens with the first message of its era. */
export class EraSessions {
  readonly #chooseEra: ChooseEra;
  readonly #transport: TransportSession;
  readonly #sessions = new Map<Era, EraSession>();
  /** The era of the last message. Clients rarely change it. */
  #lastEra: Era | undefined;
  #lastSession: EraSession | undefined;
  #isClosed = false;
  readonly #isUsed = (era: Era) => this.#sessions.has(era);

  constructor(chooseEra: ChooseEra, transport: TransportSession) {
    this.#chooseEra = chooseEra;
    this.#transport = transport;
  }

  /** Negotiated revision; `undefined` before the handshake ends. */
  get revision(): string | undefined {
    for (const { revision } of this.#sessions.values()) if (revision !== undefined) return revision;
    return undefined;
  }

  /** Name, version and capabilities of the client; `undefined` before the client stated them. */
  get profile(): ClientProfile | undefined {
    for (const { profile } of this.#sessions.values()) if (profile !== undefined) return profile;
    return undefined;
  }

  /** Number of requests that were not answered yet. */
  get inFlight(): number {
    let inFlight = 0;
    for (const session of this.#sessions.values()) inFlight += session.inFlight;
    return inFlight;
  }

  /** The session that this message belongs to. */
  of(message: Envelope | Rejection): EraSession {
    const era = this.#chooseEra(message, this.#isUsed);
    if (era === this.#lastEra && this.#lastSession !== undefined) return this.#lastSession;
    const session = this.#sessions.get(era) ?? era.open(this.#transport);
    this.#sessions.set(era, session);
    this.#lastEra = era;
    this.#lastSession = session;
    return session;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Closes all sessions, because the client has left. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const session of this.#sessions.values()) session.close();
  }
}
