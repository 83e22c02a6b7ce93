import { BACKSLASH, NOT_JSON, QUOTE } from '../json/json-string.js';
import { equalsAt, readText, toBytes } from '../json/json-text.js';

/** A watched member, or a member on the path to one. */
export interface WatchNode {
  readonly key: string;
  /** The key without escapes, with its quotes, as in nearly all messages. */
  readonly quotedKey: Uint8Array;
  slot: number;
  readonly members: WatchNode[];
  /** The members by the first byte of their keys. */
  readonly byFirst: (WatchNode[] | undefined)[];
}

function watchNode(key: string): WatchNode {
  return { key, quotedKey: toBytes(JSON.stringify(key)), slot: -1, members: [], byFirst: [] };
}

/**
 * Builds the tree of the paths. A path's index is its slot; members that are only on the way get the slots after those.
 */
export function buildTree(paths: readonly (readonly string[])[]): { root: WatchNode; size: number } {
  const root = watchNode('');
  paths.forEach((path, slot) => {
    let node = root;
    for (const key of path) {
      let member = node.members.find((candidate) => candidate.key === key);
      if (member === undefined) {
        member = watchNode(key);
        node.members.push(member);
        const first = key.charCodeAt(0);
        node.byFirst[first] = [...(node.byFirst[first] ?? []), member];
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
export function findPlain(node: WatchNode, bytes: Uint8Array, at: number): WatchNode | undefined {
  const candidates = node.byFirst[bytes[at + 1] ?? 0];
  if (candidates === undefined) return undefined;
  for (const member of candidates) {
    const { quotedKey } = member;
    // Many keys begin alike and differ in their length.
    if (bytes[at + quotedKey.length - 1] === QUOTE && equalsAt(bytes, at, quotedKey)) return member;
  }
  return undefined;
}

/** As `skipString`, but returns the position of the first backslash. */
export function skipPlain(bytes: Uint8Array, at: number): number {
  if (bytes[at] !== QUOTE) return NOT_JSON;
  for (let position = at + 1; ; position += 1) {
    const byte = bytes[position];
    if (byte === undefined || byte < 0x20) return NOT_JSON;
    if (byte === QUOTE) return position + 1;
    if (byte === BACKSLASH) return position;
  }
}

export function findEscaped(node: WatchNode, bytes: Uint8Array, quote: number, keyEnd: number): WatchNode | undefined {
  const key = JSON.parse(readText(bytes, { start: quote, end: keyEnd })) as string;
  return node.members.find((member) => member.key === key);
}
