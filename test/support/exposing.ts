import { type ExposedList, type ExposureRules, exposeList } from '../../src/gateway/catalog/exposed-list.js';
import { createToolPolicy } from '../../src/gateway/catalog/tool-policy.js';
import type { ListKind } from '../../src/wire/mcp/methods.js';
import { sha256 } from './sha256.js';
import { bytesOf } from './wire.js';

interface Exposure extends Partial<ExposureRules> {
  readonly kind?: ListKind;
  readonly deny?: readonly string[];
}

/** The list that clients see of a server, `k` unless told otherwise, which sent these texts as entries. */
export function exposing(
  texts: readonly string[],
  { kind = 'tools', deny = [], key = 'k', ...rules }: Exposure = {},
): ExposedList {
  const entries = texts.map((text) => ({ bytes: bytesOf(text) }));
  const policy = createToolPolicy({ deny });
  return exposeList(kind, { entries, truncated: undefined }, { key, prefix: key, policy, sha256, ...rules });
}
