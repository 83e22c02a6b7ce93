/**
 * How clients see the tools: all of them in the list (direct), a few and the tools to search the others with (search), or the
 * better of both for the client (auto).
 */
export type ListMode = 'direct' | 'search' | 'auto';

/** A client that shows its model a limited number of tools, and cannot search for the others. */
export interface LimitedClient {
  readonly title: string;
  /** Globs for the names that it tells in `initialize`. */
  readonly names: readonly string[];
  /** Largest number of tools that it shows. */
  readonly tools: number;
  /** The page that states the limit. */
  readonly source: string;
}

/** All other clients have no known limit, or search tools themselves, as Claude, Codex and Visual Studio Code do. */
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

/** Size of a list that is too large for a limited client, in tokens: a tenth of the context of a usual model. */
export const MAX_LIST_TOKENS = 20_000;

/** How a client sees the tools. */
export interface ListDecision {
  readonly mode: 'direct' | 'search';
  /** A clause for the status. */
  readonly because: string;
}
