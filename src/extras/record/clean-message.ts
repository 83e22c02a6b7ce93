import { type FindSecrets, REDACTED, united, withoutSecrets } from '../../host/observe/redact.js';
import type { Span } from '../../wire/json/json-text.js';
import { parseJson } from '../../wire/json/json-value.js';

export type CleanMessage = (text: string) => string;

/**
 * Removes secrets from messages, which stay valid JSON. Replaces only the content of strings; a number that is a secret
 * becomes a string. A message without a secret stays unchanged, character by character.
 */
export function createCleaner(find: FindSecrets): CleanMessage {
  return (text) => {
    const found = find(text);
    if (found.known.length === 0 && found.likely.length === 0) return text;
    if (parseJson(text) === undefined) return withoutSecrets(text, found);
    const knownIn = inOrder(found.known);
    const likelyIn = inOrder(found.likely);
    const clean = text.replaceAll(TOKEN, (token, offset: number) => {
      const end = offset + token.length;
      const known = knownIn(offset, end);
      const before = text.slice(Math.max(0, offset - LONGEST_NAME), offset);
      if (token.startsWith('"')) {
        const likely = AFTER_PROGRESS_TOKEN.test(before) ? [] : likelyIn(offset, end);
        return `"${withoutSpans(token.slice(1, -1), shifted([...known, ...likely], offset + 1))}"`;
      }
      const likely = AFTER_TOKEN.test(before) || !NUMBER.test(token) ? [] : likelyIn(offset, end);
      return known.length + likely.length > 0 ? `"${REDACTED}"` : token;
    });
    // A secret may be spread over several values.
    return find(clean).known.length === 0 ? clean : UNSAFE;
  };
}

const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null/g;
const NUMBER = /^-?\d/;
/** Names with "token" whose values are no secrets: progress tokens, and counts of tokens of models. Known secrets are still removed. */
const AFTER_PROGRESS_TOKEN = /"progressToken"\s*:\s*$/;
const AFTER_TOKEN = /token"\s*:\s*$/i;
const LONGEST_NAME = 48;
const UNSAFE = '{"redacted":"this message, because a secret in it cannot be removed from its parts"}';

/**
 * Returns a function that finds the spans within a part of the text. The parts must come in order, because a message
 * can have very many parts and spans, and this avoids searching all spans for each part.
 */
function inOrder(spans: readonly Span[]): (start: number, end: number) => Span[] {
  const all = united(spans);
  let first = 0;
  return (start, end) => {
    while ((all[first]?.end ?? Number.POSITIVE_INFINITY) <= start) first += 1;
    const found: Span[] = [];
    for (let span = all[first]; span !== undefined && span.start < end; span = all[first + found.length])
      found.push(span);
    return found;
  };
}

function shifted(spans: readonly Span[], by: number): Span[] {
  return spans.map(({ start, end }) => ({ start: start - by, end: end - by }));
}

const ESCAPE = /\\(?:u[0-9a-f]{4}|.)/gi;

/** Returns a function that finds the escape around a position. The positions must ascend. */
function cutEscapes(content: string): (at: number) => Span | undefined {
  const escapes = content.matchAll(ESCAPE);
  const next = (): Span | undefined => {
    const { value } = escapes.next();
    return value && { start: value.index, end: value.index + value[0].length };
  };
  let current = next();
  return (at) => {
    while (current !== undefined && current.end <= at) current = next();
    return current !== undefined && current.start < at ? current : undefined;
  };
}

/** Replaces the spans in the content of a string literal. If a span cuts an escape, the whole escape is replaced. */
function withoutSpans(content: string, spans: readonly Span[]): string {
  if (spans.length === 0) return content;
  const cut = cutEscapes(content);
  let clean = '';
  let position = 0;
  for (const span of united(spans)) {
    const start = cut(span.start)?.start ?? span.start;
    const end = cut(span.end)?.end ?? span.end;
    if (start > position || position === 0) clean += content.slice(position, Math.max(0, start)) + REDACTED;
    position = Math.max(position, end);
  }
  return clean + content.slice(position);
}
