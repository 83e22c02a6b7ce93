import type { Clock } from '../../timing/clock.js';
import { Deadlines } from '../../timing/deadlines.js';
import type { Timed } from './event-connection.js';
import type { HttpClientSession } from './http-session.js';
import type { HttpLimits } from './limits.js';
import { FULL, GONE, type Refusal, SHUTTING_DOWN, unknownEndpoint } from './refusal.js';
import { SessionlessClient } from './sessionless-client.js';

export interface SessionlessClientsOptions {
  readonly clock: Clock;
  readonly timers: Deadlines<Timed>;
  readonly limits: HttpLimits;
  /** Opens what serves the requests; `undefined` when there is no such endpoint. */
  readonly open: (endpoint: string | undefined, principal: string, onGone: () => void) => HttpClientSession | undefined;
  readonly onCut: (unwrittenBytes: number) => void;
}

/** Who sends requests without a session: one entry for each token and endpoint, until it has been idle for a while. */
export class SessionlessClients {
  readonly #options: SessionlessClientsOptions;
  /** The least recently used first. */
  readonly #clients = new Map<string, SessionlessClient>();
  readonly #idle: Deadlines<SessionlessClient>;

  constructor(options: SessionlessClientsOptions) {
    this.#options = options;
    this.#idle = new Deadlines(options.clock, (client) => this.#checkIdle(client));
  }

  get size(): number {
    return this.#clients.size;
  }

  /** The client of this token at this endpoint, or why there is none. */
  of(principal: string, endpoint: string | undefined): SessionlessClient | Refusal {
    // Neither contains a line break.
    const key = `${principal}\n${endpoint ?? ''}`;
    const known = this.#clients.get(key);
    if (known === undefined) return this.#opened(key, principal, endpoint);
    known.touch();
    this.#clients.delete(key);
    this.#clients.set(key, known);
    return known;
  }

  close(): void {
    for (const key of [...this.#clients.keys()]) this.#end(key, SHUTTING_DOWN);
    this.#idle.close();
  }

  #opened(key: string, principal: string, endpoint: string | undefined): SessionlessClient | Refusal {
    const { limits, open } = this.#options;
    if (this.#clients.size >= limits.maxSessions && !this.#makeRoom()) return FULL;
    const session = open(endpoint, principal, () => this.#end(key, GONE));
    if (session === undefined) return unknownEndpoint(endpoint);
    const client = new SessionlessClient({ ...this.#options, client: session });
    this.#clients.set(key, client);
    this.#idle.watch(client);
    return client;
  }

  /** Ends the least recently used client without a request in flight; returns `false` if there is none. */
  #makeRoom(): boolean {
    for (const [key, client] of this.#clients) {
      if (client.isBusy) continue;
      this.#end(key, GONE);
      return true;
    }
    return false;
  }

  #end(key: string, refusal: Refusal): void {
    const client = this.#clients.get(key);
    if (client === undefined) return;
    this.#clients.delete(key);
    this.#idle.unwatch(client);
    client.close(refusal);
  }

  #checkIdle(client: SessionlessClient): void {
    if (client.isBusy) {
      client.touch();
      this.#idle.watch(client);
      return;
    }
    for (const [key, each] of this.#clients) if (each === client) this.#end(key, GONE);
  }
}
