import { CacheFolder } from '../cache/cache-folder.js';
import { CatalogueCache } from '../cache/catalogue-cache.js';
import { ConfigCache } from '../cache/config-cache.js';
import type { Logger } from '../observe/logger.js';
import type { Platform } from './platform.js';
import type { CheckedFiles } from './read-config.js';
import type { SealSecret } from './seal-secret.js';
import { catalogueFolder, checkedFolder } from './user-files.js';

/** What is there from earlier runs. */
export interface Caches {
  readonly secret: string;
  readonly onSealed: () => void;
  /** Absent where nothing can be kept. */
  readonly catalogues?: CatalogueCache;
  readonly checkedFiles?: CheckedFiles;
}

/** As large as a list may be. */
const MAX_CATALOGUE_BYTES = 4 * 1024 * 1024;
/** Ten clients and configurations of a long list of servers. */
const MAX_CATALOGUES = 256;
const MAX_CONFIG_BYTES = 4 * 1024 * 1024;
const MAX_CONFIGS = 16;

export function openCaches({ secret, isLasting, onSealed }: SealSecret, { scan }: Platform, logger: Logger): Caches {
  // Under a secret that nobody will have, it would be found by nobody.
  if (!isLasting) return { secret, onSealed };
  const onIgnored = (file: string, reason: string) => logger.debug({ file, reason }, 'not used of the last run');
  const onFault = (err: unknown) =>
    logger.warn({ err }, 'nothing is kept for the next run, whose start will be slower');
  const common = { onIgnored, onFault };
  const catalogues = new CacheFolder({
    ...common,
    folder: catalogueFolder(),
    maxFileBytes: MAX_CATALOGUE_BYTES,
    maxFiles: MAX_CATALOGUES,
  });
  const checked = new CacheFolder({
    ...common,
    folder: checkedFolder(),
    maxFileBytes: MAX_CONFIG_BYTES,
    maxFiles: MAX_CONFIGS,
  });
  return {
    secret,
    onSealed,
    catalogues: new CatalogueCache({ folder: catalogues, secret, onCached: onSealed, onIgnored, scan }),
    checkedFiles: new ConfigCache({ folder: checked, secret, onCached: onSealed }),
  };
}
