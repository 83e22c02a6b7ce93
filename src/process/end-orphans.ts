import type { Clock } from '../timing/clock.js';
import { isGroupAlive, signalGroup } from './process-group.js';

/** From SIGTERM to SIGKILL, the same as in the guardian. */
const KILL_AFTER_MS = 2_000;
/** How often the groups are polled. */
const PAUSE_MS = 100;

/** Ends process groups of a gateway that was killed: SIGTERM, SIGKILL after two seconds. Resolves when all have ended or SIGKILL was sent. */
export async function endOrphans(pgids: readonly number[], clock: Clock): Promise<void> {
  const alive = () => pgids.filter((pgid) => isGroupAlive(pgid));
  const killAt = clock.now() + KILL_AFTER_MS;
  for (const pgid of pgids) signalGroup(pgid, 'SIGTERM');
  while (alive().length > 0 && clock.now() < killAt) {
    await new Promise<void>((resolve) => clock.schedule(PAUSE_MS, resolve));
  }
  for (const pgid of alive()) signalGroup(pgid, 'SIGKILL');
}
