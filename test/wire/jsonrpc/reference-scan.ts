import { isDeepStrictEqual } from 'node:util';
import type { Envelope, Rejection, WatchedPaths } from '../../../src/wire/jsonrpc/envelope-scanner.js';

/**
 * What the scanner must say of a line, worked out the slow way: `JSON.parse` decides what is JSON, and a walk over the
 * tokens of the text finds what `JSON.parse` forgets, which is depth and duplicates.
 */
export interface Expected {
  readonly kind: 'request' | 'notification' | 'response' | 'rejected';
  readonly value: unknown;
}

export function expectedOf(bytes: Uint8Array, watch: WatchedPaths, maxDepth: number): Expected {
  let text: string;
  let value: unknown;
  try {
    text = UTF8.decode(bytes).replace(/^\uFEFF/, '');
    value = JSON.parse(text);
  } catch {
    return REJECTED;
  }
  if (!isRecord(value)) return REJECTED;
  const { depth, members } = walk(text);
  if (depth > maxDepth) return REJECTED;
  const paths = [...ROOT_MEMBERS.map((name) => [name]), ...Object.values(watch)];
  const guarded = new Set(paths.flatMap((path) => path.map((_, index) => JSON.stringify(path.slice(0, index + 1)))));
  const folded = new Set([...guarded].map(lastFolded));
  for (const [path, count] of members) {
    if (guarded.has(path) ? count > 1 : folded.has(lastFolded(path))) return REJECTED;
  }
  if (value.method === undefined && value.result === undefined && value.error !== undefined && !('id' in value))
    value = { ...value, id: null };
  if (isRecord(value) && value.id === null && String(value.method).startsWith('notifications/')) {
    const { id: _, ...notification } = value;
    value = notification;
  }
  return { kind: kindOf(value as Record<string, unknown>), value };
}

/** What is wrong with the scanner's answer, or `undefined`. */
export function findDifference(
  answer: Envelope<WatchedPaths> | Rejection,
  expected: Expected,
  watch: WatchedPaths,
): string | undefined {
  if (answer.kind !== expected.kind) return `is ${answer.kind}, not ${expected.kind}`;
  if (answer.kind === 'rejected') return undefined;
  const { value } = expected;
  const roots: readonly (readonly [string, unknown])[] =
    answer.kind === 'response'
      ? [
          ['id', answer.id],
          ['result', answer.result],
          ['error', answer.error],
        ]
      : [
          ['id', answer.kind === 'request' ? answer.id : undefined],
          ['params', answer.params],
        ];
  const spans = [
    ...roots.map(([name, span]) => [[name], span] as const),
    ...Object.entries(watch).map(([name, path]) => [path, answer.tokens[name]] as const),
  ];
  for (const [path, span] of spans) {
    const fault = compare(answer.bytes, span as Span | undefined, at(value, path));
    if (fault !== undefined) return `${path.join('.')} ${fault}`;
  }
  if (answer.kind !== 'response' && answer.method !== at(value, ['method'])?.value) return `method is ${answer.method}`;
  return compare(answer.bytes, answer.span, { value })?.replace(/^/, 'the message ');
}

/** A path whose last key is as readers see it that ignore case. */
function lastFolded(path: string): string {
  const keys = JSON.parse(path) as string[];
  const fold = (letter: string) => ({ ſ: 's', ı: 'i', '\u212a': 'k', İ: 'i' })[letter] ?? letter.toLowerCase();
  return JSON.stringify([...keys.slice(0, -1), [...(keys.at(-1) ?? '')].map(fold).join('')]);
}

interface Span {
  readonly start: number;
  readonly end: number;
}

function compare(bytes: Uint8Array, span: Span | undefined, there: { value: unknown } | undefined): string | undefined {
  if (span === undefined) return there === undefined ? undefined : 'was not found';
  if (there === undefined) return 'was found where there is none';
  const token = UTF8.decode(bytes.subarray(span.start, span.end));
  if (token !== token.trim()) return `has white space around it: ${JSON.stringify(token)}`;
  return isDeepStrictEqual(JSON.parse(token), there.value) ? undefined : `is another one: ${token}`;
}

function at(value: unknown, path: readonly string[]): { value: unknown } | undefined {
  let here = value;
  for (const key of path) {
    if (!isRecord(here) || !Object.hasOwn(here, key)) return undefined;
    here = here[key];
  }
  return { value: here };
}

function kindOf(message: Record<string, unknown>): Expected['kind'] {
  const has = (key: string) => Object.hasOwn(message, key);
  if (!has('jsonrpc') || message.jsonrpc !== '2.0') return 'rejected';
  const isIdentified = has('id') && (typeof message.id === 'string' || typeof message.id === 'number');
  if (has('method')) {
    if (typeof message.method !== 'string' || has('result') || has('error')) return 'rejected';
    if (!has('id')) return 'notification';
    return isIdentified ? 'request' : 'rejected';
  }
  if (!has('id') || has('result') === has('error')) return 'rejected';
  if (has('result')) return isIdentified ? 'response' : 'rejected';
  return isRecord(message.error) && (isIdentified || message.id === null) ? 'response' : 'rejected';
}

/** The deepest nesting, and how often each member reached through objects alone stands in the text. */
function walk(text: string): { depth: number; members: ReadonlyMap<string, number> } {
  const members = new Map<string, number>();
  /** For each open bracket the keys that lead to it, or `undefined` where nothing watched can be. */
  const open: (string[] | undefined)[] = [];
  let key: string | undefined;
  let depth = 0;
  let previous = '';
  for (const [token, literal] of text.matchAll(TOKENS)) {
    if (token === '{' || token === '[') {
      const parent = open.at(-1);
      const path = open.length === 0 ? [] : parent === undefined || key === undefined ? undefined : [...parent, key];
      open.push(token === '[' || (path?.length ?? 0) > LONGEST_PATH ? undefined : path);
      depth = Math.max(depth, open.length);
      key = undefined;
    } else if (token === '}' || token === ']') {
      open.pop();
      key = undefined;
    } else if (literal !== undefined && (previous === '{' || previous === ',') && open.at(-1) !== undefined) {
      key = JSON.parse(token) as string;
      const path = JSON.stringify([...(open.at(-1) ?? []), key]);
      members.set(path, (members.get(path) ?? 0) + 1);
    } else if (token === ',') {
      key = undefined;
    }
    previous = token;
  }
  return { depth, members };
}

const TOKENS = /("(?:[^"\\]|\\.)*")|[{}[\],:]|[^\s{}[\],:"]+/g;
const LONGEST_PATH = 8;
const ROOT_MEMBERS = ['jsonrpc', 'id', 'method', 'params', 'result', 'error'];
const REJECTED: Expected = { kind: 'rejected', value: undefined };
const UTF8 = new TextDecoder('utf-8', { ignoreBOM: true });

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
