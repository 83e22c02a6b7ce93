import { editMembers } from '../json/edit-members.js';
import { isObject, readString, readText, type Span, stringAt, visitMembers } from '../json/json-text.js';
import type { Edit } from '../json/splice.js';
import type { ResponseEnvelope } from './envelope.js';
import type { RelayedRequest } from './relayed-request.js';

/** The member of a notification's `_meta` that names the `subscriptions/listen` request it belongs to. */
export const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId';

/** The members of `_meta` that a modern client puts into each request; a legacy server knows none of them. */
const OF_META: ReadonlySet<string> = new Set(
  ['protocolVersion', 'clientInfo', 'clientCapabilities', 'logLevel'].map((name) => `io.modelcontextprotocol/${name}`),
);
/** The members of `params` with which a modern client sends a request again. */
const OF_PARAMS: ReadonlySet<string> = new Set(['inputResponses', 'requestState']);

/** Removes from a modern client's request or notification what a legacy server must not get. */
export function withoutEraMembers({
  bytes,
  params,
  tokens,
}: Pick<RelayedRequest, 'bytes' | 'params' | 'tokens'>): readonly Edit[] {
  const { requestMeta, inputResponses, requestState } = tokens;
  const ofMeta = requestMeta !== undefined && isObject(bytes, requestMeta) ? without(OF_META, bytes, requestMeta) : [];
  if (params === undefined || (inputResponses === undefined && requestState === undefined)) return ofMeta;
  return [...ofMeta, ...without(OF_PARAMS, bytes, params)];
}

/** Member of a result's `_meta` that names the server. A legacy client learned the name from `initialize`. */
const SERVER_INFO = 'io.modelcontextprotocol/serverInfo';
/** Members of a modern server's result that a legacy client does not know. */
const OF_RESULT = ['resultType', 'ttlMs', 'cacheScope'] as const;

/** Removes from a modern server's result what a legacy client must not get. A `_meta` without other members goes, too. */
export function withoutResultMembers({ bytes, result, tokens }: ResponseEnvelope): readonly Edit[] {
  const { resultMeta, resultServerInfo } = tokens;
  if (result === undefined) return [];
  const isNamed = resultMeta !== undefined && resultServerInfo !== undefined;
  const isOnlyNamed = isNamed && hasOnly(SERVER_INFO, bytes, resultMeta);
  const names = OF_RESULT.filter((name) => tokens[name] !== undefined);
  const all = new Set<string>(isOnlyNamed ? [...names, '_meta'] : names);
  return [
    ...(isNamed && !isOnlyNamed ? without(new Set([SERVER_INFO]), bytes, resultMeta) : []),
    ...(all.size > 0 ? without(all, bytes, result) : []),
  ];
}

/** Whether an object has no member of another name. */
export function hasOnly(name: string, bytes: Uint8Array, object: Span): boolean {
  let isAlone = true;
  visitMembers(bytes, object.start, Number.POSITIVE_INFINITY, (key) => {
    isAlone &&= readString(bytes, key) === name;
  });
  return isAlone;
}

function without(names: ReadonlySet<string>, bytes: Uint8Array, object: Span): Edit[] {
  return editMembers(bytes, object, { removes: (name) => names.has(name) });
}

/** A server's statement on how its result may be cached: `ttlMs` and `cacheScope` of revision 2026-07-28. */
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
  return { freshUntil: ttl > 0 ? at + ttl : at, isPublic: stringAt(bytes, cacheScope) === 'public' };
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
