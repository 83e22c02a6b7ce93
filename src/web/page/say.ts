import { effect, signal } from '@preact/signals';
import type { HubState } from '../server/contract.js';
import { hub, needs } from './state.js';

/** Sentence that the page shows for a while, and that a screen reader reads. */
export const said = signal('');

const SHOWN_MS = 6_000;
const LOOK_EVERY_MS = 1_000;
/** A server that fails again and again leaves the list for seconds. A need is new after this time. */
const GONE_MS = 60_000;
let end: ReturnType<typeof setTimeout> | undefined;

export function say(text: string): void {
  clearTimeout(end);
  said.value = text;
  end = setTimeout(() => {
    said.value = '';
  }, SHOWN_MS);
}

/** Tells of changes that matter: a hub that goes or comes, and new needs. Several at once become one sentence. */
export function tellOfChanges(): void {
  let before: HubState['kind'] | undefined;
  /** When each need was seen last. */
  const seen = new Map<string, number>();
  const look = () => {
    const kind = hub.value?.kind;
    const now = needs.value;
    if (kind === undefined || now === undefined) return;
    const at = performance.now();
    const fresh = now.filter(({ id }) => at - (seen.get(id) ?? Number.NEGATIVE_INFINITY) > GONE_MS);
    for (const { id } of now) seen.set(id, at);
    if (before !== undefined && kind !== before) say(kind === 'none' ? 'No hub runs.' : 'A hub runs.');
    else if (before !== undefined && fresh.length > 0)
      say(fresh.length === 1 ? (fresh[0]?.title ?? '') : `${fresh.length} new things need you.`);
    before = kind;
  };
  // Also at the first state, because a need that comes within a second of it is new.
  effect(() => {
    if (before === undefined) look();
  });
  setInterval(look, LOOK_EVERY_MS);
}
