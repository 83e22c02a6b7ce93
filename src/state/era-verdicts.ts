import { isRecord } from '../json/is-record.js';
import { parseJson } from '../json/parse-json.js';
import type { EraVerdicts } from '../upstream/server-era.js';
import type { CacheFolder } from './cache-folder.js';

interface CachedVerdictsOptions {
  readonly folder: Pick<CacheFolder, 'read'> & { write(name: string, bytes: Uint8Array): void };
  /** The name of the file. */
  readonly name: () => string;
  /** Called when a file is written: it is found only as long as the secret exists. */
  readonly onCached: () => void;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

/**
 * A wrong verdict `legacy` is never noticed, because a server that speaks both eras goes on to answer `initialize`. So it
 * counts for a day.
 */
const LEGACY_LASTS_MS = 24 * 60 * 60 * 1_000;

/** Caches on disk which era a server speaks, so that the next run does not ask. */
export function cachedVerdicts({ folder, name, onCached, now = Date.now }: CachedVerdictsOptions): EraVerdicts {
  return {
    find: () => {
      const bytes = folder.read(name());
      const found = bytes === undefined ? undefined : parseJson(Buffer.from(bytes).toString());
      if (!isRecord(found)) return undefined;
      const { era, version, at } = found;
      if (era !== 'legacy' && era !== 'modern') return undefined;
      const age = typeof at === 'number' ? now() - at : Number.NaN;
      // A clock that was set back proves nothing either.
      if (era === 'legacy' && !(age >= 0 && age < LEGACY_LASTS_MS)) return undefined;
      const until = era === 'legacy' ? new Date(now() + LEGACY_LASTS_MS - age).toISOString() : undefined;
      return { era, version: typeof version === 'string' ? version : undefined, until };
    },
    put: ({ era, version }) => {
      onCached();
      folder.write(name(), Buffer.from(`${JSON.stringify({ era, version, at: now() })}\n`));
    },
    forget: () => folder.write(name(), FORGOTTEN),
  };
}

const FORGOTTEN = Buffer.from('{}\n');
