import { effect, signal } from '@preact/signals';
import type { HubState } from '../server/contract.js';
import { hub, needs } from './state.js';

/** Sentence that the page shows for a while, and that a screen reader reads. */
export const announcement = signal('');

const SHOWN_MS = 6_000;
const LOOK_EVERY_MS = 1_000;
/** Time after which a need counts as new when it returns. A server that keeps failing leaves the list for seconds. */
const GONE_MS = 60_000;
let end: ReturnType<typeof setTimeout> | undefined;

export function announce(text: string): void {
  clearTimeout(end);
  announcement.value = text;
  end = setTimeout(() => {
    announcement.value = '';
  }, SHOWN_MS);
}

/** Announces changes that matter: a hub that starts or ends, and new needs. Several needs at once become one sentence. */
export function tellOfChanges(): void {
  let before: HubState['kind'] | undefined;
  /** Time at which each need was seen last. */
  const seen = new Map<string, number>();
  const look = () => {
    const kind = hub.value?.kind;
    const now = needs.value;
    if (kind === undefined || now === undefined) return;
    const at = performance.now();
    const fresh = now.filter(({ id }) => at - (seen.get(id) ?? Number.NEGATIVE_INFINITY) > GONE_MS);
    for (const { id } of now) seen.set(id, at);
    if (before !== undefined && kind !== before) announce(kind === 'none' ? 'No hub runs.' : 'A hub runs.');
    else if (before !== undefined && fresh.length > 0)
      announce(fresh.length === 1 ? (fresh[0]?.title ?? '') : `${fresh.length} new things need you.`);
    before = kind;
  };
  // Looks at the first state at once, because a need that comes within the next second is new.
  effect(() => {
    if (before === undefined) look();
  });
  setInterval(look, LOOK_EVERY_MS);
}
