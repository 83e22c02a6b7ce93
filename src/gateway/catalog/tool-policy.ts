import type { RequestRules } from '../../config/rules/request-rules.js';
import type { ListMode } from '../../spec/list-modes.js';
import type { ResultLimits, ToolFilter } from '../../spec/server-rules.js';
import { matchesGlob } from '../../wire/json/glob.js';
import { suggest } from '../../wire/json/suggest.js';
import { ownKeyOf } from '../../wire/mcp/exposed-name.js';

/** Returns whether a tool is allowed. Checked when a list is read, and before a call of a tool that may not be in such a list. */
export type ToolPolicy = (originalName: string) => boolean;

export function createToolPolicy({ allow, deny }: ToolFilter): ToolPolicy {
  return (name) => {
    const isAllowed = allow?.some((glob) => matchesGlob(glob, name)) ?? true;
    return isAllowed && !deny.some((glob) => matchesGlob(glob, name));
  };
}

/** A view of the configuration: some of the servers, and some of their tools. */
interface ViewRules {
  readonly name: string;
  /** Keys of the servers. Absent means all. */
  readonly servers?: readonly string[] | undefined;
  /** Globs for names such as `KEY__TOOL`. */
  readonly tools?: Partial<ToolFilter> | undefined;
  readonly results?: ResultLimits | undefined;
  readonly mode?: ListMode | undefined;
  readonly callRules?: RequestRules | undefined;
}

export interface NamedViewsOptions {
  readonly views: readonly ViewRules[];
  /** Globs for names of clients. A client that names no view gets the view of the first glob that matches its name. */
  readonly clients: readonly { readonly client: string; readonly view: string }[];
}

export interface NamedView extends ViewFilter {
  readonly name: string;
  /** A sentence that says why the view shows nothing. Absent if the configuration has the view. */
  readonly fault?: string | undefined;
  /** Limits that replace those of the servers. */
  readonly results?: ResultLimits | undefined;
  /** Absent if the mode of the gateway applies. */
  readonly mode?: ListMode | undefined;
  /** Rules on the requests of its clients, besides those of the servers. */
  readonly callRules?: RequestRules | undefined;
  showsServer(key: string): boolean;
}

export interface ViewFilter {
  /** Absent if they see all tools of their servers. */
  readonly showsTool?: (tool: ViewedTool) => boolean;
}

interface ViewedTool {
  readonly key: string;
  readonly original: string;
  /** New name of the tool, if the configuration renames it. */
  readonly shown?: string | undefined;
  readonly exposed: string;
}

/** The views of one configuration. `of` returns the same object for the same name, if the configuration has this view. */
export class NamedViews {
  readonly #views: ReadonlyMap<string, NamedView>;
  readonly #clients: readonly { readonly matches: (client: string) => boolean; readonly view: string }[];

  constructor({ views, clients }: NamedViewsOptions = { views: [], clients: [] }) {
    this.#views = new Map(views.map((rules) => [rules.name, toView(rules)]));
    this.#clients = clients.map(({ client, view }) => ({
      matches: createToolPolicy({ allow: [client], deny: [] }),
      view,
    }));
  }

  /** Whether the configuration has no views, so that all clients see the same. */
  get areNone(): boolean {
    return this.#views.size === 0;
  }

  /** The view of this name. If the configuration has none, the view shows nothing. */
  of(name: string): NamedView {
    return this.#views.get(name) ?? unknownView(name, [...this.#views.keys()]);
  }

  /** The name of the view for a client that names none; `undefined` if it sees everything. */
  nameFor(client: unknown): string | undefined {
    if (typeof client !== 'string') return undefined;
    return this.#clients.find(({ matches }) => matches(client))?.view;
  }
}

function toView({ name, servers, tools, results, mode, callRules }: ViewRules): NamedView {
  const keys = servers && new Set(servers);
  const view = { name, mode, results, callRules, showsServer: (key: string) => keys?.has(ownKeyOf(key)) ?? true };
  if (tools?.allow === undefined && tools?.deny === undefined) return view;
  const isAllowed = tools.allow === undefined ? () => true : createToolPolicy({ allow: tools.allow, deny: [] });
  // Checks all names of a tool, because a rule must apply even if the exposed name was shortened.
  const isDenied = createToolPolicy({ allow: tools.deny ?? [], deny: [] });
  const showsTool = (tool: ViewedTool) => {
    const names = namesOf(tool);
    return names.some(isAllowed) && !names.some(isDenied);
  };
  return { ...view, showsTool };
}

function namesOf({ key, original, shown = original, exposed }: ViewedTool): string[] {
  const own = ownKeyOf(key);
  return [exposed, `${own}__${original}`, `${own}__${shown}`];
}

function unknownView(name: string, known: readonly string[]): NamedView {
  const meant = suggest(name, known);
  const names = known.length === 0 ? 'It has no views.' : `It has these views: ${known.join(', ')}.`;
  const hint = meant === undefined ? '' : ` Did you mean \`${meant}\`?`;
  const fault = `The configuration has no view ${JSON.stringify(name)}, so this client sees no servers.${hint} ${names}`;
  return { name, fault, showsServer: () => false };
}

export function toolsInView<List extends ListedTools>(key: string, tools: List, { showsTool }: ViewFilter = {}): List {
  if (showsTool === undefined) return tools;
  const entries = tools.entries.filter(({ exposed, original }) =>
    showsTool({ key, original, shown: tools.renamed?.get(original), exposed }),
  );
  return entries.length === tools.entries.length ? tools : { ...tools, entries };
}

interface ListedTools {
  readonly entries: readonly { readonly exposed: string; readonly original: string }[];
  readonly renamed?: ReadonlyMap<string, string> | undefined;
}
