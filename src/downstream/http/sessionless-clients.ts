import type { ServerResponse } from 'node:http';
import { type Answer, RPC_CODES } from '../../jsonrpc/message.js';
import type { Envelope, RequestEnvelope } from '../../mcp/envelope.js';
import { METHODS } from '../../mcp/methods.js';
import { MODERN_CODES } from '../../mcp/revisions.js';
import type { MirroredParam } from '../port.js';
import { EventStream } from './event-stream.js';
import type { HttpSessionPort } from './http-client.js';
import { PostingClient, type PostingClientOptions, PostingClients } from './posting-client.js';
import { FULL, GONE, type HttpRefusal, SHUTTING_DOWN, unknownEndpoint } from './refusal.js';

interface SessionlessClientsOptions extends Omit<PostingClientOptions, 'client'> {
  readonly open: HttpSessionPort['openSession'];
}

/** The clients without a session: one for each token and endpoint, until it has been idle for the time of a session. */
export class SessionlessClients {
  readonly #options: SessionlessClientsOptions;
  /** The least recently used first. */
  readonly #clients: PostingClients<SessionlessClient>;

  constructor(options: SessionlessClientsOptions) {
    this.#options = options;
    this.#clients = new PostingClients(options.clock, (client) => this.#end(client, GONE));
  }

  get size(): number {
    return this.#clients.size;
  }

  /** Returns the client of this token at this endpoint, or the refusal if there is none. */
  of(principal: string, endpoint: string | undefined): SessionlessClient | HttpRefusal {
    // Neither contains a line break.
    const id = `${principal}\n${endpoint ?? ''}`;
    const known = this.#clients.get(id);
    if (known === undefined) return this.#opened(id, principal, endpoint);
    this.#clients.delete(known);
    known.touch();
    this.#clients.add(known);
    return known;
  }

  close(): void {
    for (const client of this.#clients.all()) this.#end(client, SHUTTING_DOWN);
    this.#clients.close();
  }

  #opened(id: string, principal: string, endpoint: string | undefined): SessionlessClient | HttpRefusal {
    const { limits, open } = this.#options;
    if (this.size >= limits.maxSessions && !this.#makeRoom()) return FULL;
    const session = open(endpoint, principal, () => this.#end(client, GONE));
    if (session === undefined) return unknownEndpoint(endpoint);
    const client = new SessionlessClient(id, { ...this.#options, client: session });
    this.#clients.add(client);
    return client;
  }

  /** Ends the least recently used client without a request in flight; returns `false` if there is none. */
  #makeRoom(): boolean {
    const idle = this.#clients.all().find(({ isBusy }) => !isBusy);
    if (idle !== undefined) this.#end(idle, GONE);
    return idle !== undefined;
  }

  #end(client: SessionlessClient, refusal: HttpRefusal): void {
    if (this.#clients.delete(client)) client.close(refusal);
  }
}

/**
 * All programs that send requests without a session to one endpoint with one token. They may be unrelated, so each POST
 * stands alone, and only its response connects it to its program.
 */
export class SessionlessClient extends PostingClient {
  readonly id: string;

  constructor(id: string, options: PostingClientOptions) {
    super(options);
    this.id = id;
  }

  /** Parameters that this call must repeat in its headers. */
  mirroredParams(call: RequestEnvelope): readonly MirroredParam[] {
    return call.method === METHODS.callTool ? this.client.mirroredParams(call) : [];
  }

  /** Serves a POST. Closing the response cancels its request. */
  post(message: Envelope, response: ServerResponse): void {
    const openStream = () => {
      const stream = new EventStream();
      stream.begin(this.connection(response), false);
      return stream;
    };
    this.serve(message, response, { openStream, statusOf, isAbandonedByClosing: true, onOver: () => {} });
  }

  /** Refuses the requests without an event stream first. Event streams may get a last message while their requests end. */
  close(refusal: HttpRefusal): void {
    for (const post of [...this.posts]) if (!post.isStreaming) post.endEarly(refusal);
    this.client.close();
    for (const post of [...this.posts]) post.endEarly(refusal);
  }
}

/** Statuses of errors in the form of a request. All other errors have 200, because some clients ignore the body otherwise. */
const STATUS_OF_CODE: ReadonlyMap<number, number> = new Map([
  [RPC_CODES.methodNotFound, 404],
  ...Object.values(MODERN_CODES).map((code) => [code, 400] as const),
]);

function statusOf({ errorCode }: Answer): number {
  return errorCode === undefined ? 200 : (STATUS_OF_CODE.get(errorCode) ?? 200);
}
