import type { OnInternalError } from '../../../errors/internal-error.js';
import { isString, readString, valuesAt } from '../../../json/json-text.js';
import { type Edit, type SplicedMessage, splice } from '../../../json/splice.js';
import { whole } from '../../../jsonrpc/message.js';
import type { NotificationEnvelope } from '../../../mcp/envelope.js';
import { LIST_KINDS, LISTS, type ListKind } from '../../../mcp/lists.js';
import { METHODS } from '../../../mcp/methods.js';
import type { Clock } from '../../../timing/clock.js';
import { ListChanges } from '../../list-changes.js';
import type { DownstreamClient, GatewaySession } from '../../port.js';
import { Listen, type ListenOptions } from './listen.js';
import { ResourceSubscriptions } from './resource-subscriptions.js';
import { SharedSubscriptions } from './shared-subscriptions.js';

export interface ClientListensOptions {
  readonly clock: Clock;
  readonly client: DownstreamClient;
  /** The client's present session with the gateway. */
  readonly session: () => GatewaySession;
  readonly onInternalError?: OnInternalError | undefined;
}

/** The subscriptions of one client. Sends each of them the notifications that it asked for. */
export class ClientListens {
  readonly #clock: Clock;
  readonly #open = new Set<Listen>();
  readonly #listChanges: ListChanges;
  readonly #resources: ResourceSubscriptions;
  readonly #uris: SharedSubscriptions;
  readonly #tasks: SharedSubscriptions;

  constructor({ clock, ...options }: ClientListensOptions) {
    this.#clock = clock;
    this.#listChanges = new ListChanges(clock, (message) => this.#announce(message));
    const { session, onInternalError } = options;
    this.#resources = new ResourceSubscriptions(options);
    this.#uris = new SharedSubscriptions((uri, settled) => this.#resources.subscribe(uri, settled), onInternalError);
    this.#tasks = new SharedSubscriptions((task, settled) => session().watchTask(task, settled), onInternalError);
  }

  get size(): number {
    return this.#open.size;
  }

  /** Whether a subscription names a list. */
  get followLists(): boolean {
    return [...this.#open].some(({ filter }) => filter.changes.size > 0);
  }

  /** Opens a subscription. */
  open(options: Omit<ListenOptions, 'clock' | 'uris' | 'tasks'>): Listen {
    const listen = new Listen({
      ...options,
      clock: this.#clock,
      uris: this.#uris,
      tasks: this.#tasks,
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
    if (this.#open.size === 0) return;
    if (method === METHODS.taskState) this.#taskState(splice({ bytes, span, edits }));
    if (method !== METHODS.resourceUpdated) return;
    const message = splice({ bytes, span, edits });
    const uri = textAt(message, 'uri');
    const all = [...this.#open].filter(({ uris }) => uris.size > 0);
    const concerned = all.filter(({ uris }) => uris.has(uri));
    for (const listen of concerned.length > 0 ? concerned : all) listen.deliver(uri, message);
  }

  /** Ends all subscriptions with an answer, because the gateway ends. */
  end(): void {
    for (const listen of [...this.#open]) listen.end();
  }

  /** Ends everything, because the client has left. Its session with the gateway unsubscribes from all resources. */
  close(): void {
    this.#listChanges.close();
    this.#resources.close();
    this.#uris.close();
    this.#tasks.close();
    for (const listen of [...this.#open]) listen.cancel();
  }

  /** Delivers the state of a task to the subscriptions that name it. A later state replaces one that waits. */
  #taskState(message: Uint8Array): void {
    const task = textAt(message, 'taskId');
    for (const listen of this.#open) if (listen.tasks.has(task)) listen.deliver(`task ${task}`, message);
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
