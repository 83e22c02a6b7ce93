import { editMembers, removeFound } from '../json/edit-members.js';
import { isObject, type Span, toBytes } from '../json/json-text.js';
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

/** The members of a modern server's result that a legacy client does not know. */
const OF_RESULT = namesOf(['resultType', 'ttlMs', 'cacheScope']);

/** Removes from a modern server's result what a legacy client must not get. */
export function withoutResultMembers({ bytes, result, tokens }: ResponseEnvelope): readonly Edit[] {
  const { resultType, ttlMs, cacheScope } = tokens;
  const hasNone = resultType === undefined && ttlMs === undefined && cacheScope === undefined;
  if (result === undefined || hasNone) return [];
  return without(OF_RESULT, bytes, result, [resultType, ttlMs, cacheScope]);
}

/** The scan of the message has found the values of these members. Others, such as the content of a result, may be large. */
function without({ all, keys }: Names, bytes: Uint8Array, object: Span, values: readonly (Span | undefined)[]): Edit[] {
  return removeFound(bytes, keys, values) ?? editMembers(bytes, object, { removes: (name) => all.has(name) });
}

function namesOf(names: readonly string[]): Names {
  return { all: new Set(names), keys: names.map((name) => toBytes(JSON.stringify(name))) };
}
