import { withErrorBoundary } from '../../../errors/internal-error.js';
import { isString, readString, valuesAt } from '../../../json/json-text.js';
import { type Edit, type SplicedMessage, splice } from '../../../json/splice.js';
import { whole } from '../../../jsonrpc/message.js';
import type { NotificationEnvelope } from '../../../mcp/envelope.js';
import { LIST_KINDS, LISTS, type ListKind } from '../../../mcp/lists.js';
import { METHODS } from '../../../mcp/methods.js';
import { ListChanges } from '../../list-changes.js';
import { Listen, type ListenOptions, RESOURCE, TASK } from './listen.js';
import { ResourceSubscriptions, type ResourceSubscriptionsOptions } from './resource-subscriptions.js';

/** A resource or a task that the client is subscribed to. The last subscription that leaves ends that. */
interface SharedSubject {
  readonly listens: Set<Listen>;
  isAgreed: boolean;
  end: () => void;
}

/** The subscriptions of one client. Sends each of them the notifications that it asked for. */
export class ClientListens {
  readonly #options: ResourceSubscriptionsOptions;
  readonly #open = new Set<Listen>();
  readonly #listChanges: ListChanges;
  readonly #resources: ResourceSubscriptions;
  readonly #subjects = new Map<string, SharedSubject>();

  constructor(options: ResourceSubscriptionsOptions) {
    this.#options = options;
    this.#listChanges = new ListChanges(options.clock, (message) => this.#announce(message));
    this.#resources = new ResourceSubscriptions(options);
  }

  get size(): number {
    return this.#open.size;
  }

  /** Whether a subscription names a list. */
  get followLists(): boolean {
    return [...this.#open].some(({ filter }) => filter.changes.size > 0);
  }

  /** Opens a subscription. */
  open(options: Omit<ListenOptions, 'clock' | 'subjects'>): Listen {
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
        // The server may agree at once and the last subscription leave because of that.
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

  /** A merged list has changed. */
  listChanged(kind: ListKind): void {
    if (this.#wantsChanges(kind)) this.#listChanges.changed(kind);
  }

  /** The server that the client sees unchanged announced that a list has changed. */
  listAnnounced(kind: ListKind, { bytes, span }: NotificationEnvelope): void {
    // The notification may be sent later, when its memory has another use.
    if (this.#wantsChanges(kind)) this.#listChanges.relay(kind, whole(bytes.slice(span.start, span.end)));
  }

  /**
   * Relays an update of a resource, or the state of a task. If no subscription names the resource, it may be part of one
   * that a subscription names. Nothing else reaches a client without a session.
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

  /** Ends everything, because the client has left. Its session with the gateway unsubscribes from all resources. */
  close(): void {
    this.#listChanges.close();
    this.#resources.close();
    const subjects = [...this.#subjects.values()];
    this.#subjects.clear();
    for (const { end } of subjects) end();
    for (const listen of [...this.#open]) listen.cancel();
  }

  /** Subscribes at the server. `decided` is also called with `false` when a task that was agreed on ends with its server. */
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
    const [span] = valuesAt(bytes, { start: 0, end: bytes.length }, ['method']);
    const method = span === undefined ? '' : readString(bytes, span);
    for (const listen of this.#open) if (listen.filter.changes.has(method)) listen.deliver(method, bytes);
  }
}

/** A text in the params of a notification, such as the URI that it is about; '' if there is none. */
function textAt(bytes: Uint8Array, name: string): string {
  const [value] = valuesAt(bytes, { start: 0, end: bytes.length }, ['params', name]);
  return value !== undefined && isString(bytes, value) ? readString(bytes, value) : '';
}
