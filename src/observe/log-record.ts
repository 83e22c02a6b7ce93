import { escapeUnsafe } from '../json/unsafe-characters.js';
import type { Redact } from './redact.js';

/**
 * One line of the log as it may be written: without secrets, wherever they stand in it, and without a character that
 * could fool a terminal or an editor. `line` is JSON, as is the result.
 */
export function cleanRecord(line: string, redact: Redact): string {
  return `${escapeUnsafe(JSON.stringify(JSON.parse(line, (_, value) => (typeof value === 'string' ? redact(value) : value))))}\n`;
}
