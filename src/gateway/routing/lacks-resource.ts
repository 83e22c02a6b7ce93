import { isString, readString, readText, valuesAt, visitElements } from '../../json/json-text.js';
import type { ResponseEnvelope } from '../../mcp/envelope.js';
import { MODERN_CODES } from '../../mcp/revisions.js';

/** A URL has to be visited before, and what the client does not declare: only a server that has the resource says so. */
const CODES_OF_OWNERS: ReadonlySet<string> = new Set(['-32042', String(MODERN_CODES.missingCapability)]);

/**
 * Whether the response to `resources/read` is an error or has no contents. Servers report an unknown resource with many
 * codes, and some with an empty result; reading has no effects, so the next server may be asked in any case. A server that
 * needs something of the client first has the resource.
 */
export function lacksResource({ bytes, result, tokens: { resultType, errorCode } }: ResponseEnvelope): boolean {
  if (result === undefined) return errorCode === undefined || !CODES_OF_OWNERS.has(readText(bytes, errorCode));
  if (resultType !== undefined && isString(bytes, resultType) && readString(bytes, resultType) === 'input_required') {
    return false;
  }
  let count = 0;
  for (const list of valuesAt(bytes, result, ['contents'])) {
    visitElements(bytes, list.start, Number.POSITIVE_INFINITY, () => {
      count += 1;
    });
  }
  return count === 0;
}
