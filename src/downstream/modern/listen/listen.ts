import { editMembers } from '../../../json/edit-members.js';
import { isObject, readText, toBytes, valuesAt } from '../../../json/json-text.js';
import type { Edit, SplicedMessage } from '../../../json/splice.js';
import type { IdKey } from '../../../jsonrpc/envelope-scanner.js';
import { join, notificationMessage, resultMessage } from '../../../jsonrpc/message.js';
import { RPC_CODES, RpcError } from '../../../jsonrpc/rpc-error.js';
import type { RequestEnvelope } from '../../../mcp/envelope.js';
import { LISTS } from '../../../mcp/lists.js';
import { METHODS } from '../../../mcp/methods.js';
import { SUBSCRIPTION_ID } from '../../../mcp/modern-members.js';
import type { Cancel, Clock } from '../../../timing/clock.js';
import type { ReplyChannel } from '../../transport.js';
import type { AnswerForm } from '../../wire-exchange.js';
import { refusedTasks } from '../input/missing-capability.js';

export interface ListenOptions {
  /** The id of the request as raw JSON. */
  readonly id: Uint8Array;
  readonly key: IdKey;
  readonly filter: ListenFilter;
  readonly reply: ReplyChannel;
  readonly clock: Clock;
  readonly form: AnswerForm;
  readonly uris: SubjectSource;
  readonly tasks: SubjectSource;
  /** Whether another process served the client before, so that the client may have lists of that process. */
  readonly isResumed: boolean;
  /** Called once. */
  readonly onEnded: (listen: Listen) => void;
}

/** Time until a subscription is acknowledged without the resources and tasks whose servers have not answered. */
const OPEN_WITHIN_MS = 2_000;

/** Notifications wait, one for each list, resource and task, while more bytes than this are unwritten. */
const MAX_UNWRITTEN_BYTES = 256 * 1024;

/** Interval between checks of the channel while notifications wait. */
const RETRY_MS = 250;

/** Beyond this, waiting notifications go to the channel, whose own limit ends clients that do not read. */
const MAX_WAITING_BYTES = 1024 * 1024;

/**
 * A `subscriptions/listen` request: a subscription from its acknowledgment to its end. Notifications that come before the
 * acknowledgment follow it.
 */
export class Listen {
  readonly key: IdKey;
  readonly filter: ListenFilter;
  readonly #options: ListenOptions;
  readonly #resources: ListenTopic;
  readonly #tasks: ListenTopic;
  /** Notifications that wait, by their subjects. */
  readonly #waiting = new Map<string, Uint8Array>();
  #waitingBytes = 0;
  #state: 'opening' | 'open' | 'ended' = 'opening';
  #cancelTimer: Cancel | undefined;

  constructor(options: ListenOptions) {
    this.#options = options;
    this.key = options.key;
    this.filter = options.filter;
    const onDecided = () => this.#acknowledgeDecided();
    this.#resources = new ListenTopic(options.uris, options.filter.uris, onDecided);
    this.#tasks = new ListenTopic(options.tasks, options.filter.tasks, onDecided);
  }

  /** The resources whose updates the client gets. */
  get uris(): ReadonlySet<string> {
    return this.#resources.subscriptions;
  }

  /** The tasks whose state the client gets, by the names that it knows. */
  get tasks(): ReadonlySet<string> {
    return this.#tasks.subscriptions;
  }

  /** Subscribes to what the filter names, and acknowledges the subscription when the servers have answered. */
  open(): void {
    const { clock } = this.#options;
    if (!this.#isDecided) this.#cancelTimer = clock.schedule(OPEN_WITHIN_MS, () => this.#acknowledge());
    this.#resources.join();
    this.#tasks.join();
    this.#acknowledgeDecided();
  }

  /**
   * Sends a notification, or lets it wait. A waiting one with the same `subject` is replaced, because it says the same.
   * The bytes are the whole message and are not changed later.
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

  /** The gateway ends the subscription. On a channel of many requests, it also has to cancel the request. */
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

  #acknowledgeDecided(): void {
    if (this.#isDecided) this.#acknowledge();
  }

  get #isDecided(): boolean {
    return this.#resources.isDecided && this.#tasks.isDecided;
  }

  /** Opens the subscription without the resources and tasks that are undecided. */
  #acknowledge(): void {
    if (this.#state !== 'opening') return;
    this.#state = 'open';
    this.#stopTimer();
    this.#resources.decide();
    this.#tasks.decide();
    const { changes } = this.filter;
    const honored = { changes, uris: this.#resources.honored, tasks: this.#tasks.honored };
    this.#send(notificationMessage(METHODS.acknowledged, { notifications: shownFilter(honored) }).bytes);
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
    this.#resources.leave();
    this.#tasks.leave();
    this.#options.onEnded(this);
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

/** Subjects that may be subscribed to by name, each of them once for all subscribers. */
export interface SubjectSource {
  join(subject: string, subscriber: Subscriber): void;
  leave(subject: string, subscriber: Subscriber): void;
}

/** Waits for the outcome of a subscription to one subject. Called at most once for each subject that was joined. */
export interface Subscriber {
  subscribed(subject: string): void;
  refused(subject: string): void;
}

/** The subjects of one kind that one subscription asks for, from its request to its end. */
class ListenTopic implements Subscriber {
  readonly #source: SubjectSource;
  readonly #wanted: ReadonlySet<string>;
  /** Subjects whose servers have not answered yet, and subjects that were subscribed to. */
  readonly #undecided: Set<string>;
  readonly #subscribed = new Set<string>();
  readonly #onDecided: () => void;

  /** `onDecided` is called each time that a server has answered. */
  constructor(source: SubjectSource, wanted: ReadonlySet<string>, onDecided: () => void) {
    this.#source = source;
    this.#wanted = wanted;
    this.#undecided = new Set(wanted);
    this.#onDecided = onDecided;
  }

  get isDecided(): boolean {
    return this.#undecided.size === 0;
  }

  get subscriptions(): ReadonlySet<string> {
    return this.#subscribed;
  }

  /** Subjects that were subscribed to, in the order of the request. */
  get honored(): ReadonlySet<string> {
    return new Set([...this.#wanted].filter((subject) => this.#subscribed.has(subject)));
  }

  join(): void {
    for (const subject of this.#wanted) this.#source.join(subject, this);
  }

  subscribed(subject: string): void {
    this.#undecided.delete(subject);
    this.#subscribed.add(subject);
    this.#onDecided();
  }

  refused(subject: string): void {
    this.#undecided.delete(subject);
    this.#onDecided();
  }

  /** Does without the subjects that are undecided. */
  decide(): void {
    this.#leave(this.#undecided);
  }

  leave(): void {
    this.#leave(this.#undecided);
    this.#leave(this.#subscribed);
  }

  #leave(subjects: Set<string>): void {
    const leaving = [...subjects];
    subjects.clear();
    for (const subject of leaving) this.#source.leave(subject, this);
  }
}

/** The notifications that a client wants. See the page basic/patterns/subscriptions of revision 2026-07-28. */
export interface ListenFilter {
  /** The methods of the list changes. */
  readonly changes: ReadonlySet<string>;
  /** The URIs of the resources whose updates the client wants. */
  readonly uris: ReadonlySet<string>;
  /** The tasks of the extension whose state the client wants, by the names that it knows. */
  readonly tasks: ReadonlySet<string>;
  /** Size of the filter as JSON. */
  readonly bytes: number;
}

/** Limit of resources in one filter, and of tasks. Each may need a subscription at a server. */
const MAX_SUBJECTS = 1_024;

const CHANGES = {
  toolsListChanged: LISTS.tools.changed,
  promptsListChanged: LISTS.prompts.changed,
  resourcesListChanged: LISTS.resources.changed,
} as const;

/** Reads the filter of a `subscriptions/listen` request; an error if it is malformed. Ignores unknown members. */
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
  const uris = subjects(filter, 'resourceSubscriptions', 'resources');
  const tasks = subjects(filter, 'taskIds', 'tasks');
  if (uris instanceof RpcError) return uris;
  if (tasks instanceof RpcError) return tasks;
  const refusal = tasks.size > 0 ? refusedTasks(request) : undefined;
  return refusal ?? { changes, uris, tasks, bytes: notifications.end - notifications.start };
}

function subjects(
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

/** The filter as the acknowledgment shows it. */
function shownFilter({ changes, uris, tasks }: Omit<ListenFilter, 'bytes'>): Readonly<Record<string, unknown>> {
  const members = Object.entries(CHANGES).flatMap(([member, method]) => (changes.has(method) ? [[member, true]] : []));
  return {
    ...Object.fromEntries(members),
    ...(uris.size > 0 && { resourceSubscriptions: [...uris] }),
    ...(tasks.size > 0 && { taskIds: [...tasks] }),
  };
}

/** A `_meta` member with the id of a subscription, as JSON. `id` is the raw id of the `subscriptions/listen` request. */
function metaWithId(id: Uint8Array): Uint8Array {
  return join([META, MEMBER, id, END]);
}

/** The notification, which is one whole JSON text, with the id of a subscription in its `_meta`. */
function withSubscriptionId(bytes: Uint8Array, id: Uint8Array): SplicedMessage {
  const span = { start: 0, end: bytes.length };
  return { bytes, span, edits: editsFor(bytes, id) };
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
