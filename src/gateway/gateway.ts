import { readString, readText, toBytes } from '../jsonrpc/json-text.js';
import { RPC_CODES, RpcError } from '../jsonrpc/rpc-error.js';
import type { RequestEnvelope } from '../mcp/envelope.js';
import { METHODS } from '../mcp/methods.js';
import type { Cancel, Clock } from '../timing/clock.js';
import type { Backend } from './backend.js';
import { Catalog } from './catalog.js';
import type { Exchange } from './exchange.js';
import type { GatewayPort } from './gateway-port.js';
import { ABOUT, instructionsOf } from './instructions.js';
import type { OwnTool } from './own-tool.js';

export interface GatewayOptions {
  readonly clock: Clock;
  /** In the order of the configuration. */
  readonly backends: readonly Backend[];
  readonly ownTools: readonly OwnTool[];
  /** How long the first `tools/list` waits for servers that are still starting, in milliseconds. */
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
  readonly #startupWaitMs: number;
  readonly #notice: string | undefined;
  readonly #listeners = new Set<() => void>();
  /** Lists asked for while servers were starting for the first time. */
  #heldLists: Exchange[] = [];
  #startupWait: 'not-begun' | 'running' | 'over' = 'not-begun';
  #cancelStartupWait: Cancel = () => {};
  #catalog: Catalog;

  constructor({ clock, backends, ownTools, startupWaitMs, notice }: GatewayOptions) {
    this.#notice = notice;
    this.#clock = clock;
    this.#backends = new Map(backends.map((backend) => [backend.key, backend]));
    this.#ownTools = new Map(ownTools.map((tool) => [tool.name, tool]));
    this.#startupWaitMs = startupWaitMs;
    this.#catalog = this.#merge();
    for (const backend of backends) {
      backend.listen({
        toolsChanged: () => this.#toolsChanged(),
        startSettled: () => this.#releaseHeldLists(),
      });
    }
  }

  get catalog(): Catalog {
    return this.#catalog;
  }

  onToolsChanged(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
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
    return this.#areStartsSettled();
  }

  serve(exchange: Exchange): void {
    switch (exchange.request.method) {
      case METHODS.listTools:
        this.#listTools(exchange);
        break;
      case METHODS.callTool:
        this.#callTool(exchange);
        break;
      default:
        exchange.fail(new RpcError(RPC_CODES.methodNotFound, `Method not found: ${exchange.request.method}`));
    }
  }

  close(): void {
    this.#startupWait = 'over';
    this.#cancelStartupWait();
    this.#releaseHeldLists();
    for (const backend of this.#backends.values()) backend.close();
    this.#listeners.clear();
  }

  #callTool(exchange: Exchange): void {
    const { bytes, tokens } = exchange.request;
    if (tokens.name === undefined || bytes[tokens.name.start] !== QUOTE) {
      exchange.fail(new RpcError(RPC_CODES.invalidParams, 'tools/call needs params.name, a string'));
      return;
    }
    const name = readString(bytes, tokens.name);
    const own = this.#ownTools.get(name);
    if (own !== undefined) {
      void callOwnTool(own, exchange);
      return;
    }
    const route = this.#catalog.resolve(name);
    const backend = route === undefined ? undefined : this.#backends.get(route.key);
    if (route === undefined || backend === undefined || !backend.allows(route.original)) {
      exchange.fail(new RpcError(RPC_CODES.invalidParams, `Unknown tool: ${name}`));
      return;
    }
    const isRenamed = route.original !== name;
    backend.serve(exchange, isRenamed ? [{ span: tokens.name, text: route.token }] : []);
  }

  /** There is one page, so a cursor can only be one that we never gave. */
  #listTools(exchange: Exchange): void {
    if (exchange.request.tokens.cursor !== undefined) {
      exchange.fail(new RpcError(RPC_CODES.invalidParams, 'Invalid cursor'));
      return;
    }
    if (this.#startupWait === 'over' || this.#areStartsSettled()) {
      exchange.succeed(this.#catalog.toolsList);
      return;
    }
    this.#heldLists.push(exchange);
    if (this.#startupWait === 'running') return;
    this.#startupWait = 'running';
    this.#cancelStartupWait = this.#clock.schedule(this.#startupWaitMs, () => {
      this.#startupWait = 'over';
      this.#releaseHeldLists();
    });
  }

  #areStartsSettled(): boolean {
    for (const backend of this.#backends.values()) if (!backend.isStartSettled) return false;
    return true;
  }

  #releaseHeldLists(): void {
    if (this.#startupWait !== 'over' && !this.#areStartsSettled()) return;
    this.#cancelStartupWait();
    const held = this.#heldLists;
    this.#heldLists = [];
    for (const exchange of held) exchange.succeed(this.#catalog.toolsList);
  }

  #toolsChanged(): void {
    const catalog = this.#merge();
    const isSame = catalog.lists(this.#catalog);
    this.#catalog = catalog;
    if (!isSame) for (const listener of this.#listeners) listener();
  }

  #merge(): Catalog {
    return new Catalog([...this.#backends.values()], [...this.#ownTools.values()]);
  }
}

const QUOTE = 0x22;

async function callOwnTool(tool: OwnTool, exchange: Exchange): Promise<void> {
  exchange.succeed(toBytes(JSON.stringify(await tool.call(readArguments(exchange.request)))));
}

function readArguments({ bytes, params }: RequestEnvelope): unknown {
  if (params === undefined) return undefined;
  const value: unknown = JSON.parse(readText(bytes, params));
  return typeof value === 'object' && value !== null && 'arguments' in value ? value.arguments : undefined;
}
