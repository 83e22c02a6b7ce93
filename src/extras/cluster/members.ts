import type { EventSink } from '../../host/observe/events/events.js';
import type { Keys } from '../../host/sealed-bytes.js';
import { isRecord, parseJson } from '../../wire/json/json-value.js';
import type { Clock } from '../../wire/timing/clock.js';
import { signText, verifyText } from './signed-request.js';
import { type ClusterStore, ignoreAbsence, StoreUnavailable } from './store.js';

/** The facts that a gateway reports about itself. */
export interface MemberFacts extends MemberSelf {
  readonly beat: number;
}

export interface MemberLoad {
  readonly state: 'ready' | 'draining';
  /** Number of the users and sessions that have their homes there. */
  readonly load: number;
}

interface MemberSelf extends MemberLoad {
  /** Host and port of its peer port. */
  readonly address: string;
  readonly version: string;
  /** Digest of the servers that it offers. */
  readonly servers: string;
}

/** A gateway as `trunkline cluster status` shows it. */
export interface MemberStatus {
  readonly instance: string;
  readonly address: string;
  readonly version: string;
  readonly load: number;
  readonly servers: string;
  readonly state: MemberFacts['state'] | 'unreachable';
}

export interface ClusterView {
  /** The name of this gateway. */
  readonly instance: string;
  /** Sorted by name. */
  readonly members: readonly MemberStatus[];
  /** Why the store does not answer. Absent while it answers. */
  readonly storeFault?: string | undefined;
  /** Number of gateways that use the store under the name of this cluster with another key. */
  readonly strangers: number;
}

export interface MembersOptions {
  readonly store: ClusterStore;
  readonly keys: Keys;
  /** The name of this gateway. */
  readonly self: string;
  readonly facts: () => MemberSelf;
  readonly clock: Clock;
  readonly events: EventSink;
  /** Asks a gateway for its state and load. Rejects if it does not answer, with `NoAnswer` if it accepts the connection. */
  readonly ping: (name: string, address: string) => Promise<MemberLoad>;
  /** Whether requests go to this gateway, or come from it. */
  readonly isInUse: (name: string) => boolean;
  readonly onUnreachable: (name: string) => void;
}

/** A gateway accepts connections, and does not answer in time, because it is busy or stopped. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer';
}

interface Member {
  readonly name: string;
  facts: MemberFacts;
  /** Its reported load, and the homes that were proposed for it since its last heartbeat. */
  load: number;
  /** When its last heartbeat was seen. */
  beatenAt: number;
  /** Whether it answers. `undefined` until it was pinged, because the store does not prove that it still has its address. */
  isReachable: boolean | undefined;
  asking: Promise<void> | undefined;
}

/** How long a heartbeat stays in the store, in milliseconds. */
const BEAT_LASTS_MS = 10_000;
/** Age of a heartbeat, in milliseconds, beyond which its gateway is pinged. Two heartbeats are missing then. */
const STALE_MS = 5_000;
/**
 * Failed pings after which a gateway counts as dead. A gateway that accepts connections and sends heartbeats gets more pings,
 * because it is only busy, and will answer its requests.
 */
const PINGS = 3;
const PINGS_OF_BUSY = 7;
const MAX_TEXT = 4_096;

/**
 * The gateways of the cluster. The store says which exist. A gateway is dead if it does not answer several pings, and it is not
 * asked while its heartbeats come, unless requests go to it or come from it. So a store that is away changes nothing.
 */
export class Members {
  readonly #options: MembersOptions;
  readonly #members = new Map<string, Member>();
  /** Numbers of the last heartbeats of dead gateways, which the store may still have. */
  readonly #dead = new Map<string, number>();
  /** Names in the store whose texts no gateway with the key has signed. */
  readonly #strangers = new Set<string>();
  #beat = 0;
  #beating: Promise<boolean> | undefined;
  #wasUp: boolean | undefined;
  #hasLeft = false;
  #storeFault: string | undefined;

  constructor(options: MembersOptions) {
    this.#options = options;
  }

  /** Number of the gateways, with this one. */
  get size(): number {
    return this.#members.size + 1;
  }

  /** Whether this is another gateway that was pinged, so that it is known whether it answers. */
  isKnown(name: string): boolean {
    return this.#members.get(name)?.isReachable !== undefined;
  }

  addressOf(name: string): string | undefined {
    return this.#members.get(name)?.facts.address;
  }

  /** Whether this is another gateway that answers. */
  isReachable(name: string): boolean {
    return this.#members.get(name)?.isReachable === true;
  }

  /** Whether this is another gateway that answers, and does not give its homes away. */
  isReady(name: string): boolean {
    return this.isReachable(name) && this.#members.get(name)?.facts.state === 'ready';
  }

  /** The other gateways that answer. */
  get reachable(): readonly string[] {
    return [...this.#members.values()].flatMap(({ name, isReachable }) => (isReachable ? [name] : []));
  }

  /** The gateways that accept new homes, with their loads. */
  get ready(): readonly { readonly name: string; readonly load: number }[] {
    const { self, facts } = this.#options;
    const { state, load } = facts();
    const others = [...this.#members.values()].filter((each) => each.isReachable && each.facts.state === 'ready');
    return state === 'ready' ? [...others, { name: self, load }] : others;
  }

  /** Adds a proposed home to the load of a gateway, until its next heartbeat counts the home. */
  proposed(name: string): void {
    const member = this.#members.get(name);
    if (member !== undefined) member.load += 1;
  }

  get view(): ClusterView {
    return {
      instance: this.#options.self,
      members: this.status,
      strangers: this.#strangers.size,
      ...(this.#storeFault !== undefined && { storeFault: this.#storeFault }),
    };
  }

  get status(): readonly MemberStatus[] {
    const { self, facts } = this.#options;
    const own = { instance: self, isReachable: true, facts: facts() };
    const others = [...this.#members.values()].map(({ name: instance, ...member }) => ({ instance, ...member }));
    return [own, ...others]
      .map(({ instance, isReachable, facts: { address, version, load, servers, state } }) => ({
        instance,
        address,
        version,
        load,
        servers,
        state: isReachable === false ? ('unreachable' as const) : state,
      }))
      .sort((a, b) => (a.instance < b.instance ? -1 : 1));
  }

  /** Sends a heartbeat, and reads those of the others. Resolves with whether the store answered. */
  beat(): Promise<boolean> {
    if (this.#hasLeft) return Promise.resolve(false);
    this.#beating ??= this.#sendBeat().finally(() => {
      this.#beating = undefined;
    });
    return this.#beating;
  }

  async #sendBeat(): Promise<boolean> {
    const { store, self, keys, facts } = this.#options;
    this.#beat += 1;
    const text = signText(keys, self, JSON.stringify({ ...facts(), beat: this.#beat } satisfies MemberFacts));
    try {
      this.#read(await store.beat(self, text, BEAT_LASTS_MS));
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      this.#noteStore(false, error.message);
      return false;
    }
    this.#noteStore(true);
    return true;
  }

  /** Finds a gateway that has just joined, and whether it answers. A request waits for this, so a store that is away is not asked. */
  async refresh(name: string): Promise<void> {
    if (!this.#members.has(name) && this.#options.store.isUp) await this.beat();
    if (!this.isKnown(name)) await this.#members.get(name)?.asking;
  }

  /** Pings the gateways that do not answer yet, whose heartbeats are missing, or with which requests are exchanged. */
  async ask(): Promise<void> {
    const { clock, isInUse } = this.#options;
    const isDoubtful = ({ name, beatenAt, isReachable }: Member) =>
      isReachable !== true || clock.now() - beatenAt > STALE_MS || isInUse(name);
    await Promise.all([...this.#members.values()].filter(isDoubtful).map((member) => this.#ask(member)));
  }

  /** Pings a gateway to which a request has failed. */
  async doubt(name: string): Promise<void> {
    const member = this.#members.get(name);
    if (member !== undefined) await this.#ask(member);
  }

  async leave(): Promise<void> {
    this.#hasLeft = true;
    await this.#options.store.leave(this.#options.self).catch(ignoreAbsence);
  }

  #read(texts: ReadonlyMap<string, string>): void {
    const { self, keys } = this.#options;
    for (const [name, signed] of texts) {
      if (name === self || signed.length > MAX_TEXT) continue;
      const text = verifyText(keys, name, signed);
      const facts = text === undefined ? undefined : parseFacts(text);
      if (facts !== undefined) this.#seen(name, facts);
      else if (!this.#strangers.has(name)) {
        // One event for all, because a thief of the store's password can add many.
        if (this.#strangers.size === 0) this.#options.events.emit({ kind: 'cluster.stranger' });
        this.#strangers.add(name);
      }
    }
    for (const name of this.#strangers) if (!texts.has(name)) this.#strangers.delete(name);
    for (const name of this.#dead.keys()) if (!texts.has(name)) this.#dead.delete(name);
    // A gateway that has left counts as stale, so that the next tick pings it.
    for (const member of this.#members.values())
      if (!texts.has(member.name)) member.beatenAt = Number.NEGATIVE_INFINITY;
  }

  #seen(name: string, facts: MemberFacts): void {
    const known = this.#members.get(name);
    if (facts.beat === (known?.facts.beat ?? this.#dead.get(name))) return;
    const beatenAt = this.#options.clock.now();
    if (known !== undefined) {
      Object.assign(known, { facts, beatenAt, load: facts.load });
      return;
    }
    this.#dead.delete(name);
    const member = { name, facts, beatenAt, load: facts.load, isReachable: undefined, asking: undefined };
    this.#members.set(name, member);
    this.#report(name, 'joined');
    void this.#ask(member);
  }

  #ask(member: Member): Promise<void> {
    member.asking ??= this.#asked(member).finally(() => {
      member.asking = undefined;
    });
    return member.asking;
  }

  async #asked(member: Member): Promise<void> {
    const answers = await this.#answers(member);
    if (answers !== (member.isReachable ?? true)) this.#report(member.name, answers ? 'reachable' : 'unreachable');
    member.isReachable = answers;
    if (answers || this.#members.get(member.name) !== member) return;
    this.#options.onUnreachable(member.name);
    if (this.#options.clock.now() - member.beatenAt <= STALE_MS) return;
    this.#report(member.name, 'left');
    this.#members.delete(member.name);
    this.#dead.set(member.name, member.facts.beat);
  }

  async #answers(member: Member): Promise<boolean> {
    const { clock, ping } = this.#options;
    for (let failed = 1; ; failed += 1) {
      try {
        const { state, load } = await ping(member.name, member.facts.address);
        member.facts = { ...member.facts, state, load };
        return true;
      } catch (error) {
        const isBusy = error instanceof NoAnswer && clock.now() - member.beatenAt <= STALE_MS;
        if (failed >= (isBusy ? PINGS_OF_BUSY : PINGS)) return false;
      }
    }
  }

  #report(instance: string, change: 'joined' | 'left' | 'reachable' | 'unreachable'): void {
    const address = this.addressOf(instance);
    this.#options.events.emit({ kind: 'cluster.member', instance, address, change, members: this.size });
  }

  #noteStore(isUp: boolean, reason?: string): void {
    this.#storeFault = isUp ? undefined : reason;
    // Reports nothing after `leave`, because the store is then closed on purpose.
    if (isUp !== this.#wasUp && !this.#hasLeft)
      this.#options.events.emit({ kind: 'cluster.store', isUp, ...(reason && { reason }) });
    this.#wasUp = isUp;
  }
}

function parseFacts(text: string): MemberFacts | undefined {
  const facts = parseJson(text);
  return isRecord(facts) && typeof facts.address === 'string' ? (facts as unknown as MemberFacts) : undefined;
}
