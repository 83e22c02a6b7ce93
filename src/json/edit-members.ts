import { QUOTE } from './json-string.js';
import {
  CLOSE_BRACE,
  COLON,
  COMMA,
  equalsAt,
  OPEN_BRACE,
  readString,
  type Span,
  skipWhitespace,
  toBytes,
  visitMembers,
} from './json-text.js';
import { type Edit, splice } from './splice.js';

/** Changes to an object. */
export interface MemberChanges {
  /** Whether to remove a member. Called for each, in order. */
  readonly removes?: (name: string, value: Span) => boolean;
  /** Members to add at the end, as JSON without the braces. The caller removes members of the same name. */
  readonly add?: Uint8Array | undefined;
}

/**
 * Edits of one object: removes members and adds others at the end. All other members keep their bytes. The edits do not overlap
 * with edits inside the values that stay.
 */
export function editMembers(bytes: Uint8Array, object: Span, { removes, add }: MemberChanges): Edit[] {
  const members: Member[] = [];
  visitMembers(bytes, object.start, Number.POSITIVE_INFINITY, (key, value) => {
    members.push({ start: key.start, end: value.end, isRemoved: removes?.(readString(bytes, key), value) === true });
  });
  const edits: Edit[] = removes === undefined ? [] : removals(members);
  if (add === undefined) return edits;
  const at = object.end - 1;
  const isAlone = members.every(({ isRemoved }) => isRemoved);
  edits.push({ span: { start: at, end: at }, text: isAlone ? add : afterComma(add) });
  return edits;
}

/**
 * The edits of `editMembers` that remove members whose values were found before, without a look at any other member.
 * `keys` are with their quotes. Returns `undefined` if the members are not in the order of the keys, or if they are not
 * written as `JSON.stringify` does.
 */
export function removeFound(
  bytes: Uint8Array,
  keys: readonly Uint8Array[],
  values: readonly (Span | undefined)[],
): Edit[] | undefined {
  const edits: Edit[] = [];
  let start = -1;
  let end = -1;
  for (let index = 0; index < keys.length; index += 1) {
    const quotedKey = keys[index];
    const value = values[index];
    if (quotedKey === undefined || value === undefined) continue;
    const key = value.start - 1 - quotedKey.length;
    if (key < end || bytes[value.start - 1] !== COLON || !equalsAt(bytes, key, quotedKey)) return undefined;
    if (start < 0) {
      start = key;
    } else if (key !== end + 1) {
      const edit = removal(bytes, start, end);
      if (edit === undefined) return undefined;
      edits.push(edit);
      start = key;
    }
    end = value.end;
  }
  if (start < 0) return edits;
  const edit = removal(bytes, start, end);
  if (edit === undefined) return undefined;
  edits.push(edit);
  return edits;
}

/** Removes the members from `start` to `end` with the comma behind them, or before them if they are the last ones. */
function removal(bytes: Uint8Array, start: number, end: number): Edit | undefined {
  const before = bytes[start - 1];
  const isFirst = before === OPEN_BRACE;
  if (!isFirst && (before !== COMMA || isWhitespace(bytes[start - 2]))) return undefined;
  if (bytes[end] === CLOSE_BRACE) return { span: { start: isFirst ? start : start - 1, end }, text: NOTHING };
  const isBetween = bytes[end] === COMMA && bytes[end + 1] === QUOTE;
  return isBetween ? { span: { start, end: end + 1 }, text: NOTHING } : undefined;
}

function isWhitespace(byte: number | undefined): boolean {
  return byte === undefined || byte <= 0x20;
}

/** A member from its key to the end of its value. */
interface Member extends Span {
  readonly isRemoved: boolean;
}

/** One edit for each run of removed members, with the commas that are not needed any more. */
function removals(members: readonly Member[]): Edit[] {
  const edits: Edit[] = [];
  let before: Member | undefined;
  let first: Member | undefined;
  let last: Member | undefined;
  for (const member of members) {
    if (member.isRemoved) {
      first ??= member;
      last = member;
      continue;
    }
    if (first !== undefined) edits.push({ span: { start: first.start, end: member.start }, text: NOTHING });
    first = undefined;
    before = member;
  }
  if (first !== undefined && last !== undefined) {
    edits.push({ span: { start: before === undefined ? first.start : before.end, end: last.end }, text: NOTHING });
  }
  return edits;
}

const NOTHING = new Uint8Array(0);

function afterComma(text: Uint8Array): Uint8Array {
  const out = new Uint8Array(text.length + 1);
  out[0] = COMMA;
  out.set(text, 1);
  return out;
}

/**
 * Adds members at the beginning of an object, which need not be read to its end. `members` is JSON without the braces, ends
 * with a comma, which an empty object does not need, and contains no name that the object has.
 */
export function addFirst(bytes: Uint8Array, object: Span, members: Uint8Array): Edit {
  const at = object.start + 1;
  const isEmpty = bytes[skipWhitespace(bytes, at)] === CLOSE_BRACE;
  const span = { start: at, end: at };
  return isEmpty ? { span, text: members, part: { start: 0, end: members.length - 1 } } : { span, text: members };
}

/** The new value of a member that is removed. */
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
  const inserted = (insert?.(names) ?? []).flatMap((member, at) => (at === 0 ? [member] : [SEPARATOR, member]));
  if (inserted.length > 0 && !isEmptied) inserted.push(SEPARATOR);
  const first = { start: span.start + 1, end: span.start + 1 };
  return splice({ bytes, span, edits: [...inserted.map((text) => ({ span: first, text })), ...removed, ...changed] });
}

const SEPARATOR = toBytes(',');
