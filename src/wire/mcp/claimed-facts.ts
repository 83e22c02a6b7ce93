import { editMembers } from '../json/edit-members.js';
import { foldKey, membersOf, type Span, stringAt, valuesAt } from '../json/json-text.js';
import { type Edit, splice } from '../json/splice.js';
import type { ResponseEnvelope } from './envelope.js';
import { asResponse } from './relayed-request.js';

/*
 * Trunkline tells programs its own facts about a call in `_meta["trunkline/..."]` of a result, and in `data` of an error. A server that
 * writes the same could make a client repeat a call that has run, so its members of these forms do not reach clients.
 */

/** Removes the facts that a server claims in the place of Trunkline. Other responses, and all other bytes, stay as they are. */
export function withoutClaims(response: ResponseEnvelope): ResponseEnvelope {
  const { bytes, span, result, error } = response;
  const { resultMeta, resultTaskId, resultStatus } = response.tokens;
  const isTask = resultTaskId !== undefined || resultStatus !== undefined;
  if (resultMeta === undefined && error === undefined && !isTask) return response;
  const edits = [
    ...(resultMeta === undefined ? [] : claimsInMeta(bytes, resultMeta)),
    ...(error === undefined ? [] : claimsInError(bytes, error)),
    ...(isTask && result !== undefined ? claimsInTask(bytes, result) : []),
  ];
  // A message of its own, because later edits of the response must not overlap with these.
  return edits.length === 0 ? response : asResponse(splice({ bytes, span, edits }));
}

/** The edits that remove claimed facts from the state of a task, which has the result or the error of its call within it. */
export function claimsInTask(bytes: Uint8Array, state: Span): Edit[] {
  return [
    ...valuesAt(bytes, state, ['result', '_meta']).flatMap((meta) => claimsInMeta(bytes, meta)),
    ...valuesAt(bytes, state, ['error']).flatMap((error) => claimsInError(bytes, error)),
  ];
}

function claimsInMeta(bytes: Uint8Array, meta: Span): Edit[] {
  return editMembers(bytes, meta, { removes: (name) => foldKey(name).startsWith(OWN) });
}

function claimsInError(bytes: Uint8Array, error: Span): Edit[] {
  return editMembers(bytes, error, { removes: (name, value) => foldKey(name) === 'data' && isClaim(bytes, value) });
}

const OWN = 'trunkline/';

/** Whether the data of an error look like those of a failure: a code of Trunkline, or an outcome with its reason. */
function isClaim(bytes: Uint8Array, data: Span): boolean {
  const members = membersOf(bytes, data).map(([name, value]) => [foldKey(name), value] as const);
  const has = (name: string) => members.some(([key]) => key === name);
  const hasCode = members.some(([key, value]) => key === 'code' && stringAt(bytes, value)?.startsWith('TL-') === true);
  return hasCode || (has('outcome') && has('reason'));
}
