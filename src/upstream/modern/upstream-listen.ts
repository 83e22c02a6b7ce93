import { editMembers, REMOVED, rewriteObject } from '../../wire/json/edit-members.js';
import { isObject, readText, stringAt } from '../../wire/json/json-text.js';
import { isRecord, parseJson } from '../../wire/json/json-value.js';
import { splice } from '../../wire/json/splice.js';
import { readId } from '../../wire/jsonrpc/correlation-table.js';
import { RPC_CODES, RpcError } from '../../wire/jsonrpc/message.js';
import { type NotificationEnvelope, scanOwn } from '../../wire/mcp/envelope.js';
import { LISTS, METHODS } from '../../wire/mcp/methods.js';
import { hasOnly, SUBSCRIPTION_ID } from '../../wire/mcp/older-revisions.js';
import type { Outcome } from '../../wire/mcp/outcome.js';
import { ownNotification, ownRequest } from '../../wire/mcp/relayed-request.js';
import { isTerminal } from '../../wire/mcp/task-id.js';
import type { Cancel, Clock } from '../../wire/timing/clock.js';
import type { Channel } from '../dialect.js';
import type { SentRequest } from '../upstream-connection.js';
import { modernMessage, type RequestMeta } from './modern-messages.js';

interface UpstreamListenOptions {
  readonly channel: Channel;
  readonly clock: Clock;
  readonly meta: RequestMeta;
  readonly offers: (capability: string) => boolean;
  readonly listener: { notification(notification: NotificationEnvelope): void };
}

/** Called once: with an error if there will be no reports on the subject, or with `closed` if the channel is closed first. */
type OnSubscribed = (error?: RpcError | 'closed') => void;

/** One `subscriptions/listen` request. */
interface Stream {
  /** The id of the request as JSON. The notifications of the stream carry this id. */
  id: string;
  sent: SentRequest | undefined;
  readonly subjects: Subjects;
  openedAt: number;
  cancelTimer: Cancel;
}

/** Time limit for the acknowledgment of a stream. */
const ACKNOWLEDGE_MS = 10_000;
/** Pause before a new stream, after the server has ended one. It doubles while streams last less than `LASTING_MS`. */
const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 60_000;
const LASTING_MS = 60_000;

/**
 * Keeps one stream open on which a modern server reports changes of its lists, and of the resources and tasks to which clients have
 * subscribed.
 *
 * The subjects of an open stream cannot change. So a new subscription opens a second stream with all subjects. The first stream ends only
 * when the server has acknowledged the second, so that no change is missed. A change between the two may be reported twice.
 */
export class UpstreamListen {
  readonly #options: UpstreamListenOptions;
  readonly #lists: readonly (typeof REPORTED)[number][];
  readonly #subjects: Subjects = new Map();
  #waiting: { readonly subject: Subject; readonly done: OnSubscribed }[] = [];
  /** The stream that the server has acknowledged. */
  #current: Stream | undefined;
  /** The stream that the server has not acknowledged yet. */
  #next: Stream | undefined;
  /** Whether the wanted subjects have changed since `#next` was sent. */
  #isStale = false;
  /** Whether the server has ended a stream, so that changes until the next stream may be missed. */
  #hasMissed = false;
  #pauseMs = FIRST_PAUSE_MS;
  #cancelRetry: Cancel = () => {};

  constructor(options: UpstreamListenOptions) {
    this.#options = options;
    this.#lists = REPORTED.filter(({ capability }) => options.offers(`${capability}.listChanged`));
  }

  /** Opens the stream, if there is a list or a subject to report on. */
  open(): void {
    this.#renew();
  }

  subscribe(subject: Subject, done: OnSubscribed): void {
    const key = keyOf(subject);
    if (this.#next === undefined && this.#current?.subjects.has(key) === true && this.#subjects.has(key)) {
      done();
      return;
    }
    this.#subjects.set(key, subject);
    this.#waiting.push({ subject, done });
    this.#renew();
  }

  unsubscribe(subject: Subject): void {
    if (!this.#subjects.delete(keyOf(subject))) return;
    this.#answerWaiting({ subjects: new Map([[keyOf(subject), subject]]) }, () => UNSUBSCRIBED);
    this.#renew();
  }

  /** Takes a notification of the server. Returns the notification for the gateway, or `undefined` if there is none. */
  take(notification: NotificationEnvelope): NotificationEnvelope | undefined {
    const { bytes, method, tokens } = notification;
    const { subscriptionId, requestId } = tokens;
    if (method === METHODS.cancelled && requestId !== undefined) {
      const stream = this.#streamOf(readId(bytes, requestId));
      stream?.sent?.cancel();
      return stream === undefined ? notification : undefined;
    }
    const stream = subscriptionId && this.#streamOf(readId(bytes, subscriptionId));
    if (method === METHODS.acknowledged) {
      if (stream !== undefined && stream === this.#next) this.#acknowledged(stream, notification);
      return undefined;
    }
    if (method === METHODS.taskState && isTerminal(bytes, tokens.status)) {
      // The server may forget the task now, and refuse a later stream that names it.
      this.#subjects.delete(keyOf({ kind: 'taskIds', name: stringAt(bytes, tokens.taskId) ?? '' }));
    }
    if (subscriptionId === undefined) return notification;
    // A notification of a stream that has ended is dropped, because the next stream may have reported the same change.
    return stream === undefined ? undefined : withoutSubscription(notification);
  }

  closed(): void {
    this.#cancelRetry();
    this.#next?.cancelTimer();
    this.#next = undefined;
    this.#current = undefined;
    for (const { done } of this.#waiting.splice(0)) done('closed');
  }

  #streamOf(id: number | undefined): Stream | undefined {
    return [this.#next, this.#current].find((stream) => stream?.id === `${id}`);
  }

  /** Opens a stream with the present subjects, after `#next` if there is one. Ends the current stream if there is nothing to report on. */
  #renew(): void {
    if (this.#options.channel.isClosed) return;
    this.#cancelRetry();
    if (this.#next !== undefined) {
      this.#isStale = true;
    } else if (this.#lists.length === 0 && this.#subjects.size === 0) {
      this.#end(this.#current);
      this.#current = undefined;
    } else {
      this.#open();
    }
  }

  #open(): void {
    const { channel, clock, meta } = this.#options;
    const stream: Stream = {
      id: '',
      sent: undefined,
      subjects: new Map(this.#subjects),
      openedAt: clock.now(),
      cancelTimer: () => {},
    };
    this.#next = stream;
    const notifications = {
      ...Object.fromEntries(this.#lists.map(({ wish }) => [wish, true])),
      ...filterOf(stream.subjects),
    };
    const request = ownRequest(METHODS.listen, { notifications });
    const message = modernMessage(request, meta, undefined, (id) => {
      stream.id = readText(id.text, id.part);
    });
    stream.cancelTimer = clock.schedule(ACKNOWLEDGE_MS, () => this.#end(stream));
    stream.sent = channel.send(message, [], NO_DEADLINE, { settle: (outcome) => this.#ended(stream, outcome) });
  }

  #acknowledged(stream: Stream, { bytes, tokens }: NotificationEnvelope): void {
    stream.cancelTimer();
    const earlier = this.#current;
    this.#current = stream;
    this.#next = undefined;
    this.#end(earlier);
    const honored = tokens.notifications && parseJson(readText(bytes, tokens.notifications));
    const subjects = subjectsIn(honored);
    this.#answerWaiting(stream, (subject) => (subjects.has(keyOf(subject)) ? undefined : NOT_REPORTED));
    if (this.#hasMissed) this.#reportMissed(stream, isRecord(honored) ? honored : {}, subjects);
    this.#renewIfStale();
  }

  /**
   * Reports the lists and resources to which the server agreed as changed, because they may have changed while there was no stream.
   * Requests the state of each task, because the server need not agree to report on a task that has ended.
   */
  #reportMissed(stream: Stream, lists: Readonly<Record<string, unknown>>, agreed: Subjects): void {
    const { listener } = this.#options;
    this.#hasMissed = false;
    const tell = (method: string, params?: object) => {
      const notification = ownNotification(method, params);
      if (notification !== undefined) listener.notification(notification);
    };
    for (const { wish, method } of this.#lists) if (lists[wish] === true) tell(method);
    const kind = 'resourceSubscriptions';
    for (const uri of namesIn(stream.subjects, kind))
      if (agreed.has(keyOf({ kind, name: uri }))) tell(METHODS.resourceUpdated, { uri });
    this.#reportStates(stream);
  }

  #reportStates({ subjects }: Stream): void {
    for (const task of namesIn(subjects, 'taskIds')) void this.#reportState(task);
  }

  /** Requests the state of a task, and reports it like a change. Leaves the task out of later streams if it has ended or is unknown. */
  async #reportState(taskId: string): Promise<void> {
    const { channel, meta, listener } = this.#options;
    const outcome = await channel.request(METHODS.getTask, meta.ownParams({ taskId }), STATE_TIMEOUTS);
    if (outcome.kind === 'failed') return;
    const { bytes, result, tokens } = outcome.response;
    const isForgotten = result === undefined && errorOf(outcome).code === RPC_CODES.invalidParams;
    if (isForgotten || isTerminal(bytes, tokens.resultStatus))
      this.#subjects.delete(keyOf({ kind: 'taskIds', name: taskId }));
    if (result === undefined || !isObject(bytes, result)) return;
    const change = (name: string) => (name === 'resultType' || name === '_meta' ? REMOVED : undefined);
    const state = ownNotification(METHODS.taskState, rewriteObject(bytes, result, { change }));
    if (state !== undefined) listener.notification(state);
  }

  /** Handles the end of a stream, which the server ended or refused, or which the gateway cancelled. */
  #ended(stream: Stream, outcome: Outcome): void {
    stream.cancelTimer();
    if (this.#options.channel.isClosed) return;
    if (stream === this.#next) {
      this.#next = undefined;
      const error = outcome.kind === 'answered' ? errorOf(outcome) : NOT_ACKNOWLEDGED;
      this.#answerWaiting(stream, () => error);
      // The server may have refused the stream because of a task that it has forgotten.
      if (this.#hasMissed && outcome.kind === 'answered') this.#reportStates(stream);
      if (this.#isStale) this.#renewIfStale();
      else if (this.#current === undefined && error.code !== RPC_CODES.methodNotFound) this.#retryLater(stream);
    } else if (stream === this.#current) {
      this.#current = undefined;
      this.#hasMissed = true;
      if (this.#next === undefined) this.#retryLater(stream);
    }
  }

  #renewIfStale(): void {
    if (!this.#isStale) return;
    this.#isStale = false;
    this.#renew();
  }

  #retryLater({ openedAt }: Stream): void {
    const { clock } = this.#options;
    if (clock.now() - openedAt >= LASTING_MS) this.#pauseMs = FIRST_PAUSE_MS;
    this.#cancelRetry = clock.schedule(this.#pauseMs, () => this.#renew());
    this.#pauseMs = Math.min(2 * this.#pauseMs, MAX_PAUSE_MS);
  }

  /** Answers the waiting subscriptions to the subjects of a stream. `faultOf` returns the error for a subject, if any. */
  #answerWaiting(
    { subjects }: { readonly subjects: Subjects },
    faultOf: (subject: Subject) => RpcError | undefined,
  ): void {
    const concerned = this.#waiting.filter(({ subject }) => subjects.has(keyOf(subject)));
    this.#waiting = this.#waiting.filter(({ subject }) => !subjects.has(keyOf(subject)));
    for (const { subject, done } of concerned) {
      const fault = faultOf(subject);
      if (fault !== undefined) this.#subjects.delete(keyOf(subject));
      done(fault);
    }
  }

  #end(stream: Stream | undefined): void {
    stream?.cancelTimer();
    stream?.sent?.cancel();
  }
}

/** No deadline, because the answer comes when the stream ends. */
const NO_DEADLINE = { idleMs: Number.POSITIVE_INFINITY, maxMs: Number.POSITIVE_INFINITY };
const STATE_TIMEOUTS = { idleMs: ACKNOWLEDGE_MS, maxMs: ACKNOWLEDGE_MS };

/** The lists whose changes a stream can report. */
const REPORTED = [
  { capability: 'tools', wish: 'toolsListChanged', method: LISTS.tools.changed },
  { capability: 'prompts', wish: 'promptsListChanged', method: LISTS.prompts.changed },
  { capability: 'resources', wish: 'resourcesListChanged', method: LISTS.resources.changed },
] as const;

const NOT_REPORTED = new RpcError(RPC_CODES.invalidParams, 'The server does not report on this resource or task');
const UNSUBSCRIBED = new RpcError(RPC_CODES.invalidParams, 'The subscription was ended before the server agreed to it');
const NOT_ACKNOWLEDGED = new RpcError(RPC_CODES.internalError, 'The server did not acknowledge the subscription');

function errorOf({ response: { bytes, error } }: Extract<Outcome, { kind: 'answered' }>): RpcError {
  const value = error && parseJson(readText(bytes, error));
  if (!isRecord(value) || typeof value.code !== 'number') return NOT_ACKNOWLEDGED;
  return new RpcError(value.code, String(value.message), value.data);
}

/** Removes the id of the stream from a notification, because clients do not know this stream. */
function withoutSubscription(notification: NotificationEnvelope): NotificationEnvelope {
  const { bytes, span, params, tokens } = notification;
  const { requestMeta } = tokens;
  if (requestMeta === undefined || params === undefined || !isObject(bytes, requestMeta)) return notification;
  const isAlone = hasOnly(SUBSCRIPTION_ID, bytes, requestMeta);
  const [object, member] = isAlone ? [params, '_meta'] : [requestMeta, SUBSCRIPTION_ID];
  const edits = editMembers(bytes, object, { removes: (name) => name === member });
  const without = scanOwn(splice({ bytes, span, edits }));
  return without.kind === 'notification' ? without : notification;
}

/** Kinds of subjects besides lists, named like their member in a filter. */
type SubjectKind = 'resourceSubscriptions' | 'taskIds';

/** A resource by its URI, or a task by the server's id. */
export interface Subject {
  readonly kind: SubjectKind;
  readonly name: string;
}

const KINDS: readonly SubjectKind[] = ['resourceSubscriptions', 'taskIds'];

/** Subjects by their keys, in the order in which they were added. */
type Subjects = Map<string, Subject>;

function keyOf({ kind, name }: Subject): string {
  return `${kind} ${name}`;
}

/** Returns the subjects in a filter, such as the filter of an acknowledgment. */
function subjectsIn(filter: unknown): Subjects {
  const subjects: Subjects = new Map();
  for (const kind of KINDS) {
    const names = isRecord(filter) ? filter[kind] : undefined;
    if (Array.isArray(names)) for (const name of names) subjects.set(keyOf({ kind, name }), { kind, name });
  }
  return subjects;
}

function namesIn(subjects: Subjects, kind: SubjectKind): readonly string[] {
  return [...subjects.values()].filter((subject) => subject.kind === kind).map(({ name }) => name);
}

function filterOf(subjects: Subjects): Readonly<Record<string, readonly string[]>> {
  const members = KINDS.map((kind) => [kind, namesIn(subjects, kind)] as const);
  return Object.fromEntries(members.filter(([, names]) => names.length > 0));
}
