/** Both ends of a message whose middle was dropped. They may overlap. */
export interface MessageEnds {
  readonly head: Uint8Array;
  readonly tail: Uint8Array;
}

export interface IncompleteEnvelope {
  /** `undefined` if the ends do not show it. */
  readonly kind: 'request' | 'response' | undefined;
  /** The raw id, a string or a number. `undefined` if the ends show none, or two that differ. */
  readonly id: Uint8Array | undefined;
}

/**
 * Finds out whether a dropped message was a request or a response, and its id.
 *
 * In practice a message has one large member, its payload, and the others are before or after it. The members before are read from the
 * beginning of the message, those after are read backward from its end. Neither way enters the payload, because both end at the first value
 * that is not a short scalar. Backward, a closing quote that follows no escape can only end a string of this level.
 */
export function readMessageEnds({ head, tail }: MessageEnds): IncompleteEnvelope {
  const members = [...membersAtStart(head), ...membersAtEnd(tail)];
  const has = (...names: string[]) => members.some(({ name }) => names.includes(name));
  const ids = members.flatMap(({ name, value }) => (name === 'id' && value !== undefined ? [value] : []));
  const [id] = ids;
  const isRequest = has('method', 'params');
  const isResponse = has('result', 'error');
  return {
    kind: isRequest === isResponse ? undefined : isRequest ? 'request' : 'response',
    id: id !== undefined && isId(id) && ids.every((other) => isSame(id, other)) ? id : undefined,
  };
}

interface Member {
  readonly name: string;
  /** The raw value, if it is a scalar that is there as a whole. */
  readonly value: Uint8Array | undefined;
}

// One character for each byte, so that positions in the text are those in the bytes.
const LATIN1 = new TextDecoder('latin1');

/** A member, and its value if that is a scalar that another member or the end of the object follows. */
const NEXT_MEMBER =
  /[ \t\r]*"([^"\\]{1,40})"[ \t\r]*:(?:[ \t\r]*("(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]{0,40}|true|false|null)[ \t\r]*([,}]))?/dy;
/** The last member of an object, if its value is a scalar without escapes. */
const LAST_MEMBER =
  /,[ \t\r]*"([^"\\]{1,40})"[ \t\r]*:[ \t\r]*("[^"\\]*"|-?\d[\d.eE+-]{0,40}|true|false|null)[ \t\r]*$/d;

function membersAtStart(bytes: Uint8Array): Member[] {
  const text = LATIN1.decode(bytes);
  const members: Member[] = [];
  const start = /^[ \t\r]*\{/.exec(text);
  if (start === null) return members;
  for (let at = start[0].length; ; at = NEXT_MEMBER.lastIndex) {
    NEXT_MEMBER.lastIndex = at;
    const member = NEXT_MEMBER.exec(text);
    if (member === null) return members;
    members.push(memberOf(member, bytes));
    if (member[3] !== ',') return members;
  }
}

function membersAtEnd(bytes: Uint8Array): Member[] {
  let text = LATIN1.decode(bytes).replace(/[ \t\r]+$/, '');
  const members: Member[] = [];
  if (!text.endsWith('}')) return members;
  text = text.slice(0, -1);
  for (;;) {
    const member = LAST_MEMBER.exec(text);
    if (member === null) return members;
    members.push(memberOf(member, bytes));
    text = text.slice(0, member.index);
  }
}

function memberOf(match: RegExpExecArray, bytes: Uint8Array): Member {
  const span = match.indices?.[2];
  return { name: match[1] ?? '', value: span === undefined ? undefined : bytes.slice(span[0], span[1]) };
}

/** Whether a scalar starts as a string or a number. */
function isId(token: Uint8Array): boolean {
  return /^["\d-]/.test(LATIN1.decode(token.subarray(0, 1)));
}

function isSame(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, index) => byte === other[index]);
}
