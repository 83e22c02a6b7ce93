import type { Readable } from 'node:stream';

/** The source of a registered stream, and the reasons for which the stream is paused. */
interface Member {
  readonly source: string | undefined;
  isPausedByClients: boolean;
  isHeld: boolean;
}

/** Pauses one stream for a reason of its own. The stream flows while neither its hold nor the clients pause it. */
export interface Hold {
  pause(): void;
  resume(): void;
}

/**
 * Pauses the streams of servers while their clients cannot keep up. The bytes then wait in the pipe, and in the server that
 * writes them, instead of in the gateway's memory.
 *
 * Each client has a handle (`client()`), with which it pauses all servers or one of them. A stream is paused while there
 * are open handles and all of them pause it, because the next bytes of a server may be for any of its clients. So a client
 * that does not read pauses nothing as long as another client reads. Its own queue has a limit instead: `FairWriter` closes
 * the client. HTTP sessions never pause, because their streams are cut, and the client can fetch the rest.
 *
 * A handle counts its pauses, for all servers and for each source, so that one reason to pause does not end another.
 */
export class Backpressure {
  readonly #streams = new Map<Readable, Member>();
  readonly #clients = new Set<ClientBackpressure>();

  /** Registers the stream until it closes or is released. `source` is the id of the server that writes it. */
  add(stream: Readable, source?: string): Hold {
    const member = { source, isPausedByClients: false, isHeld: false };
    this.#streams.set(stream, member);
    stream.once('close', () => this.#streams.delete(stream));
    this.#update();
    const hold = (isHeld: boolean) => {
      if (this.#streams.has(stream)) this.#change(stream, member, { isHeld });
    };
    return { pause: () => hold(true), resume: () => hold(false) };
  }

  /** Unregisters the stream and resumes it for good. */
  release(stream: Readable): void {
    this.#streams.delete(stream);
    stream.resume();
  }

  client(): ClientBackpressure {
    const client = new ClientBackpressure(this.#clients, () => this.#update());
    this.#clients.add(client);
    this.#update();
    return client;
  }

  /** Pauses or resumes each stream whose state has changed. Streams that are paused for other reasons stay paused. */
  #update(): void {
    for (const [stream, member] of this.#streams)
      this.#change(stream, member, { isPausedByClients: this.#isPausedByAll(member.source) });
  }

  #change(stream: Readable, member: Member, change: Partial<Member>): void {
    const wasPaused = member.isPausedByClients || member.isHeld;
    Object.assign(member, change);
    const isPaused = member.isPausedByClients || member.isHeld;
    if (isPaused === wasPaused) return;
    if (isPaused) stream.pause();
    else stream.resume();
  }

  #isPausedByAll(source: string | undefined): boolean {
    for (const client of this.#clients) if (!client.isPausing(source)) return false;
    return this.#clients.size > 0;
  }
}

/** One client's handle on the backpressure. */
export class ClientBackpressure {
  readonly #all: Set<ClientBackpressure>;
  readonly #update: () => void;
  /** Number of pauses of each source; `undefined` stands for all of them. */
  readonly #counts = new Map<string | undefined, number>();
  #isOpen = true;

  /** `all` are the open handles, with this one. `update` is called when the set of paused sources changes. */
  constructor(all: Set<ClientBackpressure>, update: () => void) {
    this.#all = all;
    this.#update = update;
  }

  /** Whether no other client has an open handle, so that the pauses of this client take effect alone. */
  get isAlone(): boolean {
    return this.#isOpen && this.#all.size === 1;
  }

  /** Whether this client pauses the streams of a source, by a pause of this source or of all sources. */
  isPausing(source: string | undefined): boolean {
    return this.#counts.has(undefined) || (source !== undefined && this.#counts.has(source));
  }

  /** Pauses one source, or all of them, until `resume` was called as often. */
  pause(source?: string): void {
    this.#count(source, 1);
  }

  /** Undoes one `pause` with the same argument. */
  resume(source?: string): void {
    this.#count(source, -1);
  }

  /** The client is gone and pauses nothing any more. */
  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#counts.clear();
    this.#all.delete(this);
    this.#update();
  }

  #count(source: string | undefined, change: 1 | -1): void {
    if (!this.#isOpen) return;
    const count = (this.#counts.get(source) ?? 0) + change;
    if (count > 0) this.#counts.set(source, count);
    else this.#counts.delete(source);
    // Only the first pause and the last resume of a source change the set of paused sources.
    if (count === (change === 1 ? 1 : 0)) this.#update();
  }
}
