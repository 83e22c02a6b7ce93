import type { NamedView } from './catalog/tool-policy.js';
import { ClientView, type ViewParts, type ViewSettings } from './client-view.js';
import type { Backend } from './registry/backend.js';
import { offeredOf } from './routing/own-tool.js';

/** All views, each for the clients that use the same backends. */
export class ClientViews {
  readonly #parts: ViewParts;
  readonly #settings: () => ViewSettings;
  readonly #views = new Map<string, ClientView>();

  /** `settings` returns those of the present configuration. */
  constructor(parts: ViewParts, settings: () => ViewSettings) {
    this.#parts = parts;
    this.#settings = settings;
  }

  get all(): readonly ClientView[] {
    return [...this.#views.values()];
  }

  /** Returns the view of these backends; with `isAlone`, of a single unchanged server. A new view replaces `before`. */
  of(backends: readonly Backend[], isAlone: boolean, named?: NamedView, before?: ClientView): ClientView {
    const id = idOf(backends, isAlone, named);
    const known = this.#views.get(id);
    if (known !== undefined) return known;
    const { ownTools, results, startupWaitMs } = this.#settings();
    const parts = isAlone ? { ...this.#parts, searchTools: [] } : this.#parts;
    const view = new ClientView(parts, {
      backends,
      named,
      startupWaitMs,
      before,
      naming: isAlone ? 'original' : 'exposed',
      ownTools: isAlone ? [] : offeredOf(ownTools, backends, named),
      results: isAlone ? undefined : results,
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

/** Returns the key of a view: its backends, its name, and whether it shows one server unchanged. */
function idOf(backends: readonly Backend[], isAlone: boolean, named: NamedView | undefined): string {
  return JSON.stringify([isAlone, named?.name, ...backends.map((backend) => backend.id)]);
}
