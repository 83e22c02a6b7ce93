import { isRecord, parseJson } from '../../wire/json/json-value.js';
import { printable } from '../../wire/json/printable.js';

/** Longest quotation of another side, in characters. */
const MAX_WORDS = 300;
/** Members of a refusal in JSON that hold words for people, the most telling first. */
const MEMBERS = ['error_description', 'message', 'detail', 'title', 'error'];

/**
 * Finds the words for people in the body of a refusal: a member of its JSON, or its text without HTML. Returns one printable
 * line of at most 300 characters; `undefined` if there are no words. The line may hold secrets.
 */
export function wordsOfBody(body: string): string | undefined {
  const value = parseJson(body);
  const text = value === undefined ? textOfPage(body) : textIn(value);
  const line = text?.replace(/\s+/g, ' ').trim() ?? '';
  const shown = line.length > MAX_WORDS ? `${line.slice(0, MAX_WORDS - 1)}…` : line;
  return shown === '' ? undefined : printable(shown);
}

function textIn(value: unknown, depth = 0): string | undefined {
  if (typeof value === 'string') return value;
  if (Array.isArray(value)) return depth > 2 ? undefined : textIn(value[0], depth + 1);
  if (!isRecord(value) || depth > 2) return undefined;
  const found = MEMBERS.map((name) => textIn(value[name], depth + 1)).find((text) => text !== undefined && text !== '');
  const code = value.error;
  return depth === 0 && typeof code === 'string' && found !== undefined && found !== code ? `${code}: ${found}` : found;
}

function textOfPage(body: string): string {
  const page = body.slice(0, 20_000);
  const [, title] = /<title[^>]*>([^<]*)/i.exec(page) ?? [];
  if (title !== undefined && title.trim() !== '') return title;
  return page.replace(/<(script|style)\b[\s\S]*?<\/\1>|<[^>]*>/gi, ' ');
}

/** The status of an answer and the words of its body, as in `HTTP 403 (Forbidden): the plan has ended`. */
export function describeHttpRefusal(status: number, statusMessage = '', body = ''): string {
  const words = wordsOfBody(body);
  const head = statusMessage === '' ? `HTTP ${status}` : `HTTP ${status} (${printable(statusMessage.slice(0, 60))})`;
  return words === undefined ? head : `${head}: ${words}`;
}
