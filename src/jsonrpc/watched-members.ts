import { BACKSLASH, NOT_JSON, QUOTE } from '../json/json-string.js';
import { readText, toBytes } from '../json/json-text.js';

/** One member that is watched, or that leads to one. */
export interface WatchNode {
  readonly key: string;
  /** The key as it stands in most messages, quotes included. */
  readonly spelling: Uint8Array;
  slot: number;
  readonly members: WatchNode[];
  /** The members by the first byte of their keys. */
  readonly byFirst: (WatchNode[] | undefined)[];
}

function watchNode(key: string): WatchNode {
  return { key, spelling: toBytes(JSON.stringify(key)), slot: -1, members: [], byFirst: [] };
}

/** A path's position in the list is its slot; members that only lead to others get the slots behind. */
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

/** The member whose key starts at `at`, if it is spelt as usual: most are, and need not be looked at twice. */
export function findPlain(node: WatchNode, bytes: Uint8Array, at: number): WatchNode | undefined {
  const candidates = node.byFirst[bytes[at + 1] ?? 0];
  if (candidates === undefined) return undefined;
  for (const member of candidates) if (equalsAt(bytes, at, member.spelling)) return member;
  return undefined;
}

/** As `skipString`, but stops at a backslash. */
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

export function equalsAt(bytes: Uint8Array, at: number, expected: Uint8Array): boolean {
  for (let index = 0; index < expected.length; index += 1) {
    if (bytes[at + index] !== expected[index]) return false;
  }
  return true;
}
