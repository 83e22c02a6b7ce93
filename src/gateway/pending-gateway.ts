import type {
  ClientFacts,
  DownstreamClient,
  Exchange,
  GatewayDescription,
  GatewayPort,
  GatewaySession,
  ListCaching,
} from '../downstream/port.js';
import { RPC_CODES, RpcError } from '../wire/jsonrpc/message.js';

/** Trunkline's instructions for a model. Notices and the instructions of servers follow. */
export const ABOUT =
  'Trunkline shows the tools of several MCP servers as one set; a tool name begins with the key of its server and "__". If a tool is missing or fails, call trunkline__status, which shows the state of each server and what to do.';

/** Limit of the queued requests of one client. No client sends as many while the configuration is read. */
const MAX_QUEUED = 1_024;

/** Answers `initialize` before the gateway has been composed, and queues requests until then. */
export class PendingGateway implements GatewayPort {
  readonly #known: (facts: ClientFacts) => GatewayDescription;
  #gateway: GatewayPort | undefined;
  #newest: Opened | undefined;
  readonly #waiting = new Set<PendingSession>();

  /** `known` describes the servers to a client that connects before the gateway exists. */
  constructor(known: (facts: ClientFacts) => GatewayDescription) {
    this.#known = known;
  }

  /** Whether a client that connected before the gateway existed is still connected. */
  get isAwaited(): boolean {
    return this.#waiting.size > 0;
  }

  /** The client that connected last, with its session of the composed gateway. Absent until the gateway exists. */
  get newest(): Opened | undefined {
    return this.#newest;
  }

  open(client: DownstreamClient, facts: ClientFacts): GatewaySession {
    if (this.#gateway !== undefined) {
      const session = this.#gateway.open(client, facts);
      this.#newest = { facts, session };
      return session;
    }
    const onClosed = () => this.#waiting.delete(session);
    const session = new PendingSession(client, facts, this.#known(facts), onClosed);
    this.#waiting.add(session);
    return session;
  }

  get seals(): GatewayPort['seals'] {
    return this.#gateway?.seals;
  }

  describe(facts: ClientFacts): GatewayDescription {
    return this.#gateway?.describe(facts) ?? this.#known(facts);
  }

  /** Passes all queued and later requests to the gateway. */
  passTo(gateway: GatewayPort): void {
    this.#gateway = gateway;
    for (const session of this.#waiting) this.#newest = session.passTo(gateway);
    this.#waiting.clear();
  }
}

interface Opened {
  readonly facts: ClientFacts;
  readonly session: GatewaySession;
}

/** The session of a client that connected before the gateway existed. The gateway's own session replaces it. */
class PendingSession implements GatewaySession {
  readonly offered: GatewayDescription['offered'];
  readonly instructions: string;
  readonly #client: DownstreamClient;
  readonly #facts: ClientFacts;
  readonly #onClosed: () => void;
  #queued: Exchange[] = [];

  constructor(client: DownstreamClient, facts: ClientFacts, known: GatewayDescription, onClosed: () => void) {
    this.#client = client;
    this.#facts = facts;
    this.offered = known.offered;
    this.instructions = known.instructions;
    this.#onClosed = onClosed;
  }

  passTo(gateway: GatewayPort): Opened {
    const session = gateway.open(this.#client, this.#facts);
    this.#client.sessionReplaced(session);
    for (const exchange of this.#queued.splice(0)) if (!exchange.isSettled) session.serve(exchange);
    return { facts: this.#facts, session };
  }

  serve(exchange: Exchange): void {
    if (this.#queued.length < MAX_QUEUED) this.#queued.push(exchange);
    else exchange.fail(new RpcError(RPC_CODES.internalError, 'Trunkline is still starting'));
  }

  /** Returns nothing. A client of one server alone connects over HTTP, where the gateway exists before its clients. */
  handshake(): undefined {
    return undefined;
  }

  /** Returns nothing, because the tools are not known yet. */
  mirroredParams(): readonly [] {
    return [];
  }

  caching(): ListCaching {
    return { isSettled: false, freshMs: Number.POSITIVE_INFINITY, isPublic: false };
  }

  /** Refuses the watch, because no server can have tasks yet. */
  watchTask(_: string, settled: (agreed: boolean) => void): () => void {
    settled(false);
    return () => {};
  }

  /** Drops notifications, because none concerns a server before the gateway exists. */
  notified(): void {}

  close(): void {
    this.#onClosed();
  }
}
