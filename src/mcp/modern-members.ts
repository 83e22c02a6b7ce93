import { editMembers, removeFound } from '../json/edit-members.js';
import { isObject, isString, readString, readText, type Span, toBytes, visitMembers } from '../json/json-text.js';
import type { Edit } from '../json/splice.js';
import type { ResponseEnvelope } from './envelope.js';
import type { RelayedRequest } from './relayed-request.js';

/** The member of a notification's `_meta` that names the `subscriptions/listen` request it belongs to. */
export const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId';

/** Names of members, and in the same order as keys with their quotes. */
interface Names {
  readonly all: ReadonlySet<string>;
  readonly keys: readonly Uint8Array[];
}

/** The members of `_meta` that a modern client puts into each request; a legacy server knows none of them. */
const OF_META = namesOf(
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
  const { eraVersion, eraClientInfo, eraCapabilities, eraLogLevel } = tokens;
  const ofMeta =
    requestMeta !== undefined && isObject(bytes, requestMeta)
      ? without(OF_META, bytes, requestMeta, [eraVersion, eraClientInfo, eraCapabilities, eraLogLevel])
      : [];
  if (params === undefined || (inputResponses === undefined && requestState === undefined)) return ofMeta;
  return [...ofMeta, ...editMembers(bytes, params, { removes: (name) => OF_PARAMS.has(name) })];
}

/** Member of a result's `_meta` that names the server. A legacy client learned the name from `initialize`. */
const SERVER_INFO = 'io.modelcontextprotocol/serverInfo';
const OF_RESULT_META = namesOf([SERVER_INFO]);
/** Members of a modern server's result that a legacy client does not know. */
const OF_RESULT = namesOf(['resultType', 'ttlMs', 'cacheScope']);
const OF_RESULT_AND_META = namesOf(['resultType', 'ttlMs', 'cacheScope', '_meta']);

/** Removes from a modern server's result what a legacy client must not get. A `_meta` without other members goes, too. */
export function withoutResultMembers({ bytes, result, tokens }: ResponseEnvelope): readonly Edit[] {
  const { resultType, ttlMs, cacheScope, resultMeta, resultServerInfo } = tokens;
  if (result === undefined) return [];
  const values = [resultType, ttlMs, cacheScope];
  const isNamed = resultMeta !== undefined && resultServerInfo !== undefined;
  if (isNamed && hasOnly(SERVER_INFO, bytes, resultMeta)) {
    return without(OF_RESULT_AND_META, bytes, result, [...values, resultMeta]);
  }
  return [
    ...(isNamed ? without(OF_RESULT_META, bytes, resultMeta, [resultServerInfo]) : []),
    ...(values.some((value) => value !== undefined) ? without(OF_RESULT, bytes, result, values) : []),
  ];
}

function hasOnly(name: string, bytes: Uint8Array, object: Span): boolean {
  let isAlone = true;
  visitMembers(bytes, object.start, Number.POSITIVE_INFINITY, (key) => {
    isAlone &&= readString(bytes, key) === name;
  });
  return isAlone;
}

/** The scan of the message has found the values of these members. Others, such as the content of a result, may be large. */
function without({ all, keys }: Names, bytes: Uint8Array, object: Span, values: readonly (Span | undefined)[]): Edit[] {
  return removeFound(bytes, keys, values) ?? editMembers(bytes, object, { removes: (name) => all.has(name) });
}

function namesOf(names: readonly string[]): Names {
  return { all: new Set(names), keys: names.map((name) => toBytes(JSON.stringify(name))) };
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
