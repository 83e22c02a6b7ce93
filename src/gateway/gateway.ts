import { isString, readString, readText, toBytes } from '../jsonrpc/json-text.js';
import { RPC_CODES, RpcError } from '../jsonrpc/rpc-error.js';
import type { NotificationEnvelope, RequestEnvelope } from '../mcp/envelope.js';
import { type ListKind, listAskedFor } from '../mcp/lists.js';
import { METHODS } from '../mcp/methods.js';
import type { LegacyRevision } from '../mcp/revisions.js';
import type { Cancel, Clock } from '../timing/clock.js';
import { Backend } from './backend.js';
import { type Catalogs, changedLists, mergeCatalogs } from './catalogs.js';
import { ChildRequests } from './child-requests.js';
import type { Exchange } from './exchange.js';
import type { GatewayClient, GatewayPort } from './gateway-port.js';
import { ABOUT, instructionsOf } from './instructions.js';
import { LogRouting } from './log-routing.js';
import type { OwnTool } from './own-tool.js';
import { NO_COMPLETIONS, NotListed, Router } from './router.js';
import { Subscriptions } from './subscriptions.js';

export interface GatewayOptions {
  readonly clock: Clock;
  /** In the order of the configuration. */
  readonly backends: readonly Backend[];
  readonly ownTools: readonly OwnTool[];
  /** How long what is asked for first waits for servers that are still starting, in milliseconds. */
  readonly startupWaitMs: number;
  /** Something that every client is to be told; for one, that the configuration cannot be used. */
  readonly notice?: string;
}

/**
 * Many servers as one: answers what concerns all of them and routes the rest to the one it is for.
 *
 * `serve` is the only way in, whatever front a request came through.
 */
export class Gateway implements GatewayPort {
  readonly #clock: Clock;
  readonly #backends: ReadonlyMap<string, Backend>;
  readonly #ownTools: ReadonlyMap<string, OwnTool>;
  readonly #router: Router;
  readonly #startupWaitMs: number;
  readonly #notice: string | undefined;
  readonly #clients = new Set<GatewayClient>();
  readonly #subscriptions = new Subscriptions();
  readonly #logs = new LogRouting();
  readonly #childRequests = new ChildRequests();
  /** What was asked for while servers were starting for the first time, and may be there once they have started. */
  #heldExchanges: Exchange[] = [];
  #startupWait: 'not-begun' | 'running' | 'over' = 'not-begun';
  #cancelStartupWait: Cancel = () => {};
  #catalogs: Catalogs;

  constructor({ clock, backends, ownTools, startupWaitMs, notice }: GatewayOptions) {
    this.#notice = notice;
    this.#clock = clock;
    this.#backends = new Map(backends.map((backend) => [backend.key, backend]));
    this.#ownTools = new Map(ownTools.map((tool) => [tool.name, tool]));
    this.#router = new Router(this.#backends);
    this.#startupWaitMs = startupWaitMs;
    this.#catalogs = mergeCatalogs(backends, ownTools);
    for (const backend of backends) {
      backend.listen({
        listsChanged: () => this.#listsChanged(),
        startSettled: () => this.#release(),
        attached: () => {
          this.#logs.restore(backend);
          this.#subscriptions.restore(backend);
        },
        detached: () => this.#childRequests.drop(backend),
        asked: (asked) => this.#childRequests.ask(backend, asked, this.#clients),
        notified: (notification) => this.#notified(backend, notification),
      });
    }
  }

  get catalogs(): Catalogs {
    return this.#catalogs;
  }

  /** What each server that is ready says about its use follows what we say. */
  get instructions(): string {
    const parts = [ABOUT];
    if (this.#notice !== undefined) parts.push(this.#notice);
    for (const { key, prefix, delivery } of this.#backends.values()) {
      const text = delivery.connection?.instructions;
      if (text !== undefined) parts.push(instructionsOf(key, prefix, text));
    }
    return parts.join('\n\n');
  }

  /** Whether every server's first start has ended, one way or the other. */
  get isReady(): boolean {
    for (const backend of this.#backends.values()) if (!backend.isStartSettled) return false;
    return true;
  }

  connect(client: GatewayClient): () => void {
    this.#clients.add(client);
    return () => {
      this.#clients.delete(client);
      this.#subscriptions.drop(client);
      this.#logs.drop(client, this.#backends.values());
    };
  }

  /** Roots are one client's; servers that more than one shares are told of no roots, and so of no change of them. */
  notified(_client: GatewayClient, notification: NotificationEnvelope): void {
    if (notification.method !== METHODS.rootsChanged || this.#clients.size > 1) return;
    for (const { delivery } of this.#backends.values()) delivery.connection?.forward(notification);
  }

  serve(exchange: Exchange): void {
    const { method } = exchange.request;
    const list = listAskedFor(method);
    if (list !== undefined) this.#list(exchange, list);
    else if (method === METHODS.setLevel) this.#logs.setLevel(exchange, this.#backends.values());
    else this.#route(exchange);
  }

  close(): void {
    this.#startupWait = 'over';
    this.#cancelStartupWait();
    this.#release();
    for (const backend of this.#backends.values()) backend.close();
    this.#clients.clear();
  }

  #route(exchange: Exchange): void {
    const own = this.#ownTool(exchange.request);
    if (own !== undefined) {
      void callOwnTool(own, exchange);
      return;
    }
    const { method, bytes, tokens } = exchange.request;
    const isSubscription = method === METHODS.subscribe || method === METHODS.unsubscribe;
    const uri = isSubscription && tokens.uri !== undefined && isString(bytes, tokens.uri) ? tokens.uri : undefined;
    const subscribedTo = uri === undefined ? '' : readString(bytes, uri);
    const holder = uri === undefined ? undefined : this.#subscriptions.holder(exchange.client, subscribedTo);
    const target = holder ?? this.#router.target(exchange.request, this.#catalogs);
    if (target instanceof RpcError) {
      if (target instanceof NotListed && this.#mayListMore) this.#hold(exchange);
      else exchange.fail(target);
      return;
    }
    const { backend, edits } = target instanceof Backend ? { backend: target, edits: [] } : target;
    if (uri !== undefined) {
      this.#subscriptions.serve(exchange, backend, subscribedTo);
    } else if (method === METHODS.complete && completesNothing(backend)) {
      exchange.succeed(NO_COMPLETIONS);
    } else {
      backend.serve(exchange, edits);
    }
  }

  #ownTool({ method, bytes, tokens }: RequestEnvelope): OwnTool | undefined {
    if (method !== METHODS.callTool || tokens.name === undefined || !isString(bytes, tokens.name)) return undefined;
    return this.#ownTools.get(readString(bytes, tokens.name));
  }

  /** There is one page, so a cursor can only be one that we never gave. */
  #list(exchange: Exchange, kind: ListKind): void {
    if (exchange.request.tokens.cursor !== undefined) {
      exchange.fail(new RpcError(RPC_CODES.invalidParams, 'Invalid cursor'));
      return;
    }
    if (this.#mayListMore) this.#hold(exchange);
    else exchange.succeed(this.#catalogs[kind].answer);
  }

  /** Whether servers that are starting for the first time are worth waiting for. */
  get #mayListMore(): boolean {
    return this.#startupWait !== 'over' && !this.isReady;
  }

  #hold(exchange: Exchange): void {
    this.#heldExchanges.push(exchange);
    if (this.#startupWait === 'running') return;
    this.#startupWait = 'running';
    this.#cancelStartupWait = this.#clock.schedule(this.#startupWaitMs, () => {
      this.#startupWait = 'over';
      this.#release();
    });
  }

  #release(): void {
    if (this.#mayListMore) return;
    this.#cancelStartupWait();
    const held = this.#heldExchanges;
    this.#heldExchanges = [];
    for (const exchange of held) if (!exchange.isSettled) this.serve(exchange);
  }

  #listsChanged(): void {
    const before = this.#catalogs;
    this.#catalogs = mergeCatalogs(this.#backends.values(), [...this.#ownTools.values()]);
    for (const kind of changedLists(before, this.#catalogs)) {
      for (const client of this.#clients) client.listChanged(kind);
    }
  }

  /** A notification goes the way of the one request that can have caused it; others see it unasked, or not at all. */
  #notified(backend: Backend, notification: NotificationEnvelope): void {
    if (notification.method === METHODS.resourceUpdated) {
      this.#subscriptions.notify(backend, notification);
      return;
    }
    if (notification.method === METHODS.cancelled) {
      this.#childRequests.cancel(backend, notification);
      return;
    }
    const { cause } = backend.delivery;
    const { bytes, span } = notification;
    for (const client of this.#clients) {
      if (notification.method === METHODS.message && !this.#logs.isWanted(client, notification)) continue;
      if (cause?.client === client) cause.send({ bytes, span, edits: [] });
      else client.notify(notification);
    }
  }
}

/** The oldest revision has completion, but no capability that says so. */
function completesNothing({ delivery: { connection } }: Backend): boolean {
  return connection !== undefined && connection.revision !== OLDEST && !connection.offers('completions');
}

const OLDEST: LegacyRevision = '2024-11-05';

async function callOwnTool(tool: OwnTool, exchange: Exchange): Promise<void> {
  exchange.succeed(toBytes(JSON.stringify(await tool.call(readArguments(exchange.request)))));
}

function readArguments({ bytes, params }: RequestEnvelope): unknown {
  if (params === undefined) return undefined;
  const value: unknown = JSON.parse(readText(bytes, params));
  return typeof value === 'object' && value !== null && 'arguments' in value ? value.arguments : undefined;
}
