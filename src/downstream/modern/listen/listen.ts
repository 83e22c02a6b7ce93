import { editMembers } from '../../../json/edit-members.js';
import { isObject, readText, toBytes, valuesAt } from '../../../json/json-text.js';
import type { Edit, SplicedMessage } from '../../../json/splice.js';
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
  readonly key: string;
  readonly filter: ListenFilter;
  readonly reply: ReplyChannel;
  readonly clock: Clock;
  readonly form: AnswerForm;
  readonly subjects: Subjects;
  /** Whether another process served the client before, so that the client may have lists of that process. */
  readonly isResumed: boolean;
  /** Called once. */
  readonly onEnded: (listen: Listen) => void;
}

/** Resources and tasks that one client subscribes to, each once for all of its subscriptions. */
interface Subjects {
  /** Calls `Listen.decided` when the server has answered. */
  join(subject: string, listen: Listen): void;
  leave(subject: string, listen: Listen): void;
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
  readonly key: string;
  readonly filter: ListenFilter;
  readonly #options: ListenOptions;
  /** Subjects whose servers have not answered yet, and subjects that were subscribed to. */
  readonly #undecided: Set<string>;
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

  /** Subscribes to what the filter names, and acknowledges the subscription when the servers have answered. */
  open(): void {
    const { clock, filter, subjects } = this.#options;
    if (this.#undecided.size > 0) this.#cancelTimer = clock.schedule(OPEN_WITHIN_MS, () => this.#acknowledge());
    for (const subject of filter.subjects) subjects.join(subject, this);
    if (this.#undecided.size === 0) this.#acknowledge();
  }

  /** The server of a subject has answered. */
  decided(subject: string, isAgreed: boolean): void {
    this.#undecided.delete(subject);
    if (isAgreed) this.#agreed.add(subject);
    if (this.#undecided.size === 0) this.#acknowledge();
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

  /** Opens the subscription without the resources and tasks that are undecided. */
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
  /** The methods of the list changes. */
  readonly changes: ReadonlySet<string>;
  /**
   * `RESOURCE` and a URI for each resource whose updates the client wants, then `TASK` and a name that the client knows for
   * each task of the extension whose state it wants.
   */
  readonly subjects: ReadonlySet<string>;
  /** Size of the filter as JSON. */
  readonly bytes: number;
}

export const RESOURCE = 'resource ';
export const TASK = 'task ';

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

/** The filter as the acknowledgment shows it. */
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
