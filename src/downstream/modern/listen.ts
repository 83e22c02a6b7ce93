import { type OnInternalError, withErrorBoundary } from '../../host/errors/internal-error.js';
import { editMembers } from '../../wire/json/edit-members.js';
import { isObject, readText, stringAt, toBytes, valuesAt } from '../../wire/json/json-text.js';
import { type Edit, type SplicedMessage, splice } from '../../wire/json/splice.js';
import { join, notificationMessage, RPC_CODES, RpcError, resultMessage, unedited } from '../../wire/jsonrpc/message.js';
import type { NotificationEnvelope, RequestEnvelope, ResponseEnvelope } from '../../wire/mcp/envelope.js';
import { LIST_KINDS, LISTS, type ListKind, METHODS } from '../../wire/mcp/methods.js';
import { SUBSCRIPTION_ID } from '../../wire/mcp/older-revisions.js';
import { ownEnvelope } from '../../wire/mcp/relayed-request.js';
import type { Cancel, Clock } from '../../wire/timing/clock.js';
import { refusedTasks } from '../input-requests.js';
import { ListChanges } from '../list-changes.js';
import type { DownstreamClient, GatewaySession, InputRequest, WithdrawInput } from '../port.js';
import type { ReplyChannel } from '../transport.js';
import { type AnswerForm, UNCHANGED, WireExchange } from '../wire-exchange.js';

interface ClientListensOptions {
  readonly clock: Clock;
  readonly onInternalError?: OnInternalError | undefined;
  readonly client: DownstreamClient;
  readonly session: () => GatewaySession;
}

/** A resource or task that the client is subscribed to, until its last subscription ends. */
interface SharedSubject {
  readonly listens: Set<Listen>;
  isAgreed: boolean;
  end: () => void;
}

/** The subscriptions of one client. Sends each subscription the notifications that it asked for. */
export class ClientListens {
  readonly #options: ClientListensOptions;
  readonly #open = new Set<Listen>();
  readonly #listChanges: ListChanges;
  readonly #resources: ResourceSubscriptions;
  readonly #subjects = new Map<string, SharedSubject>();

  constructor(options: ClientListensOptions) {
    this.#options = options;
    this.#listChanges = new ListChanges(options.clock, (message) => this.#announce(message));
    this.#resources = new ResourceSubscriptions(options);
  }

  get size(): number {
    return this.#open.size;
  }

  get followLists(): boolean {
    return [...this.#open].some(({ filter }) => filter.changes.size > 0);
  }

  open(options: RequestedListen): Listen {
    const listen = new Listen({
      ...options,
      clock: this.#options.clock,
      subjects: this,
      onEnded: () => {
        this.#open.delete(listen);
        options.onEnded(listen);
      },
    });
    this.#open.add(listen);
    // A subscription counts as a read of the list, so that its changes are announced.
    for (const kind of LIST_KINDS) if (listen.filter.changes.has(LISTS[kind].changed)) this.#listChanges.listed(kind);
    listen.open();
    return listen;
  }

  /** Subscribes to the resource or task, once for all subscriptions. Calls `Listen.decided` when the server has answered. */
  join(subject: string, listen: Listen): void {
    const known = this.#subjects.get(subject);
    if (known !== undefined) {
      known.listens.add(listen);
      if (known.isAgreed) listen.decided(subject, true);
      return;
    }
    const shared: SharedSubject = { listens: new Set([listen]), isAgreed: false, end: () => {} };
    this.#subjects.set(subject, shared);
    const decided = (isAgreed: boolean) => this.#decided(subject, shared, isAgreed);
    withErrorBoundary(
      () => {
        const end = this.#subscribe(subject, decided);
        // The server may agree at once, and the last subscription may end because of that.
        if (this.#subjects.get(subject) === shared) shared.end = end;
        else end();
      },
      this.#options.onInternalError,
      () => decided(false),
    );
  }

  leave(subject: string, listen: Listen): void {
    const shared = this.#subjects.get(subject);
    if (shared?.listens.delete(listen) !== true || shared.listens.size > 0) return;
    this.#subjects.delete(subject);
    shared.end();
  }

  listChanged(kind: ListKind): void {
    if (this.#wantsChanges(kind)) this.#listChanges.changed(kind);
  }

  /** Relays the announcement of the server that the client sees unchanged. */
  listAnnounced(kind: ListKind, { bytes, span }: NotificationEnvelope): void {
    // Copies the notification, because it may be sent after its memory was reused.
    if (this.#wantsChanges(kind)) this.#listChanges.relay(kind, unedited(bytes.slice(span.start, span.end)));
  }

  /**
   * Relays an update of a resource, or the state of a task. A resource that no subscription names may be a part of one
   * that a subscription names. A client without a session gets no other notifications.
   */
  notify({ method, bytes, span }: NotificationEnvelope, edits: readonly Edit[]): void {
    const isTask = method === METHODS.taskState;
    if (this.#open.size === 0 || (!isTask && method !== METHODS.resourceUpdated)) return;
    const message = splice({ bytes, span, edits });
    const subject = isTask ? `${TASK}${textAt(message, 'taskId')}` : `${RESOURCE}${textAt(message, 'uri')}`;
    const named = [...this.#open].filter((listen) => listen.has(subject));
    const isPart = named.length === 0 && !isTask;
    const concerned = isPart ? [...this.#open].filter(({ hasResources }) => hasResources) : named;
    for (const listen of concerned) listen.deliver(subject, message);
  }

  /** Ends all subscriptions with an answer, because the gateway ends. */
  end(): void {
    for (const listen of [...this.#open]) listen.end();
  }

  /** Ends everything for a client that has left. Its session with the gateway unsubscribes from all resources. */
  close(): void {
    this.#listChanges.close();
    this.#resources.close();
    const subjects = [...this.#subjects.values()];
    this.#subjects.clear();
    for (const { end } of subjects) end();
    for (const listen of [...this.#open]) listen.cancel();
  }

  /** Subscribes at the server. Calls `decided` of an agreed task again with `false` when the process of its server ends. */
  #subscribe(subject: string, decided: (isAgreed: boolean) => void): () => void {
    return subject.startsWith(TASK)
      ? this.#options.session().watchTask(subject.slice(TASK.length), decided)
      : this.#resources.subscribe(subject.slice(RESOURCE.length), decided);
  }

  #decided(subject: string, shared: SharedSubject, isAgreed: boolean): void {
    if (this.#subjects.get(subject) !== shared) return;
    shared.isAgreed = isAgreed;
    if (!isAgreed) this.#subjects.delete(subject);
    for (const listen of [...shared.listens]) listen.decided(subject, isAgreed);
  }

  #wantsChanges(kind: ListKind): boolean {
    return [...this.#open].some(({ filter }) => filter.changes.has(LISTS[kind].changed));
  }

  #announce(message: SplicedMessage): void {
    const bytes = splice(message);
    const method = stringAt(bytes, valuesAt(bytes, { start: 0, end: bytes.length }, ['method'])[0]) ?? '';
    for (const listen of this.#open) if (listen.filter.changes.has(method)) listen.deliver(method, bytes);
  }
}

/** Returns a text in the params of a notification, such as its URI; '' if there is none. */
function textAt(bytes: Uint8Array, name: string): string {
  const [value] = valuesAt(bytes, { start: 0, end: bytes.length }, ['params', name]);
  return stringAt(bytes, value) ?? '';
}

interface ListenOptions extends RequestedListen {
  readonly clock: Clock;
  readonly subjects: ClientListens;
}

interface RequestedListen {
  /** The id of the request as raw JSON. */
  readonly id: Uint8Array;
  readonly key: string;
  readonly filter: ListenFilter;
  readonly reply: ReplyChannel;
  readonly form: AnswerForm;
  /** Whether another process served the client before, so that the client may have lists of that process. */
  readonly isResumed: boolean;
  /** Called once. */
  readonly onEnded: (listen: Listen) => void;
}

/** Time in milliseconds until a subscription is acknowledged. Undecided resources and tasks are left out then. */
const OPEN_WITHIN_MS = 2_000;

/** Unwritten bytes from which on notifications wait, one for each list, resource and task. */
const MAX_UNWRITTEN_BYTES = 256 * 1024;

/** Interval between checks of the channel while notifications wait. */
const RETRY_MS = 250;

/** Limit of the waiting bytes. Beyond it they go to the channel, whose own limit ends clients that do not read. */
const MAX_WAITING_BYTES = 1024 * 1024;

/**
 * A `subscriptions/listen` request, from its acknowledgment to its end. Notifications that come before the
 * acknowledgment are sent after it.
 */
export class Listen {
  readonly key: string;
  readonly filter: ListenFilter;
  readonly #options: ListenOptions;
  /** Subjects whose servers have not answered yet. */
  readonly #undecided: Set<string>;
  /** Subjects with a subscription. */
  readonly #agreed = new Set<string>();
  /** Notifications that wait, by their subjects. */
  readonly #waiting = new Map<string, Uint8Array>();
  #waitingBytes = 0;
  #state: 'opening' | 'open' | 'ended' = 'opening';
  #cancelTimer: Cancel | undefined;

  constructor(options: ListenOptions) {
    this.#options = options;
    this.key = options.key;
    this.filter = options.filter;
    this.#undecided = new Set(options.filter.subjects);
  }

  /** Whether the client gets the updates of this resource, or the state of this task. */
  has(subject: string): boolean {
    return this.#agreed.has(subject);
  }

  /** Whether the client gets the updates of any resource. */
  get hasResources(): boolean {
    return [...this.#agreed].some((subject) => subject.startsWith(RESOURCE));
  }

  /** Subscribes to the subjects of the filter. Acknowledges the subscription when the servers have answered. */
  open(): void {
    const { clock, filter, subjects } = this.#options;
    if (this.#undecided.size > 0) this.#cancelTimer = clock.schedule(OPEN_WITHIN_MS, () => this.#acknowledge());
    for (const subject of filter.subjects) subjects.join(subject, this);
    if (this.#undecided.size === 0) this.#acknowledge();
  }

  decided(subject: string, isAgreed: boolean): void {
    this.#undecided.delete(subject);
    if (isAgreed) this.#agreed.add(subject);
    if (this.#undecided.size === 0) this.#acknowledge();
  }

  /**
   * Sends a notification, or lets it wait. A waiting notification with the same `subject` is replaced, because it says
   * the same. `bytes` are the whole message and never change.
   */
  deliver(subject: string, bytes: Uint8Array): void {
    if (this.#state === 'ended') return;
    if (this.#state === 'open' && this.#waiting.size === 0 && !this.#isSlow) {
      this.#send(bytes);
      return;
    }
    this.#waitingBytes += bytes.length - (this.#waiting.get(subject)?.length ?? 0);
    this.#waiting.set(subject, bytes);
    if (this.#waitingBytes > MAX_WAITING_BYTES) {
      this.#acknowledge();
      this.#sendWaiting();
    } else if (this.#state === 'open') {
      this.#cancelTimer ??= this.#options.clock.schedule(RETRY_MS, () => this.#retry());
    }
  }

  /** Ends the subscription with an answer. On a channel of many requests, also sends a cancellation. */
  end(): void {
    if (this.#state === 'ended') return;
    this.#acknowledge();
    this.#sendWaiting();
    this.#close();
    const { id, reply, form } = this.#options;
    const result = form.result(join([OPEN, metaWithId(id), CLOSE]), METHODS.listen);
    reply.answer(resultMessage(id, result));
    if (reply.isShared) reply.send(withSubscriptionId(join([CANCELLED, id, CANCELLED_END]), id));
  }

  /** Ends the subscription without an answer, because the client has cancelled it or left. */
  cancel(): void {
    if (this.#state === 'ended') return;
    this.#close();
    this.#options.reply.withdraw();
  }

  get #isSlow(): boolean {
    return this.#options.reply.unwrittenBytes > MAX_UNWRITTEN_BYTES;
  }

  /** Opens the subscription without the undecided resources and tasks. */
  #acknowledge(): void {
    if (this.#state !== 'opening') return;
    this.#state = 'open';
    this.#stopTimer();
    this.#leave(this.#undecided);
    const { changes, subjects } = this.filter;
    const notifications = shownFilter(
      changes,
      [...subjects].filter((subject) => this.has(subject)),
    );
    this.#send(notificationMessage(METHODS.acknowledged, { notifications }).bytes);
    if (this.#options.isResumed) for (const method of changes) this.deliver(method, notificationMessage(method).bytes);
    this.#retry();
  }

  #retry(): void {
    this.#cancelTimer = undefined;
    if (this.#waiting.size === 0) return;
    if (this.#isSlow) this.#cancelTimer = this.#options.clock.schedule(RETRY_MS, () => this.#retry());
    else this.#sendWaiting();
  }

  #sendWaiting(): void {
    this.#stopTimer();
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    this.#waitingBytes = 0;
    for (const bytes of waiting) this.#send(bytes);
  }

  #send(bytes: Uint8Array): void {
    const { id, reply } = this.#options;
    reply.send(withSubscriptionId(bytes, id));
  }

  #close(): void {
    this.#state = 'ended';
    this.#stopTimer();
    this.#waiting.clear();
    this.#leave(this.#undecided);
    this.#leave(this.#agreed);
    this.#options.onEnded(this);
  }

  #leave(subjects: Set<string>): void {
    const leaving = [...subjects];
    subjects.clear();
    for (const subject of leaving) this.#options.subjects.leave(subject, this);
  }

  #stopTimer(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
  }
}

const OPEN = toBytes('{');
const CLOSE = toBytes('}');
const CANCELLED = toBytes(`{"jsonrpc":"2.0","method":"${METHODS.cancelled}","params":{"requestId":`);
const CANCELLED_END = toBytes(',"reason":"The subscription has ended"}}');

/** The notifications that a client wants. See the page basic/patterns/subscriptions of revision 2026-07-28. */
export interface ListenFilter {
  readonly changes: ReadonlySet<string>;
  /**
   * Subjects that the client wants: `RESOURCE` and a URI for each resource with updates, and `TASK` and the client's
   * name of the task for each task of the extension.
   */
  readonly subjects: ReadonlySet<string>;
  /** Size of the filter as JSON. */
  readonly bytes: number;
}

const RESOURCE = 'resource ';
const TASK = 'task ';

/** Limit of resources in one filter, and of tasks, because each may need a subscription at a server. */
const MAX_SUBJECTS = 1_024;

const CHANGES = {
  toolsListChanged: LISTS.tools.changed,
  promptsListChanged: LISTS.prompts.changed,
  resourcesListChanged: LISTS.resources.changed,
} as const;

/** Reads the filter of a `subscriptions/listen` request; an error if the filter is malformed. Ignores unknown members. */
export function readFilter(request: RequestEnvelope): ListenFilter | RpcError {
  const { bytes } = request;
  const { notifications } = request.tokens;
  if (notifications === undefined || !isObject(bytes, notifications)) return malformed('', 'must be an object');
  const filter = JSON.parse(readText(bytes, notifications)) as Readonly<Record<string, unknown>>;
  const changes = new Set<string>();
  for (const [member, method] of Object.entries(CHANGES)) {
    const wanted = filter[member];
    if (wanted !== undefined && typeof wanted !== 'boolean') return malformed(`.${member}`, 'must be a boolean');
    if (wanted === true) changes.add(method);
  }
  const subjects = new Set<string>();
  for (const [member, { prefix, kind }] of Object.entries(SUBJECTS)) {
    const named = namesIn(filter, member, kind);
    if (named instanceof RpcError) return named;
    const refusal = prefix === TASK && named.size > 0 ? refusedTasks(request) : undefined;
    if (refusal !== undefined) return refusal;
    for (const name of named) subjects.add(`${prefix}${name}`);
  }
  return { changes, subjects, bytes: notifications.end - notifications.start };
}

const SUBJECTS = {
  resourceSubscriptions: { prefix: RESOURCE, kind: 'resources' },
  taskIds: { prefix: TASK, kind: 'tasks' },
} as const;

function namesIn(
  filter: Readonly<Record<string, unknown>>,
  member: string,
  kind: string,
): ReadonlySet<string> | RpcError {
  const named = filter[member] ?? [];
  if (!Array.isArray(named) || !named.every((subject) => typeof subject === 'string')) {
    return malformed(`.${member}`, 'must be an array of strings');
  }
  const unique = new Set<string>(named);
  if (unique.size <= MAX_SUBJECTS) return unique;
  const problem = `names ${unique.size} ${kind}, and one subscription takes ${MAX_SUBJECTS}: open several subscriptions`;
  return malformed(`.${member}`, problem);
}

function malformed(member: string, problem: string): RpcError {
  return new RpcError(RPC_CODES.invalidParams, `params.notifications${member} ${problem}`);
}

/** Returns the filter in the form of the acknowledgment. */
function shownFilter(changes: ReadonlySet<string>, subjects: readonly string[]): Readonly<Record<string, unknown>> {
  const flags = Object.entries(CHANGES).flatMap(([member, method]) => (changes.has(method) ? [[member, true]] : []));
  const lists = Object.entries(SUBJECTS).flatMap(([member, { prefix }]) => {
    const named = subjects
      .filter((subject) => subject.startsWith(prefix))
      .map((subject) => subject.slice(prefix.length));
    return named.length > 0 ? [[member, named]] : [];
  });
  return Object.fromEntries([...flags, ...lists]);
}

/** A `_meta` member with the id of a subscription, as JSON. `id` is the raw id of the `subscriptions/listen` request. */
function metaWithId(id: Uint8Array): Uint8Array {
  return join([META, MEMBER, id, END]);
}

/** Adds the id of a subscription to `_meta` of the notification, which is one whole JSON text. */
function withSubscriptionId(bytes: Uint8Array, id: Uint8Array): SplicedMessage {
  return { ...unedited(bytes), edits: editsFor(bytes, id) };
}

function editsFor(bytes: Uint8Array, id: Uint8Array): readonly Edit[] {
  const message = { start: 0, end: bytes.length };
  const member = join([MEMBER, id]);
  const [params] = valuesAt(bytes, message, ['params']);
  if (params === undefined || !isObject(bytes, params)) {
    return editMembers(bytes, message, { removes: named('params'), add: join([PARAMS, member, END, END]) });
  }
  const [meta] = valuesAt(bytes, params, ['_meta']);
  if (meta === undefined || !isObject(bytes, meta)) {
    return editMembers(bytes, params, { removes: named('_meta'), add: metaWithId(id) });
  }
  return editMembers(bytes, meta, { removes: named(SUBSCRIPTION_ID), add: member });
}

function named(name: string): (member: string) => boolean {
  return (member) => member === name;
}

const MEMBER = toBytes(`${JSON.stringify(SUBSCRIPTION_ID)}:`);
const META = toBytes('"_meta":{');
const PARAMS = toBytes('"params":{"_meta":{');
const END = toBytes('}');

/** Limit of the requests of one client in flight, so that calls find a free slot at the server. */
const MAX_IN_FLIGHT = 16;

/** Subscribes one client to resources and unsubscribes it, with requests of the gateway's own. */
class ResourceSubscriptions {
  readonly #options: ClientListensOptions;
  #queue: ResourceRequest[] = [];
  readonly #inFlight = new Set<ResourceRequest>();
  #isStarting = false;
  #isClosed = false;

  constructor(options: ClientListensOptions) {
    this.#options = options;
  }

  /**
   * Subscribes to a resource, and calls `settled` once with whether the server agreed. The returned function withdraws
   * the request or unsubscribes.
   */
  subscribe(uri: string, settled: (agreed: boolean) => void): () => void {
    let isAgreed = false;
    const request = this.#request(METHODS.subscribe, uri, (agreed) => {
      isAgreed = agreed;
      settled(agreed);
    });
    return () => {
      request.cancel();
      if (isAgreed) this.#request(METHODS.unsubscribe, uri, () => {});
    };
  }

  /** Stops sending, because the session of a client that has left unsubscribes from everything. */
  close(): void {
    this.#isClosed = true;
    this.#queue = [];
  }

  #request(method: string, uri: string, onEnd: (agreed: boolean) => void): ResourceRequest {
    const { clock, client } = this.#options;
    const end = (agreed: boolean) => {
      onEnd(agreed);
      this.#inFlight.delete(request);
      this.#next();
    };
    const request: ResourceRequest = new ResourceRequest({
      envelope: ownEnvelope(method, { uri }),
      client,
      clock,
      key: '0',
      owner: { sendUnsolicited: () => {}, settled: () => {} },
      reply: {
        isShared: false,
        isDisconnected: true,
        unwrittenBytes: 0,
        send: () => {},
        onAbandoned: () => {},
        answer: ({ errorCode }) => end(errorCode === undefined),
        withdraw: () => end(false),
      },
    });
    if (!this.#isClosed) this.#queue.push(request);
    this.#next();
    return request;
  }

  /** Sends the requests that fit. A request may end before its call returns, and then this loop continues. */
  #next(): void {
    if (this.#isStarting) return;
    this.#isStarting = true;
    while (this.#inFlight.size < MAX_IN_FLIGHT && this.#queue.length > 0) this.#send(this.#queue.shift());
    this.#isStarting = false;
  }

  #send(request: ResourceRequest | undefined): void {
    if (request === undefined || request.isSettled) return;
    const { session, onInternalError } = this.#options;
    this.#inFlight.add(request);
    withErrorBoundary(
      () => session().serve(request),
      onInternalError,
      () => request.fail(REFUSED),
    );
  }
}

/** A request of the gateway's own that subscribes a client to a resource or unsubscribes it. Only its outcome counts. */
class ResourceRequest extends WireExchange {
  readonly logLevel = 'off';
  readonly takesInputRequests = false;
  elicits(): boolean {
    return false;
  }

  readonly isSuspended = false;
  protected readonly form = UNCHANGED;

  get conversation(): object {
    return this.client;
  }

  override answer(response: ResponseEnvelope): void {
    if (response.error === undefined) super.answer(response);
    else this.fail(REFUSED);
  }

  requireInput(input: InputRequest): WithdrawInput {
    input.fail(new RpcError(RPC_CODES.internalError, 'A subscription cannot ask the client'));
    return () => {};
  }
}

const REFUSED = new RpcError(RPC_CODES.internalError, 'The subscription was refused');
