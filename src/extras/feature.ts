/*
 * Optional features, one folder each. The `index.ts` of a folder exports one function, which makes the feature, and loads the rest
 * when the configuration turns it on. The gateway runs without any feature. To add one, write its folder, list the folder in
 * `FOLDERS` of `test/layers.test.ts`, and put its function into `commonFeatures` of `src/app/serve-clients.ts`.
 */
import type { Config } from '../config/resolve/config.js';
import type { HttpRoute, RouteAnswer } from '../downstream/http/http-route.js';
import type { Decorate } from '../downstream/http/server.js';
import type { SessionRecords } from '../downstream/http/session-records.js';
import type { ClientOrigin, User } from '../downstream/port.js';
import type { IssuerDocument, IssuerMetadata } from '../downstream/users/issuer-document.js';
import type { CallFeed } from '../gateway/call-feed.js';
import type { Gateway, GatewaySettings } from '../gateway/gateway.js';
import type { OwnTool } from '../gateway/routing/own-tool.js';
import type { RequestGate } from '../gateway/routing/request-gate.js';
import type { EventSink, EventSource } from '../host/observe/events/events.js';
import type { Logger } from '../host/observe/logger.js';
import type { KnownSecrets } from '../host/observe/redact.js';
import type { ChildSpec, RemoteSpec } from '../spec/server-spec.js';
import type { Seals } from '../state/seal.js';
import type { StatusFacts } from '../status/status-facts.js';
import type { Vault } from '../upstream/auth/vault.js';
import type { OpenedAccess } from '../upstream/http/access.js';
import type { HttpReading } from '../upstream/http/http-dialer.js';
import type { ToolHeaders } from '../upstream/http/http-session.js';
import type { Dialed, Dialer, DialTarget, UpstreamListener } from '../upstream/upstream-connection.js';
import type { MessageFeed } from '../wire/io/message-feed.js';
import type { ScanEnvelope } from '../wire/mcp/envelope.js';
import type { Clock } from '../wire/timing/clock.js';

export interface Feature {
  /**
   * Follows the configuration: once before the gateway opens for clients, and again with each change. Never throws or rejects,
   * because calls are served without the feature too. Resolves when the feature works as configured.
   */
  apply(config: Config): void | Promise<void>;
  /** Ends the feature, while the servers stop. `stopped` resolves when they have stopped. */
  close(stopped: Promise<unknown>): void | Promise<void>;
  /** Loads the code that the feature needs later, because its files may be gone after an update. */
  preload?(): Promise<unknown>;
  /** Tools of Trunkline's own. If a tool is another object than before, clients are told that their lists have changed. */
  readonly tools?: readonly OwnTool[];
  /** Holds requests back. Present as soon as `apply` of a configuration that needs the gate has been called, and not only resolved. */
  readonly gate?: RequestGate | undefined;
  /** Asks persons about calls. Absent until the first question. */
  readonly questions?: { answer(id: string, answer: 'yes' | 'no'): boolean } | undefined;
  readonly results?: GatewaySettings['results'];
  readonly facts?: Partial<StatusFacts>;
  /** Texts for the operator's programs, by name. Only `metrics` is shown, by `trunkline metrics` and `GET /metrics`. */
  readonly texts?: Readonly<Record<string, () => Promise<string>>>;
  /** Parts of the feature for the HTTP listener: the function that wraps its endpoint, and the records of sessions. */
  readonly http?: { readonly decorate: Decorate; readonly records: SessionRecords } | undefined;
  /** Returns HTTP routes that need no token. Called once, if users can log in at an identity provider. */
  routes?(users: GatewayUsers): Promise<readonly HttpRoute[]>;
  /** Knows the persons in browsers. Present when the routes of the feature are served. */
  readonly persons?: Persons | undefined;
  /** Offers a person the login at a server with `login: user`: the address of the page, and the code that the page shows. */
  offerLogin?(server: string, person: Person): LoginPage;
  /** Resolves with false if a gateway with the same users has claimed it already. Rejects if the store does not answer. */
  takeOnce?(name: string, ms: number): Promise<boolean>;
  /**
   * Opens the access of one connection to a server, in place of the headers of the entry and of a login. Returns `undefined` for a
   * server whose access another part gives.
   */
  openAccess?(spec: RemoteSpec): OpenedAccess | undefined;
  /** Takes the token of each request of a user, which was checked. Absent while no server needs it. */
  readonly noteToken?: ((principal: string, token: string) => void) | undefined;
  /** Drops the data about a removed user from the memory of the feature, and the tickets that were given out for logins of the user. */
  forget?(principal: string): void;
  /** Opens the vault of logins that this process shares with others. */
  openVault?(): Promise<Vault>;
  /** Starts or reaches the servers that run on one gateway of a cluster only. Present when the HTTP listener is open. */
  readonly soleServers?: SoleServerDialer | undefined;
  /** Absent if the gateway serves alone. */
  readonly cluster?: ClusterFacts | undefined;
}

/** The users of the HTTP listener, for pages that they open in a browser. */
export interface GatewayUsers {
  /** Reads the metadata of their identity provider. */
  readonly provider: IssuerDocument<IssuerMetadata>;
  /** The user of an access token, which is not kept; `undefined` if the token is not accepted. */
  userOf(token: string): Promise<User | undefined>;
  /** The variables and the folder with which the servers of a person run. */
  originOf(person: Person): ClientOrigin;
}

/** A user, in a browser. */
export interface Person {
  readonly principal: string;
  readonly name: string;
}

/** A person who has signed in, with those groups of the user that the configuration names in `gateway.ask.by`. */
export interface SignedInPerson extends Person {
  readonly groups: readonly string[];
}

/** Knows the persons in browsers, by their logins at the identity provider. */
export interface Persons {
  /** The person who has signed in lately in the browser with these cookies; `undefined` if nobody has. */
  personOf(cookies: string | undefined): SignedInPerson | undefined;
  /** Sends the browser to the identity provider, and from there back to a path of this gateway. */
  signIn(path: string, cookies: string | undefined): Promise<RouteAnswer>;
}

export interface LoginPage {
  readonly url: string;
  readonly code: string;
}

/** Dials a server by its key: here, or at the gateway that runs it. */
export interface SoleServerDialer {
  dial(
    key: string,
    target: DialTarget<ChildSpec> & ToolHeaders,
    listener: UpstreamListener,
    dialers: {
      readonly processes: Dialer<ChildSpec>;
      /** Options of a connection to the process at another gateway. */
      readonly remote: HttpReading;
    },
  ): Dialed;
}

/** Makes a feature. Parts of `host`, such as `gateway`, are made later, so use them only after the first `apply` has returned. */
export type CreateFeature = (host: FeatureHost) => Feature;

/** The parts of a running gateway that features use. */
export interface FeatureHost {
  readonly platform: {
    readonly clock: Clock;
    readonly events: EventSource & EventSink;
    readonly messages: MessageFeed;
    readonly scan: ScanEnvelope;
  };
  readonly gateway: Gateway;
  readonly calls: CallFeed;
  readonly config: Config;
  readonly secrets: KnownSecrets;
  readonly logger: Logger;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly seals: Seals;
  /** Sentences to the user about Trunkline itself, for the status, by subject. */
  readonly notices: Map<string, string>;
  readonly features: Features;
  openVault(): Promise<Vault>;
  status(): StatusFacts;
  /** Connects the server of a user again, because another token may be accepted. */
  accessChanged(server: string, user: string): void;
  readonly usage: {
    /** Measures all servers: memory in bytes, processes, and processor time in milliseconds, by the pid of their group. */
    readAll(): Promise<ReadonlyMap<number, { memoryBytes: number; processes: number; cpuMs: number }>>;
  };
}

export interface ClusterFacts {
  /** Numbers of the gateways by state, including this one. */
  readonly members: Readonly<Record<string, number>>;
  /** Number of the users and sessions that have their homes here. */
  readonly homes: number;
  readonly isStoreUp: boolean;
  /** Numbers of requests that were passed to other gateways, by outcome. */
  readonly hops: Readonly<Record<string, number>>;
  /** Numbers of requests to the peer port: passed on by gateways and accepted; refused, because their signature was not valid. */
  readonly received: { readonly accepted: number; readonly refused: number };
}

/** All features of a gateway as one. */
export class Features {
  readonly #all: readonly Feature[];

  constructor(all: readonly Feature[]) {
    this.#all = all;
  }

  async apply(config: Config): Promise<void> {
    await Promise.all(this.#all.map((feature) => feature.apply(config)));
  }

  async close(stopped: Promise<unknown>): Promise<void> {
    await Promise.all(this.#all.map((feature) => feature.close(stopped)));
  }

  async preload(): Promise<void> {
    await Promise.allSettled(this.#all.map((feature) => feature.preload?.()));
  }

  get tools(): readonly OwnTool[] {
    return this.#all.flatMap(({ tools = [] }) => tools);
  }

  get gates(): readonly RequestGate[] {
    return this.#all.flatMap(({ gate }) => gate ?? []);
  }

  get routes(): Feature['routes'] {
    const all = this.#all.filter(({ routes }) => routes !== undefined);
    if (all.length === 0) return undefined;
    return async (users) => (await Promise.all(all.map((feature) => feature.routes?.(users) ?? []))).flat();
  }

  openAccess(spec: RemoteSpec): OpenedAccess | undefined {
    for (const feature of this.#all) {
      const opened = feature.openAccess?.(spec);
      if (opened !== undefined) return opened;
    }
    return undefined;
  }

  forget(principal: string): void {
    for (const feature of this.#all) feature.forget?.(principal);
  }

  get facts(): Partial<StatusFacts> {
    return Object.assign({}, ...this.#all.map(({ facts }) => facts));
  }

  get texts(): NonNullable<Feature['texts']> {
    return Object.assign({}, ...this.#all.map(({ texts }) => texts));
  }

  /** The part of the first feature that has it. */
  first<Name extends keyof Feature>(name: Name): Feature[Name] | undefined {
    return this.#all.find((feature) => feature[name] !== undefined)?.[name];
  }
}

/** Runs one task, such as a recording to a file, for as long as a setting has a value for it. */
export class Switch {
  readonly #begin: (wanted: string) => Promise<(() => Promise<void>) | undefined>;
  #running: { readonly wanted: string; readonly end: () => Promise<void> } | undefined;
  /** The latest change. Each change waits for the change before it. */
  #changes: Promise<void> = Promise.resolve();

  /** `begin` starts the task, and resolves with the function that ends it; `undefined` if it cannot start. It never rejects. */
  constructor(begin: (wanted: string) => Promise<(() => Promise<void>) | undefined>) {
    this.#begin = begin;
  }

  /** Ends the running task if `wanted` is another value, and starts one with the new value; `undefined` starts none. */
  set(wanted: string | undefined): Promise<void> {
    this.#changes = this.#changes.then(async () => {
      if (this.#running?.wanted === wanted) return;
      await this.#running?.end();
      this.#running = undefined;
      const end = wanted === undefined ? undefined : await this.#begin(wanted);
      if (wanted !== undefined && end !== undefined) this.#running = { wanted, end };
    });
    return this.#changes;
  }

  close(): Promise<void> {
    return this.set(undefined);
  }
}
