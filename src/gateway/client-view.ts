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
import { asLegacyResult, asOlderContent, knowsOldContentOnly } from '../wire/mcp/older-revisions.js';
import { hasHandshake } from '../wire/mcp/revisions.js';
import type { Hmac } from '../wire/mcp/task-id.js';
import type { Cancel, Clock } from '../wire/timing/clock.js';
import { type Catalogs, changedLists, MergedLists, type Shadowed } from './catalog/catalog.js';
import type { ListNaming } from './catalog/offered-lists.js';
import { answerList, asksFirstPage } from './catalog/pagination.js';
import type { NamedView } from './catalog/tool-policy.js';
import { type EditAnswer, type Handling, mender } from './dispatch/handling.js';
import type { LargeResults } from './large-results.js';
import type { Backend } from './registry/backend.js';
import type { LogLevelRouter } from './reverse/log-level-router.js';
import type { Subscriptions } from './reverse/subscriptions.js';
import { type OwnTool, offeredOf } from './routing/own-tool.js';
import {
  type Candidates,
  completesNothing,
  mayChange,
  NO_COMPLETIONS,
  Router,
  type Target,
  tryInOrder,
} from './routing/router.js';
import type { ListModes } from './search/list-modes.js';
import { unwrapCall } from './search/unwrap-call.js';
import { askedTask, calledTask, updated } from './tasks/called-task.js';
import type { Tasks } from './tasks/tasks.js';

export interface ClientViewOptions {
  readonly clock: Clock;
  readonly backends: readonly Backend[];
  readonly naming: ListNaming;
  /** The view of the configuration that the clients have. Absent if they see everything. */
  readonly named?: NamedView | undefined;
  readonly ownTools: readonly OwnTool[];
  /** Cuts large results. Absent if the clients get every result as it is. */
  readonly results?: LargeResults | undefined;
  /** Whether the client gets every result whole, as commands do. */
  readonly getsAll: (client: DownstreamClient) => boolean;
  /** The tools of the gateway itself that only clients in search mode see. */
  readonly searchTools: readonly OwnTool[];
  readonly modes: ListModes;
  /** Longest wait of the first requests for servers that are still starting, in milliseconds. */
  readonly startupWaitMs: number;
  readonly subscriptions: Subscriptions;
  readonly logs: LogLevelRouter;
  readonly tasks: Tasks;
  /** Seals the cursors of lists that need more than one page. */
  readonly hmac: Hmac;
  readonly onInternalError?: OnInternalError | undefined;
  readonly events: EventSink;
  /** View that the first client had before a change of the configuration. */
  readonly before?: ClientView | undefined;
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
  readonly #options: ClientViewOptions;
  /** Whether the servers' own lists were merged after the first starts. */
  #wereListsRead: boolean;
  /** Whether the server itself has announced the changes of the present merge. */
  #isAnnounced = false;
  /** Whether responses are searched for URIs, to learn the owners of resources. Only with several servers that have resources. */
  #learnsUris: boolean;
  /** The view that this one replaces, until the clients have moved. */
  #before: ClientView | undefined;

  constructor(options: ClientViewOptions) {
    const { backends, named, ownTools, searchTools, hmac, before } = options;
    this.#options = options;
    this.#backends = new Map(backends.map((backend) => [backend.key, backend]));
    this.#ownTools = new Map(ownTools.map((tool) => [tool.name, tool]));
    this.#searchTools = new Map(searchTools.map((tool) => [tool.name, tool]));
    this.#before = before;
    const paging = { hmac };
    const facts = { ...options, backends: this.#backends, paging };
    this.#router = new Router(facts, before === undefined ? undefined : before.#router);
    this.lists = new MergedLists(
      {
        ...options,
        view: named,
        servers: backends,
        paging,
        isFollowed: () => [...this.clients].some(({ followsLists }) => followsLists === true),
        onMerged: (catalogs) => this.#merged(catalogs),
      },
      before === undefined ? undefined : before.lists,
    );
    const announcedBefore = before === undefined ? undefined : before.#announcements;
    this.#announcements = new ListAnnouncements(this, options.clock, announcedBefore);
    this.#learnsUris = this.#router.withResources.length > 1;
    this.#wereListsRead = this.lists.isSettled;
    this.#queue = new StartupQueue(this, options);
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
    return this.#options.modes.isSearching(client);
  }

  /** Replaces a call through `trunkline__call_tool` by the call that it contains. */
  unwrap(exchange: Exchange): void {
    if (!this.#options.modes.maySearch(exchange.client)) return;
    exchange.request = unwrapCall(exchange.request) ?? exchange.request;
  }

  serve(exchange: Exchange): void {
    const { method } = exchange.request;
    const list = requestedList(method);
    if (list !== undefined && !this.isUnchanged) this.#list(exchange, list);
    else if (method === METHODS.setLevel && !this.isUnchanged)
      this.#options.logs.setLevel(exchange, this.#backends.values());
    else if (method === METHODS.ping) relayPing(exchange, this.#options.backends[0]);
    else if (method === METHODS.listTasks)
      this.#runFor(exchange, this.#options.tasks.ofServers.list(exchange, this.#backends.values()));
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
    const { events, backends } = this.#options;
    const only = this.isUnchanged ? backends[0]?.key : undefined;
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

  #route(exchange: Exchange): void {
    const { method, bytes, tokens } = exchange.request;
    const own = method === METHODS.callTool ? this.#ownTool(stringAt(bytes, tokens.name) ?? '', exchange) : undefined;
    if (own !== undefined) {
      if (tokens.task === undefined) this.#runFor(exchange, this.#callOwnTool(own, exchange));
      else exchange.fail(new RpcError(RPC_CODES.methodNotFound, `${own.name} cannot run as a task`));
      return;
    }
    const isSubscription = method === METHODS.subscribe || method === METHODS.unsubscribe;
    const uri = isSubscription ? stringAt(bytes, tokens.uri) : undefined;
    const { subscriptions, logs, results } = this.#options;
    if (method === METHODS.readResource && results?.serve(exchange) === true) return;
    const holder = uri === undefined ? undefined : subscriptions.holder(exchange.client, uri, this.#backends.values());
    const target = holder ?? this.#target(exchange);
    if (mayChange(target) && this.#queue.add(exchange)) return;
    if (target instanceof RpcError) {
      exchange.fail(target);
      return;
    }
    if ('candidates' in target) {
      tryInOrder(exchange, target, (tried, backend) => this.#send(tried, { backend, edits: [] }));
      return;
    }
    const { backend, original } = target;
    if (uri !== undefined) {
      subscriptions.serve(exchange, backend, original ?? uri, uri);
    } else if (method === METHODS.complete && !this.isUnchanged && completesNothing(backend)) {
      exchange.succeed(NO_COMPLETIONS);
    } else if (method === METHODS.setLevel) {
      this.#send(exchange, { ...target, ...logs.relay(exchange, backend) });
    } else {
      this.#send(exchange, target);
    }
  }

  #target({ request, client }: Exchange): Target | Candidates | RpcError {
    const { method, tokens } = request;
    const { ofServers } = this.#options.tasks;
    if (!mayReachServers(method, 'request'))
      return new RpcError(RPC_CODES.methodNotFound, `Method not found: ${method}`);
    if (TASK_METHODS.has(method)) return ofServers.target(request, client, this.#backends);
    // A method that MCP does not define may concern a task. Then the request goes to the server of that task.
    const aboutTask = tokens.taskId === undefined ? undefined : ofServers.target(request, client, this.#backends);
    const isAboutTask = aboutTask !== undefined && !(aboutTask instanceof RpcError) && !KNOWN_METHODS.has(method);
    return isAboutTask ? aboutTask : this.#router.target(request, this.lists.catalogs, client.revision);
  }

  #send(exchange: Exchange, target: Target): void {
    const { backend } = target;
    const { logs, tasks, named, getsAll } = this.#options;
    let { results } = this.#options;
    if (results !== undefined && getsAll(exchange.client)) results = undefined;
    logs.raise(exchange, backend);
    const onAnswered = this.#learnsUris ? this.#router.learnFrom(backend) : target.onAnswered;
    // A client that sees one server unchanged gets the bytes of that server.
    const mend = this.isUnchanged ? undefined : mender(exchange, backend.dispatcher.repairedResults);
    sendToServer(exchange, target, { tasks, results, named, onAnswered, mend });
  }

  /** Runs work that settles the exchange. An internal error fails the exchange. */
  #runFor(exchange: Exchange, work: Promise<void>): void {
    void withErrorBoundaryAsync(work, this.#options.onInternalError, () => exchange.fail(internalError()));
  }

  /** The tool of the gateway itself that the client may call by this name. */
  #ownTool(name: string, { client }: Exchange): OwnTool | undefined {
    const own = this.#ownTools.get(name);
    if (own !== undefined || !this.#searchTools.has(name) || !this.#options.modes.maySearch(client)) return own;
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
    return this.#options.modes.of(client, () => this.catalogs.tools);
  }
}

const KNOWN_METHODS: ReadonlySet<string> = new Set(Object.values(METHODS));

/** Longest delay of announcements after a change of the configuration, while servers start. In milliseconds. */
const QUIET_MS = 2_000;

/** Announces to the clients of a view which merged lists have changed. */
class ListAnnouncements {
  readonly #view: Pick<ClientView, 'lists' | 'clients' | 'isSearching'>;
  #announced: Catalogs;
  #isQuiet: boolean;
  readonly #cancelQuiet: Cancel;

  /** `before` has the lists that the clients of the previous view know, after a change of the configuration. */
  constructor(
    view: Pick<ClientView, 'lists' | 'clients' | 'isSearching'>,
    clock: Clock,
    before: ListAnnouncements | undefined,
  ) {
    this.#view = view;
    this.#announced = before === undefined ? view.lists.catalogs : before.#announced;
    this.#isQuiet = before !== undefined;
    this.#cancelQuiet = before === undefined ? () => {} : clock.schedule(QUIET_MS, () => this.endQuiet());
  }

  /** Announces the changes since the configuration changed, and later changes at once. */
  endQuiet(): void {
    this.#cancelQuiet();
    this.#isQuiet = false;
    this.announce();
  }

  /** Announces every list that differs from the list that was announced last. */
  announce(): void {
    if (this.#isQuiet) return;
    // Reads the catalogs first, because the read may merge stale lists and call `announce` again.
    const { catalogs } = this.#view.lists;
    const announced = this.#announced;
    this.#announced = catalogs;
    const changes = new Map<boolean, readonly ListKind[]>();
    for (const client of this.#view.clients) {
      const isSearched = this.#view.isSearching(client);
      const changed = changes.get(isSearched) ?? changedLists(announced, catalogs, isSearched);
      changes.set(isSearched, changed);
      for (const kind of changed) client.listChanged(kind);
    }
  }

  accept(): void {
    this.#announced = this.#view.lists.catalogs;
  }

  /** Announces to a client of another view the lists that differ from those announced there. */
  announceTo(client: DownstreamClient, from: ListAnnouncements): void {
    const isSearched = this.#view.isSearching(client);
    for (const kind of changedLists(from.#announced, this.#view.lists.catalogs, isSearched)) client.listChanged(kind);
  }

  close(): void {
    this.#cancelQuiet();
  }
}

/** Queues the first requests while first starts may change the answers. It queues once, beginning with the first request. */
class StartupQueue {
  readonly #view: Pick<ClientView, 'lists' | 'serve'>;
  readonly #options: Pick<ClientViewOptions, 'clock' | 'startupWaitMs' | 'backends'>;
  #queued: Exchange[] = [];
  #wait: 'not-begun' | 'running' | 'over' = 'not-begun';
  #cancel: Cancel = () => {};

  constructor(view: Pick<ClientView, 'lists' | 'serve'>, options: ClientViewOptions) {
    this.#view = view;
    this.#options = options;
  }

  add(exchange: Exchange): boolean {
    if (this.#isOver) return false;
    this.#queued.push(exchange);
    if (this.#wait === 'running') return true;
    this.#wait = 'running';
    const { clock, startupWaitMs, backends } = this.#options;
    this.#cancel = clock.schedule(startupWaitMs, () => {
      for (const backend of backends) backend.missedFirstList();
      this.end();
    });
    return true;
  }

  /** Serves every queued request again after a start has ended. A request may be queued again. */
  startSettled(): void {
    if (this.#isOver) this.#cancel();
    this.#serveAll();
  }

  end(): void {
    this.#wait = 'over';
    this.#cancel();
    this.#serveAll();
  }

  drain(): Exchange[] {
    this.#wait = 'over';
    this.#cancel();
    return this.#queued.splice(0);
  }

  get #isOver(): boolean {
    return this.#wait === 'over' || this.#view.lists.isSettled;
  }

  #serveAll(): void {
    for (const exchange of this.#queued.splice(0)) if (!exchange.isSettled) this.#view.serve(exchange);
  }
}

/** The lists whose entries must be approved before these requests use them. */
const APPROVED: ReadonlyMap<string, 'tools' | 'prompts' | 'resources'> = new Map([
  [METHODS.callTool, 'tools'],
  [METHODS.getPrompt, 'prompts'],
  [METHODS.readResource, 'resources'],
]);

/** Sends a request to its server, shaped as the tool needs and translated if it concerns a task. */
function sendToServer(
  exchange: Exchange,
  target: Target,
  {
    tasks,
    results,
    named,
    onAnswered,
    mend,
  }: Pick<ClientViewOptions, 'tasks' | 'results' | 'named'> & Pick<Handling, 'onAnswered' | 'mend'>,
): void {
  const { backend, edits, tool } = target;
  const { request, client } = exchange;
  const kind = APPROVED.get(request.method);
  const used = tool ?? target.original;
  const needsApproval = kind !== undefined && used !== undefined && backend.rules.approvals !== undefined;
  const refusal = needsApproval ? () => backend.lists.approvalRefusal(kind, used) : undefined;
  const { task, relatedTask } = request.tokens;
  if (task === undefined && relatedTask === undefined && !TASK_METHODS.has(request.method)) {
    const translation = calledTask(exchange, target, tasks);
    const mayRepeat = tool === undefined ? isRepeatable(request.method) : backend.isRepeatable(tool);
    // The calls of a server without a handshake have a translation, because they may become tasks.
    const mayDiffer = translation !== undefined || knowsOldContentOnly(client.revision);
    const editor = mayDiffer ? forClient(exchange, target) : target.editAnswer;
    const editAnswer = results === undefined ? editor : results.editor(exchange, target, named, editor);
    backend.serve(exchange, { edits, mend, editAnswer, onAnswered, translation, isRepeatable: mayRepeat, refusal });
    return;
  }
  if (updated(exchange, backend, tasks)) return;
  const related = tasks.towardServer(request, client, backend);
  const translation = askedTask(exchange, backend, tasks);
  const editAnswer = results?.editor(exchange, target, named, target.editAnswer) ?? target.editAnswer;
  backend.serve(exchange, { edits: [...edits, ...related], mend, editAnswer, onAnswered, translation, refusal });
}

/** Returns the edits of an answer. A client with a handshake also gets the edits that a server without one needs. */
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

interface ClientViewsOptions
  extends Omit<
    ClientViewOptions,
    'backends' | 'named' | 'naming' | 'ownTools' | 'results' | 'startupWaitMs' | 'before'
  > {
  readonly settings: () => Pick<ClientViewOptions, 'ownTools' | 'results' | 'startupWaitMs'>;
}

/** All views, each for the clients that use the same backends. */
export class ClientViews {
  readonly #options: ClientViewsOptions;
  readonly #views = new Map<string, ClientView>();

  constructor(options: ClientViewsOptions) {
    this.#options = options;
  }

  get all(): readonly ClientView[] {
    return [...this.#views.values()];
  }

  /** Returns the view of these backends; with `isAlone`, of a single unchanged server. A new view replaces `before`. */
  of(backends: readonly Backend[], isAlone: boolean, named?: NamedView, before?: ClientView): ClientView {
    const id = idOf(backends, isAlone, named);
    const known = this.#views.get(id);
    if (known !== undefined) return known;
    const { settings, ...shared } = this.#options;
    const { ownTools, results, startupWaitMs } = settings();
    const seen = isAlone
      ? ({ naming: 'original', ownTools: [], searchTools: [], results: undefined } as const)
      : ({ naming: 'exposed', ownTools: offeredOf(ownTools, backends, named), results } as const);
    const view = new ClientView({ ...shared, ...seen, backends, named, startupWaitMs, before });
    this.#views.set(id, view);
    return view;
  }

  eachOf(backend: Backend, visit: (view: ClientView) => void): void {
    for (const view of this.#views.values()) if (view.uses(backend)) visit(view);
  }

  /** Removes and returns all views. Call `keep` for those that clients continue to use. */
  takeAll(): readonly ClientView[] {
    const { all } = this;
    this.#views.clear();
    return all;
  }

  /** Keeps the view, unless moved clients share another view of the same backends. Returns whether the view was kept. */
  keep(view: ClientView): boolean {
    const id = idOf([...view.backends.values()], view.isUnchanged, view.named);
    const known = this.#views.get(id) ?? view;
    this.#views.set(id, known);
    return known === view;
  }

  end(view: ClientView): void {
    view.close();
    for (const [id, each] of this.#views) if (each === view) this.#views.delete(id);
  }

  close(): void {
    for (const view of this.takeAll()) view.close();
  }
}

/** Returns a key for a view. Views of the same backends have the same key. */
function idOf(backends: readonly Backend[], isAlone: boolean, named: NamedView | undefined): string {
  return JSON.stringify([isAlone, named?.name, ...backends.map((backend) => backend.id)]);
}
