import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseText } from '../files/edit/parse-text.js';
import { isRecord } from '../json/is-record.js';
import { type Finding, finding } from './finding.js';
import { type Machine, variableOf } from './machine.js';
import { type Registration, titleOf } from './registrations.js';

/** Settings of clients that forbid Trunkline, or that keep its entry from being used. */
export function checkClientSettings(registrations: readonly Registration[], machine: Machine): Finding[] {
  return registrations.flatMap((registration) => {
    switch (registration.server.place.client) {
      case 'claude-code':
        return checkClaudeCode(registration, machine);
      case 'vscode':
      case 'vscode-insiders':
        return checkVsCode(registration);
      default:
        return [];
    }
  });
}

/** A file with settings, as far as it can be read. */
interface Settings {
  readonly file: string;
  readonly values: Readonly<Record<string, unknown>>;
}

function checkClaudeCode(registration: Registration, machine: Machine): Finding[] {
  const { home, cwd, env } = machine;
  const { place, name } = registration.server;
  const folder = env.CLAUDE_CONFIG_DIR ?? join(home, '.claude');
  const project = place.scope === 'project' ? dirname(place.file) : cwd;
  const own = ['settings.json', 'settings.local.json'].map((each) => join(project, '.claude', each));
  const managed = settingsIn(join(managedFolder(machine), 'managed-settings.json'));
  const all = [...managed, ...[join(folder, 'settings.json'), ...own].flatMap(settingsIn)];
  // The file of the user has what was decided in each project.
  const state = settingsIn(join(env.CLAUDE_CONFIG_DIR ?? home, '.claude.json')).map(({ file, values }) => {
    return { file, values: memberOf(memberOf(values, 'projects'), project) };
  });
  const denying = [
    ...all.filter(({ values }) => denies(values, registration)),
    ...managed.filter(({ values }) => !allows(values, registration)),
    ...state.filter(({ values }) => listHas(values.disabledMcpServers, name)),
    // With this file, Claude Code uses the servers of the administrator only.
    ...settingsIn(join(managedFolder(machine), 'managed-mcp.json')),
  ];
  const title = titleOf(registration);
  if (denying.length > 0) {
    const evidence = [...new Set(denying.map(({ file }) => file))];
    return [finding('TL-CLIENT-DENIED', `the settings of ${title} forbid Trunkline`, { evidence })];
  }
  const isDecided = [...all, ...state].some(({ values }) => {
    return values.enableAllProjectMcpServers === true || listHas(values.enabledMcpjsonServers, name);
  });
  if (place.scope !== 'project' || registration.server.isDisabled || isDecided) return [];
  return [finding('TL-CLIENT-PENDING', `${title} waits for your approval of Trunkline`, { evidence: [place.file] })];
}

function managedFolder(machine: Machine): string {
  const { platform, root } = machine;
  if (platform === 'darwin') return join(root, 'Library', 'Application Support', 'ClaudeCode');
  if (platform === 'linux') return join(root, 'etc', 'claude-code');
  return join(variableOf(machine, 'PROGRAMFILES') ?? join(root, 'Program Files'), 'ClaudeCode');
}

function denies({ permissions, deniedMcpServers }: Settings['values'], { server }: Registration): boolean {
  const rules = [`mcp__${server.name}`, `mcp__${server.name}__*`, 'mcp__*'];
  const deny = isRecord(permissions) ? permissions.deny : undefined;
  return rules.some((rule) => listHas(deny, rule)) || names(deniedMcpServers, server);
}

/** A list of allowed servers forbids all others. */
function allows({ allowedMcpServers }: Settings['values'], { server }: Registration): boolean {
  return !Array.isArray(allowedMcpServers) || names(allowedMcpServers, server);
}

/** Whether one of these rules is about the server, by its name, its command or its address. */
function names(rules: unknown, { name, run }: Registration['server']): boolean {
  if (!Array.isArray(rules)) return false;
  const words = run.kind === 'command' ? [run.command, ...run.args] : [];
  return rules.some((rule) => {
    if (!isRecord(rule)) return false;
    if (rule.serverName === name) return true;
    if (run.kind === 'remote') return rule.serverUrl === run.url;
    return Array.isArray(rule.serverCommand) && rule.serverCommand.join('\0') === words.join('\0');
  });
}

/** VS Code can be told to run no MCP servers, or only those of a registry. */
function checkVsCode(registration: Registration): Finding[] {
  const { place } = registration.server;
  const folder = dirname(place.file);
  const denying = settingsIn(join(folder, 'settings.json')).filter(({ values }) => {
    return /^(?:none|registry)$/.test(String(values['chat.mcp.access'])) || values['chat.mcp.enabled'] === false;
  });
  if (denying.length === 0) return [];
  const text = `the settings of ${titleOf(registration)} forbid Trunkline`;
  const remedy = 'Set `chat.mcp.access` to `all`.';
  return [finding('TL-CLIENT-DENIED', text, { evidence: denying.map(({ file }) => file), remedy })];
}

/** One file, or none if it does not exist or cannot be understood. */
function settingsIn(file: string): Settings[] {
  try {
    const values = parseText('jsonc', readFileSync(file, 'utf8'));
    return isRecord(values) ? [{ file, values }] : [];
  } catch {
    // The client itself reports it.
    return [];
  }
}

function memberOf(value: unknown, member: string): Readonly<Record<string, unknown>> {
  const found = isRecord(value) ? value[member] : undefined;
  return isRecord(found) ? found : {};
}

function listHas(list: unknown, item: string): boolean {
  return Array.isArray(list) && list.includes(item);
}
