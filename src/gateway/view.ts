import { isString, readString, readText, toBytes } from '../jsonrpc/json-text.js';
import { RPC_CODES, RpcError } from '../jsonrpc/rpc-error.js';
import type { RequestEnvelope } from '../mcp/envelope.js';
import { type ListKind, listAskedFor } from '../mcp/lists.js';
import { METHODS, TASK_METHODS } from '../mcp/methods.js';
import type { LegacyRevision } from '../mcp/revisions.js';
import type { Clock } from '../timing/clock.js';
import { Backend } from './backend.js';
import { type Catalogs, changedLists, mergeCatalogs } from './catalogs.js';
import { drivingTask } from './driven-task.js';
import type { Exchange } from './exchange.js';
import type { GatewayClient } from './gateway-port.js';
import { HeldLists } from './held-lists.js';
import type { LogRouting } from './log-routing.js';
import type { OwnTool } from './own-tool.js';
import { NO_COMPLETIONS, Router, type Target } from './router.js';
import type { ListNaming } from './server-lists.js';
import type { Subscriptions } from './subscriptions.js';
import type { Tasks } from './tasks.js';

export interface ViewOptions {
  readonly clock: Clock;
  /** In the order of the configuration. */
  readonly backends: readonly Backend[];
  readonly naming: ListNaming;
  readonly ownTools: readonly OwnTool[];
  /** How long the first list asked for waits for servers that are still starting, in milliseconds. */
  readonly startupWaitMs: number;
  readonly subscriptions: Subscriptions;
  readonly logs: LogRouting;
  readonly tasks: Tasks;
}

/**
 * What some clients see: one backend of each server, as one. Clients that use the same backends share a view.
 *
 * It answers what concerns all its servers and routes the rest to the one that it is for.
 */
export class View {
  readonly clients = new Set<GatewayClient>();
  readonly #backends: ReadonlyMap<string, Backend>;
  readonly #naming: ListNaming;
  readonly #ownTools: ReadonlyMap<string, OwnTool>;
  readonly #router: Router;
  readonly #subscriptions: Subscriptions;
  readonly #logs: LogRouting;
  readonly #tasks: Tasks;
  readonly #lists: HeldLists;
  #catalogs: Catalogs;

  constructor({ clock, backends, naming, ownTools, startupWaitMs, subscriptions, logs, tasks }: ViewOptions) {
    this.#backends = new Map(backends.map((backend) => [backend.key, backend]));
    this.#naming = naming;
    this.#ownTools = new Map(ownTools.map((tool) => [tool.name, tool]));
    this.#router = new Router(this.#backends, naming);
    this.#subscriptions = subscriptions;
    this.#logs = logs;
    this.#tasks = tasks;
    this.#lists = new HeldLists({
      clock,
      waitMs: startupWaitMs,
      isReady: () => backends.every(({ isStartSettled }) => isStartSettled),
      answer: (exchange, kind) => exchange.succeed(this.#catalogs[kind].answer),
    });
    this.#catalogs = this.#merge();
  }

  get backends(): ReadonlyMap<string, Backend> {
    return this.#backends;
  }

  get catalogs(): Catalogs {
    return this.#catalogs;
  }

  uses(backend: Backend): boolean {
    return this.#backends.get(backend.key) === backend;
  }

  serve(exchange: Exchange): void {
    const { method } = exchange.request;
    const list = listAskedFor(method);
    if (list !== undefined) this.#list(exchange, list);
    else if (method === METHODS.setLevel) this.#logs.setLevel(exchange, this.#backends.values());
    else if (method === METHODS.listTasks) void this.#tasks.ofServers.list(exchange, this.#backends.values());
    else this.#route(exchange);
  }

  /** What some backend contributes may have changed. */
  listsChanged(): void {
    const before = this.#catalogs;
    this.#catalogs = this.#merge();
    for (const kind of changedLists(before, this.#catalogs)) {
      for (const client of this.clients) client.listChanged(kind);
    }
  }

  /** Some backend's first start has ended. */
  startSettled(): void {
    this.#lists.startSettled();
  }

  close(): void {
    this.#lists.end();
  }

  #merge(): Catalogs {
    return mergeCatalogs(this.#backends.values(), [...this.#ownTools.values()], this.#naming);
  }

  /** There is one page, so a cursor can only be one that we never gave. */
  #list(exchange: Exchange, kind: ListKind): void {
    if (exchange.request.tokens.cursor === undefined) this.#lists.serve(exchange, kind);
    else exchange.fail(new RpcError(RPC_CODES.invalidParams, 'Invalid cursor'));
  }

  #route(exchange: Exchange): void {
    const own = this.#ownTool(exchange.request);
    if (own !== undefined) {
      if (exchange.request.tokens.task === undefined) void this.#callOwnTool(own, exchange);
      else exchange.fail(new RpcError(RPC_CODES.methodNotFound, `${own.name} cannot become a task`));
      return;
    }
    const { method, bytes, tokens } = exchange.request;
    const isSubscription = method === METHODS.subscribe || method === METHODS.unsubscribe;
    const uri = isSubscription && tokens.uri !== undefined && isString(bytes, tokens.uri) ? tokens.uri : undefined;
    const subscribedTo = uri === undefined ? '' : readString(bytes, uri);
    const holder =
      uri === undefined
        ? undefined
        : this.#subscriptions.holder(exchange.client, subscribedTo, this.#backends.values());
    const target = holder ?? this.#target(exchange);
    if (target instanceof RpcError) {
      exchange.fail(target);
      return;
    }
    const to: Target = target instanceof Backend ? { backend: target, edits: [] } : target;
    const { backend } = to;
    if (uri !== undefined) {
      this.#subscriptions.serve(exchange, backend, subscribedTo);
    } else if (method === METHODS.complete && completesNothing(backend)) {
      exchange.succeed(NO_COMPLETIONS);
    } else {
      this.#send(exchange, to);
    }
  }

  #target({ request, client }: Exchange): Target | RpcError {
    return TASK_METHODS.has(request.method)
      ? this.#tasks.ofServers.target(request, client, this.#backends)
      : this.#router.target(request, this.#catalogs);
  }

  #send(exchange: Exchange, target: Target): void {
    const { request, client } = exchange;
    const { backend, edits } = target;
    const { task, relatedTask } = request.tokens;
    if (task === undefined && relatedTask === undefined && !TASK_METHODS.has(request.method)) {
      backend.serve(exchange, edits, drivingTask(exchange, target, this.#tasks));
      return;
    }
    const related = this.#tasks.towardServer(request, client, backend);
    backend.serve(exchange, [...edits, ...related], this.#tasks.translationOf(exchange, backend));
  }

  #ownTool({ method, bytes, tokens }: RequestEnvelope): OwnTool | undefined {
    if (method !== METHODS.callTool || tokens.name === undefined || !isString(bytes, tokens.name)) return undefined;
    return this.#ownTools.get(readString(bytes, tokens.name));
  }

  async #callOwnTool(tool: OwnTool, exchange: Exchange): Promise<void> {
    exchange.succeed(toBytes(JSON.stringify(await tool.call(readArguments(exchange.request), this))));
  }
}

/** The oldest revision has completion, but no capability that says so. */
function completesNothing({ delivery: { connection } }: Backend): boolean {
  return connection !== undefined && connection.revision !== OLDEST && !connection.offers('completions');
}

const OLDEST: LegacyRevision = '2024-11-05';

function readArguments({ bytes, params }: RequestEnvelope): unknown {
  if (params === undefined) return undefined;
  const value: unknown = JSON.parse(readText(bytes, params));
  return typeof value === 'object' && value !== null && 'arguments' in value ? value.arguments : undefined;
}
