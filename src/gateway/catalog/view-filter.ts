import type { ExposedList } from './exposed-list.js';
import type { ServerLists } from './server-lists.js';

/** The names of one tool. */
export interface ViewedTool {
  readonly key: string;
  readonly original: string;
  /** The name that the configuration gives to it, if another one. */
  readonly shown?: string | undefined;
  readonly exposed: string;
}

/** Which tools some clients see. */
export interface ViewFilter {
  /** Absent if they see all tools of their servers. */
  readonly showsTool?: (tool: ViewedTool) => boolean;
}

/** The tools of a server that clients of the view see. */
export function toolsInView(key: string, tools: ExposedList, { showsTool }: ViewFilter = {}): ExposedList {
  if (showsTool === undefined) return tools;
  const entries = tools.entries.filter(({ exposed, original }) =>
    showsTool({ key, original, shown: tools.renamed?.get(original), exposed }),
  );
  return entries.length === tools.entries.length ? tools : { ...tools, entries };
}

/** Whether clients of the view may call a tool, listed or not, by its original name. */
export function mayCall(
  { key, prefix, tools }: { readonly key: string; readonly prefix: string; readonly tools: ServerLists['tools'] },
  original: string,
  { showsTool }: ViewFilter,
): boolean {
  if (showsTool === undefined) return true;
  const listed = tools.entries.find((entry) => entry.original === original);
  const exposed = listed?.exposed ?? (prefix === '' ? original : `${prefix}__${original}`);
  return showsTool({ key, original, shown: tools.renamed?.get(original), exposed });
}
