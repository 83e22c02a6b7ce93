import { ClientView, type ClientViewOptions } from './client-view.js';
import type { NamedView } from './named-views.js';
import type { Backend } from './registry/backend.js';
import type { OwnTool } from './status/own-tool.js';

export interface ClientViewsOptions
  extends Pick<
    ClientViewOptions,
    'clock' | 'workTime' | 'subscriptions' | 'logs' | 'tasks' | 'hmac' | 'onInternalError' | 'events'
  > {
  readonly settings: () => { readonly ownTools: readonly OwnTool[]; readonly startupWaitMs: number };
}

/** What tells apart client views with the same backends. */
interface ViewKind {
  readonly isAlone: boolean;
  /** The view of the configuration. */
  readonly named: NamedView | undefined;
}

/** All views, each for the clients that use the same backends. */
export class ClientViews {
  readonly #options: ClientViewsOptions;
  /** By their backends. */
  readonly #views = new Map<string, ClientView>();

  constructor(options: ClientViewsOptions) {
    this.#options = options;
  }

  get all(): readonly ClientView[] {
    return [...this.#views.values()];
  }

  /** The view of these backends; with `isAlone`, of a single unchanged server. A new view replaces `before`. */
  of(backends: readonly Backend[], { isAlone, named }: ViewKind, before?: ClientView): ClientView {
    const id = idOf(backends, { isAlone, named });
    const known = this.#views.get(id);
    if (known !== undefined) return known;
    const { settings, ...shared } = this.#options;
    const { ownTools, startupWaitMs } = settings();
    const view = new ClientView({
      ...shared,
      backends,
      named,
      naming: isAlone ? 'original' : 'exposed',
      ownTools: isAlone ? [] : ownTools,
      startupWaitMs,
      before,
    });
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

  /** Returns whether the view stays. It does not if clients that have moved share another view of the same backends. */
  keep(view: ClientView): boolean {
    const { isUnchanged: isAlone, named } = view;
    const id = idOf([...view.backends.values()], { isAlone, named });
    const known = this.#views.get(id) ?? view;
    this.#views.set(id, known);
    return known === view;
  }

  /** The view has no clients any more. */
  end(view: ClientView): void {
    view.close();
    for (const [id, each] of this.#views) if (each === view) this.#views.delete(id);
  }

  close(): void {
    for (const view of this.takeAll()) view.close();
  }
}

function idOf(backends: readonly Backend[], { isAlone, named }: ViewKind): string {
  return JSON.stringify([isAlone, named?.name, ...backends.map((backend) => backend.id)]);
}
