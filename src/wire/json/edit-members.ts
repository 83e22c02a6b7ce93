import {
  CLOSE_BRACE,
  elementsOf,
  isObject,
  isString,
  membersOf,
  OPEN_BRACKET,
  readString,
  readText,
  type Span,
  skipWhitespace,
  toBytes,
  visitMembers,
} from './json-text.js';
import { type Edit, splice } from './splice.js';

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
  const span = { start: at, end: at };
  return [...edits, ...(isAlone ? [] : [{ span, text: SEPARATOR }]), { span, text: add }];
}

/** A member from its key to the end of its value. */
interface Member extends Span {
  readonly isRemoved: boolean;
}

/** The edits that remove members, with the commas that are not needed any more. */
function removals(members: readonly Member[]): Edit[] {
  const lastKept = members.findLastIndex(({ isRemoved }) => !isRemoved);
  const edits = members.slice(0, Math.max(0, lastKept)).flatMap(({ start, isRemoved }, index): Edit[] => {
    const end = members[index + 1]?.start ?? start;
    return isRemoved ? [{ span: { start, end }, text: NOTHING }] : [];
  });
  const [first] = members.slice(lastKept + 1);
  const start = members[lastKept]?.end ?? first?.start ?? 0;
  const end = members.at(-1)?.end ?? start;
  return first === undefined ? edits : [...edits, { span: { start, end }, text: NOTHING }];
}

const NOTHING = new Uint8Array(0);

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

/**
 * Returns an object as canonical JSON, without spaces and with sorted members. At the top, only included members stay. Numbers
 * keep their raw text. Duplicate members are all kept.
 */
export function canonicalObject(bytes: Uint8Array, object: Span, isIncluded: (name: string) => boolean): string {
  const members = membersOf(bytes, object).filter(([name]) => isIncluded(name));
  // A stable sort: members of the same name stay in their order.
  members.sort(([one], [other]) => (one < other ? -1 : Number(one > other)));
  return `{${members.map(([name, value]) => `${JSON.stringify(name)}:${canonical(bytes, value)}`).join()}}`;
}

function canonical(bytes: Uint8Array, value: Span): string {
  if (isObject(bytes, value)) return canonicalObject(bytes, value, () => true);
  if (isString(bytes, value)) return JSON.stringify(readString(bytes, value));
  if (bytes[value.start] !== OPEN_BRACKET) return readText(bytes, value);
  return `[${elementsOf(bytes, value).map((element) => canonical(bytes, element))}]`;
}
