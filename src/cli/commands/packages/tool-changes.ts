import { isDeepStrictEqual } from 'node:util';

/** Parsed tool definitions by name. */
export type Tools = ReadonlyMap<string, Readonly<Record<string, unknown>>>;

export interface ToolChanges {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  /** Names of changed tools, each with the members of its definition that differ. */
  readonly changed: readonly { readonly name: string; readonly members: readonly string[] }[];
}

/** Compares two sets of tools. The order of members and of tools does not matter. */
export function compareTools(before: Tools, after: Tools): ToolChanges {
  const changed = [...after].flatMap(([name, definition]) => {
    const earlier = before.get(name);
    if (earlier === undefined) return [];
    const keys = [...new Set([...Object.keys(earlier), ...Object.keys(definition)])];
    const members = keys.filter((key) => !isDeepStrictEqual(earlier[key], definition[key]));
    return members.length === 0 ? [] : [{ name, members }];
  });
  return {
    added: [...after.keys()].filter((name) => !before.has(name)),
    removed: [...before.keys()].filter((name) => !after.has(name)),
    changed,
  };
}
