import type { ClientProfile } from '../../mcp/client-profile.js';
import type { ModernClient } from './modern-client.js';
import {
  copyFacts,
  factsKey,
  readProfile,
  type StatedFacts,
  type StatingMessage,
  statesSame,
} from './request-facts.js';

/**
 * Clients that state different things about themselves in one transport session. Most state the same in every request;
 * those that used the session least recently are forgotten beyond this number.
 */
const MAX_IDLE_CLIENTS = 8;

/** The clients of one transport session, by what their requests state about themselves. */
export class StatedClients {
  readonly #create: (profile: ClientProfile) => ModernClient;
  /** The least recently used first. */
  readonly #clients = new Map<string, ModernClient>();
  /** Clients rarely change what they state. */
  #lastFacts: StatedFacts | undefined;
  #lastClient: ModernClient | undefined;

  constructor(create: (profile: ClientProfile) => ModernClient) {
    this.#create = create;
  }

  /** What the latest request stated. */
  get profile(): ClientProfile | undefined {
    return this.#lastClient?.profile;
  }

  all(): Iterable<ModernClient> {
    return this.#clients.values();
  }

  /** The client of the latest message, if this one states the same: that was not refused. */
  known(request: StatingMessage): ModernClient | undefined {
    const facts = this.#lastFacts;
    return facts !== undefined && statesSame(request, facts) ? this.#lastClient : undefined;
  }

  /** The client that states what this message states, which is not refused. */
  of(request: StatingMessage): ModernClient {
    const key = factsKey(request);
    const client = this.#clients.get(key) ?? this.#create(readProfile(request));
    this.#clients.delete(key);
    this.#clients.set(key, client);
    this.#lastFacts = copyFacts(request);
    this.#lastClient = client;
    this.#forgetIdle();
    return client;
  }

  close(): void {
    for (const client of this.#clients.values()) client.close();
    this.#clients.clear();
  }

  #forgetIdle(): void {
    const idle = [...this.#clients].filter(([, client]) => client !== this.#lastClient && client.isIdle);
    for (const [key, client] of idle.slice(0, -MAX_IDLE_CLIENTS)) {
      this.#clients.delete(key);
      client.close();
    }
  }
}
