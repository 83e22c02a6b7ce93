import type { Backend } from './backend.js';
import type { OwnTool } from './status/own-tool.js';
import { View, type ViewOptions } from './view.js';

export interface ViewsOptions
  extends Pick<ViewOptions, 'clock' | 'subscriptions' | 'logs' | 'tasks' | 'hmac' | 'onFault' | 'onToolsListed'> {
  readonly settings: () => { readonly ownTools: readonly OwnTool[]; readonly startupWaitMs: number };
}

/** The views that there are, each for the clients that use the same backends. */
export class Views {
  readonly #options: ViewsOptions;
  /** By the backends that they are of. */
  readonly #views = new Map<string, View>();

  constructor(options: ViewsOptions) {
    this.#options = options;
  }

  get all(): readonly View[] {
    return [...this.#views.values()];
  }

  /** The view of these backends, of a single one as it is where `isAlone`. A new one takes the place of `before`. */
  of(backends: readonly Backend[], isAlone: boolean, before?: View): View {
    const id = idOf(backends, isAlone);
    const known = this.#views.get(id);
    if (known !== undefined) return known;
    const { settings, onToolsListed, ...shared } = this.#options;
    const { ownTools, startupWaitMs } = settings();
    const view = new View({
      ...shared,
      backends,
      naming: isAlone ? 'original' : 'exposed',
      ownTools: isAlone ? [] : ownTools,
      startupWaitMs,
      onToolsListed: isAlone ? undefined : onToolsListed,
      before,
    });
    this.#views.set(id, view);
    return view;
  }

  eachOf(backend: Backend, visit: (view: View) => void): void {
    for (const view of this.#views.values()) if (view.uses(backend)) visit(view);
  }

  /** Forgets all views, and returns them; those that clients go on using are to be kept. */
  takeAll(): readonly View[] {
    const { all } = this;
    this.#views.clear();
    return all;
  }

  keep(view: View, isAlone: boolean): void {
    this.#views.set(idOf([...view.backends.values()], isAlone), view);
  }

  /** Nobody uses it any more. */
  end(view: View): void {
    view.close();
    for (const [id, each] of this.#views) if (each === view) this.#views.delete(id);
  }

  close(): void {
    for (const view of this.takeAll()) view.close();
  }
}

function idOf(backends: readonly Backend[], isAlone: boolean): string {
  return JSON.stringify([isAlone, ...backends.map((backend) => backend.id)]);
}
