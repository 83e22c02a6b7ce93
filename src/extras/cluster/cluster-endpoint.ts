/*
 * A cluster: several gateways that serve the same clients behind a load balancer. `app` turns it on. Begin here, where requests
 * come in. `homes.ts` says which gateway serves a user or a session, `hop.ts` and `peer-listener.ts` carry requests between
 * gateways, `members.ts` knows which gateways live, `sole-servers.ts` runs a server once, `redis-store.ts` has their common data.
 */

import type { IncomingMessage, RequestListener } from 'node:http';
import { type HttpRefusal, MOVED, UNKNOWN_SESSION } from '../../downstream/http/http-refusal.js';
import { passedOnFor } from '../../downstream/http/listener.js';
import { type Endpoint, type HttpEndpoint, isSubscription, type Served } from '../../downstream/http/mcp-endpoint.js';
import type { McpRequest } from '../../downstream/http/mcp-request.js';
import { ClusterMember, type ClusterOptions, type ReceivedRequest } from './cluster-member.js';
import { GATEWAY, type GatewayClients, homeKey, type PlacedRequest, userOf } from './homes.js';
import { HOME_HEADER } from './hop.js';

interface ClusterEndpointOptions extends ClusterOptions {
  /** Whether each caller is a user or a machine with a token of its own. */
  readonly hasUsers: boolean;
}

/** Limit of the gateways that are tried for one request. More would be needed only if users and sessions moved all the time. */
const MAX_HOPS = 3;

/** The answers to another gateway that has sent a request to this one. */
const NOT_SIGNED: HttpRefusal = { status: 401, message: 'The body is not the one that was signed' };
const OTHER_USERS: HttpRefusal = {
  status: 401,
  message: 'Another gateway of the cluster has another `gateway.http.auth`, so this one serves none of its clients',
};
const misdirected = (home: string): HttpRefusal => ({
  status: 421,
  message: 'Another gateway serves this',
  headers: { [HOME_HEADER]: home },
});

/**
 * The endpoint of a gateway of a cluster. Passes a request to the gateway that is the home of its user or session, and serves
 * the requests that other gateways have authenticated and passed on. All else is left to the endpoint of this process.
 */
export class ClusterEndpoint implements HttpEndpoint {
  readonly cluster: ClusterMember;
  readonly #endpoint: Endpoint;
  readonly #hasUsers: boolean;
  /** The gateways to which requests of clients are to be passed. */
  readonly #homes = new WeakMap<McpRequest, string>();

  constructor(cluster: ClusterMember, endpoint: Endpoint, hasUsers: boolean) {
    this.cluster = cluster;
    this.#endpoint = endpoint;
    this.#hasUsers = hasUsers;
  }

  /** Joins the cluster, also if its store is away. Rejects if the peer port cannot be opened. */
  static async join(
    { hasUsers, ...options }: ClusterEndpointOptions,
    endpoint: Endpoint,
    route: RequestListener,
  ): Promise<ClusterEndpoint> {
    const cluster = await ClusterMember.join(options, clientsOf(endpoint, route));
    return new ClusterEndpoint(cluster, endpoint, hasUsers);
  }

  async identify(request: McpRequest): Promise<HttpRefusal | undefined> {
    const received = this.#received(request);
    if (received === undefined) return await this.#endpoint.identify(request);
    passedOnFor(request.raw, received.client);
    // Leaves out `tokenEndsAt`, a time on the clock of the other gateway, because that gateway ends the open streams.
    const { tokenEndsAt: _, ...caller } = received.caller;
    request.caller = caller;
    request.endpoint = received.endpoint;
    this.cluster.noteSubject(request.raw);
    // Makes the other gateway find out where the server runs.
    if (received.server === 'elsewhere') return UNKNOWN_SESSION;
    // Refuses the clients of a gateway whose configuration authenticates them in another way.
    const isOther = received.server === undefined && (caller.user !== undefined) !== this.#hasUsers;
    return isOther ? OTHER_USERS : undefined;
  }

  refuseRate(request: McpRequest): HttpRefusal | undefined {
    // The other gateway has counted the requests of its clients.
    if (request.caller.principal.startsWith(GATEWAY)) return undefined;
    // A caller that is no user has sessions at all gateways, so each gateway allows only its part of the rate.
    return this.#endpoint.refuseRate(request, request.isOfUser ? 1 : this.cluster.size);
  }

  async admit(request: McpRequest): Promise<HttpRefusal | undefined> {
    const received = this.#received(request);
    const home = request.closed === undefined ? await this.#homeOf(request, received) : undefined;
    if (home !== undefined && received !== undefined) return misdirected(home);
    if (home !== undefined) this.#homes.set(request, home);
    // The gateway that serves the request counts it.
    const tooMany = home === undefined ? this.refuseRate(request) : undefined;
    return tooMany ?? this.#endpoint.refuseHeaders(request);
  }

  async serve(request: McpRequest): Promise<Served> {
    const received = this.#received(request);
    if (received === undefined) return (await this.#passed(request)) ?? (await this.#endpoint.serve(request));
    const { post } = request;
    if (post !== undefined && !received.isBody(post.body)) return NOT_SIGNED;
    // The server may have moved while the body came.
    if (received.server === 'elsewhere') return UNKNOWN_SESSION;
    if (received.server === 'moving' && post?.message.kind === 'request') return MOVED;
    return await this.#endpoint.serve(request);
  }

  get hasCalls(): boolean {
    return this.#endpoint.hasCalls || this.cluster.hasCalls;
  }

  get otherConnections(): number {
    return this.cluster.connections;
  }

  /** Gives the users and sessions of this gateway to others, each as soon as none of its calls is in flight. */
  drain(): void {
    this.cluster.drain();
  }

  endStreams(): void {
    this.#endpoint.endStreams();
    this.cluster.endOpenStreams();
  }

  async endClients(): Promise<void> {
    // Leaves the cluster first, so that the others serve the users whose sessions end here.
    await this.cluster.leave();
    await this.#endpoint.endClients();
  }

  async close(): Promise<void> {
    await this.cluster.close();
    await this.#endpoint.close();
  }

  #received({ raw }: McpRequest): ReceivedRequest | undefined {
    return this.cluster.received(raw);
  }

  /** Finds the gateway that serves the request, as far as the headers tell. */
  #homeOf(
    request: McpRequest,
    received: ReceivedRequest | undefined,
  ): string | undefined | Promise<string | undefined> {
    const placed = this.#placed(request);
    return received === undefined ? this.cluster.homeOf(placed) : this.cluster.homeOfReceived(request.raw, placed);
  }

  #placed(request: McpRequest): PlacedRequest {
    const { caller, sessionId: id } = request;
    if (id === undefined || request.isModern) return { caller };
    const isOpen = () => this.#endpoint.sessionOf(request) !== undefined;
    return { caller, session: { id, isOpen, isSound: () => this.#endpoint.canResume(request) } };
  }

  /** Resolves with `undefined` if it has to be served here after all, because its home has ended, or has moved here. */
  async #passed(request: McpRequest): Promise<Served | undefined> {
    const { raw, response, url, post, endpoint } = request;
    let home = this.#namedIn(request) ?? this.#homes.get(request);
    if (home === undefined) return undefined;
    const placed = this.#placed(request);
    const staysOpen = post === undefined || isSubscription(post.message);
    for (let tries = 0; home !== undefined; tries += 1) {
      if (tries === MAX_HOPS) return MOVED;
      const to = { request: raw, response, url, body: post?.body, placed, endpoint, staysOpen };
      const passed = await this.cluster.pass(home, to);
      if (passed.kind === 'answered') return 'answered';
      if (passed.kind === 'lost' && this.#endpoint.answerLost(request)) return 'answered';
      home = passed.kind === 'moved' ? passed.home : await this.cluster.homeOf(placed);
    }
    return this.refuseRate(request);
  }

  /** Returns the gateway that has the task or the suspended call that a request without a session names; `undefined` for this one. */
  #namedIn({ post, isOfUser }: McpRequest): string | undefined {
    const { core } = this.#endpoint;
    if (post === undefined || isOfUser || !core.isSessionless(post.message)) return undefined;
    return this.cluster.reachable(core.instanceIn(post.message));
  }
}

/** Adapts the clients of this gateway to `GatewayClients`, grouped by the keys of `homeKey`. */
function clientsOf(endpoint: Endpoint, route: RequestListener): GatewayClients {
  type Client = Endpoint['clients'][number];
  const keys = new WeakMap<Client, string>();
  const keyOf = (client: Client) => {
    const key = keys.get(client) ?? homeKey(client.owner, client.sessionId);
    if (key !== undefined) keys.set(client, key);
    return key;
  };
  return {
    homes: () => {
      const homes = new Map<string, boolean>();
      for (const client of endpoint.clients) {
        const key = keyOf(client);
        if (key !== undefined) homes.set(key, client.hasCalls || homes.get(key) === true);
      }
      return homes;
    },
    principals: () => endpoint.core.principals(),
    end: (ended) => {
      // Clients in the middle of their handshake are left to the next renewal of the homes, because most clients do not repeat
      // a handshake that was refused.
      const isMoved = (client: Client) => ended.has(keyOf(client) ?? '') && !client.isBeginning;
      const moved = new Set(endpoint.clients.filter(isMoved));
      endpoint.endMoved(moved);
      const users = [...ended].flatMap((key) => userOf(key) ?? []);
      for (const principal of new Set([...users, ...[...moved].map(({ owner }) => owner.principal)]))
        endpoint.core.endKept(principal);
      return moved.size;
    },
    serve: (request: IncomingMessage, response) => route(request, response),
  };
}
