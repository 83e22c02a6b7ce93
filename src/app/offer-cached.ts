import type { Backend } from '../gateway/registry/backend.js';
import type { Logger } from '../observe/logger.js';
import type { CatalogueCacheEntry } from '../state/catalogue-cache.js';

/** Makes a backend offer the cached catalogue of its server, before the server runs. Resolves with whether it does. */
export async function offerCached(
  entry: CatalogueCacheEntry | undefined,
  backend: Backend,
  logger: Logger,
): Promise<boolean> {
  const cached = entry?.find();
  if (cached === 'missed') backend.expectLate();
  if (cached === undefined || cached === 'missed') return false;
  const fault = await backend.loadCached(cached);
  if (fault !== undefined) logger.debug({ server: backend.key, fault }, 'not used of the last run');
  return fault === undefined;
}
