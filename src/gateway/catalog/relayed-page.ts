import { isRecord } from '../../json/is-record.js';
import { readText, type Span, toBytes, visitElements } from '../../json/json-text.js';
import type { Edit } from '../../json/splice.js';
import { join } from '../../jsonrpc/message.js';
import type { ResponseEnvelope } from '../../mcp/envelope.js';
import { definitionsOf, type ExposureRules } from './exposed-list.js';

/**
 * Edits one page of a server's tool list for a client that sees the server unchanged: removes the tools that the
 * configuration denies or a person has not approved. A page without such tools stays as it is, byte for byte.
 */
export function hideTools(
  { bytes, tokens: { resultTools } }: ResponseEnvelope,
  { policy, approvals }: Pick<ExposureRules, 'policy' | 'approvals'>,
): readonly Edit[] {
  if (resultTools === undefined) return [];
  const entries: Span[] = [];
  visitElements(bytes, resultTools.start, Number.POSITIVE_INFINITY, (entry) => entries.push(entry));
  const raw = entries.map((span) => ({ bytes, span }));
  const verdicts = approvals?.judge(definitionsOf(raw, policy));
  const shown = entries.filter((entry) => {
    const name = nameOf(bytes, entry);
    if (name === undefined) return approvals === undefined;
    return policy(name) && (verdicts === undefined || verdicts.get(name) === 'approved');
  });
  if (shown.length === entries.length) return [];
  const parts = shown.flatMap(({ start, end }, at) => [toBytes(at === 0 ? '' : ','), bytes.subarray(start, end)]);
  return [{ span: resultTools, text: join([toBytes('['), ...parts, toBytes(']')]) }];
}

function nameOf(bytes: Uint8Array, entry: Span): string | undefined {
  const value: unknown = JSON.parse(readText(bytes, entry));
  return isRecord(value) && typeof value.name === 'string' ? value.name : undefined;
}
