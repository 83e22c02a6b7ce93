import { readString, type Span, toBytes, visitMembers } from './json-text.js';

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
  const members: Member[] = [];
  const names = new Set<string>();
  visitMembers(bytes, span.start, Number.POSITIVE_INFINITY, (key, value) => {
    const name = readString(bytes, key);
    names.add(name);
    members.push({ key, value, becomes: change(name, value) });
  });
  const inserted = insert?.(names) ?? [];
  const lastKept = members.findLastIndex(({ becomes }) => becomes !== REMOVED);
  const pieces: Uint8Array[] = [bytes.subarray(span.start, span.start + 1)];
  inserted.forEach((member, index) => {
    pieces.push(member);
    if (index < inserted.length - 1 || lastKept >= 0) pieces.push(COMMA);
  });
  let position = span.start + 1;
  members.slice(0, lastKept + 1).forEach(({ key, value, becomes }, index) => {
    if (becomes === undefined) return;
    const isRemoved = becomes === REMOVED;
    pieces.push(bytes.subarray(position, isRemoved ? key.start : value.start));
    if (!isRemoved) pieces.push(becomes);
    // A removed member takes the comma after it along. One follows, because a member that is kept does.
    position = isRemoved ? (members[index + 1]?.key.start ?? value.end) : value.end;
  });
  const [first, last] = [members[lastKept + 1], members.at(-1)];
  if (first !== undefined && last !== undefined) {
    // The removed members at the end take the comma before them along.
    pieces.push(bytes.subarray(position, lastKept < 0 ? first.key.start : members[lastKept]?.value.end));
    position = last.value.end;
  }
  pieces.push(bytes.subarray(position, span.end));
  return joined(pieces);
}

interface Member {
  readonly key: Span;
  readonly value: Span;
  readonly becomes: Uint8Array | typeof REMOVED | undefined;
}

const COMMA = toBytes(',');

function joined(pieces: readonly Uint8Array[]): Uint8Array {
  const out = new Uint8Array(pieces.reduce((length, piece) => length + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    out.set(piece, at);
    at += piece.length;
  }
  return out;
}
