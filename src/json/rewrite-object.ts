import { editMembers } from './edit-members.js';
import { type Span, toBytes } from './json-text.js';
import { type Edit, splice } from './splice.js';

/** What becomes of a member that is taken out. */
export const REMOVED = Symbol('removed');

export interface ObjectRewrite {
  /** The new text of a member's value, `REMOVED`, or `undefined` if the member stays as it is. */
  readonly change: (name: string, value: Span) => Uint8Array | typeof REMOVED | undefined;
  /** The members to put first, as JSON such as `"a":1`. Gets the names that the object has. */
  readonly insert?: (names: ReadonlySet<string>) => readonly Uint8Array[];
}

/**
 * Returns the JSON object at `span` with some of its members changed, removed or added. All other bytes stay as they are,
 * white space and escapes included. If a name is there more than once, each of its members is treated alike, because
 * readers differ in which of them they take.
 */
export function rewriteObject(bytes: Uint8Array, span: Span, { change, insert }: ObjectRewrite): Uint8Array {
  const names = new Set<string>();
  const changed: Edit[] = [];
  let isEmptied = true;
  const removed = editMembers(bytes, span, {
    removes: (name, value) => {
      names.add(name);
      const becomes = change(name, value);
      if (becomes === REMOVED) return true;
      isEmptied = false;
      if (becomes !== undefined) changed.push({ span: value, text: becomes });
      return false;
    },
  });
  const inserted = (insert?.(names) ?? []).flatMap((member, at) => (at === 0 ? [member] : [COMMA, member]));
  if (inserted.length > 0 && !isEmptied) inserted.push(COMMA);
  const first = { start: span.start + 1, end: span.start + 1 };
  return splice({ bytes, span, edits: [...inserted.map((text) => ({ span: first, text })), ...removed, ...changed] });
}

const COMMA = toBytes(',');
