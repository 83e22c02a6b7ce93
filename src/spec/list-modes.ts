/**
 * Form of the tool list for clients: all tools (`direct`); a few tools, and tools that search the others (`search`); or one of
 * both, chosen for each client (`auto`).
 */
export type ListMode = 'direct' | 'search' | 'auto';

/** A client that shows its model a limited number of tools, and cannot search for the others. */
export interface LimitedClient {
  readonly title: string;
  /** Globs for `clientInfo.name`. */
  readonly names: readonly string[];
  /** Largest number of tools that it shows. */
  readonly tools: number;
  /** The page that states the limit. */
  readonly source: string;
}

/** All clients with a known limit. Some others, such as Claude, Codex and Visual Studio Code, search tools themselves. */
export const LIMITED_CLIENTS: readonly LimitedClient[] = [
  {
    title: 'Cursor',
    names: ['cursor-vscode'],
    tools: 40,
    source: 'https://docs.cursor.com/context/mcp#limitations',
  },
  {
    title: 'Windsurf',
    names: ['windsurf-client', 'Windsurf'],
    tools: 100,
    source: 'https://docs.windsurf.com/windsurf/cascade/mcp',
  },
  {
    title: 'GitHub Copilot',
    names: ['JetBrains-*copilot*', 'Xcode-copilot*'],
    tools: 128,
    source: 'https://github.com/microsoft/copilot-intellij-feedback/issues/1842',
  },
];

/** Largest list of all tools for a limited client, in tokens: a tenth of the context of a usual model. */
export const MAX_LIST_TOKENS = 20_000;

export interface ListDecision {
  readonly mode: 'direct' | 'search';
  /** Reason, as a clause for the status. */
  readonly because: string;
}
