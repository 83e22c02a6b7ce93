import { effect, signal } from '@preact/signals';
import { hub, needs } from './state.js';

/** Sentence that the page shows for a while, and that a screen reader reads. */
export const said = signal('');

const SHOWN_MS = 6_000;
const SETTLE_MS = 1_000;
let end: ReturnType<typeof setTimeout> | undefined;

export function say(text: string): void {
  clearTimeout(end);
  said.value = text;
  end = setTimeout(() => {
    said.value = '';
  }, SHOWN_MS);
}

/** Tells of changes that matter: a hub that goes or comes, and what newly needs the user. Several at once become one sentence. */
export function tellOfChanges(): void {
  let before: { readonly kind: string; readonly needs: ReadonlySet<string> } | undefined;
  let settle: ReturnType<typeof setTimeout> | undefined;
  effect(() => {
    const kind = hub.value?.kind;
    const now = needs.value;
    if (kind === undefined || now === undefined) return;
    clearTimeout(settle);
    settle = setTimeout(() => {
      const known = before;
      before = { kind, needs: new Set(now.map(({ id }) => id)) };
      if (known === undefined) return;
      const fresh = now.filter(({ id }) => !known.needs.has(id));
      if (kind !== known.kind) say(kind === 'none' ? 'No hub runs.' : 'A hub runs.');
      else if (fresh.length > 0)
        say(fresh.length === 1 ? (fresh[0]?.title ?? '') : `${fresh.length} new things need you.`);
    }, SETTLE_MS);
  });
}
