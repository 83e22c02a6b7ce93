import type { Span } from '../json/json-text.js';
import { type FindSecrets, REDACTED, withoutSecrets } from '../observe/redact.js';

/** Removes the secrets from the text of a message. */
export type CleanMessage = (text: string) => string;

/**
 * Removes secrets from messages, which stay the JSON that they are: only the content of strings is replaced, and numbers
 * that are secrets become strings. A message without a secret stays as it is, character by character.
 */
export function createCleaner(find: FindSecrets): CleanMessage {
  return (text) => {
    const found = find(text);
    if (found.known.length === 0 && found.likely.length === 0) return text;
    if (!isJson(text)) return withoutSecrets(text, found);
    const clean = text.replaceAll(TOKEN, (token, offset: number) => {
      const end = offset + token.length;
      const known = within(found.known, offset, end);
      const before = text.slice(Math.max(0, offset - LONGEST_NAME), offset);
      if (token.startsWith('"')) {
        const likely = AFTER_PROGRESS_TOKEN.test(before) ? [] : within(found.likely, offset, end);
        return `"${withoutSpans(token.slice(1, -1), shifted([...known, ...likely], offset + 1))}"`;
      }
      const likely = AFTER_TOKEN.test(before) || !NUMBER.test(token) ? [] : within(found.likely, offset, end);
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

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function within(spans: readonly Span[], start: number, end: number): Span[] {
  return spans.filter((span) => span.start < end && span.end > start);
}

function shifted(spans: readonly Span[], by: number): Span[] {
  return spans.map(({ start, end }) => ({ start: start - by, end: end - by }));
}

const ESCAPE = /\\(?:u[0-9a-f]{4}|.)/gi;

/** Replaces the spans in the content of a string literal. An escape that a span cuts goes as a whole. */
function withoutSpans(content: string, spans: readonly Span[]): string {
  if (spans.length === 0) return content;
  const escapes = [...content.matchAll(ESCAPE)].map(({ index, 0: { length } }) => ({
    start: index,
    end: index + length,
  }));
  const cut = (at: number) => escapes.find(({ start, end }) => start < at && at < end);
  const whole = spans.map(({ start, end }) => ({ start: cut(start)?.start ?? start, end: cut(end)?.end ?? end }));
  whole.sort((a, b) => a.start - b.start);
  let clean = '';
  let position = 0;
  for (const { start, end } of whole) {
    if (start > position || position === 0) clean += content.slice(position, Math.max(0, start)) + REDACTED;
    position = Math.max(position, end);
  }
  return clean + content.slice(position);
}
