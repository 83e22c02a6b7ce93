/*
 * The room of setting up, which `cli` alone uses. `clients/files` reads and changes the files of MCP clients, `clients/import` plans
 * which of their servers the configuration gets, and `doctor` finds what is wrong between the clients and the servers, as findings with
 * codes of `host/errors`. It prints nothing. Begin here, at the table of the clients; `doctor/finding.ts` begins the doctor.
 */

import type { ClientLocation, ClientSystem, FoundServer } from './found-server.js';

/** Paths begin with a folder in braces that `client-locations.ts` resolves; a part of a path may contain `*`. */
export interface KnownClient {
  /** The stable name on command lines. */
  readonly client: string;
  readonly title: string;
  readonly format: ClientLocation['format'];
  /** The members that lead to the servers. */
  readonly path: readonly string[];
  /** The members that lead to the servers in another version of the client. */
  readonly otherPath?: readonly string[];
  readonly isList?: boolean;
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
  /** The folder in which the client looks for the skills of its user. */
  readonly skills?: string;
  /** The client's own program that changes the file, because a running Claude Code rewrites its file all the time. */
  readonly program?: 'claude' | 'codex';
}

export type Shape = 'plain' | 'claude-code' | 'vscode' | 'codex' | 'gemini' | 'zed' | 'cline' | NotPlain;
/** Clients whose entries have other members than `command`, `args` and `env`. */
type NotPlain = 'opencode' | 'copilot' | 'goose' | 'continue' | 'kimi';

type OnSystems = readonly string[] | Readonly<Record<ClientSystem['platform'], readonly string[]>>;

const SERVERS = ['mcpServers'];
const CLINE_FILE = 'saoudrizwan.claude-dev/settings/cline_mcp_settings.json';

const OPENCODE_FILES = ['{xdg}/opencode/opencode.jsonc', '{xdg}/opencode/opencode.json'];

type Facts = Partial<Omit<KnownClient, 'client' | 'title' | 'user'>>;

/** A client with the usual file of JSON, apart from these facts. */
function client(name: string, title: string, user: OnSystems, facts: Facts = {}): KnownClient {
  return { client: name, title, user, format: 'json', path: SERVERS, shape: 'plain', variables: 'none', ...facts };
}

function onUnix(paths: readonly string[], win32: readonly string[]): OnSystems {
  return { darwin: paths, linux: paths, win32 };
}

function vsCode(name: string, title: string, folder: string, facts: Facts = {}): KnownClient {
  const alsoRead = [`${folder}/profiles/*/mcp.json`];
  const shape = { format: 'jsonc', path: ['servers'], shape: 'vscode', variables: 'vscode' } as const;
  return client(name, title, [`${folder}/mcp.json`], { ...shape, alsoRead, ...facts });
}

/** All clients that Trunkline knows. `docs/clients.md` lists the same. */
export const CLIENTS: readonly KnownClient[] = [
  client(
    'claude-desktop',
    'Claude Desktop',
    {
      darwin: ['{config}/Claude/claude_desktop_config.json'],
      linux: ['{config}/Claude/claude_desktop_config.json', '{config}/claude/claude_desktop_config.json'],
      // An MSIX package reads its own copy of the folder and ignores the other: anthropics/claude-code#26073.
      win32: [
        '{local}/Packages/Claude_*/LocalCache/Roaming/Claude/claude_desktop_config.json',
        '{config}/Claude/claude_desktop_config.json',
      ],
    },
    { signs: ['{local}/Packages/Claude_*'], isCreatedByUsers: true },
  ),
  client('claude-code', 'Claude Code', ['{claude}/.claude.json'], {
    shape: 'claude-code',
    variables: 'claude-code',
    project: ['.mcp.json'],
    signs: ['{home}/.claude'],
    skills: '{claude-folder}/skills',
    program: 'claude',
  }),
  client('cursor', 'Cursor', ['{home}/.cursor/mcp.json'], {
    variables: 'cursor',
    project: ['.cursor/mcp.json'],
    skills: '{home}/.cursor/skills',
    isCreatedByUsers: true,
  }),
  vsCode('vscode', 'VS Code', '{config}/Code/User', { project: ['.vscode/mcp.json'] }),
  vsCode('vscode-insiders', 'VS Code Insiders', '{config}/Code - Insiders/User'),
  client('windsurf', 'Windsurf', ['{home}/.codeium/windsurf/mcp_config.json'], { variables: 'cursor' }),
  client('windsurf-jetbrains', 'Windsurf for JetBrains', ['{home}/.codeium/mcp_config.json'], { variables: 'cursor' }),
  client('codex', 'Codex', ['{codex}/config.toml'], {
    format: 'toml',
    path: ['mcp_servers'],
    shape: 'codex',
    project: ['.codex/config.toml'],
    // Its folder for skills does not depend on CODEX_HOME.
    skills: '{home}/.agents/skills',
    program: 'codex',
  }),
  client('gemini', 'Gemini CLI', ['{home}/.gemini/settings.json'], {
    format: 'jsonc',
    shape: 'gemini',
    variables: 'gemini',
    project: ['.gemini/settings.json'],
    skills: '{home}/.gemini/skills',
  }),
  client('antigravity', 'Antigravity', [
    '{home}/.gemini/config/mcp_config.json',
    '{home}/.gemini/antigravity/mcp_config.json',
  ]),
  // Its folder on macOS is not the configuration folder of macOS.
  client('zed', 'Zed', onUnix(['{xdg}/zed/settings.json'], ['{config}/Zed/settings.json']), {
    format: 'jsonc',
    path: ['context_servers'],
    shape: 'zed',
    project: ['.zed/settings.json'],
  }),
  client('cline', 'Cline for VS Code', [`{config}/Code/User/globalStorage/${CLINE_FILE}`], { shape: 'cline' }),
  client('cline-cursor', 'Cline for Cursor', [`{config}/Cursor/User/globalStorage/${CLINE_FILE}`], { shape: 'cline' }),
  client('cline-cli', 'Cline CLI', ['{cline}/data/settings/cline_mcp_settings.json'], {
    shape: 'cline',
    signs: ['{cline}'],
  }),
  client(
    'opencode',
    'OpenCode',
    onUnix(OPENCODE_FILES, [...OPENCODE_FILES, '{local}/opencode/opencode.jsonc', '{local}/opencode/opencode.json']),
    {
      format: 'jsonc',
      path: ['mcp'],
      otherPath: ['mcp', 'servers'],
      shape: 'opencode',
      variables: 'claude-code',
      project: ['opencode.jsonc', 'opencode.json', '.opencode/opencode.jsonc', '.opencode/opencode.json'],
      skills: '{xdg}/opencode/skills',
    },
  ),
  client('copilot', 'GitHub Copilot CLI', ['{copilot}/mcp-config.json'], {
    shape: 'copilot',
    variables: 'claude-code',
    // Earlier versions read it there if the variable XDG_CONFIG_HOME was set.
    alsoRead: ['{xdg}/copilot/mcp-config.json', '{xdg}/mcp-config.json'],
    project: ['.github/mcp.json'],
    skills: '{copilot}/skills',
  }),
  client('goose', 'Goose', onUnix(['{xdg}/goose/config.yaml'], ['{config}/Block/goose/config/config.yaml']), {
    format: 'yaml',
    path: ['extensions'],
    shape: 'goose',
    needsFile: true,
    variables: 'claude-code',
  }),
  client('kiro', 'Kiro', ['{home}/.kiro/settings/mcp.json'], {
    variables: 'claude-code',
    project: ['.kiro/settings/mcp.json'],
    signs: ['{home}/.kiro'],
  }),
  client('lm-studio', 'LM Studio', ['{home}/.lmstudio/mcp.json']),
  client('continue', 'Continue', ['{home}/.continue/config.yaml'], {
    format: 'yaml',
    isList: true,
    shape: 'continue',
    needsFile: true,
  }),
  client('amp', 'Amp', ['{dot-config}/amp/settings.json'], {
    format: 'jsonc',
    path: ['amp.mcpServers'],
    variables: 'claude-code',
  }),
  client('kimi', 'Kimi Code', ['{kimi}/mcp.json'], { shape: 'kimi' }),
  client('grok', 'Grok Build', ['{grok}/config.toml'], { format: 'toml', path: ['mcp_servers'], shape: 'codex' }),
];

export function clientNamed(name: string): KnownClient | undefined {
  return CLIENTS.find(({ client }) => client === name);
}
