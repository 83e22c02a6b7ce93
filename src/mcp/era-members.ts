import { editMembers } from '../json/edit-members.js';
import { isObject } from '../json/json-text.js';
import type { Edit } from '../json/splice.js';
import type { RelayedRequest } from './relayed-request.js';

/** The members of `_meta` that a modern client puts into each request; a legacy server knows none of them. */
const OF_META: ReadonlySet<string> = new Set(
  ['protocolVersion', 'clientInfo', 'clientCapabilities', 'logLevel'].map((name) => `io.modelcontextprotocol/${name}`),
);
/** The members of `params` with which a modern client sends a request again. */
const OF_PARAMS: ReadonlySet<string> = new Set(['inputResponses', 'requestState']);

/** Removes from a modern client's request what a legacy server must not get. */
export function withoutEraMembers({ bytes, params, tokens }: RelayedRequest): readonly Edit[] {
  const { requestMeta, inputResponses, requestState } = tokens;
  const ofMeta =
    requestMeta !== undefined && isObject(bytes, requestMeta)
      ? editMembers(bytes, requestMeta, { removes: (name) => OF_META.has(name) })
      : [];
  if (params === undefined || (inputResponses === undefined && requestState === undefined)) return ofMeta;
  return [...ofMeta, ...editMembers(bytes, params, { removes: (name) => OF_PARAMS.has(name) })];
}
