import type { OversizedLine } from '../jsonrpc/line-decoder.js';

/**
 * The id of the request that a dropped line would have answered, if either end of the line tells.
 *
 * Answers begin or end with their id in practice. At the start it must stand before the payload; at the end it must
 * be the last member of the line, where no string can imitate it, since a quote inside a string is escaped.
 */
export function findIdInFragments({ head, tail }: OversizedLine): number | undefined {
  const text = LATIN1.decode(head);
  const start = /^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d+)\s*,/.exec(text);
  const end = /,\s*"id"\s*:\s*(\d+)\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$/.exec(LATIN1.decode(tail));
  const digits = start?.[1] ?? end?.[1];
  return digits === undefined ? undefined : Number(digits);
}

const LATIN1 = new TextDecoder('latin1');
