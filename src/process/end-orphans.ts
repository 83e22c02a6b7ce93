import type { Clock } from '../timing/clock.js';
import { isGroupAlive, signalGroup } from './process-group.js';

/** From SIGTERM to SIGKILL: as long as the guardian takes. */
const KILL_AFTER_MS = 2_000;
/** How often we look whether they are gone. */
const PAUSE_MS = 100;

/** Ends groups that nobody looks after any more: SIGTERM, two seconds, SIGKILL. Resolves when they are gone, or were killed. */
export async function endOrphans(pgids: readonly number[], clock: Clock): Promise<void> {
  const alive = () => pgids.filter((pgid) => isGroupAlive(pgid));
  const killAt = clock.now() + KILL_AFTER_MS;
  for (const pgid of pgids) signalGroup(pgid, 'SIGTERM');
  while (alive().length > 0 && clock.now() < killAt) {
    await new Promise<void>((resolve) => clock.schedule(PAUSE_MS, resolve));
  }
  for (const pgid of alive()) signalGroup(pgid, 'SIGKILL');
}
