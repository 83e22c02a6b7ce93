import type { ConfigChange, ToolLists, ToolRow } from '../server/contract.js';

/** How a change of the lists of its server changes a tool; null if none does. */
export function switchOf({ server, original, state }: ToolRow, lists: readonly ToolLists[]): 'hide' | 'show' | null {
  if (server === 'trunkline') return null;
  if (state === 'shown') return 'hide';
  if (state !== 'denied') return null;
  const { deny, allow } = listsOf(server, lists);
  // A pattern in `deny` is for a person to change. Without one, the tool is missing in `allow`.
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

function listsOf(server: string, lists: readonly ToolLists[]): Omit<ToolLists, 'server'> {
  return lists.find((each) => each.server === server) ?? { deny: [], allow: [] };
}
