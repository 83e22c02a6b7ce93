import { isDeepStrictEqual } from 'node:util';

/** Definitions of tools by name, each as JSON. */
export type Tools = ReadonlyMap<string, Readonly<Record<string, unknown>>>;

export interface ToolChanges {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  /** With the members of the definition that differ. */
  readonly changed: readonly { readonly name: string; readonly members: readonly string[] }[];
}

/** What is different about the tools; the order of members and of tools is no difference. */
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
