import type { Logger } from '../observe/logger.js';
import { readUsage } from '../process/group-usage.js';
import { ResourceWatch } from '../process/resource-watch.js';
import type { Clock } from '../timing/clock.js';

/** Watches what the servers use, and warns once if there are limits that this system does not allow to check. */
export function watchResources(clock: Clock, logger: Pick<Logger, 'warn'>): ResourceWatch {
  const onUnreadable = (err: unknown) =>
    logger.warn(
      { err },
      'the limits of memory and processes have no effect: the system does not tell what servers use',
    );
  return new ResourceWatch({ clock, readUsage, onUnreadable });
}
