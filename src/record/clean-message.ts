import type { Span } from '../json/json-text.js';
import { parseJson } from '../json/json-value.js';
import { type FindSecrets, REDACTED, united, withoutSecrets } from '../observe/redact.js';

export type CleanMessage = (text: string) => string;

/**
 * Removes secrets from messages, which stay the JSON that they are: only the content of strings is replaced, and numbers
 * that are secrets become strings. A message without a secret stays as it is, character by character.
 */
export function createCleaner(find: FindSecrets): CleanMessage {
  return (text) => {
    const found = find(text);
    if (found.known.length === 0 && found.likely.length === 0) return text;
    if (parseJson(text) === undefined) return withoutSecrets(text, found);
    const [knownIn, likelyIn] = [inOrder(found.known), inOrder(found.likely)];
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
    // A secret that several values make together.
    return find(clean).known.length === 0 ? clean : UNSAFE;
  };
}

const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null/g;
const NUMBER = /^-?\d/;
/** Progress has a token, too, and models count tokens. These are secrets only if they are known. */
const AFTER_PROGRESS_TOKEN = /"progressToken"\s*:\s*$/;
const AFTER_TOKEN = /token"\s*:\s*$/i;
const LONGEST_NAME = 48;
const UNSAFE = '{"redacted":"this message, because a secret in it cannot be removed from its parts"}';

/**
 * Returns a function that finds the spans which a part of the text has. The parts must come in their order: a message can
 * have very many parts and spans, and none is searched for in all of the others.
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

/** Returns a function that finds the escape in which a position is. The positions must ascend. */
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

/** Replaces the spans in the content of a string literal. An escape that a span cuts goes as a whole. */
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
