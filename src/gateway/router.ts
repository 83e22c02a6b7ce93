import { isString, readString, type Span, toBytes } from '../jsonrpc/json-text.js';
import { RPC_CODES, RpcError } from '../jsonrpc/rpc-error.js';
import type { Edit } from '../jsonrpc/splice.js';
import type { RequestEnvelope } from '../mcp/envelope.js';
import { METHODS } from '../mcp/methods.js';
import type { Backend } from './backend.js';
import { type Catalog, type Route, toRoute } from './catalog.js';
import type { Catalogs } from './catalogs.js';
import { ownerOfUri } from './resource-owner.js';
import type { ListNaming } from './server-lists.js';

/** The one server that a request is for, and what has to be replaced in the request. */
export interface Target {
  readonly backend: Backend;
  readonly edits: readonly Edit[];
  /** How the server calls the tool that is to be called, if the request is for one. */
  readonly tool?: string;
}

/** MCP's code for a resource that nobody has, in the revisions with a handshake. */
const RESOURCE_NOT_FOUND = -32002;

/** Finds the server that a request is for, by the name or URI in it; an error when there is none. */
export class Router {
  readonly #backends: ReadonlyMap<string, Backend>;
  readonly #naming: ListNaming;

  constructor(backends: ReadonlyMap<string, Backend>, naming: ListNaming) {
    this.#backends = backends;
    this.#naming = naming;
  }

  target(request: RequestEnvelope, catalogs: Catalogs): Target | RpcError {
    const { name, uri, refName, refUri } = request.tokens;
    switch (request.method) {
      case METHODS.callTool: {
        const target = this.#byName(request, name, catalogs.tools, 'tool');
        if (target instanceof RpcError) return target;
        return target.backend.allows(target.original)
          ? { ...target, tool: target.original }
          : unknown('tool', target.name);
      }
      case METHODS.getPrompt:
        return this.#byName(request, name, catalogs.prompts, 'prompt');
      case METHODS.readResource:
      case METHODS.subscribe:
      case METHODS.unsubscribe:
        return this.#byUri(request, uri, catalogs);
      case METHODS.complete:
        if (refName !== undefined) return this.#byName(request, refName, catalogs.prompts, 'prompt');
        return this.#byUri(request, refUri, catalogs);
      default:
        return this.#onlyBackend() ?? new RpcError(RPC_CODES.methodNotFound, `Method not found: ${request.method}`);
    }
  }

  #byName(
    { bytes, method }: RequestEnvelope,
    token: Span | undefined,
    catalog: Catalog,
    what: string,
  ): (Target & { readonly name: string; readonly original: string }) | RpcError {
    if (token === undefined || !isString(bytes, token)) {
      return new RpcError(RPC_CODES.invalidParams, `${method} needs the name of a ${what}, a string`);
    }
    const name = readString(bytes, token);
    const route = catalog.resolve(name) ?? this.#unlisted(name);
    const backend = route === undefined ? undefined : this.#backends.get(route.key);
    if (route === undefined || backend === undefined) return unknown(what, name);
    const edits = route.original === name ? [] : [{ span: token, text: route.token }];
    return { backend, edits, name, original: route.original };
  }

  #byUri({ bytes, method }: RequestEnvelope, token: Span | undefined, catalogs: Catalogs): Target | RpcError {
    if (token === undefined || !isString(bytes, token)) {
      return new RpcError(RPC_CODES.invalidParams, `${method} needs a URI, a string`);
    }
    const uri = readString(bytes, token);
    // A template stands in the reference of a completion as it is listed.
    const key = catalogs.templates.owner(uri)?.key ?? ownerOfUri(uri, catalogs, this.#backends.values());
    const backend = key === undefined ? undefined : this.#backends.get(key);
    return backend === undefined
      ? new RpcError(RESOURCE_NOT_FOUND, `Resource not found: ${uri}`, { uri })
      : { backend, edits: [] };
  }

  /** A server that is shown as it is knows best what it has, listed or not. */
  #unlisted(name: string): Route | undefined {
    const only = this.#naming === 'original' ? this.#onlyBackend() : undefined;
    return only && toRoute(only.backend.key, name);
  }

  /** With a single server there is no question whose a request is that we know nothing of. */
  #onlyBackend(): Target | undefined {
    const [backend, ...others] = this.#backends.values();
    return backend === undefined || others.length > 0 ? undefined : { backend, edits: [] };
  }
}

function unknown(what: string, name: string): RpcError {
  return new RpcError(RPC_CODES.invalidParams, `Unknown ${what}: ${name}`);
}

/** The answer for a server that completes nothing. */
export const NO_COMPLETIONS = toBytes('{"completion":{"values":[],"total":0,"hasMore":false}}');
