import { isRecord } from '../../json/is-record.js';
import { readText, type Span, toBytes, visitElements } from '../../json/json-text.js';
import type { Edit } from '../../json/splice.js';
import { join } from '../../jsonrpc/message.js';
import type { ResponseEnvelope } from '../../mcp/envelope.js';
import { asLegacyTool, hasOtherOutput } from '../../mcp/legacy-output.js';
import { definitionsOf, type ExposedList, type ExposureRules } from './exposed-list.js';

/**
 * Edits one page of a server's tool list for a client that sees only this server: removes the tools that the
 * configuration denies or a person has not approved, and shapes those that the configuration shapes. A page without such
 * tools stays as it is, byte for byte. `known` is the list as far as it was read. `isTranslated`: the client has a handshake,
 * and the server has none.
 */
export function editToolPage(
  { bytes, tokens: { resultTools } }: ResponseEnvelope,
  { policy, approvals, shaping }: Pick<ExposureRules, 'policy' | 'approvals' | 'shaping'>,
  known: Pick<ExposedList, 'renamed'>,
  isTranslated = false,
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
  const texts = shown.map((span) => {
    const name = shaping === undefined ? undefined : nameOf(bytes, span);
    const text = name === undefined ? undefined : shaping?.shapeWhole(name, { bytes, span }, known.renamed);
    return isTranslated ? (translated(text ?? bytes.subarray(span.start, span.end)) ?? text) : text;
  });
  if (shown.length === entries.length && texts.every((text) => text === undefined)) return [];
  const parts = shown.flatMap(({ start, end }, at) => [
    toBytes(at === 0 ? '' : ','),
    texts[at] ?? bytes.subarray(start, end),
  ]);
  return [{ span: resultTools, text: join([toBytes('['), ...parts, toBytes(']')]) }];
}

/** The entry for a client with a handshake; `undefined` if it stays as it is. */
function translated(entry: Uint8Array): Uint8Array | undefined {
  const span = { start: 0, end: entry.length };
  return hasOtherOutput(JSON.parse(readText(entry, span))) ? asLegacyTool(entry, span) : undefined;
}

function nameOf(bytes: Uint8Array, entry: Span): string | undefined {
  const value: unknown = JSON.parse(readText(bytes, entry));
  return isRecord(value) && typeof value.name === 'string' ? value.name : undefined;
}
