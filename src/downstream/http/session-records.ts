import { stringAt } from '../../wire/json/json-text.js';
import type { Envelope, Rejection } from '../../wire/mcp/envelope.js';
import { isLogLevel, METHODS } from '../../wire/mcp/methods.js';

/** The part of a client's session that is not in its id, because the client has set it since the handshake. */
export interface SessionState {
  /** The log level. Absent if the client has set none. */
  readonly level?: string | undefined;
  /** The URIs of the resources that the client is subscribed to, the latest last. */
  readonly uris: readonly string[];
}

/**
 * The states and the ends of sessions, which all gateways of a cluster know. Never rejects. If the records are not available, the
 * methods do nothing.
 */
export interface SessionRecords {
  /** Returns the state of a session, or whether it was deleted; `undefined` if nothing is known. */
  read(id: string): Promise<SessionState | 'deleted' | undefined>;
  /** Stores the state of a session for a little longer than an idle session lives. */
  write(id: string, state: SessionState): void;
  /** Stores that a session was deleted, until the session is too old to be resumed anyway. */
  delete(id: string): Promise<void>;
}

/** Limit of the URIs of one session, in characters, because they stay in memory. The earliest are dropped beyond it. */
const MAX_URIS = 16_384;

/** Follows the state of a session through the messages of its client. */
export class FollowedState implements SessionState {
  level: string | undefined;
  readonly #uris = new Set<string>();

  constructor({ level, uris }: SessionState = { uris: [] }) {
    this.level = level;
    for (const uri of uris) this.#uris.add(uri);
  }

  get uris(): readonly string[] {
    return [...this.#uris];
  }

  get isEmpty(): boolean {
    return this.level === undefined && this.#uris.size === 0;
  }

  /**
   * Takes a message of the client into account, whatever the server will answer. Returns whether the state has changed. When
   * the session is resumed, a request that the server has refused may therefore be sent again, which does no harm.
   */
  note(message: Envelope | Rejection): boolean {
    if (message.kind !== 'request') return false;
    const { method, bytes, tokens } = message;
    if (method === METHODS.setLevel) {
      const level = stringAt(bytes, tokens.level) ?? '';
      if (!isLogLevel(level) || level === this.level) return false;
      this.level = level;
      return true;
    }
    const uri = stringAt(bytes, tokens.uri);
    if (uri === undefined) return false;
    if (method === METHODS.unsubscribe) return this.#uris.delete(uri);
    if (method !== METHODS.subscribe || this.#uris.has(uri)) return false;
    this.#uris.add(uri);
    for (const earliest of this.#uris) {
      if ([...this.#uris].join('').length <= MAX_URIS) break;
      this.#uris.delete(earliest);
    }
    return true;
  }
}
