import { toBytes } from '../../../json/json-text.js';
import type { IdKey } from '../../../jsonrpc/id-key.js';
import { join, notificationMessage, resultMessage } from '../../../jsonrpc/message.js';
import { METHODS } from '../../../mcp/methods.js';
import type { Cancel, Clock } from '../../../timing/clock.js';
import type { ReplyChannel } from '../../transport.js';
import type { AnswerForm } from '../../wire-exchange.js';
import { type ListenFilter, shownFilter } from './listen-filter.js';
import { ListenTopic, type SubjectSource } from './listen-topic.js';
import { metaWithId, withSubscriptionId } from './subscription-id.js';

/** How long a subscription waits for the servers before it is acknowledged without the resources and tasks that are late. */
const OPEN_WITHIN_MS = 2_000;

/** Notifications wait, one for each list, resource and task, while more bytes than this are unwritten. */
const MAX_UNWRITTEN_BYTES = 256 * 1024;
/** The channel reports no progress, so it is looked at this often while notifications wait. */
const RETRY_MS = 250;
/** Beyond this, waiting notifications go to the channel, whose own limit ends clients that do not read. */
const MAX_WAITING_BYTES = 1024 * 1024;

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
  /** Whether the client may have lists of an earlier process, which served it before this one. */
  readonly isResumed: boolean;
  /** Called once. */
  readonly onEnded: (listen: Listen) => void;
}

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

  /** The client has ended the subscription or left, so there is no answer. */
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

  /** Opens the subscription without what is undecided. */
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
