import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Caller } from '../../downstream/http/http-client.js';
import type { EventSink } from '../../host/observe/events/events.js';
import { NewestMap } from '../../wire/io/newest-map.js';
import type { Clock } from '../../wire/timing/clock.js';
import type { Members } from './members.js';
import { type ClusterStore, ignoreAbsence, StoreUnavailable } from './store.js';

/** The facts about a request that decide where it is served. */
export interface PlacedRequest {
  readonly caller: Caller;
  readonly session?: {
    readonly id: string;
    /** Whether this gateway has the session. */
    isOpen(): boolean;
    /** Whether a gateway of the cluster made the id for this caller. Other ids have no home. */
    isSound(): boolean;
  };
}

/** The clients of this gateway. The keys are those of `homeKey`. */
export interface GatewayClients {
  /** The users and sessions that have clients here, each with whether a call of theirs is in flight. */
  homes(): ReadonlyMap<string, boolean>;
  /** The principals with processes here, even if the processes are only kept for the next client. */
  principals(): ReadonlySet<string>;
  /** Ends the clients of these users and sessions, and the processes of the users. Returns the number of clients. */
  end(keys: ReadonlySet<string>): number;
  serve(request: IncomingMessage, response: ServerResponse): void;
}

/**
 * Prefix of the principals of gateways. A gateway is a client of another gateway when it uses a server that runs there. No
 * principal of any other client has a colon.
 */
export const GATEWAY = 'gateway:';

const USER = 'user:';

/** The principal of the user with this key; `undefined` for the key of a session. */
export function userOf(key: string): string | undefined {
  return key.startsWith(USER) ? key.slice(USER.length) : undefined;
}

/**
 * Returns the key under which a request has a home. All clients of a user have the same key, because they share the user's
 * processes. Other clients, such as those that share a token, have a key for each session. `undefined` for their requests
 * without a session, and for requests of gateways.
 */
export function homeKey({ principal, user }: Caller, sessionId: string | undefined): string | undefined {
  if (principal.startsWith(GATEWAY)) return undefined;
  if (user?.kind === 'user') return `${USER}${principal}`;
  return sessionId === undefined ? undefined : `session:${createHash('sha256').update(sessionId).digest('base64url')}`;
}

export interface HomesOptions {
  readonly store: ClusterStore;
  readonly members: Members;
  /** The name of this gateway. */
  readonly self: string;
  readonly clients: GatewayClients;
  readonly clock: Clock;
  readonly events: EventSink;
  /** Asks a gateway whether it is the home. Rejects if it does not answer in time. */
  readonly ask: (gateway: string, key: string) => Promise<boolean>;
}

/** How long a claim lasts, and the age up to which it is kept without clients of its user or session, in milliseconds. */
const CLAIM_LASTS_MS = 60_000;
const UNUSED_MS = 20_000;
/**
 * How often claims are renewed, in milliseconds. When two gateways cannot reach each other, one learns only from its next
 * renewal that the other is the home now. Until then, both may have processes of the same user.
 */
export const RENEW_MS = 4_000;
/** Homes at other gateways that are remembered. */
const MAX_KNOWN = 50_000;

/**
 * The homes of users and sessions. A home is the one gateway that serves a user or session, and has a claim for it in the store. A
 * gateway knows its own homes, and remembers those of others, so requests wait for the store only when a home is unknown. Without
 * the store, a gateway asks the others for an unknown home. If none of them is the home, every gateway computes the same one.
 */
export class Homes {
  readonly #options: HomesOptions;
  /** The users and sessions that have their homes here, with the times of the claims. */
  readonly #own = new Map<string, number>();
  /** Homes at other gateways, the least recently used first. */
  readonly #known = new NewestMap<string, string>(MAX_KNOWN);
  readonly #claiming = new Map<string, Promise<string | undefined>>();
  #isDraining = false;

  constructor(options: HomesOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#own.size;
  }

  has(key: string): boolean {
    return this.#own.has(key);
  }

  /** Returns the home; `undefined` if it is here. `birth` is the gateway that opened the session. */
  of(key: string, birth?: string): string | undefined | Promise<string | undefined> {
    const { members } = this.#options;
    if (this.#own.has(key)) return undefined;
    const known = this.#known.get(key);
    // A draining gateway gives its homes away, so the store is asked.
    if (known !== undefined && members.isReady(known)) return this.#remember(key, known);
    if (birth === undefined) return this.#claim(key, this.#lessLoaded(), () => this.#agreed(key));
    return members.isReachable(birth) ? this.#remember(key, birth) : this.#ofOrphan(key, birth);
  }

  /** Whether the home is known, and can be reached. */
  isKnown(key: string): boolean {
    return this.#own.has(key) || this.#options.members.isReachable(this.#known.get(key) ?? '');
  }

  /** Returns the home of a request that another gateway has passed to this one; `undefined` if it is here. */
  ofReceived(key: string): string | undefined | Promise<string | undefined> {
    return this.#own.has(key) ? undefined : this.#claim(key, this.#here());
  }

  /** Remembers the home that another gateway has named, and returns it; `undefined` if it is here. */
  moved(key: string, home: string): string | undefined {
    return home === this.#options.self ? undefined : this.#remember(key, home);
  }

  /** Returns the new home of a user or session whose home cannot be reached; `undefined` if it is here. */
  takeOver(key: string, from: string): Promise<string | undefined> {
    this.#known.delete(key);
    return this.#claim(key, this.#here(from), undefined, from);
  }

  forget(gateway: string): void {
    for (const [key, home] of this.#known) if (home === gateway) this.#known.delete(key);
  }

  /**
   * Renews the claims, and gives up those without clients. Ends the clients whose homes are elsewhere now. Resolves with false if
   * the store is away, so that nothing is known about the claims.
   */
  async renew(): Promise<boolean> {
    const { store, self, clock } = this.#options;
    const used = this.#used();
    const unused: string[] = [];
    for (const [key, since] of this.#own)
      if (!used.has(key) && clock.now() - since >= UNUSED_MS) {
        this.#own.delete(key);
        unused.push(key);
      }
    try {
      if (unused.length > 0) await store.release(unused.map(nameOf), self);
      const lost = used.size === 0 ? [] : await store.renew([...used].map(nameOf), self, CLAIM_LASTS_MS);
      for (const key of used) if (!this.#own.has(key)) this.#own.set(key, clock.now());
      this.#end(new Set(lost.map((name) => name.slice(PREFIX.length))));
      return true;
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      return false;
    }
  }

  /**
   * Ends the clients whose homes may be at other gateways now, because this gateway has paused and they took it for dead. Without
   * the store, these are all clients that have a home here, unless no other gateway is known.
   */
  async fence(): Promise<void> {
    this.#known.clear();
    const isRenewed = (await this.renew()) || this.#options.members.size === 1;
    const used = this.#used();
    if (!isRenewed) this.#end(used);
    // Another gateway may be the home now of a user or session that has no clients here yet.
    for (const key of this.#own.keys()) if (!used.has(key)) this.#own.delete(key);
  }

  /** The users and sessions with clients here, and the users whose processes are kept for the next client. */
  #used(): ReadonlySet<string> {
    const { clients } = this.#options;
    const principals = clients.principals();
    const kept = [...this.#own.keys()].filter((key) => principals.has(userOf(key) ?? ''));
    return new Set([...clients.homes().keys(), ...kept]);
  }

  /** Gives away the homes without calls in flight, if another gateway accepts them. New ones go elsewhere from now on. */
  async release(): Promise<void> {
    const { store, members, self, clients } = this.#options;
    this.#isDraining = true;
    if (members.ready.length === 0) return;
    const served = clients.homes();
    const idle = [...new Set([...this.#own.keys(), ...served.keys()])].filter((key) => served.get(key) !== true);
    for (const key of idle) this.#own.delete(key);
    clients.end(new Set(idle));
    if (idle.length > 0) await store.release(idle.map(nameOf), self).catch(ignoreAbsence);
  }

  #end(keys: ReadonlySet<string>): void {
    for (const key of keys) this.#own.delete(key);
    const ended = keys.size === 0 ? 0 : this.#options.clients.end(keys);
    if (ended > 0) this.#options.events.emit({ kind: 'cluster.fenced', clients: ended });
  }

  /** Returns the home of a session that `birth` has opened. That gateway is not known here, because it has ended or has just joined. */
  async #ofOrphan(key: string, birth: string): Promise<string | undefined> {
    const { members, self } = this.#options;
    if (birth !== self && !members.isKnown(birth)) await members.refresh(birth);
    return members.isReachable(birth) ? birth : await this.#claim(key, this.#here(), () => this.#agreed(key));
  }

  /**
   * Returns the home, which is the proposed gateway if there was none; `undefined` if it is here. `withoutStore` finds the home if
   * the store is away. Concurrent requests share one claim.
   */
  #claim(
    key: string,
    proposed: string,
    withoutStore: WithoutStore = () => proposed,
    unreachable?: string,
  ): Promise<string | undefined> {
    const begun = this.#claiming.get(key);
    if (begun !== undefined) return begun;
    const claim = this.#claimed(key, proposed, withoutStore, unreachable).finally(() => this.#claiming.delete(key));
    this.#claiming.set(key, claim);
    return claim;
  }

  async #claimed(
    key: string,
    proposed: string,
    withoutStore: WithoutStore,
    unreachable: string | undefined,
  ): Promise<string | undefined> {
    const { store, members, self, clock } = this.#options;
    const name = nameOf(key);
    // Gives away this gateway's own claim while it drains, because another gateway may have made the claim before it knew of the draining.
    const instead = unreachable ?? (this.#isDraining && proposed !== self ? self : undefined);
    let home: string;
    try {
      home = await store.claim(name, proposed, CLAIM_LASTS_MS, instead);
      // A gateway that has just joined is known after the next heartbeat.
      if (home !== self && !members.isKnown(home)) await members.refresh(home);
      const isDead = home !== self && home !== proposed && !members.isReachable(home);
      if (isDead) home = await store.claim(name, proposed, CLAIM_LASTS_MS, home);
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      home = await withoutStore();
    }
    if (home !== self) return this.#remember(key, home);
    this.#own.set(key, clock.now());
    return undefined;
  }

  /** This gateway, or another one if this one is draining. `except` cannot be reached. */
  #here(except?: string): string {
    const { members, self } = this.#options;
    if (!this.#isDraining) return self;
    const [first] = members.ready.filter(({ name }) => name !== except);
    return first?.name ?? self;
  }

  /** Returns the less loaded of two random gateways, because all gateways would choose the least loaded one at the same time. */
  #lessLoaded(): string {
    const { members, self } = this.#options;
    const { ready } = members;
    const at = Math.floor(Math.random() * ready.length);
    const one = ready[at];
    const two = ready[(at + 1 + Math.floor(Math.random() * (ready.length - 1))) % ready.length];
    if (one === undefined || two === undefined) return self;
    const { name } = two.load < one.load ? two : one;
    members.proposed(name);
    return name;
  }

  /** Returns the home without the store: the gateway that claims to be it, or else the one that all with the same list compute. */
  async #agreed(key: string): Promise<string> {
    const { members, self, ask } = this.#options;
    const others = members.reachable;
    const answers = await Promise.allSettled(others.map((name) => ask(name, key)));
    const home = others.find((_, at) => answers[at]?.status === 'fulfilled' && answers[at].value);
    if (home !== undefined) return home;
    const names = members.ready.map(({ name }) => name);
    const weightOf = (name: string) => createHash('sha256').update(`${name} ${key}`).digest('hex');
    const [best] = names
      .map((name) => ({ name, weight: weightOf(name) }))
      .sort((a, b) => (a.weight < b.weight ? 1 : -1));
    return best?.name ?? self;
  }

  #remember(key: string, home: string): string {
    this.#known.set(key, home);
    return home;
  }
}

type WithoutStore = () => string | Promise<string>;

/** Prefix of the names of claims in the store. */
const PREFIX = 'home:';

function nameOf(key: string): string {
  return `${PREFIX}${key}`;
}
