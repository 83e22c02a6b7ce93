import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Caller } from './http-client.js';
import type { ClientAddress } from './listener.js';

/*
 * The port between the HTTP transport and a cluster, in which each user and each session has one gateway as its home.
 * Without a cluster, the transport has no placement and serves every request.
 */

/** Header with which a gateway names the one that serves a request, with status 421. */
export const HOME_HEADER = 'trunkline-home';

/** The facts about a request that decide where it is served. */
export interface PlacedRequest {
  readonly caller: Caller;
  /** The session that the request names. */
  readonly session?: {
    readonly id: string;
    /** Whether this gateway has the session. */
    isOpen(): boolean;
    /** Whether any gateway made the id for this caller. Other ids have no home. */
    isSound(): boolean;
  };
}

/** A request of a client that another gateway has authenticated and passed on. */
export interface ReceivedRequest {
  readonly caller: Caller;
  readonly endpoint: string | undefined;
  readonly client: ClientAddress;
  /** Where the server runs that another gateway uses here. `undefined` for a request of a client. */
  readonly server: 'here' | 'moving' | 'elsewhere' | undefined;
  /** Whether these are the bytes that the other gateway has passed on. */
  isBody(body: Uint8Array): boolean;
}

/** A request to pass on, and the response to its client. */
export interface PassedRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Path of the endpoint. */
  readonly url: string;
  readonly body?: Uint8Array | undefined;
  readonly placed: PlacedRequest;
  readonly endpoint: string | undefined;
  /** Whether the request stays open, such as a GET stream or a subscription, and so delays no end of the gateway. */
  readonly isStanding: boolean;
}

/** The facts about a cluster in the metrics. */
export interface ClusterFacts {
  /** Numbers of the gateways by state, with this one. */
  readonly members: Readonly<Record<string, number>>;
  /** Number of the users and sessions that have their homes here. */
  readonly homes: number;
  readonly isStoreUp: boolean;
  /** Requests that were passed to other gateways, by how that ended. */
  readonly hops: Readonly<Record<string, number>>;
  /** Requests of other gateways that were accepted, and that were refused because nothing proved where they came from. */
  readonly received: { readonly accepted: number; readonly refused: number };
}

export type Passed =
  /** The client has its answer, or has left. */
  | { readonly kind: 'answered' }
  /** The request was not served there. `home` is another gateway that serves it, `undefined` this one. */
  | { readonly kind: 'moved'; readonly home: string | undefined }
  /** The other gateway ended, or the connection broke, before the answer began. The request may have taken effect. */
  | { readonly kind: 'lost' };

/** Decides which gateway serves a request, and passes requests to the other gateways. Gateways have the names of their instances. */
export interface Placement {
  /** Number of the gateways in the cluster. */
  readonly size: number;
  readonly facts: ClusterFacts;
  /** Returns the request of another gateway; `undefined` for a request of a client. */
  received(request: IncomingMessage): ReceivedRequest | undefined;
  /** Returns the gateway that serves the request; `undefined` for this one. Answers at once in the usual case. */
  homeOf(placed: PlacedRequest): string | undefined | Promise<string | undefined>;
  /** Returns the gateway that serves a request of another gateway; `undefined` for this one, where it came. */
  homeOfReceived(request: IncomingMessage, placed: PlacedRequest): string | undefined | Promise<string | undefined>;
  /** A session was opened here whose home is here. */
  opened(key: string): void;
  /** Returns the name if this is another gateway that can be reached. */
  reachable(instance: string | undefined): string | undefined;
  pass(home: string, passed: PassedRequest): Promise<Passed>;
  /** Number of the connections of other gateways. */
  readonly connections: number;
  /** Whether a request other than a standing one is passed on at the moment, or a server is to be given away. */
  readonly hasCalls: boolean;
  /** Gives away what this gateway has, each user and session as soon as no call is in flight. */
  drain(): void;
  /** Ends the standing requests that are passed on. */
  endStanding(): void;
  /** Leaves the cluster, so that the others serve its users. */
  leave(): Promise<void>;
  /** Accepts no more requests of other gateways. */
  close(): Promise<void>;
}

/** The clients of this gateway. The keys are those of `homeKey`. */
export interface LocalClients {
  /** The users and sessions that have clients here, each with whether a call of theirs is in flight. */
  homes(): ReadonlyMap<string, boolean>;
  /** The principals with processes here, which may be kept for the next client. */
  principals(): ReadonlySet<string>;
  /** Ends the clients of these users and sessions, and the processes of the users. Returns the number of clients. */
  end(keys: ReadonlySet<string>): number;
  /** Serves a request of another gateway. */
  serve(request: IncomingMessage, response: ServerResponse): void;
}

/** Joins the cluster before the first request is served. */
export type JoinCluster = (local: LocalClients) => Promise<Placement>;

/** Beginning of the principals of gateways, which use servers that run on another one. No principal of a client has a colon. */
export const GATEWAY = 'gateway:';

const USER = 'user:';

/** The principal of the user with this key; `undefined` for the key of a session. */
export function userOf(key: string): string | undefined {
  return key.startsWith(USER) ? key.slice(USER.length) : undefined;
}

/**
 * Returns the key under which a request has a home: of all clients of a user together, because they share the user's processes;
 * of one session, for holders of a token that many share. `undefined` for their requests without a session.
 */
export function homeKey({ principal, user }: Caller, sessionId: string | undefined): string | undefined {
  if (principal.startsWith(GATEWAY)) return undefined;
  if (user?.kind === 'user') return `${USER}${principal}`;
  return sessionId === undefined ? undefined : `session:${createHash('sha256').update(sessionId).digest('base64url')}`;
}
