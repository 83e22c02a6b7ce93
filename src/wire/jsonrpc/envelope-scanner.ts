import { REMOVED, rewriteObject } from '../json/edit-members.js';
import { BACKSLASH, NOT_JSON, QUOTE, skipString } from '../json/json-string.js';
import {
  CLOSE_BRACE,
  COMMA,
  equalsAt,
  foldKey,
  isNumber,
  isObject,
  isString,
  OPEN_BRACE,
  OPEN_BRACKET,
  readString,
  readText,
  type Span,
  skipColon,
  skipValue,
  skipWhitespace,
  TOO_DEEP,
  toBytes,
  visitElements,
} from '../json/json-text.js';

/**
 * Finds the envelope of a JSON-RPC message in its bytes, in any order of the members, without building the payload.
 *
 * The rules: the line must be valid for `JSON.parse`. A key with escapes counts as its decoded form. A line is rejected if a watched
 * member, or a member on the path to one, is duplicated, because sender and receiver could take different ones; other duplicates are
 * allowed. A line is also rejected if a key beside a watched member differs from that member's key in case only, because many receivers
 * ignore case. `jsonrpc` must be "2.0", a request's id a string or a number, and an answer must have either a result or an error.
 *
 * Four common faults are repaired as widely used JSON readers repair them. A repaired message has bytes of its own, except for the first
 * fault: a byte order mark before the line is skipped; bytes that are not UTF-8 become U+FFFD; a notification loses an id that is `null`;
 * an error without an id has the id `null`.
 */
export class EnvelopeScanner<Paths extends WatchedPaths> {
  readonly #root: WatchNode;
  readonly #names: readonly (keyof Paths)[];
  /** By slot; -1 for an absent member. */
  readonly #starts: Int32Array;
  readonly #ends: Int32Array;
  /** The slots of the members that were found, in the order of the message. */
  readonly #slots: number[];
  #foundCount = 0;
  /** The first key that differs from a watched one in case only. */
  #lookalike: string | undefined;
  readonly #noTokens: Tokens<Paths>;
  readonly #maxDepth: number;
  readonly #isUtf8: (bytes: Uint8Array) => boolean;
  readonly #maxElements: number;
  /** The bytes that the last line was in, and whether they are valid UTF-8 as a whole. */
  #chunk: Uint8Array | undefined;
  #isTrusted = false;

  constructor({ watch, maxDepth, maxElements, isUtf8 }: ScannerOptions<Paths>) {
    this.#names = Object.keys(watch);
    const { root, size } = buildTree([...ROOT_MEMBERS, ...Object.values(watch)]);
    this.#root = root;
    this.#starts = new Int32Array(size).fill(ABSENT);
    this.#ends = new Int32Array(size);
    this.#slots = new Array<number>(size).fill(0);
    const absent = Object.fromEntries(this.#names.map((name) => [name, undefined]));
    this.#noTokens = Object.freeze(Object.create(absent) as Tokens<Paths>);
    this.#maxDepth = maxDepth;
    this.#maxElements = maxElements;
    this.#isUtf8 = isUtf8;
  }

  /** Scans all of the bytes, or the line from `start` to `end` in them. */
  scan(bytes: Uint8Array, start = 0, end = bytes.length): Envelope<Paths> | Rejection {
    if (start === 0 && end === bytes.length) return this.#scanAll(bytes);
    return this.#scanAmong(bytes, start, end) ?? this.#scanAll(bytes.subarray(start, end));
  }

  /**
   * Scans a line that shares its bytes with others, without a view of the line and a check of its encoding. Returns
   * `undefined` unless the line is a valid message without white space around it, as most lines are.
   */
  #scanAmong(bytes: Uint8Array, start: number, end: number): Envelope<Paths> | undefined {
    if (bytes !== this.#chunk) {
      this.#chunk = bytes;
      // If the bytes are valid UTF-8 as a whole, so is every line.
      this.#isTrusted = this.#isUtf8(bytes);
    }
    if (!this.#isTrusted || bytes[start] !== OPEN_BRACE) return undefined;
    this.#clear();
    const isRead = this.#scanObject(bytes, start, this.#root, this.#maxDepth - 1) === end;
    const message = isRead ? this.#classify(bytes, { start, end }) : undefined;
    if (message?.kind !== 'rejected' && message !== undefined) return message;
    // The scan of a line without an end continues into the next lines. That must not happen again for each next line.
    this.#isTrusted = false;
    return undefined;
  }

  #scanAll(bytes: Uint8Array): Envelope<Paths> | Rejection {
    const start = skipWhitespace(bytes, equalsAt(bytes, 0, BOM) ? BOM.length : 0);
    if (start === bytes.length) return { kind: 'rejected', reason: 'blank', bytes, id: undefined, isAnswer: false };
    if (bytes[start] !== OPEN_BRACE) return this.#rejectNonObject(bytes, start);

    this.#clear();
    const end = this.#scanObject(bytes, start, this.#root, this.#maxDepth - 1);
    if (end < 0) return this.#reject(FAULTS[-end] ?? 'not-json', bytes);
    if (skipWhitespace(bytes, end) !== bytes.length) return this.#reject('not-json', bytes);
    if (!this.#isUtf8(bytes)) return this.#scanAll(asUtf8(bytes));
    return this.#classify(bytes, { start, end });
  }

  #rejectNonObject(bytes: Uint8Array, start: number): Envelope<Paths> | Rejection {
    const rejection = { kind: 'rejected', bytes, id: undefined, isAnswer: false } as const;
    if (bytes[start] !== OPEN_BRACKET) {
      const end = skipValue(bytes, start, this.#maxDepth);
      const isValue = end >= 0 && skipWhitespace(bytes, end) === bytes.length;
      return { ...rejection, reason: isValue ? 'not-an-object' : 'not-json' };
    }
    const elements: Span[] = [];
    let count = 0;
    const end = visitElements(bytes, start, this.#maxDepth - 1, (element) => {
      count += 1;
      if (count <= this.#maxElements) elements.push(element);
    });
    if (end === TOO_DEEP) return { ...rejection, reason: 'too-deep' };
    if (end < 0 || skipWhitespace(bytes, end) !== bytes.length) return { ...rejection, reason: 'not-json' };
    if (!this.#isUtf8(bytes)) return this.#scanAll(asUtf8(bytes));
    return count > this.#maxElements
      ? { ...rejection, reason: 'batch-too-long' }
      : { ...rejection, reason: 'batch', elements };
  }

  #reject(reason: RejectionReason, bytes: Uint8Array): Rejection {
    const id = this.#span(ID);
    const isIdentified = id !== undefined && isIdToken(bytes, id) && this.#isUtf8(bytes.subarray(id.start, id.end));
    const hasPayload = this.#isPresent(RESULT) || this.#isPresent(ERROR);
    // A whole object without a method can only be an answer. In half a line, the payload decides.
    const isWhole = reason === 'not-json-rpc' || reason === 'lookalike-member';
    const isAnswer = (isWhole || hasPayload) && !this.#isPresent(METHOD);
    const lookalike = reason === 'lookalike-member' ? this.#lookalike : undefined;
    return { kind: 'rejected', reason, bytes, id: isIdentified ? id : undefined, isAnswer, lookalike };
  }

  #classify(bytes: Uint8Array, span: Span): Envelope<Paths> | Rejection {
    const version = this.#span(JSONRPC);
    if (version === undefined || !isVersion(bytes, version)) {
      return this.#reject('not-json-rpc', bytes);
    }
    if (this.#lookalike !== undefined) return this.#reject('lookalike-member', bytes);
    const id = this.#span(ID);
    const method = this.#span(METHOD);
    const result = this.#span(RESULT);
    const error = this.#span(ERROR);
    const isIdentified = id !== undefined && isIdToken(bytes, id);

    if (method !== undefined) {
      const isCall = isString(bytes, method) && result === undefined && error === undefined;
      if (isCall && id !== undefined && isNull(bytes, id) && readString(bytes, method).startsWith(NOTIFICATION))
        return this.#scanAll(withoutId(bytes, span));
      if (!isCall || (id !== undefined && !isIdentified)) return this.#reject('not-json-rpc', bytes);
      const name = readString(bytes, method);
      const params = this.#span(PARAMS);
      const tokens = this.#tokens();
      return id === undefined
        ? { kind: 'notification', method: name, params, bytes, span, tokens }
        : { kind: 'request', id, method: name, params, bytes, span, tokens };
    }
    // An error may have a null id, if the peer could not read the id of the request.
    if (id === undefined && result === undefined && error !== undefined) return this.#scanAll(withNullId(bytes, span));
    const isAnswer = id !== undefined && (result === undefined) !== (error === undefined);
    if (!isAnswer || !(isIdentified || (error !== undefined && isNull(bytes, id)))) {
      return this.#reject('not-json-rpc', bytes);
    }
    if (error !== undefined && !isObject(bytes, error)) return this.#reject('not-json-rpc', bytes);
    return { kind: 'response', id, result, error, bytes, span, tokens: this.#tokens() };
  }

  /** A message has few of the watched members, and most answers have none, so absent members are inherited. */
  #tokens(): Tokens<Paths> {
    let tokens: { [Name in keyof Paths]?: Span | undefined } | undefined;
    for (let index = 0; index < this.#foundCount; index += 1) {
      const slot = this.#slots[index] ?? 0;
      const name = slot < ROOT_MEMBERS.length ? undefined : this.#names[slot - ROOT_MEMBERS.length];
      if (name === undefined) continue;
      tokens ??= Object.create(this.#noTokens) as Tokens<Paths>;
      tokens[name] = this.#span(slot);
    }
    return (tokens ?? this.#noTokens) as Tokens<Paths>;
  }

  #isPresent(slot: number): boolean {
    return this.#starts[slot] !== ABSENT;
  }

  #span(slot: number): Span | undefined {
    const start = this.#starts[slot] ?? ABSENT;
    return start === ABSENT ? undefined : { start, end: this.#ends[slot] ?? 0 };
  }

  #clear(): void {
    for (let index = 0; index < this.#foundCount; index += 1) this.#starts[this.#slots[index] ?? 0] = ABSENT;
    this.#foundCount = 0;
    this.#lookalike = undefined;
  }

  /** Returns the position after the object that starts at `at`, or a negative fault. Notes the spans of the members that `node` watches. */
  #scanObject(bytes: Uint8Array, at: number, node: WatchNode, depth: number): number {
    let position = skipWhitespace(bytes, at + 1);
    if (bytes[position] === CLOSE_BRACE) return position + 1;
    for (;;) {
      let member = findPlain(node, bytes, position);
      if (member === undefined) {
        const key = position;
        position = skipPlain(bytes, key);
        if (position > 0 && !isPlain(bytes[position])) {
          position = skipString(bytes, key);
          const name = position < 0 ? '' : (JSON.parse(readText(bytes, { start: key, end: position })) as string);
          member = node.members.find((each) => each.key === name);
          if (member === undefined && node.folded.has(foldKey(name))) this.#lookalike ??= name;
        } else if (looksLike(node, bytes, key, position)) {
          this.#lookalike ??= readString(bytes, { start: key, end: position });
        }
      } else {
        position += member.quotedKey.length;
      }
      position = position < 0 ? position : skipColon(bytes, position);
      if (position < 0) return position;

      const start = position;
      if (member === undefined) {
        position = skipValue(bytes, start, depth);
      } else {
        if (this.#isPresent(member.slot)) return DUPLICATE_MEMBER;
        this.#slots[this.#foundCount] = member.slot;
        this.#foundCount += 1;
        // Noted before the value is scanned, so that a fault in the value does not hide that the member is present.
        this.#starts[member.slot] = 0;
        this.#ends[member.slot] = 0;
        position = this.#scanMember(bytes, start, member, depth);
        if (position >= 0) {
          this.#starts[member.slot] = start;
          this.#ends[member.slot] = position;
        }
      }
      if (position < 0) return position;

      position = skipWhitespace(bytes, position);
      if (bytes[position] === CLOSE_BRACE) return position + 1;
      if (bytes[position] !== COMMA) return NOT_JSON;
      position = skipWhitespace(bytes, position + 1);
    }
  }

  #scanMember(bytes: Uint8Array, at: number, member: WatchNode, depth: number): number {
    if (member.members.length === 0 || bytes[at] !== OPEN_BRACE) return skipValue(bytes, at, depth);
    return depth === 0 ? TOO_DEEP : this.#scanObject(bytes, at, member, depth - 1);
  }
}

function isVersion(bytes: Uint8Array, version: Span): boolean {
  const isAsUsual = version.end - version.start === VERSION.length && equalsAt(bytes, version.start, VERSION);
  // The string may contain escapes.
  return isAsUsual || (isString(bytes, version) && readString(bytes, version) === '2.0');
}

const VERSION = toBytes('"2.0"');

/** A byte order mark, which writers of .NET put before their first line. */
const BOM = Uint8Array.of(0xef, 0xbb, 0xbf);

/** Copies a line. Bytes that are not UTF-8 become U+FFFD, and never a quote, so the JSON stays as valid as it was. */
function asUtf8(bytes: Uint8Array): Uint8Array {
  return toBytes(DECODER.decode(bytes));
}

/** Beginning of the methods of MCP that are never requests. */
const NOTIFICATION = 'notifications/';
const DECODER = new TextDecoder('utf-8', { ignoreBOM: true });

function withoutId(bytes: Uint8Array, span: Span): Uint8Array {
  return rewriteObject(bytes, span, { change: (name) => (name === 'id' ? REMOVED : undefined) });
}

function withNullId(bytes: Uint8Array, { start, end }: Span): Uint8Array {
  return toBytes(`{"id":null,${readText(bytes, { start: start + 1, end })}`);
}

function isIdToken(bytes: Uint8Array, id: Span): boolean {
  return isString(bytes, id) || isNumber(bytes, id);
}

function isNull(bytes: Uint8Array, { start }: Span): boolean {
  return bytes[start] === 0x6e;
}

const ABSENT = -1;

const DUPLICATE_MEMBER = -3;
/** Indexed by the negated fault. */
const FAULTS: readonly (RejectionReason | undefined)[] = [undefined, 'not-json', 'too-deep', 'duplicate-member'];

const ROOT_MEMBERS = [['jsonrpc'], ['id'], ['method'], ['params'], ['result'], ['error']] as const;
const JSONRPC = 0;
const ID = 1;
const METHOD = 2;
const PARAMS = 3;
const RESULT = 4;
const ERROR = 5;

/** A watched member, or a member on the path to one. */
interface WatchNode {
  readonly key: string;
  /** The key without escapes, with its quotes, as in nearly all messages. */
  readonly quotedKey: Uint8Array;
  slot: number;
  readonly members: WatchNode[];
  /** The members by the first byte of their keys. */
  readonly byFirst: (WatchNode[] | undefined)[];
  /** The members by the length of their quoted keys. */
  readonly byLength: (WatchNode[] | undefined)[];
  /** The keys of the members as `foldKey` returns them. */
  readonly folded: Set<string>;
}

function watchNode(key: string): WatchNode {
  const quotedKey = toBytes(JSON.stringify(key));
  return { key, quotedKey, slot: -1, members: [], byFirst: [], byLength: [], folded: new Set() };
}

/** Builds the tree of the paths. A path's index is its slot. Members that are only on the way to one get the next slots. */
function buildTree(paths: readonly (readonly string[])[]): { root: WatchNode; size: number } {
  const root = watchNode('');
  paths.forEach((path, slot) => {
    let node = root;
    for (const key of path) {
      let member = node.members.find((candidate) => candidate.key === key);
      if (member === undefined) {
        member = watchNode(key);
        node.members.push(member);
        const first = key.charCodeAt(0);
        const { length } = member.quotedKey;
        node.byFirst[first] = [...(node.byFirst[first] ?? []), member];
        node.byLength[length] = [...(node.byLength[length] ?? []), member];
        node.folded.add(foldKey(key));
      }
      node = member;
    }
    node.slot = slot;
  });
  let size = paths.length;
  const numberRest = (node: WatchNode): void => {
    for (const member of node.members) {
      if (member.slot < 0) {
        member.slot = size;
        size += 1;
      }
      numberRest(member);
    }
  };
  numberRest(root);
  return { root, size };
}

/** Returns the member whose key, without escapes, starts at `at`. Nearly all keys have none. */
function findPlain(node: WatchNode, bytes: Uint8Array, at: number): WatchNode | undefined {
  const candidates = node.byFirst[bytes[at + 1] ?? 0];
  if (candidates === undefined) return undefined;
  for (const member of candidates) {
    const { quotedKey } = member;
    // Many keys begin alike and differ in their length.
    if (bytes[at + quotedKey.length - 1] === QUOTE && equalsAt(bytes, at, quotedKey)) return member;
  }
  return undefined;
}

/** Whether a key of ASCII characters, with its quotes, differs from the key of a member in case only. */
function looksLike({ byLength }: WatchNode, bytes: Uint8Array, start: number, end: number): boolean {
  for (const { quotedKey } of byLength[end - start] ?? NO_NODES) {
    let at = 1;
    while (at < quotedKey.length && lower(bytes[start + at]) === lower(quotedKey[at])) at += 1;
    if (at === quotedKey.length) return true;
  }
  return false;
}

const NO_NODES: readonly WatchNode[] = [];

function lower(byte = 0): number {
  return byte >= 0x41 && byte <= 0x5a ? byte + 0x20 : byte;
}

/** As `skipString`, but returns the position of the first backslash, or of the first byte that is not ASCII. */
function skipPlain(bytes: Uint8Array, at: number): number {
  if (bytes[at] !== QUOTE) return NOT_JSON;
  for (let position = at + 1; ; position += 1) {
    const byte = bytes[position];
    if (byte === undefined || byte < 0x20) return NOT_JSON;
    if (byte === QUOTE) return position + 1;
    if (!isPlain(byte)) return position;
  }
}

function isPlain(byte = 0): boolean {
  return byte !== BACKSLASH && byte < 0x80;
}

/**
 * The members that the scanner locates in a message: a name for each path from the root, through objects only.
 *
 * The scanner skips everything else and builds no values.
 */
export type WatchedPaths = Readonly<Record<string, readonly string[]>>;

/** The positions of the watched members in one message; `undefined` for absent ones. */
type Tokens<Paths extends WatchedPaths> = { readonly [Name in keyof Paths]: Span | undefined };

interface Common<Paths extends WatchedPaths> {
  /** The bytes that the spans refer to: the line, or everything that was read with it. */
  readonly bytes: Uint8Array;
  /** The message itself, without white space around it. */
  readonly span: Span;
  readonly tokens: Tokens<Paths>;
}

export interface RequestEnvelope<Paths extends WatchedPaths> extends Common<Paths> {
  readonly kind: 'request';
  readonly id: Span;
  readonly method: string;
  readonly params: Span | undefined;
}

export interface NotificationEnvelope<Paths extends WatchedPaths> extends Common<Paths> {
  readonly kind: 'notification';
  readonly method: string;
  readonly params: Span | undefined;
}

/** Exactly one of `result` and `error` is present. */
export interface ResponseEnvelope<Paths extends WatchedPaths> extends Common<Paths> {
  readonly kind: 'response';
  readonly id: Span;
  readonly result: Span | undefined;
  readonly error: Span | undefined;
}

/** A line that is not a valid message. */
export interface Rejection {
  readonly kind: 'rejected';
  readonly reason: RejectionReason;
  readonly bytes: Uint8Array;
  /** The id at the root, a string or a number, if there is one before the fault. */
  readonly id: Span | undefined;
  /** Whether the line is an answer to a request, as far as it could be read. */
  readonly isAnswer: boolean;
  /** The key that differs from a watched one in case only, if that is the reason. */
  readonly lookalike?: string | undefined;
  /** The elements of a batch. Absent if the line is not a batch. */
  readonly elements?: readonly Span[];
}

type RejectionReason =
  | 'not-json'
  | 'too-deep'
  | 'batch-too-long'
  | 'blank'
  | 'not-an-object'
  | 'batch'
  | 'duplicate-member'
  | 'lookalike-member'
  | 'not-json-rpc';

export type Envelope<Paths extends WatchedPaths> =
  | RequestEnvelope<Paths>
  | NotificationEnvelope<Paths>
  | ResponseEnvelope<Paths>;

/** The id of a message as raw JSON: a view of the message's memory. */
export function rawId({ bytes, id }: { readonly bytes: Uint8Array; readonly id: Span }): Uint8Array {
  return bytes.subarray(id.start, id.end);
}

interface ScannerOptions<Paths extends WatchedPaths> {
  readonly watch: Paths;
  /** The most levels of nesting in a line. */
  readonly maxDepth: number;
  /** The most elements in a batch. */
  readonly maxElements: number;
  readonly isUtf8: (bytes: Uint8Array) => boolean;
}
