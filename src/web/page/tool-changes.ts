import type { ConfigChange, ToolLists, ToolRow } from '../server/contract.js';

/** Whether a change of `tools.deny` or `tools.allow` of its server can hide or show a tool; null if it can do neither. */
export function switchOf({ server, original, state }: ToolRow, lists: readonly ToolLists[]): 'hide' | 'show' | null {
  if (server === 'trunkline') return null;
  if (state === 'shown') return 'hide';
  if (state !== 'denied') return null;
  const { deny, allow } = listsOf(server, lists);
  // If a pattern in `deny` hides the tool, a person has to change the pattern. If `deny` is empty, `allow` lacks the tool.
  return deny.includes(original) || (deny.length === 0 && allow.length > 0) ? 'show' : null;
}

/** The change of the configuration that hides or shows tools: one entry for each of their servers. */
export function changesFor(
  way: 'hide' | 'show',
  tools: readonly ToolRow[],
  lists: readonly ToolLists[],
): readonly ConfigChange[] {
  const own = tools.filter((tool) => switchOf(tool, lists) === way);
  const servers = [...new Set(own.map(({ server }) => server))];
  return servers.map((server) => {
    const names = own.flatMap((tool) => (tool.server === server ? tool.original : []));
    const { deny, allow } = listsOf(server, lists);
    if (way === 'hide') return { server, deny: [...deny, ...names] };
    return deny.length > 0
      ? { server, deny: deny.filter((each) => !names.includes(each)) }
      : { server, allow: [...allow, ...names] };
  });
}

function listsOf(
  server: string,
  lists: readonly ToolLists[],
): { readonly deny: readonly string[]; readonly allow: readonly string[] } {
  return lists.find((each) => each.server === server) ?? { deny: [], allow: [] };
}
