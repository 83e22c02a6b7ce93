import { isString, readString, readText, type Span, toBytes } from '../../json/json-text.js';
import { RPC_CODES, RpcError } from '../../jsonrpc/rpc-error.js';
import { METHODS } from '../../mcp/methods.js';
import type { RelayedRequest } from '../../mcp/relayed-request.js';
import { isUiUri } from '../../mcp/ui-uri.js';
import { type Catalog, type Route, toRoute } from '../catalog/catalog.js';
import type { Catalogs } from '../catalog/catalogs.js';
import type { ListNaming } from '../catalog/server-lists.js';
import { editReadResult, editToolResult } from '../catalog/ui-answers.js';
import type { Handling } from '../dispatch/handling.js';
import type { Backend } from '../registry/backend.js';
import type { Inquiry } from './ask-in-order.js';
import { KnownUris } from './known-uris.js';
import { ownerOfUri } from './resource-owner.js';

/** The one server that a request is for, and what has to be replaced in the request and its answer. */
export interface Target extends Handling {
  readonly backend: Backend;
  /** The name or URI as the server knows it, where the request is for one. */
  readonly original?: string;
  /** How the server calls the tool that is to be called, if the request is for one. */
  readonly tool?: string;
  /** Nobody lists it; of the servers that are there, this one is the likeliest. */
  readonly isGuess?: boolean;
}

/** A name or URI that no server lists; one that is still starting may turn out to have it. */
export class NotListed extends RpcError {}

/** MCP's code for a resource that nobody has, in the revisions with a handshake. */
const RESOURCE_NOT_FOUND = -32002;

/** Finds the server that a request is for, by the name or URI in it; an error when there is none. */
export class Router {
  readonly #backends: ReadonlyMap<string, Backend>;
  readonly #naming: ListNaming;
  readonly #uris: KnownUris;
  /** Which server has answered a method that we do not know. */
  readonly #methods: Map<string, string>;

  /** What `before` has learned of the same servers is still known. */
  constructor(backends: ReadonlyMap<string, Backend>, naming: ListNaming, before?: Router) {
    this.#backends = backends;
    this.#naming = naming;
    const isThere = (key: string) => backends.has(key);
    this.#uris = before === undefined ? new KnownUris() : before.#uris.of(isThere);
    const methods = before === undefined ? [] : [...before.#methods];
    this.#methods = new Map(methods.filter(([, key]) => isThere(key)));
  }

  target(request: RelayedRequest, catalogs: Catalogs): Target | Inquiry | RpcError {
    const { name, uri, refName, refUri } = request.tokens;
    switch (request.method) {
      case METHODS.callTool: {
        const target = this.#byName(request, name, catalogs.tools, 'tool');
        if (target instanceof RpcError) return target;
        if (!target.backend.allows(target.original)) return unknown('tool', target.name);
        const aliases = catalogs.ui.of(target.backend.key);
        const { backend, edits, original } = target;
        const editAnswer = aliases.size === 0 ? undefined : editToolResult(aliases);
        return { backend, edits, original, tool: original, editAnswer };
      }
      case METHODS.getPrompt:
        return this.#byName(request, name, catalogs.prompts, 'prompt');
      case METHODS.readResource:
        return this.#byUri(request, uri, catalogs, () => this.withResources);
      case METHODS.subscribe:
      case METHODS.unsubscribe:
        return this.#byUri(request, uri, catalogs);
      case METHODS.complete:
        if (refName !== undefined) return this.#byName(request, refName, catalogs.prompts, 'prompt');
        if (refUri === undefined) return this.#onlyBackend() ?? this.#byUri(request, refUri, catalogs);
        return this.#byUri(request, refUri, catalogs);
      default:
        return this.#byMethod(request, catalogs);
    }
  }

  #byName(
    { bytes, method }: RelayedRequest,
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

  /** Some server of this view has spoken of the URI. */
  noteUri(uri: string, key: string): void {
    this.#uris.note(uri, key);
  }

  /** What a server answers may tell which URIs are its own. */
  learnFrom({ key }: Backend): Handling['onAnswered'] {
    return (response) => this.#uris.learn(response, key);
  }

  /** Where nobody can be told to have it, the `candidates` are asked. */
  #byUri(
    { bytes, method }: RelayedRequest,
    token: Span | undefined,
    catalogs: Catalogs,
    candidates: () => readonly Backend[] = () => [],
  ): Target | Inquiry | RpcError {
    if (token === undefined || !isString(bytes, token)) {
      return new RpcError(RPC_CODES.invalidParams, `${method} needs a URI, a string`);
    }
    const uri = readString(bytes, token);
    const owner = ownerOfUri(uri, catalogs, this.#backends, this.#uris);
    const backend = owner === undefined ? undefined : this.#backends.get(owner.key);
    if (owner === undefined || backend === undefined) {
      const notFound = new NotListed(RESOURCE_NOT_FOUND, `Resource not found: ${uri}`, { uri });
      // The wrong server's HTML would be shown as the face of another's tool.
      const asked = isUiUri(uri) ? [] : candidates();
      if (asked.length === 0) return notFound;
      return {
        candidates: asked,
        isUnknown: ({ bytes: answer, tokens }) => NOT_FOUND_CODES.has(codeOf(answer, tokens.errorCode)),
        onFound: ({ key }) => this.#uris.note(uri, key),
        notFound,
      };
    }
    const { original, isGuess = false } = owner;
    if (original === uri) return { backend, edits: [], original, isGuess };
    const edits = [{ span: token, text: toBytes(JSON.stringify(original)) }];
    return { backend, edits, editAnswer: editReadResult(original, uri), original };
  }

  /**
   * By what it is about, by the configuration, by who has answered it before, or by asking. A method that is not known
   * has no effects.
   */
  #byMethod(request: RelayedRequest, catalogs: Catalogs): Target | Inquiry | RpcError {
    const { bytes, method, tokens } = request;
    const only = this.#onlyBackend();
    if (only !== undefined) return only;
    const uri = tokens.uri !== undefined && isString(bytes, tokens.uri) ? readString(bytes, tokens.uri) : undefined;
    const owner = uri === undefined ? undefined : ownerOfUri(uri, catalogs, this.#backends, this.#uris)?.key;
    const configured = [...this.#backends.values()].find((backend) => backend.answers(method))?.key;
    const backend = this.#backends.get(owner ?? configured ?? this.#methods.get(method) ?? '');
    if (backend !== undefined) return { backend, edits: [] };
    const notFound = new RpcError(RPC_CODES.methodNotFound, `Method not found: ${method}`);
    return {
      candidates: this.#askable,
      isUnknown: ({ bytes: answer, tokens: { errorCode } }) => codeOf(answer, errorCode) === RPC_CODES.methodNotFound,
      onFound: ({ key }) => {
        if (this.#methods.size < MAX_METHODS) this.#methods.set(method, key);
      },
      notFound,
    };
  }

  /** Servers that have resources, as far as they have said. */
  get withResources(): readonly Backend[] {
    return this.#askable.filter(({ dispatcher: { connection } }) => connection?.offers('resources') !== false);
  }

  /** Those that are there, and then those that were and are on their way back, which have to be waited for. */
  get #askable(): readonly Backend[] {
    const known = [...this.#backends.values()].filter(
      ({ isGivenUp, dispatcher }) => !isGivenUp && dispatcher.hasBeenUp,
    );
    const isReady = ({ dispatcher }: Backend) => dispatcher.connection !== undefined;
    return [...known.filter(isReady), ...known.filter((backend) => !isReady(backend))];
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

/** More than any extension has; a client could ask for methods without end. */
const MAX_METHODS = 256;

/** With which servers say that they do not have a resource: MCP's code, and what SDKs send instead. */
const NOT_FOUND_CODES: ReadonlySet<number | undefined> = new Set([
  RESOURCE_NOT_FOUND,
  RPC_CODES.invalidParams,
  RPC_CODES.methodNotFound,
]);

function codeOf(bytes: Uint8Array, code: Span | undefined): number | undefined {
  return code === undefined ? undefined : Number(readText(bytes, code));
}

function unknown(what: string, name: string): NotListed {
  return new NotListed(RPC_CODES.invalidParams, `Unknown ${what}: ${name}`);
}

/** The answer for a server that completes nothing. */
export const NO_COMPLETIONS = toBytes('{"completion":{"values":[],"total":0,"hasMore":false}}');
