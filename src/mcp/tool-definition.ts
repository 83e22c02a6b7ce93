import { canonicalObject } from '../json/canonical-json.js';
import type { Span } from '../json/json-text.js';

/** The members of a tool's entry that tell a model what the tool is and how to call it. */
const DEFINING_MEMBERS: ReadonlySet<string> = new Set([
  'name',
  'title',
  'description',
  'inputSchema',
  'outputSchema',
  'annotations',
]);

/**
 * Returns the definition of a tool as canonical JSON: no spaces, sorted members. Entries with the same definition give
 * the same text.
 *
 * Numbers keep their raw text, because 1 and 1.0 differ for some clients, and large numbers would lose digits.
 * Duplicate members are all kept, because clients differ in which of them they take.
 */
export function toolDefinition(bytes: Uint8Array, entry: Span): string {
  return canonicalObject(bytes, entry, (name) => DEFINING_MEMBERS.has(name));
}
