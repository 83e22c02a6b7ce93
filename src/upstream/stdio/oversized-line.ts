import type { OversizedLine } from '../../io/line-decoder.js';

/**
 * The id of the request that a dropped line answers, if the beginning or the end of the line shows it.
 *
 * In practice an answer starts or ends with its id, and its payload is the only other member. No string at the end of
 * the line can look like an id, because a quote inside a string is escaped.
 */
export function findIdInFragments({ head, tail }: OversizedLine): number | undefined {
  const start = withoutGaps(head);
  const first = ID_FIRST.exec(start);
  if (first !== null) return Number(first[1]);
  if (!PAYLOAD_FIRST.test(start)) return undefined;
  const last = ID_LAST.exec(withoutGaps(tail));
  return last === null ? undefined : Number(last[1]);
}

const LATIN1 = new TextDecoder('latin1');

/** Removes white space, even inside strings, where the patterns do not match anyway. */
function withoutGaps(bytes: Uint8Array): string {
  return LATIN1.decode(bytes).replace(/[ \t\r]+/g, '');
}

const ID_FIRST = /^\{(?:"jsonrpc":"2\.0",)?"id":(\d{1,16}),"(?:result|error)":/;
const PAYLOAD_FIRST = /^\{(?:"jsonrpc":"2\.0",)?"(?:result|error)":/;
const ID_LAST = /,"id":(\d{1,16})(?:,"jsonrpc":"2\.0")?\}$/;
