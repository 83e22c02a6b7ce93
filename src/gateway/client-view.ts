import type { Decision } from '../config/rules/request-rules.js';
import { reasonFor } from '../downstream/failure.js';
import type { DownstreamClient, Exchange } from '../downstream/port.js';
import { internalError, type OnInternalError, withErrorBoundaryAsync } from '../host/errors/internal-error.js';
import type { EventSink } from '../host/observe/events/events.js';
import type { ListDecision } from '../spec/list-modes.js';
import { readText, stringAt, toBytes } from '../wire/json/json-text.js';
import { EMPTY_RESULT, RPC_CODES, RpcError } from '../wire/jsonrpc/message.js';
import type { NotificationEnvelope } from '../wire/mcp/envelope.js';
import { SKILL_METHODS } from '../wire/mcp/extensions.js';
import {
  isRepeatable,
  LIST_KINDS,
  type ListKind,
  METHODS,
  mayReachServers,
  requestedList,
  TASK_METHODS,
} from '../wire/mcp/methods.js';
import { asLegacyResult, asOlderContent } from '../wire/mcp/older-revisions.js';
import { hasHandshake, knowsOldContentOnly } from '../wire/mcp/revisions.js';
import type { Clock } from '../wire/timing/clock.js';
import { type Catalogs, MergedLists, type Shadowed } from './catalog/catalog.js';
import type { ListNaming } from './catalog/offered-lists.js';
import { answerList, asksFirstPage, type Paging } from './catalog/pagination.js';
import type { NamedView } from './catalog/tool-policy.js';
import { type EditAnswer, mender, type Refusal } from './dispatch/call.js';
import { ListAnnouncements } from './list-announcements.js';
import type { Backend } from './registry/backend.js';
import type { LogLevelRouter } from './reverse/log-level-router.js';
import type { Subscriptions } from './reverse/subscriptions.js';
import type { OwnTool, ResultCutter } from './routing/own-tool.js';
import type { RequestGate } from './routing/request-gate.js';
import {
  type Candidates,
  completesNothing,
  mayChange,
  NO_COMPLETIONS,
  Router,
  type Target,
  tryInOrder,
} from './routing/router.js';
import type { ListModes } from './search/search-mode.js';
import { StartupQueue } from './startup-queue.js';
import { askedTask, calledTask, updated } from './tasks/called-task.js';
import type { Tasks } from './tasks/tasks.js';

/** The parts of the gateway that all views share. */
export interface ViewParts {
  readonly clock: Clock;
  readonly events: EventSink;
  readonly onInternalError: OnInternalError | undefined;
  readonly paging: Paging;
  readonly modes: ListModes;
  /** The tools of the gateway itself that only clients in search mode see. */
  readonly searchTools: readonly OwnTool[];
  readonly subscriptions: Subscriptions;
  readonly logs: LogLevelRouter;
  readonly tasks: Tasks;
  /** Whether the client gets every result whole, as commands do. */
  readonly getsAll: (client: DownstreamClient) => boolean;
  /** The view of the configuration that the client has at present. `undefined` if it sees everything. */
  readonly namedOf: (client: DownstreamClient) => NamedView | undefined;
  /** The gates of the present configuration, in the order in which requests pass them. */
  readonly gates: { readonly all: readonly RequestGate[] };
  /** The view that the client has at present. A reload may replace it while a request waits at a gate. */
  readonly viewOf: (client: DownstreamClient) => ClientView | undefined;
}

export interface ClientViewOptions extends ViewSettings {
  readonly backends: readonly Backend[];
  readonly naming: ListNaming;
  /** The view of the configuration that the clients have. Absent if they see everything. */
  readonly named: NamedView | undefined;
  /** View that the first client had before a change of the configuration. */
  readonly before: ClientView | undefined;
}

/** Settings of all views. */
export interface ViewSettings {
  readonly ownTools: readonly OwnTool[];
  /** Cuts large results. Absent if the clients get every result as it is. */
  readonly results?: ResultCutter | undefined;
  /** Longest wait of the first requests for servers that are still starting, in milliseconds. */
  readonly startupWaitMs: number;
}

/**
 * The servers as a group of clients sees them: one backend of each server, merged. Clients that use the same backends
 * share a view. The view answers requests that concern all servers, such as lists, and routes every other request to
 * one server.
 */
export class ClientView {
  readonly clients = new Set<DownstreamClient>();
  readonly #backends: ReadonlyMap<string, Backend>;
  readonly #ownTools: ReadonlyMap<string, OwnTool>;
  readonly #searchTools: ReadonlyMap<string, OwnTool>;
  readonly lists: MergedLists;
  readonly #announcements: ListAnnouncements;
  readonly #router: Router;
  readonly #queue: StartupQueue;
  readonly #parts: ViewParts;
  readonly #options: ClientViewOptions;
  /** Whether the servers' own lists were merged after the first starts. */
  #wereListsRead: boolean;
  /** Whether the server itself has announced the changes of the present merge. */
  #isAnnounced = false;
  /** Whether responses are searched for URIs, to learn the owners of resources. Only with several servers that have resources. */
  #learnsUris: boolean;
  /** The view that this one replaces, until the clients have moved. */
  #before: ClientView | undefined;

  constructor(parts: ViewParts, options: ClientViewOptions) {
    const { backends, naming, named, ownTools, startupWaitMs, before } = options;
    const { clock, paging, searchTools } = parts;
    this.#parts = parts;
    this.#options = options;
    this.#backends = new Map(backends.map((backend) => [backend.key, backend]));
    this.#ownTools = new Map(ownTools.map((tool) => [tool.name, tool]));
    this.#searchTools = new Map(searchTools.map((tool) => [tool.name, tool]));
    this.#before = before;
    const routing = { backends: this.#backends, naming, named, paging, startupWaitMs };
    this.#router = new Router(routing, before === undefined ? undefined : before.#router);
    this.lists = new MergedLists(
      {
        clock,
        naming,
        ownTools,
        searchTools,
        paging,
        view: named,
        servers: backends,
        isFollowed: () => [...this.clients].some(({ followsLists }) => followsLists === true),
        onMerged: (catalogs) => this.#merged(catalogs),
      },
      before === undefined ? undefined : before.lists,
    );
    const announcedBefore = before === undefined ? undefined : before.#announcements;
    this.#announcements = new ListAnnouncements(this, clock, announcedBefore);
    this.#learnsUris = this.#router.withResources.length > 1;
    this.#wereListsRead = this.lists.isSettled;
    this.#queue = new StartupQueue(this, { clock, startupWaitMs, backends });
    // Clients that have read a list do not wait for servers that were added to it.
    if (this.lists.wereShown) this.#queue.end();
  }

  /** Whether the clients see one server unchanged. */
  get isUnchanged(): boolean {
    return this.#options.naming === 'original';
  }

  get named(): NamedView | undefined {
    return this.#options.named;
  }

  get backends(): ReadonlyMap<string, Backend> {
    return this.#backends;
  }

  get catalogs(): Catalogs {
    return this.lists.catalogs;
  }

  get shadowedSkills(): readonly Shadowed[] {
    return this.#router.skills.shadowed;
  }

  uses(backend: Backend): boolean {
    return this.#backends.get(backend.key) === backend;
  }

  /** Whether the client has read, or will read, a list for search mode. */
  isSearching(client: DownstreamClient): boolean {
    return this.#parts.modes.isSearching(client);
  }

  serve(exchange: Exchange): void {
    const { method } = exchange.request;
    const list = requestedList(method);
    if (list !== undefined && !this.isUnchanged) this.#list(exchange, list);
    else if (method === METHODS.setLevel && !this.isUnchanged)
      this.#parts.logs.setLevel(exchange, this.#backends.values());
    else if (method === METHODS.ping) relayPing(exchange, this.#options.backends[0]);
    else if (method === METHODS.listTasks)
      this.#runFor(exchange, this.#parts.tasks.ofServers.list(exchange, this.#backends.values()));
    else if (method === SKILL_METHODS.list && !this.isUnchanged && this.#router.skills.isOffered)
      this.#runFor(exchange, this.#router.skills.answer(exchange));
    else this.#route(exchange);
  }

  /** Merges changed lists of a backend. The server itself announced the changes of the `announced` lists. */
  listsChanged(announced: readonly ListKind[] = []): void {
    this.#isAnnounced = announced.length > 0;
    this.lists.changed();
    this.#isAnnounced = false;
  }

  /** Relays the announcement of changed lists to clients that see only this server, because they read the lists from it. */
  listsAnnounced([kind]: readonly ListKind[], notification: NotificationEnvelope): void {
    if (!this.isUnchanged || kind === undefined) return;
    for (const client of this.clients) client.listAnnounced(kind, notification);
  }

  /** Announces all lists of a server that clients see unchanged, because they may have changed without an announcement. */
  unreadListsChanged(): void {
    if (!this.isUnchanged) return;
    for (const client of this.clients) for (const kind of LIST_KINDS) client.listChanged(kind);
  }

  adopt(client: DownstreamClient, from: ClientView): void {
    from.clients.delete(client);
    this.clients.add(client);
    if (from !== this.#before) this.#announcements.announceTo(client, from.#announcements);
  }

  /** Call this when all clients have moved. Announces the differences at once if no server is starting. */
  begin(): void {
    this.#before = undefined;
    if (this.lists.isSettled) this.#announcements.endQuiet();
  }

  /** Records the owner of a resource, listed or not, for which a server has sent an update. */
  noteUpdated({ bytes, tokens: { uri } }: NotificationEnvelope, { key }: Backend): void {
    this.#router.noteUri(stringAt(bytes, uri) ?? '', key);
  }

  startSettled(): void {
    this.#queue.startSettled();
    if (this.lists.isSettled) this.#announcements.endQuiet();
  }

  close(): void {
    this.#announcements.close();
    this.#queue.end();
  }

  /** Ends this view, because another view replaces it. Returns the queued requests, which the other view must serve. */
  retire(): Exchange[] {
    this.#announcements.close();
    return this.#queue.drain();
  }

  #merged(catalogs: Catalogs): void {
    this.#learnsUris = this.#router.withResources.length > 1;
    const { events } = this.#parts;
    const only = this.isUnchanged ? this.#options.backends[0]?.key : undefined;
    if (events.wants('lists.merged')) events.emit({ kind: 'lists.merged', tools: catalogs.tools.size, only });
    // A client that sees one server unchanged reads the lists from the server, and gets the server's own announcements.
    const isKnown = this.isUnchanged && (this.#isAnnounced || !this.#wereListsRead);
    if (isKnown) this.#announcements.accept();
    else this.#announcements.announce();
    this.#wereListsRead ||= this.lists.isSettled;
  }

  #list(exchange: Exchange, kind: ListKind): void {
    // A request with a cursor continues a list that the client has started to read.
    const mayWait = asksFirstPage(exchange.request) && !this.lists.isComplete;
    if (mayWait && this.#queue.add(exchange)) return;
    const { client } = exchange;
    const isSearched = kind === 'tools' && this.#decisionFor(client).mode === 'search';
    answerList(exchange, this.lists.show(kind).pagesFor(client.revision, isSearched));
  }

  #route(exchange: Exchange, passed?: ReadonlySet<RequestGate>): void {
    const { method, bytes, tokens } = exchange.request;
    const own = method === METHODS.callTool ? this.#ownTool(stringAt(bytes, tokens.name) ?? '', exchange) : undefined;
    if (own !== undefined) {
      if (tokens.task === undefined) this.#runFor(exchange, this.#callOwnTool(own, exchange));
      else exchange.fail(new RpcError(RPC_CODES.methodNotFound, `${own.name} cannot run as a task`));
      return;
    }
    const isSubscription = method === METHODS.subscribe || method === METHODS.unsubscribe;
    const uri = isSubscription ? stringAt(bytes, tokens.uri) : undefined;
    const { subscriptions, logs } = this.#parts;
    const { results } = this.#options;
    if (method === METHODS.readResource && results?.serve(exchange) === true) return;
    const holder = uri === undefined ? undefined : subscriptions.holder(exchange.client, uri, this.#backends.values());
    const target = holder ?? this.#target(exchange);
    if (mayChange(target) && this.#queue.add(exchange)) return;
    if (target instanceof RpcError) {
      exchange.fail(target);
      return;
    }
    if ('candidates' in target) {
      tryInOrder(exchange, target, (tried, backend) => this.#send(tried, { backend, edits: [] }, passed));
      return;
    }
    const { backend, original } = target;
    if (uri !== undefined) {
      subscriptions.serve(exchange, backend, original ?? uri, uri);
    } else if (method === METHODS.complete && !this.isUnchanged && completesNothing(backend)) {
      exchange.succeed(NO_COMPLETIONS);
    } else if (method === METHODS.setLevel) {
      this.#send(exchange, { ...target, ...logs.relay(exchange, backend) }, passed);
    } else {
      this.#send(exchange, target, passed);
    }
  }

  #target({ request, client }: Exchange): Target | Candidates | RpcError {
    const { method, tokens } = request;
    const { ofServers } = this.#parts.tasks;
    if (!mayReachServers(method, 'request'))
      return new RpcError(RPC_CODES.methodNotFound, `Method not found: ${method}`);
    if (TASK_METHODS.has(method)) return ofServers.target(request, client, this.#backends);
    // A method that MCP does not define may concern a task. Then the request goes to the server of that task.
    const aboutTask = tokens.taskId === undefined ? undefined : ofServers.target(request, client, this.#backends);
    const isAboutTask = aboutTask !== undefined && !(aboutTask instanceof RpcError) && !KNOWN_METHODS.has(method);
    return isAboutTask ? aboutTask : this.#router.target(request, this.lists.catalogs, client.revision);
  }

  /** Sends a request to its server, once the gates that it has not `passed` have let it pass. */
  #send(exchange: Exchange, target: Target, passed: ReadonlySet<RequestGate> = NO_GATES): void {
    const { all } = this.#parts.gates;
    const { request } = exchange;
    for (const gate of all) {
      if (passed.has(gate)) continue;
      const decision = this.#decisionOn(exchange, target);
      // A gate does not look at a request that no server gets.
      if (decision?.verdict === 'deny' || this.#unapproved(exchange, target) !== undefined) break;
      const asks = decision === undefined || isAllowed(decision, exchange) ? undefined : decision;
      const gated = { exchange, target, view: this.#namedOf(exchange), asks };
      if (!gate.concerns(gated)) continue;
      gate.hold(gated, (next) => {
        // Edits have places in the bytes of the request, and a reload may have replaced view and server.
        const view = this.#parts.viewOf(next.client) ?? this;
        const isSame = view === this && this.uses(target.backend);
        const hasPassed = new Set(passed).add(gate);
        if (isSame && (next.request === request || target.edits.length === 0)) this.#send(next, target, hasPassed);
        else view.#route(next, hasPassed);
      });
      return;
    }
    this.#dispatch(exchange, target);
  }

  /** Brings a request to its server, shaped as the tool needs and translated if it concerns a task. */
  #dispatch(exchange: Exchange, target: Target): void {
    const { backend, edits, tool } = target;
    const { request, client, logLevel } = exchange;
    const { logs, tasks } = this.#parts;
    if (logLevel !== undefined && logLevel !== 'off') logs.raise(client, logLevel, backend);
    const refusal = () => this.#refusalOf(exchange, target);
    const onAnswered = this.#learnsUris ? this.#router.learnFrom(backend) : target.onAnswered;
    // A client that sees one server unchanged gets the bytes of that server.
    const mend = this.isUnchanged ? undefined : mender(exchange, backend.dispatcher.repairedResults);
    const { task, relatedTask } = request.tokens;
    if (task !== undefined || relatedTask !== undefined || TASK_METHODS.has(request.method)) {
      if (updated(exchange, backend, tasks)) return;
      const all = [...edits, ...tasks.towardServer(request, client, backend)];
      const translation = askedTask(exchange, backend, tasks);
      const editAnswer = this.#cutting(exchange, target, target.editAnswer);
      backend.serve(exchange, { edits: all, mend, editAnswer, onAnswered, translation, refusal });
      return;
    }
    const mayMakeTask = tool !== undefined && backend.mayMakeTask(tool, client.revision);
    const translation = mayMakeTask ? calledTask(exchange, backend, tool, tasks) : undefined;
    const mayRepeat = tool === undefined ? isRepeatable(request.method) : backend.isRepeatable(tool);
    // The calls of a server without a handshake have a translation, because they may become tasks.
    const mayDiffer = translation !== undefined || knowsOldContentOnly(client.revision);
    const editAnswer = this.#cutting(exchange, target, mayDiffer ? forClient(exchange, target) : target.editAnswer);
    backend.serve(exchange, { edits, mend, editAnswer, onAnswered, translation, isRepeatable: mayRepeat, refusal });
  }

  /** A client has a view for the whole session or not at all, but the configuration may change the view. */
  #namedOf({ client }: Exchange): NamedView | undefined {
    return this.#parts.namedOf(client);
  }

  /** The reason for which the server must not get the request: a tool without approval, or a rule. */
  #refusalOf(exchange: Exchange, target: Target): Refusal | undefined {
    const unapproved = this.#unapproved(exchange, target);
    if (unapproved !== undefined) return { reason: 'not_approved', detail: unapproved };
    const decision = this.#decisionOn(exchange, target);
    return decision === undefined || isAllowed(decision, exchange) ? undefined : decision.denial;
  }

  #unapproved(exchange: Exchange, { backend, tool, original }: Target): string | undefined {
    if (backend.rules.approvals === undefined) return undefined;
    const kind = APPROVED.get(exchange.request.method);
    const used = tool ?? original;
    return kind === undefined || used === undefined ? undefined : backend.lists.approvalRefusal(kind, used);
  }

  /**
   * Returns the stricter decision of the rules of its view and of its server on a request. Both are read anew each time, because a
   * changed configuration also holds for requests that wait.
   */
  #decisionOn(exchange: Exchange, { backend, edits, original, tool }: Target): Decision | undefined {
    const { request } = exchange;
    const ofServer = backend.rules.callRules;
    const ofView = this.#namedOf(exchange)?.callRules;
    if (ofServer === undefined && ofView === undefined) return undefined;
    const shown = tool && backend.lists.tools.renamed?.get(tool);
    const ruled = { request, edits, server: backend.key, original: tool ?? original, shown };
    const decisions = [ofView?.decide(ruled), ofServer?.decide(ruled)];
    const stricter = (['deny', 'ask'] as const).map((verdict) => decisions.find((each) => each?.verdict === verdict));
    return stricter.find((each) => each !== undefined);
  }

  /** Returns the edits of an answer, with those that cut a large result, unless the client gets every result whole. */
  #cutting(exchange: Exchange, target: Target, editAnswer: EditAnswer | undefined): EditAnswer | undefined {
    const { results, named } = this.#options;
    if (results === undefined || this.#parts.getsAll(exchange.client)) return editAnswer;
    const cut = results.editor(exchange, target.backend, target.tool, named);
    if (cut === undefined) return editAnswer;
    return (response, connection) => cut(response, editAnswer?.(response, connection) ?? []);
  }

  /** Runs work that settles the exchange. An internal error fails the exchange. */
  #runFor(exchange: Exchange, work: Promise<void>): void {
    void withErrorBoundaryAsync(work, this.#parts.onInternalError, () => exchange.fail(internalError()));
  }

  /** The tool of the gateway itself that the client may call by this name. */
  #ownTool(name: string, { client }: Exchange): OwnTool | undefined {
    const own = this.#ownTools.get(name);
    if (own !== undefined || !this.#searchTools.has(name) || !this.#parts.modes.maySearch(client)) return own;
    return this.#searchTools.get(name);
  }

  async #callOwnTool(tool: OwnTool, exchange: Exchange): Promise<void> {
    const { bytes, params } = exchange.request;
    const args: unknown = params && JSON.parse(readText(bytes, params)).arguments;
    const { backends, catalogs, shadowedSkills, named } = this;
    const { revision, principal } = exchange.client;
    const decision = this.#decisionFor(exchange.client);
    const visible = { backends, catalogs, shadowedSkills, named, revision, principal, decision };
    exchange.succeed(toBytes(JSON.stringify(await tool.call(args, visible, exchange))));
  }

  #decisionFor(client: DownstreamClient): ListDecision {
    return this.#parts.modes.of(client, () => this.catalogs.tools);
  }
}

const NO_GATES: ReadonlySet<RequestGate> = new Set();

/** Whether a decision allows the request, or a person has said yes to it as it is. */
function isAllowed(decision: Decision, { allowed }: Exchange): boolean {
  if (decision.verdict !== 'ask') return decision.verdict === 'allow';
  // Without a yes, the parameters, which may be large, are not made into a text.
  return allowed !== undefined && allowed === decision.identity;
}

const KNOWN_METHODS: ReadonlySet<string> = new Set(Object.values(METHODS));

/** The lists whose entries must be approved before these requests use them. */
const APPROVED: ReadonlyMap<string, 'tools' | 'prompts' | 'resources'> = new Map([
  [METHODS.callTool, 'tools'],
  [METHODS.getPrompt, 'prompts'],
  [METHODS.readResource, 'resources'],
]);

/** Returns the edits of an answer. For a client with a handshake, these also translate the answer of a server without one. */
function forClient({ client, request }: Exchange, { backend, tool, editAnswer }: Target): EditAnswer | undefined {
  const { revision } = client;
  if (!hasHandshake(revision)) return editAnswer;
  const ofPrompt = request.method === METHODS.getPrompt ? 'prompt' : undefined;
  const kind = tool === undefined ? ofPrompt : 'tool';
  return (response, connection) => {
    const own = editAnswer?.(response, connection);
    if (hasHandshake(connection.revision)) return own ?? [];
    const isOther = tool !== undefined && backend.lists.tools.otherOutputs.has(tool);
    const output = tool === undefined ? [] : asLegacyResult(response, isOther);
    const isOld = knowsOldContentOnly(revision) && kind !== undefined;
    const content = isOld ? asOlderContent(response, kind, revision) : [];
    return [...(own ?? []), ...output, ...content];
  };
}

/**
 * Relays the `ping` of a client that sees one server unchanged. The `ping` takes no slot, and counts neither as use of
 * the server nor for its circuit breaker. If no process can answer, the gateway does, because the client's session
 * outlives processes.
 */
function relayPing(exchange: Exchange, server: Backend | undefined): void {
  const { openConnection: connection, dispatcher } = server ?? {};
  if (connection === undefined || dispatcher === undefined) {
    exchange.succeed(EMPTY_RESULT);
    return;
  }
  const sent = connection.send(exchange.request, [], dispatcher.listTimeouts, {
    settle: (outcome) => {
      if (outcome.kind === 'answered') exchange.answer(outcome.response);
      else if (outcome.reason === 'exited' || outcome.reason === 'stopped') exchange.succeed(EMPTY_RESULT);
      else if (outcome.reason !== 'cancelled')
        exchange.fail(dispatcher.failureOf(reasonFor(outcome.reason), outcome.sent, outcome));
    },
  });
  if (sent !== undefined) exchange.onCancel((notification) => sent.cancel(notification));
}
