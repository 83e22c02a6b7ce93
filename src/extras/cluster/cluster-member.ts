import type { IncomingMessage } from 'node:http';
import { bearerToken } from '../../downstream/http/caller.js';
import type { Caller } from '../../downstream/http/http-client.js';
import type { HttpLimits } from '../../downstream/http/limits.js';
import { type ClientAddress, clientOf } from '../../downstream/http/listener.js';
import { instanceOfSession } from '../../downstream/http/sealed-ids.js';
import type { EventSink } from '../../host/observe/events/events.js';
import type { Keys } from '../../host/sealed-bytes.js';
import type { Cancel, Clock } from '../../wire/timing/clock.js';
import { GATEWAY, type GatewayClients, Homes, homeKey, type PlacedRequest, RENEW_MS } from './homes.js';
import { Hops, type PassedRequest } from './hop.js';
import { type MemberFacts, Members } from './members.js';
import { PeerListener } from './peer-listener.js';
import { openSubject, RequestSigner, RequestVerifier, sealSubject } from './signed-request.js';
import { SoleServers } from './sole-servers.js';
import type { ClusterStore } from './store.js';

export interface ClusterOptions {
  readonly store: ClusterStore;
  /** The name of this process. */
  readonly instance: string;
  /** Keys that all gateways of the cluster have. */
  readonly keys: Keys;
  /** Host and port at which the others reach this gateway. */
  readonly advertise: string;
  readonly listen: { readonly host: string; readonly port: number };
  readonly version: string;
  /** Returns a digest of the servers that this gateway offers. */
  readonly servers: () => string;
  /** Keys for the tokens of users between gateways. */
  readonly subjectKeys: Keys;
  /** Takes the token of a user; `undefined` while no server gets one in exchange. */
  readonly noteToken: () => ((principal: string, token: string) => void) | undefined;
  /** Names in lower case of the headers of clients that servers get. */
  readonly passedHeaders: () => readonly string[];
  readonly limits: HttpLimits;
  readonly clock: Clock;
  readonly events: EventSink;
}

const TICK_MS = 2_000;
/**
 * Age of the last tick, in milliseconds, beyond which others may take this gateway for dead. They need at least three unanswered
 * pings, which take 4.5 s.
 */
const LATE_MS = 4_000;
/** How often a draining gateway gives away idle users and sessions, in milliseconds. */
const RELEASE_MS = 200;

/** A request of a client that another gateway has authenticated and passed on. */
export interface ReceivedRequest {
  readonly caller: Caller;
  readonly endpoint: string | undefined;
  readonly client: ClientAddress;
  /** Where the sole server runs for which another gateway sends the request. `undefined` for a request of a client. */
  readonly server: 'here' | 'moving' | 'elsewhere' | undefined;
  /** Whether these are the bytes that the other gateway has passed on. */
  isBody(body: Uint8Array): boolean;
}

export type Passed =
  /** The client has its answer, or has left. */
  | { readonly kind: 'answered' }
  /** The request was not served there. `home` is another gateway that serves it, `undefined` this one. */
  | { readonly kind: 'moved'; readonly home: string | undefined }
  /** The other gateway ended, or the connection broke, before the answer began. The request may have taken effect. */
  | { readonly kind: 'lost' };

/**
 * This gateway as a member of the cluster: its homes, its connections to the other gateways, and its sole servers. Instance names
 * are the names of gateways.
 */
export class ClusterMember {
  readonly #options: ClusterOptions;
  readonly #signer: RequestSigner;
  readonly #members: Members;
  readonly #hops: Hops;
  readonly #homes: Homes;
  readonly #listener: PeerListener;
  readonly soleServers: SoleServers;
  #state: MemberFacts['state'] = 'ready';
  #tickedAt: number;
  #renewedAt: number;
  #fence: Promise<void> | undefined;
  #cancelTick: Cancel = () => {};
  #cancelRelease: Cancel = () => {};
  #hasLeft = false;

  private constructor(options: ClusterOptions, clients: GatewayClients) {
    this.#options = options;
    const { store, instance: self, keys, clock, events, limits, advertise: address, version, servers } = options;
    this.#signer = new RequestSigner(keys, self);
    const facts = () => ({ address, version, servers: servers(), state: this.#state, load: this.#homes.size });
    this.#hops = new Hops({ clock, signer: this.#signer, passedHeaders: options.passedHeaders });
    this.#members = new Members({
      store,
      keys,
      self,
      facts,
      clock,
      events,
      ping: (name, at) => this.#hops.ping({ name, address: at }),
      isInUse: (name) => this.#hops.isAwaited(name) || this.#listener.isConnected(name),
      onUnreachable: (name) => {
        this.#homes.forget(name);
        this.#hops.break(name);
        this.#listener.break(name);
      },
    });
    this.#homes = new Homes({
      store,
      members: this.#members,
      self,
      clients,
      clock,
      events,
      ask: (name, key) => this.#hops.isHome({ name, address: this.#members.addressOf(name) ?? '' }, key),
    });
    this.#listener = new PeerListener({
      limits,
      events,
      clock,
      facts,
      verifier: new RequestVerifier(keys, self),
      view: () => this.#members.view,
      isHome: (key) => this.#homes.has(key),
      // A gateway that joins asks all others.
      onPing: (name) => this.#members.isKnown(name) || this.#inBackground(this.#members.refresh(name)),
      serve: clients.serve,
    });
    this.soleServers = new SoleServers({
      store,
      self,
      address,
      clock,
      addressOf: (name) => this.reachable(name) && this.#members.addressOf(name),
      // A gateway that has just joined has not asked the others yet.
      known: async (name) => {
        if (!this.#members.isKnown(name)) await this.#members.refresh(name);
      },
      sign: (request) => this.#signer.sign(request),
      hasOthers: () => this.#members.ready.some(({ name }) => name !== self),
      onInternalError: (error) => events.emit({ kind: 'internal.error', error }),
    });
    this.#tickedAt = clock.now();
    this.#renewedAt = clock.now();
  }

  /** Joins the cluster, also if its store is away. Rejects if the peer port cannot be opened. */
  static async join(options: ClusterOptions, clients: GatewayClients): Promise<ClusterMember> {
    const cluster = new ClusterMember(options, clients);
    const { host, port } = options.listen;
    try {
      await cluster.#listener.listen(host, port);
    } catch (error) {
      await cluster.close();
      throw error;
    }
    // Connects to the store. Goes on if the store is away.
    await cluster.#members.beat();
    cluster.#tickedAt = options.clock.now();
    cluster.#scheduleTick();
    return cluster;
  }

  get size(): number {
    return this.#members.size;
  }

  get facts() {
    const members: Record<string, number> = { ready: 0, draining: 0, unreachable: 0 };
    for (const { state } of this.#members.status) members[state] = (members[state] ?? 0) + 1;
    const { counts: hops } = this.#hops;
    const { counts: received } = this.#listener;
    return { members, homes: this.#homes.size, isStoreUp: this.#options.store.isUp, hops, received };
  }

  get connections(): number {
    return this.#listener.connections;
  }

  /** Whether a request other than a standing one is passed on at the moment, or a sole server is being moved. */
  get hasCalls(): boolean {
    return this.#hops.hasCalls || this.soleServers.isMoving;
  }

  /** Returns the request of another gateway; `undefined` for a request of a client. */
  received(request: IncomingMessage): ReceivedRequest | undefined {
    const { caller, client, endpoint, isBody } = this.#listener.received(request) ?? {};
    if (caller === undefined || client === undefined || isBody === undefined) return undefined;
    const isOfGateway = caller.principal.startsWith(GATEWAY);
    const server = isOfGateway ? this.soleServers.placeOf(endpoint ?? '') : undefined;
    return { caller, client, endpoint, isBody, server };
  }

  /** Takes the token of the user of a request that another gateway has passed on. */
  noteSubject(request: IncomingMessage): void {
    const { subject, caller } = this.#listener.received(request) ?? {};
    const { subjectKeys, noteToken } = this.#options;
    if (subject === undefined || caller === undefined) return;
    const token = openSubject(subjectKeys, caller.principal, subject);
    if (token !== undefined) noteToken()?.(caller.principal, token);
  }

  #subjectOf({ request, placed: { caller } }: PassedRequest): string | undefined {
    const { subjectKeys, noteToken } = this.#options;
    const token = bearerToken(request.headers.authorization);
    if (caller.user?.kind !== 'user' || noteToken() === undefined || token === undefined) return undefined;
    return sealSubject(subjectKeys, caller.principal, token);
  }

  /** Returns the gateway that serves the request; `undefined` for this one. Answers at once in the usual case. */
  homeOf(placed: PlacedRequest): string | undefined | Promise<string | undefined> {
    const fence = this.#pauseNoticed();
    if (fence !== undefined) return fence.then(() => this.homeOf(placed));
    const { caller, session } = placed;
    const isOfUser = caller.user?.kind === 'user';
    if (!isOfUser && session?.isOpen() === true) return undefined;
    const key = homeKey(caller, session?.id);
    if (key === undefined) return this.#anyHome();
    if (session === undefined || isOfUser) return this.#homes.of(key);
    // Opens the sealed id only if its home is unknown, because opening takes longer than the rest.
    if (!this.#homes.isKnown(key) && !session.isSound()) return this.#anyHome();
    return this.#homes.of(key, instanceOfSession(session.id));
  }

  /** Returns the gateway that serves a request of another gateway; `undefined` for this one. */
  homeOfReceived(request: IncomingMessage, placed: PlacedRequest): string | undefined | Promise<string | undefined> {
    const fence = this.#pauseNoticed();
    if (fence !== undefined) return fence.then(() => this.homeOfReceived(request, placed));
    const key = this.#listener.received(request)?.key;
    if (key === undefined || (placed.caller.user?.kind !== 'user' && placed.session?.isOpen() === true))
      return undefined;
    return this.#homes.ofReceived(key);
  }

  /** Returns the name if this is another gateway that can be reached. */
  reachable(instance: string | undefined): string | undefined {
    return instance !== undefined && this.#members.isReachable(instance) ? instance : undefined;
  }

  /** Passes a request to the gateway `home`. If that gateway does not serve it, finds the next one. */
  async pass(home: string, passed: PassedRequest): Promise<Passed> {
    const { caller, session } = passed.placed;
    const { endpoint, request } = passed;
    // Another gateway may have named one that has just joined.
    if (!this.#members.isKnown(home)) await this.#members.refresh(home);
    const address = this.reachable(home) && this.#members.addressOf(home);
    const key = homeKey(caller, session?.id);
    const hopped =
      address === undefined
        ? ({ kind: 'unsent', because: 'it has left the cluster, or does not answer' } as const)
        : await this.#hops.pass({ name: home, address }, passed, {
            caller,
            endpoint,
            key,
            client: clientOf(request),
            subject: this.#subjectOf(passed),
          });
    if (hopped.kind === 'unsent' || hopped.kind === 'lost') this.#inBackground(this.#members.doubt(home));
    if (hopped.kind === 'answered' || hopped.kind === 'lost') return hopped;
    if (hopped.kind === 'unsent')
      this.#options.events.emit({ kind: 'cluster.unsent', instance: home, reason: hopped.because });
    if (key === undefined) return { kind: 'moved', home: undefined };
    const next =
      hopped.kind === 'refused' ? this.#homes.moved(key, hopped.home) : await this.#homes.takeOver(key, home);
    return { kind: 'moved', home: next };
  }

  /** Gives the users, sessions and sole servers of this gateway to others, each as soon as none of its calls is in flight. */
  drain(): void {
    this.#state = 'draining';
    this.#inBackground(this.#members.beat());
    this.#inBackground(this.#release());
    this.soleServers.drain();
  }

  /** Ends the standing requests that are passed on. */
  endOpenStreams(): void {
    this.#hops.endOpenStreams();
  }

  async leave(): Promise<void> {
    if (this.#hasLeft) return;
    this.#hasLeft = true;
    this.#cancelTick();
    this.#cancelRelease();
    this.#listener.refuse();
    await this.#members.leave();
  }

  async close(): Promise<void> {
    await this.leave();
    this.#hops.close();
    await this.#listener.close();
    await this.soleServers.closed();
    await this.#options.store.close();
  }

  /** Returns the gateway for a request without a home: this one (`undefined`), or a ready one while this gateway drains. */
  #anyHome(): string | undefined {
    return this.#state === 'ready' ? undefined : this.#members.ready[0]?.name;
  }

  #scheduleTick(): void {
    if (!this.#hasLeft) this.#cancelTick = this.#options.clock.schedule(TICK_MS, () => this.#tick());
  }

  #tick(): void {
    if (this.#pauseNoticed() === undefined) {
      this.#tickedAt = this.#options.clock.now();
      this.#inBackground(this.#look());
    }
    this.#scheduleTick();
  }

  async #look(): Promise<void> {
    const { store, clock } = this.#options;
    const wasUp = store.isUp;
    this.#inBackground(this.#members.ask());
    const isUp = await this.#members.beat();
    if (!isUp || (wasUp && clock.now() - this.#renewedAt < RENEW_MS)) return;
    if (await this.#homes.renew()) this.#renewedAt = clock.now();
  }

  /** Checks the homes after a pause in which others may have taken this gateway for dead. Requests wait for the returned promise. */
  #pauseNoticed(): Promise<void> | undefined {
    if (this.#fence === undefined && this.#options.clock.now() - this.#tickedAt > LATE_MS && !this.#hasLeft)
      this.#fence = this.#afterPause()
        .catch((error: unknown) => this.#options.events.emit({ kind: 'internal.error', error }))
        .finally(() => {
          this.#fence = undefined;
        });
    return this.#fence;
  }

  async #afterPause(): Promise<void> {
    const { clock } = this.#options;
    await this.#members.beat();
    await this.#homes.fence();
    this.#tickedAt = clock.now();
  }

  async #release(): Promise<void> {
    await this.#homes.release();
    if (!this.#hasLeft)
      this.#cancelRelease = this.#options.clock.schedule(RELEASE_MS, () => this.#inBackground(this.#release()));
  }

  #inBackground(work: Promise<unknown>): void {
    work.catch((error: unknown) => this.#options.events.emit({ kind: 'internal.error', error }));
  }
}
