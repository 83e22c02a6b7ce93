import { CacheFolder } from '../cache/cache-folder.js';
import { CatalogueCache } from '../cache/catalogue-cache.js';
import { ConfigCache } from '../cache/config-cache.js';
import type { CheckedFileCache } from '../config/check-file.js';
import type { Logger } from '../observe/logger.js';
import type { Platform } from './platform.js';
import type { SealSecret } from './seal.js';
import { catalogueFolder, checkedFolder } from './user-files.js';

/** The caches that earlier runs have filled, and the secret that protects them. */
export interface Caches {
  readonly secret: string;
  readonly onSealed: () => void;
  /** Absent when the secret cannot be stored: no later run could read what is cached. */
  readonly catalogues?: CatalogueCache;
  readonly checkedFiles?: CheckedFileCache;
}

/** The size limit of a list. */
const MAX_CATALOGUE_BYTES = 4 * 1024 * 1024;
/** Enough for ten clients with long lists of servers. */
const MAX_CATALOGUES = 256;
const MAX_CONFIG_BYTES = 4 * 1024 * 1024;
const MAX_CONFIGS = 16;

export function openCaches({ secret, isLasting, onSealed }: SealSecret, { scan }: Platform, logger: Logger): Caches {
  // Without the secret, no later run can find or decrypt the files.
  if (!isLasting) return { secret, onSealed };
  const onIgnored = (file: string, reason: string) => logger.debug({ file, reason }, 'a cached file is ignored');
  const onFault = (err: unknown) =>
    logger.warn({ err }, 'the cache cannot be written, so the next start will be slower');
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
