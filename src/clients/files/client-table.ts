import type { ClientLocation, ClientSystem, FoundServer } from './found-server.js';

/**
 * The facts about one client. Paths begin with a folder in braces that `client-locations.ts` resolves; a part of a path may
 * contain `*`.
 */
export interface Client {
  /** The stable name on command lines. */
  readonly client: string;
  /** The name for people. */
  readonly title: string;
  readonly format: ClientLocation['format'];
  /** The members that lead to the servers. */
  readonly path: readonly string[];
  /** The members that lead to the servers in another version of the client. */
  readonly otherPath?: readonly string[];
  /** Whether the servers are a list with names. */
  readonly isList?: boolean;
  /** How the client writes an entry. */
  readonly shape: Shape;
  readonly variables: FoundServer['variables'];
  /** The files of the user. A new entry goes into the first one that exists. */
  readonly user: OnSystems;
  /** Files of the user that are read and never written. */
  readonly alsoRead?: OnSystems;
  /** Files of a project, relative to its folder. */
  readonly project?: readonly string[];
  /** Folders and files that show that the client is installed, besides the folder of its file. */
  readonly signs?: readonly string[];
  /** Whether the client documents that the user creates the file, so that no other sign of it is needed. */
  readonly isCreatedByUsers?: boolean;
  /** Whether a file with servers alone would be no valid file of the client. */
  readonly needsFile?: boolean;
  /** The client's own program that changes the file: a running Claude Code rewrites its file all the time. */
  readonly program?: 'claude' | 'codex';
}

export type Shape = 'plain' | 'claude-code' | 'vscode' | 'codex' | 'gemini' | 'zed' | 'cline' | NotPlain;
/** Clients whose entries have other members than `command`, `args` and `env`. */
type NotPlain = 'opencode' | 'copilot' | 'goose' | 'continue' | 'kimi';

type OnSystems = readonly string[] | Readonly<Record<ClientSystem['platform'], readonly string[]>>;

const SERVERS = ['mcpServers'];
const JSON_SERVERS = { format: 'json', path: SERVERS, shape: 'plain' } as const;
const VS_CODE = {
  format: 'jsonc',
  path: ['servers'],
  shape: 'vscode',
  variables: 'vscode',
} as const;
const CLINE_FILE = 'saoudrizwan.claude-dev/settings/cline_mcp_settings.json';

/** All clients that Trunkline knows. `docs/clients.md` lists the same. */
export const CLIENTS: readonly Client[] = [
  {
    ...JSON_SERVERS,
    client: 'claude-desktop',
    title: 'Claude Desktop',
    variables: 'none',
    user: {
      darwin: ['{config}/Claude/claude_desktop_config.json'],
      linux: ['{config}/Claude/claude_desktop_config.json', '{config}/claude/claude_desktop_config.json'],
      // An MSIX package reads its own copy of the folder and ignores the other: anthropics/claude-code#26073.
      win32: [
        '{local}/Packages/Claude_*/LocalCache/Roaming/Claude/claude_desktop_config.json',
        '{config}/Claude/claude_desktop_config.json',
      ],
    },
    signs: ['{local}/Packages/Claude_*'],
    isCreatedByUsers: true,
  },
  {
    ...JSON_SERVERS,
    client: 'claude-code',
    title: 'Claude Code',
    shape: 'claude-code',
    variables: 'claude-code',
    user: ['{claude}/.claude.json'],
    project: ['.mcp.json'],
    signs: ['{home}/.claude'],
    program: 'claude',
  },
  {
    ...JSON_SERVERS,
    client: 'cursor',
    title: 'Cursor',
    variables: 'cursor',
    user: ['{home}/.cursor/mcp.json'],
    project: ['.cursor/mcp.json'],
    isCreatedByUsers: true,
  },
  {
    ...VS_CODE,
    client: 'vscode',
    title: 'VS Code',
    user: ['{config}/Code/User/mcp.json'],
    alsoRead: ['{config}/Code/User/profiles/*/mcp.json'],
    project: ['.vscode/mcp.json'],
  },
  {
    ...VS_CODE,
    client: 'vscode-insiders',
    title: 'VS Code Insiders',
    user: ['{config}/Code - Insiders/User/mcp.json'],
    alsoRead: ['{config}/Code - Insiders/User/profiles/*/mcp.json'],
  },
  {
    ...JSON_SERVERS,
    client: 'windsurf',
    title: 'Windsurf',
    variables: 'cursor',
    user: ['{home}/.codeium/windsurf/mcp_config.json'],
  },
  {
    ...JSON_SERVERS,
    client: 'windsurf-jetbrains',
    title: 'Windsurf for JetBrains',
    variables: 'cursor',
    user: ['{home}/.codeium/mcp_config.json'],
  },
  {
    client: 'codex',
    title: 'Codex',
    format: 'toml',
    path: ['mcp_servers'],
    shape: 'codex',
    variables: 'none',
    user: ['{codex}/config.toml'],
    project: ['.codex/config.toml'],
    program: 'codex',
  },
  {
    client: 'gemini',
    title: 'Gemini CLI',
    format: 'jsonc',
    path: SERVERS,
    shape: 'gemini',
    variables: 'gemini',
    user: ['{home}/.gemini/settings.json'],
    project: ['.gemini/settings.json'],
  },
  {
    ...JSON_SERVERS,
    client: 'antigravity',
    title: 'Antigravity',
    variables: 'none',
    user: ['{home}/.gemini/config/mcp_config.json', '{home}/.gemini/antigravity/mcp_config.json'],
  },
  {
    client: 'zed',
    title: 'Zed',
    format: 'jsonc',
    path: ['context_servers'],
    shape: 'zed',
    variables: 'none',
    user: {
      // Not the configuration folder of macOS.
      darwin: ['{xdg}/zed/settings.json'],
      linux: ['{xdg}/zed/settings.json'],
      win32: ['{config}/Zed/settings.json'],
    },
    project: ['.zed/settings.json'],
  },
  {
    ...JSON_SERVERS,
    client: 'cline',
    title: 'Cline for VS Code',
    shape: 'cline',
    variables: 'none',
    user: [`{config}/Code/User/globalStorage/${CLINE_FILE}`],
  },
  {
    ...JSON_SERVERS,
    client: 'cline-cursor',
    title: 'Cline for Cursor',
    shape: 'cline',
    variables: 'none',
    user: [`{config}/Cursor/User/globalStorage/${CLINE_FILE}`],
  },
  {
    ...JSON_SERVERS,
    client: 'cline-cli',
    title: 'Cline CLI',
    shape: 'cline',
    variables: 'none',
    user: ['{cline}/data/settings/cline_mcp_settings.json'],
    signs: ['{cline}'],
  },
  {
    client: 'opencode',
    title: 'OpenCode',
    format: 'jsonc',
    path: ['mcp'],
    otherPath: ['mcp', 'servers'],
    shape: 'opencode',
    variables: 'claude-code',
    user: {
      darwin: ['{xdg}/opencode/opencode.jsonc', '{xdg}/opencode/opencode.json'],
      linux: ['{xdg}/opencode/opencode.jsonc', '{xdg}/opencode/opencode.json'],
      win32: [
        '{xdg}/opencode/opencode.jsonc',
        '{xdg}/opencode/opencode.json',
        '{local}/opencode/opencode.jsonc',
        '{local}/opencode/opencode.json',
      ],
    },
    project: ['opencode.jsonc', 'opencode.json', '.opencode/opencode.jsonc', '.opencode/opencode.json'],
  },
  {
    ...JSON_SERVERS,
    client: 'copilot',
    title: 'GitHub Copilot CLI',
    shape: 'copilot',
    variables: 'claude-code',
    user: ['{copilot}/mcp-config.json'],
    // Earlier versions read it there if the variable XDG_CONFIG_HOME was set.
    alsoRead: ['{xdg}/copilot/mcp-config.json', '{xdg}/mcp-config.json'],
    project: ['.github/mcp.json'],
  },
  {
    client: 'goose',
    title: 'Goose',
    format: 'yaml',
    path: ['extensions'],
    shape: 'goose',
    needsFile: true,
    variables: 'claude-code',
    user: {
      darwin: ['{xdg}/goose/config.yaml'],
      linux: ['{xdg}/goose/config.yaml'],
      win32: ['{config}/Block/goose/config/config.yaml'],
    },
  },
  {
    ...JSON_SERVERS,
    client: 'kiro',
    title: 'Kiro',
    variables: 'claude-code',
    user: ['{home}/.kiro/settings/mcp.json'],
    project: ['.kiro/settings/mcp.json'],
    signs: ['{home}/.kiro'],
  },
  {
    ...JSON_SERVERS,
    client: 'lm-studio',
    title: 'LM Studio',
    variables: 'none',
    user: ['{home}/.lmstudio/mcp.json'],
  },
  {
    client: 'continue',
    title: 'Continue',
    format: 'yaml',
    path: SERVERS,
    isList: true,
    shape: 'continue',
    needsFile: true,
    variables: 'none',
    user: ['{home}/.continue/config.yaml'],
  },
  {
    client: 'amp',
    title: 'Amp',
    format: 'jsonc',
    path: ['amp.mcpServers'],
    shape: 'plain',
    variables: 'claude-code',
    user: ['{dot-config}/amp/settings.json'],
  },
  {
    ...JSON_SERVERS,
    client: 'kimi',
    title: 'Kimi Code',
    shape: 'kimi',
    variables: 'none',
    user: ['{kimi}/mcp.json'],
  },
  {
    client: 'grok',
    title: 'Grok Build',
    format: 'toml',
    path: ['mcp_servers'],
    shape: 'codex',
    variables: 'none',
    user: ['{grok}/config.toml'],
  },
];

export function clientNamed(name: string): Client | undefined {
  return CLIENTS.find(({ client }) => client === name);
}
