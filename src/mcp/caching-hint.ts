import { isString, readString, readText } from '../json/json-text.js';
import type { ResponseEnvelope } from './envelope.js';

/** What a server says about how its result may be cached: `ttlMs` and `cacheScope` of revision 2026-07-28. */
export interface CachingHint {
  /** Milliseconds on the clock. */
  readonly freshUntil: number;
  /** Whether the result is the same for all users. */
  readonly isPublic: boolean;
}

/** The hint of a result that was read at this time; `undefined` if it has none, as before revision 2026-07-28. */
export function readCachingHint({ bytes, tokens }: ResponseEnvelope, at: number): CachingHint | undefined {
  const { ttlMs, cacheScope } = tokens;
  if (ttlMs === undefined && cacheScope === undefined) return undefined;
  const ttl = ttlMs === undefined ? 0 : Number(readText(bytes, ttlMs));
  const isPublic =
    cacheScope !== undefined && isString(bytes, cacheScope) && readString(bytes, cacheScope) === 'public';
  return { freshUntil: ttl > 0 ? at + ttl : at, isPublic };
}

/** The hint of several results together. Those without a hint are for one user, and say nothing about the time. */
export function mergeCachingHints(hints: readonly (CachingHint | undefined)[]): CachingHint | undefined {
  const known = hints.filter((hint) => hint !== undefined);
  if (known.length === 0) return undefined;
  return {
    freshUntil: Math.min(...known.map(({ freshUntil }) => freshUntil)),
    isPublic: known.length === hints.length && known.every(({ isPublic }) => isPublic),
  };
}
