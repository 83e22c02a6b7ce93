// What the gateways of a cluster share, in the memory of the test. `redis-store.system.test.ts` tests the real store.

import { type ClusterStore, StoreUnavailable } from '../../../src/extras/cluster/store.js';

interface Entry {
  readonly value: string | Uint8Array;
  /** How long it was stored for, in milliseconds; infinite for ever. */
  readonly ms: number;
  readonly endsAt: number;
}

/** The data of the store. `now` is in milliseconds. */
export class MemoryServer {
  readonly entries = new Map<string, Entry>();
  readonly now: () => number;
  isAway = false;
  /** Number of the times that the connections broke. */
  breaks = 0;

  constructor(now: () => number = () => 0) {
    this.now = now;
  }

  /** Answers no more, which a connection notices with its next command. */
  stop(): void {
    this.isAway = true;
  }

  restart(): void {
    this.isAway = false;
  }

  /** Breaks all connections, and comes back empty. */
  kill(): void {
    this.isAway = true;
    this.breaks += 1;
    this.entries.clear();
  }

  get(name: string): string | Uint8Array | undefined {
    const entry = this.entries.get(name);
    return entry !== undefined && entry.endsAt > this.now() ? entry.value : undefined;
  }

  set(name: string, value: string | Uint8Array, ms = Number.POSITIVE_INFINITY): void {
    this.entries.set(name, { value, ms, endsAt: this.now() + ms });
  }
}

/** The connection of one gateway. */
export class MemoryStore implements ClusterStore {
  readonly #server: MemoryServer;
  #connectedAt = -1;
  #isClosed = false;

  constructor(server: MemoryServer) {
    this.#server = server;
  }

  get isUp(): boolean {
    return !this.#isClosed && this.#connectedAt === this.#server.breaks;
  }

  async connect(): Promise<void> {
    if (this.#isClosed || this.#server.isAway) throw new StoreUnavailable('the store of the cluster does not answer');
    this.#connectedAt = this.#server.breaks;
  }

  async beat(member: string, text: string, ms: number): Promise<ReadonlyMap<string, string>> {
    await this.connect();
    this.#server.set(`member:${member}`, text, ms);
    const names = [...this.#server.entries.keys()].filter((name) => name.startsWith('member:'));
    const alive = names.flatMap((name): [string, string][] => {
      const value = this.#server.get(name);
      return typeof value === 'string' ? [[name.slice('member:'.length), value]] : [];
    });
    return new Map(alive);
  }

  async leave(member: string): Promise<void> {
    this.#up.entries.delete(`member:${member}`);
  }

  async claim(name: string, holder: string, ms: number, instead?: string): Promise<string> {
    const before = this.#up.get(`claim:${name}`);
    if (before !== undefined && before !== holder && before !== instead) return String(before);
    this.#up.set(`claim:${name}`, holder, ms);
    return holder;
  }

  async holderOf(name: string): Promise<string | undefined> {
    return this.#up.get(`claim:${name}`)?.toString();
  }

  async renew(names: readonly string[], holder: string, ms: number): Promise<readonly string[]> {
    const holders = await Promise.all(names.map((name) => this.claim(name, holder, ms)));
    return names.filter((_, at) => holders[at] !== holder);
  }

  async release(names: readonly string[], holder: string): Promise<void> {
    for (const name of names) if (this.#up.get(`claim:${name}`) === holder) this.#up.entries.delete(`claim:${name}`);
  }

  async read(name: string): Promise<Uint8Array | undefined> {
    const value = this.#up.get(`record:${name}`);
    return typeof value === 'string' ? undefined : value;
  }

  async write(name: string, value: Uint8Array, ms?: number): Promise<void> {
    this.#up.set(`record:${name}`, value, ms);
  }

  async replace(name: string, before: Uint8Array | undefined, value: Uint8Array): Promise<boolean> {
    const present = await this.read(name);
    const isSame = before === undefined ? present === undefined : present && Buffer.compare(before, present) === 0;
    if (isSame) await this.write(name, value);
    return isSame === true;
  }

  async remove(name: string): Promise<void> {
    this.#up.entries.delete(`record:${name}`);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
  }

  /** The server, if it answers. A connection ends with its first failure. */
  get #up(): MemoryServer {
    if (this.#server.isAway) this.#connectedAt = -1;
    if (!this.isUp) throw new StoreUnavailable('the store of the cluster does not answer');
    return this.#server;
  }
}
