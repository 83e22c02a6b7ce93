import type { ClientSystem } from '../../../../src/setup/clients/files/found-server.js';

const AS = 'Library/Application Support';
const ROAMING = 'AppData/Roaming';
export const JSON_ENTRY = JSON.stringify({
  mcpServers: { files: { command: 'npx', args: ['-y', 'files'], env: { KEY: 'v' } } },
});
export const VS_CODE = `{
  // mine
  "inputs": [],
  "servers": { "files": { "type": "stdio", "command": "npx", "args": ["-y", "files"], "env": { "KEY": "v" } }, },
}`;
export const CODEX = `[mcp_servers.files]\ncommand = "npx"\nargs = ["-y", "files"]\nenv = { KEY = "v" }\n`;
export const ZED =
  '{ "context_servers": { "files": { "command": { "path": "npx", "args": ["-y", "files"], "env": { "KEY": "v" } } } } }';
export const OPENCODE =
  '{ "mcp": { "files": { "type": "local", "command": ["npx", "-y", "files"], "environment": { "KEY": "v" } } } }';
export const GOOSE = `extensions:
  developer:
    type: builtin
    name: developer
  files:
    type: stdio
    cmd: npx
    args: [-y, files]
    envs: { KEY: v }
`;
export const CONTINUE =
  'mcpServers:\n  - name: files\n    command: npx\n    args: [-y, files]\n    env:\n      KEY: v\n';
export const AMP =
  '{ "amp.mcpServers": { "files": { "command": "npx", "args": ["-y", "files"], "env": { "KEY": "v" } } } }';
const CLINE = 'globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json';

type Files = Readonly<Record<ClientSystem['platform'], string>>;
const everywhere = (file: string): Files => ({ darwin: file, linux: file, win32: file });
const onUnix = (file: string, win32: string): Files => ({ darwin: file, linux: file, win32 });
/** A file in the folder for configurations of the system. */
const inConfig = (file: string): Files => {
  return { darwin: `${AS}/${file}`, linux: `.config/${file}`, win32: `${ROAMING}/${file}` };
};
const LOCAL_OPENCODE = 'AppData/Local/opencode/opencode.json';
const DESKTOP = 'Claude/claude_desktop_config.json';

/** The file in which each client keeps the same server, on each system. */
const USER_FILES: readonly (readonly [string, Files, string])[] = [
  [
    'claude-desktop',
    { ...inConfig(DESKTOP), win32: `AppData/Local/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/${DESKTOP}` },
    JSON_ENTRY,
  ],
  ['claude-code', everywhere('.claude.json'), JSON_ENTRY],
  ['cursor', everywhere('.cursor/mcp.json'), JSON_ENTRY],
  ['vscode', inConfig('Code/User/mcp.json'), VS_CODE],
  ['vscode-insiders', inConfig('Code - Insiders/User/mcp.json'), VS_CODE],
  ['windsurf', everywhere('.codeium/windsurf/mcp_config.json'), JSON_ENTRY],
  ['windsurf-jetbrains', everywhere('.codeium/mcp_config.json'), JSON_ENTRY],
  ['codex', everywhere('.codex/config.toml'), CODEX],
  ['gemini', everywhere('.gemini/settings.json'), JSON_ENTRY],
  ['antigravity', everywhere('.gemini/antigravity/mcp_config.json'), JSON_ENTRY],
  ['zed', onUnix('.config/zed/settings.json', `${ROAMING}/Zed/settings.json`), ZED],
  ['cline', inConfig(`Code/User/${CLINE}`), JSON_ENTRY],
  ['cline-cli', everywhere('.cline/data/settings/cline_mcp_settings.json'), JSON_ENTRY],
  [
    'opencode',
    { ...inConfig('opencode/opencode.json'), darwin: '.config/opencode/opencode.jsonc', win32: LOCAL_OPENCODE },
    OPENCODE,
  ],
  ['copilot', everywhere('.copilot/mcp-config.json'), JSON_ENTRY],
  ['goose', onUnix('.config/goose/config.yaml', `${ROAMING}/Block/goose/config/config.yaml`), GOOSE],
  ['kiro', everywhere('.kiro/settings/mcp.json'), JSON_ENTRY],
  ['lm-studio', everywhere('.lmstudio/mcp.json'), JSON_ENTRY],
  ['continue', everywhere('.continue/config.yaml'), CONTINUE],
  ['amp', everywhere('.config/amp/settings.json'), AMP],
  ['kimi', everywhere('.kimi-code/mcp.json'), JSON_ENTRY],
  ['grok', everywhere('.grok/config.toml'), CODEX],
];
export const PLATFORMS = ['darwin', 'linux', 'win32'] as const;

/** The file of each client on a system, and its content. */
export function filesOn(platform: ClientSystem['platform']) {
  return USER_FILES.map(([client, files, content]) => ({ client, file: files[platform], content }));
}
