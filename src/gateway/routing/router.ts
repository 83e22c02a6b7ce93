import type { Failure } from '../../downstream/failure.js';
import { type Exchange, withMembers } from '../../downstream/port.js';
import { elementsOf, foldKey, readText, type Span, stringAt, toBytes, valuesAt } from '../../wire/json/json-text.js';
import type { Edit } from '../../wire/json/splice.js';
import { RPC_CODES, RpcError } from '../../wire/jsonrpc/message.js';
import type { ResponseEnvelope } from '../../wire/mcp/envelope.js';
import { SHORTENED } from '../../wire/mcp/exposed-name.js';
import { declaredSkills, SKILL_METHODS } from '../../wire/mcp/extensions.js';
import { METHODS, requestedList } from '../../wire/mcp/methods.js';
import type { RelayedRequest } from '../../wire/mcp/relayed-request.js';
import {
  hasHandshake,
  isOlder,
  type LegacyRevision,
  MODERN_CODES,
  resourceNotFoundCode,
} from '../../wire/mcp/revisions.js';
import { VISIT_REQUIRED } from '../../wire/mcp/signed-questions.js';
import { isUiUri, uiPointers } from '../../wire/mcp/ui-uris.js';
import type { Catalogs, Route } from '../catalog/catalog.js';
import { editPage } from '../catalog/exposed-list.js';
import type { ListNaming } from '../catalog/offered-lists.js';
import type { ViewFilter } from '../catalog/tool-policy.js';
import type { EditAnswer, Handling } from '../dispatch/call.js';
import type { Backend } from '../registry/backend.js';
import { KnownUris, ownerOfUri } from './resource-owner.js';
import { SkillLists, type SkillListsOptions } from './skill-lists.js';
import { describeUnknownName, plainUnknownName } from './unknown-name.js';

interface RouterOptions extends SkillListsOptions {
  readonly naming: ListNaming;
  /** The view of the configuration that the clients have. Absent if they see everything. */
  readonly named?: ViewFilter | undefined;
}

/** The server that a request is for, and what to replace in the request and its response. */
export interface Target extends Handling {
  readonly backend: Backend;
  /** The original name or URI, if the request names one. */
  readonly original?: string;
  /** The original name of the tool, if the request calls one. */
  readonly tool?: string;
  /** Whether no server lists the name or URI and this server is only the most likely. */
  readonly isGuess?: boolean;
}

/** Error for a name or URI that no server lists. A server that is still starting may have it. */
class NotListed extends RpcError {}

/** Finds the server for a request by the name or URI in the request, or the error if there is none. */
export class Router {
  readonly skills: SkillLists;
  readonly #backends: ReadonlyMap<string, Backend>;
  readonly #naming: ListNaming;
  readonly #view: ViewFilter | undefined;
  readonly #uris: KnownUris;
  /** The server that has answered each method that MCP does not define. */
  readonly #methods: Map<string, string>;

  /** Takes over the knowledge of `before` about the same servers. */
  constructor(options: RouterOptions, before?: Router) {
    const { backends, naming, named } = options;
    this.#backends = backends;
    this.#naming = naming;
    this.#view = named;
    const isThere = (key: string) => backends.has(key);
    this.#uris = before === undefined ? new KnownUris() : before.#uris.of(isThere);
    this.skills = new SkillLists(options, this.#uris);
    const methods = before === undefined ? [] : [...before.#methods];
    this.#methods = new Map(methods.filter(([, key]) => isThere(key)));
  }

  /** Returns the target of a request. The client's `revision` decides the code of some errors. */
  target(request: RelayedRequest, catalogs: Catalogs, revision: string | undefined): Target | Candidates | RpcError {
    const { name, uri, refName, refUri } = request.tokens;
    const only = this.#onlyBackend();
    if (only !== undefined && this.#naming === 'original') return unchanged(request, only.backend, revision);
    switch (request.method) {
      case METHODS.callTool: {
        const target = this.#byName(request, name, catalogs, 'tools');
        if (target instanceof RpcError) return target;
        // Policy and view were applied to listed tools when the lists were merged, so only unlisted tools are checked here.
        if (!target.isListed && !this.#mayCallUnlisted(target.original, target.backend)) {
          return new NotListed(RPC_CODES.invalidParams, plainUnknownName('tool', target.name));
        }
        const aliases = catalogs.ui.aliasesOf(target.backend.key);
        const { backend, edits, original, isGuess } = target;
        const editAnswer = aliases.size === 0 ? undefined : editToolResult(aliases);
        return shaped({ backend, edits, original, tool: original, editAnswer, isGuess }, request);
      }
      case METHODS.getPrompt:
        return this.#byName(request, name, catalogs, 'prompts');
      case METHODS.readResource:
        return this.#byUri(request, uri, catalogs, revision, () => this.withResources);
      case METHODS.subscribe:
      case METHODS.unsubscribe:
        return this.#byUri(request, uri, catalogs, revision);
      case METHODS.complete:
        if (refName !== undefined) return this.#byName(request, refName, catalogs, 'prompts');
        if (refUri === undefined) return only ?? this.#byUri(request, refUri, catalogs, revision);
        return this.#byUri(request, refUri, catalogs, revision);
      case SKILL_METHODS.get:
      case SKILL_METHODS.readDirectory:
        return this.#bySkill(request, catalogs);
      default:
        return this.#byMethod(request, catalogs);
    }
  }

  #mayCallUnlisted(original: string, backend: Backend): boolean {
    if (!backend.rules.policy(original) || isLookalike(original, backend.lists.tools)) return false;
    const { key, prefix } = backend;
    const { entries, renamed } = backend.lists.tools;
    const exposed =
      entries.find((entry) => entry.original === original)?.exposed ??
      (prefix === '' ? original : `${prefix}__${original}`);
    return this.#view?.showsTool?.({ key, original, shown: renamed?.get(original), exposed }) ?? true;
  }

  #byName(
    { bytes, method }: RelayedRequest,
    token: Span | undefined,
    catalogs: Catalogs,
    kind: NamedKind,
  ): NamedTarget | RpcError {
    const name = stringAt(bytes, token);
    if (token === undefined || name === undefined) return needsName(method, kind);
    const route = catalogs[kind].resolve(name) ?? this.#unlisted(name, kind);
    const backend = route === undefined ? undefined : this.#backends.get(route.key);
    if (route === undefined || backend === undefined) {
      const message = describeUnknownName(NOUNS[kind], name, catalogs[kind], [...this.#backends.values()]);
      return new NotListed(RPC_CODES.invalidParams, message);
    }
    const edits = route.original === name ? [] : [{ span: token, text: toBytes(JSON.stringify(route.original)) }];
    const { original, isListed } = route;
    return { backend, edits, name, original, isListed, isGuess: !isListed && SHORTENED.test(name) };
  }

  /** Records that a server has mentioned the URI. */
  noteUri(uri: string, key: string): void {
    this.#uris.note(uri, key);
  }

  /** Returns a function that records the URIs in a response of the server as its own. */
  learnFrom({ key }: Backend): Handling['onAnswered'] {
    return (response) => this.#uris.learn(response, key);
  }

  /** Finds the server that owns the URI. If none is known, the `candidates` are tried in order. */
  #byUri(
    { bytes, method }: RelayedRequest,
    token: Span | undefined,
    catalogs: Catalogs,
    revision: string | undefined,
    candidates: () => readonly Backend[] = () => [],
  ): Target | Candidates | RpcError {
    const uri = stringAt(bytes, token);
    if (token === undefined || uri === undefined) return needsUri(method);
    const owner = ownerOfUri(uri, catalogs, this.#backends, this.#uris);
    const backend = owner === undefined ? undefined : this.#backends.get(owner.key);
    const { original = uri, isGuess = backend === undefined } = owner ?? {};
    // A user interface is never requested from several servers, because another server's HTML would be shown for the tool.
    const others = isGuess && !isUiUri(uri) ? candidates().filter((each) => each !== backend) : [];
    const [first, ...rest] = backend === undefined ? others : [backend, ...others];
    const notFound = new NotListed(resourceNotFoundCode(revision), `Resource not found: ${uri}`, { uri });
    if (first === undefined) return notFound;
    if (rest.length > 0) {
      const onFound = ({ key }: Backend) => this.#uris.note(uri, key);
      return { candidates: [first, ...rest], isUnknown: lacksResource, onFound, notFound };
    }
    if (original === uri) return { backend: first, edits: [], original, isGuess };
    const edits = [{ span: token, text: toBytes(JSON.stringify(original)) }];
    return { backend: first, edits, editAnswer: editReadResult(original, uri), original };
  }

  /**
   * Routes a method that MCP does not define: by the URI in its params, by the configuration, to the server that answered
   * it before, or by trying all servers. Trying is safe, because an unknown method has no effects.
   */
  #byMethod(request: RelayedRequest, catalogs: Catalogs): Target | Candidates | RpcError {
    const { bytes, method, tokens } = request;
    const only = this.#onlyBackend();
    if (only !== undefined) return only;
    const uri = stringAt(bytes, tokens.uri);
    const owner = uri === undefined ? undefined : ownerOfUri(uri, catalogs, this.#backends, this.#uris)?.key;
    const configured = [...this.#backends.values()].find((backend) => backend.rules.answers?.(method) === true)?.key;
    const backend = this.#backends.get(owner ?? configured ?? this.#methods.get(method) ?? '');
    if (backend !== undefined) return { backend, edits: [] };
    const notFound = new RpcError(RPC_CODES.methodNotFound, `Method not found: ${method}`);
    return {
      candidates: this.#reachable,
      isUnknown: ({ bytes: answer, tokens: { errorCode } }) => codeOf(answer, errorCode) === RPC_CODES.methodNotFound,
      onFound: ({ key }) => {
        const isShort = method.length <= MAX_METHOD_LENGTH;
        if (isShort && this.#methods.size < MAX_METHODS) this.#methods.set(method, key);
      },
      notFound,
    };
  }

  /** Finds the server of a skill, or of a folder in a skill, among the servers that have skills. */
  #bySkill(request: RelayedRequest, catalogs: Catalogs): Target | Candidates | RpcError {
    const { bytes, method, tokens } = request;
    const isDirectory = method === SKILL_METHODS.readDirectory;
    const candidates = [...this.#backends.values()].filter(({ handshake, isUnavailable }) => {
      const offer = isUnavailable || handshake === undefined ? undefined : declaredSkills(handshake.capabilities);
      return offer !== undefined && (!isDirectory || offer.readsDirectories);
    });
    if (candidates.length === 0) return this.#byMethod(request, catalogs);
    const uri = stringAt(bytes, tokens.uri);
    if (uri === undefined) return needsUri(method);
    // Templates do not decide, because several servers may have one that fits all skills.
    const key = catalogs.resources.owner(uri)?.key ?? this.#uris.ofSkill(uri) ?? this.#uris.owner(uri);
    const backend =
      candidates.find((each) => each.key === key) ?? (candidates.length === 1 ? candidates[0] : undefined);
    if (backend !== undefined) return { backend, edits: [] };
    return {
      candidates,
      isUnknown: ({ error }) => error !== undefined,
      onFound: (found) => (isDirectory ? this.#uris.note(uri, found.key) : this.#uris.noteSkill(uri, found.key)),
      notFound: new NotListed(RPC_CODES.invalidParams, `No server has ${uri}`, { uri }),
    };
  }

  /** Servers that declare resources, and servers that have declared nothing yet. */
  get withResources(): readonly Backend[] {
    return this.#reachable.filter(({ dispatcher: { connection } }) => connection?.offers('resources') !== false);
  }

  /** Servers that ran already: first the running ones, then the restarting ones, for which a request has to wait. */
  get #reachable(): readonly Backend[] {
    const known = [...this.#backends.values()].filter(
      ({ isUnavailable, dispatcher }) => !isUnavailable && dispatcher.hasBeenUp,
    );
    const isReady = ({ dispatcher }: Backend) => dispatcher.connection !== undefined;
    return [...known.filter(isReady), ...known.filter((backend) => !isReady(backend))];
  }

  /** A server that may have an unlisted name: one with this prefix that needs a login, or the only unprefixed one without a list. */
  #unlisted(name: string, kind: NamedKind): Route | undefined {
    // A server that waits for its first login has shown no list yet.
    const waiting = [...this.#backends.values()].find(
      ({ prefix, needsLogin }) => prefix !== '' && needsLogin && name.startsWith(`${prefix}__`),
    );
    if (waiting !== undefined)
      return { key: waiting.key, original: name.slice(waiting.prefix.length + 2), isListed: false };
    const unread = [...this.#backends.values()].filter(
      ({ prefix, listFailures }) => prefix === '' && listFailures.some((failure) => failure.kind === kind),
    );
    const [only] = unread;
    return unread.length === 1 && only !== undefined ? { key: only.key, original: name, isListed: false } : undefined;
  }

  /** The only server of the view. It gets every request that names nothing known. */
  #onlyBackend(): Target | undefined {
    const [backend, ...others] = this.#backends.values();
    return backend === undefined || others.length > 0 ? undefined : { backend, edits: [] };
  }
}

/** The target for a client that sees this server unchanged. Refuses denied tools, and requests whose name or URI is no string. */
function unchanged(request: RelayedRequest, backend: Backend, revision: string | undefined): Target | RpcError {
  const { method, bytes, tokens } = request;
  const list = requestedList(method);
  if (list !== undefined) {
    const editAnswer: EditAnswer = (page, connection) => {
      const eras = { isModern: !hasHandshake(connection.revision), hasHandshake: hasHandshake(revision) };
      return editPage(list, page, backend.rules, toolsOf(backend), eras);
    };
    return { backend, edits: [], editAnswer };
  }
  const { name, uri, refName, refUri } = tokens;
  const isComplete = method === METHODS.complete;
  // The policy below decides by a name. A server could take a number or a list for the name of a denied tool.
  const isText = (span: Span | undefined) => stringAt(bytes, span) !== undefined;
  if (method === METHODS.getPrompt && !isText(name)) return needsName(method, 'prompts');
  if (BY_URI.has(method) && !isText(uri)) return needsUri(method);
  if (isComplete && refName !== undefined && !isText(refName)) return needsName(method, 'prompts');
  if (isComplete && refUri !== undefined && !isText(refUri)) return needsUri(method);
  // A reader of a resource looks at no `name`, and a prompt at no `uri`.
  const original = stringAt(bytes, method === METHODS.getPrompt ? name : (uri ?? name));
  if (method !== METHODS.callTool) return { backend, edits: [], ...(original !== undefined && { original }) };
  const shown = stringAt(bytes, name);
  if (name === undefined || shown === undefined) return needsName(method, 'tools');
  const { shaping, policy } = backend.rules;
  const tool = shaping === undefined ? shown : shaping.originalOf(shown, toolsOf(backend).renamed);
  if (!policy(tool) || isLookalike(tool, toolsOf(backend)))
    return new NotListed(RPC_CODES.invalidParams, plainUnknownName('tool', shown));
  const edits = tool === shown ? [] : [{ span: name, text: toBytes(JSON.stringify(tool)) }];
  return shaped({ backend, edits, tool }, request);
}

const BY_URI: ReadonlySet<string> = new Set([METHODS.readResource, METHODS.subscribe, METHODS.unsubscribe]);

/** The tools of a server as far as they were read, under original names. */
function toolsOf(backend: Backend) {
  return backend.knownListsAs('original').tools;
}

/**
 * Whether no tool of the server has this name, but one has a name that differs only in case or after a NUL. Some servers would call
 * that tool, although the configuration may deny it or decide about its parameters.
 */
function isLookalike(name: string, { entries, denied, withheld }: Backend['lists']['tools']): boolean {
  if (entries.some(({ original }) => original === name)) return false;
  const names = [...entries.map(({ original }) => original), ...denied, ...withheld.map((tool) => tool.name)];
  return !names.includes(name) && names.some((each) => foldKey(each) === foldKey(name));
}

/** The call of a tool with the values that the configuration gives to its parameters. */
function shaped(target: Target & { readonly tool: string }, request: RelayedRequest): Target | RpcError {
  const { shaping } = target.backend.rules;
  if (shaping === undefined) return target;
  const values = shaping.editsOf(target.tool, request);
  return values instanceof RpcError ? values : { ...target, edits: [...target.edits, ...values] };
}

/** Whether a server that is still starting may turn out to be the right one. */
export function mayChange(target: Target | Candidates | RpcError): boolean {
  if (target instanceof RpcError) return target instanceof NotListed;
  return 'candidates' in target || target.isGuess === true;
}

function needsName(method: string, kind: NamedKind): RpcError {
  return new RpcError(RPC_CODES.invalidParams, `${method} needs the name of a ${NOUNS[kind]}, a string`);
}

function needsUri(method: string): RpcError {
  return new RpcError(RPC_CODES.invalidParams, `${method} needs a URI, a string`);
}

type NamedKind = 'tools' | 'prompts';

interface NamedTarget extends Target {
  readonly name: string;
  readonly original: string;
  readonly isGuess: boolean;
  readonly isListed: boolean;
}

const NOUNS = { tools: 'tool', prompts: 'prompt' } as const;

/** Limits of learned methods, since a client could send any number of them. More than any extension has. */
const MAX_METHODS = 256;

const MAX_METHOD_LENGTH = 256;

function codeOf(bytes: Uint8Array, code: Span | undefined): number | undefined {
  return code === undefined ? undefined : Number(readText(bytes, code));
}

/** Edits the answer to `resources/read` of an alias: replaces the original URI by the alias that the client requested. */
function editReadResult(original: string, alias: string): EditAnswer {
  return ({ bytes, result }) => {
    if (result === undefined) return [];
    const uris = contentsOf(bytes, result).flatMap((content) => valuesAt(bytes, content, ['uri']));
    const own = uris.filter((span) => stringAt(bytes, span) === original);
    return own.map((span) => replace(span, alias));
  };
}

/** Edits a tool result: replaces `ui://` URIs, which say how a host shows the result, by their aliases. */
function editToolResult(aliases: ReadonlyMap<string, string>): EditAnswer {
  return ({ bytes, result }) => {
    if (result === undefined) return [];
    return uiPointers(bytes, result).flatMap(({ uri, span }) => {
      const alias = aliases.get(uri);
      return alias === undefined ? [] : [replace(span, alias)];
    });
  };
}

function replace(span: Span, uri: string): Edit {
  return { span, text: toBytes(JSON.stringify(uri)) };
}

/** Whether the server has no completions. The oldest revision has completions, but no capability for them. */
export function completesNothing({ dispatcher: { connection } }: Backend): boolean {
  return connection !== undefined && isOlder(OLDEST, connection.revision) && !connection.offers('completions');
}

const OLDEST: LegacyRevision = '2024-11-05';

/** The result for a server without completions. */
export const NO_COMPLETIONS = toBytes('{"completion":{"values":[],"total":0,"hasMore":false}}');

/** Error codes that only a server with the resource sends: a URL must be visited first, or the client lacks a capability. */
const CODES_OF_OWNERS: ReadonlySet<string> = new Set([VISIT_REQUIRED, String(MODERN_CODES.missingCapability)]);

/**
 * Whether the response to `resources/read` is an error or has no contents. Servers report an unknown resource with many
 * codes, or with an empty result. A server that first asks the client for something has the resource.
 */
function lacksResource({ bytes, result, tokens: { resultType, errorCode } }: ResponseEnvelope): boolean {
  if (result === undefined) return errorCode === undefined || !CODES_OF_OWNERS.has(readText(bytes, errorCode));
  if (stringAt(bytes, resultType) === 'input_required') return false;
  return contentsOf(bytes, result).length === 0;
}

function contentsOf(bytes: Uint8Array, result: Span): readonly Span[] {
  return valuesAt(bytes, result, ['contents']).flatMap((list) => elementsOf(bytes, list));
}

/** Servers to try one after the other, for a request whose server is unknown. */
export interface Candidates {
  readonly candidates: readonly Backend[];
  /** Whether the response shows that nothing has happened at the server, so that another server may have the answer. */
  readonly isUnknown: (response: ResponseEnvelope) => boolean;
  /** Called with the server that had the answer. */
  readonly onFound: (backend: Backend) => void;
  readonly notFound: RpcError;
}

/**
 * Tries servers for a request in order until one has the answer. If none has and a server failed, the failure is the
 * answer, because that server might have known it. `send` sends the request to one of the candidates.
 */
export function tryInOrder(
  exchange: Exchange,
  { candidates, isUnknown, onFound, notFound }: Candidates,
  send: (exchange: Exchange, backend: Backend) => void,
): void {
  const left = [...candidates];
  let current: Backend | undefined;
  let failure: RpcError | Failure | undefined;
  const next = () => {
    if (exchange.isSettled) return;
    current = left.shift();
    if (current === undefined) exchange.fail(failure ?? notFound);
    else send(tried, current);
  };
  const tried = withMembers(exchange, {
    answer: (response, edits, server) => {
      if (isUnknown(response)) {
        next();
        return;
      }
      if (current !== undefined) onFound(current);
      exchange.answer(response, edits, server);
    },
    fail: (reason) => {
      failure ??= reason;
      next();
    },
  });
  next();
}
