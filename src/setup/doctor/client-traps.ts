import { readFileSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { parseText } from '../../host/files/edit/parse-text.js';
import { fileNamesIn } from '../../host/files/whole-file.js';
import { isRecord } from '../../wire/json/json-value.js';
import { folderNamed } from '../clients/files/client-locations.js';
import { type Finding, finding, RECENT_MS } from './finding.js';
import { type Machine, variableOf } from './machine.js';
import { type Registration, titleOf } from './registrations.js';

/** Finds peculiarities of single clients that keep a correct entry from working. */
export async function checkTraps(
  registrations: readonly Registration[],
  machine: Machine,
  now: number,
): Promise<Finding[]> {
  return [
    ...checkStoreApp(registrations, machine),
    ...registrations.flatMap((registration) => checkSettings(registration, machine)),
    ...(await checkClientLogs(registrations, machine, now)),
  ];
}

/**
 * Finds entries in the usual file, which the Claude Desktop of the Windows store ignores without a word, because it reads only the file in
 * its package folder: https://github.com/anthropics/claude-code/issues/26073. Untried on Windows.
 */
function checkStoreApp(registrations: readonly Registration[], machine: Machine): Finding[] {
  if (machine.platform !== 'win32') return [];
  const packages = join(folderNamed('local', machine), 'Packages');
  const [name] = fileNamesIn(packages).filter((each) => each.startsWith('Claude_'));
  if (name === undefined) return [];
  const files = registrations
    .filter(({ server }) => server.place.client === 'claude-desktop' && server.place.scope === 'user')
    .map(({ server }) => server.place.file);
  if (files.length === 0 || files.some((file) => /[\\/]Packages[\\/]Claude_/.test(file))) return [];
  const target = join(packages, name, 'LocalCache', 'Roaming', 'Claude', 'claude_desktop_config.json');
  const remedy = `Register Trunkline in ${target}, and remove it from ${files[0]}.`;
  return [finding('TL-CLIENT-MSIX', 'Claude Desktop does not read this file', files, { remedy })];
}

/** Settings of clients that forbid Trunkline, or that keep its entry from being used. */
function checkSettings(registration: Registration, machine: Machine): Finding[] {
  switch (registration.server.place.client) {
    case 'claude-code':
      return checkClaudeCode(registration, machine);
    case 'vscode':
    case 'vscode-insiders':
      return checkVsCode(registration);
    default:
      return [];
  }
}

interface SettingsFile {
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
  // The file of the user has the decisions about servers in each project.
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
    return [finding('TL-CLIENT-DENIED', `the settings of ${title} forbid Trunkline`, evidence)];
  }
  const isDecided = [...all, ...state].some(({ values }) => {
    return values.enableAllProjectMcpServers === true || listHas(values.enabledMcpjsonServers, name);
  });
  if (place.scope !== 'project' || registration.server.isDisabled || isDecided) return [];
  return [finding('TL-CLIENT-PENDING', `${title} waits for your approval of Trunkline`, [place.file])];
}

function managedFolder(machine: Machine): string {
  const { platform, root } = machine;
  if (platform === 'darwin') return join(root, 'Library', 'Application Support', 'ClaudeCode');
  if (platform === 'linux') return join(root, 'etc', 'claude-code');
  return join(variableOf(machine, 'PROGRAMFILES') ?? join(root, 'Program Files'), 'ClaudeCode');
}

function denies({ permissions, deniedMcpServers }: SettingsFile['values'], { server }: Registration): boolean {
  const rules = [`mcp__${server.name}`, `mcp__${server.name}__*`, 'mcp__*'];
  const deny = isRecord(permissions) ? permissions.deny : undefined;
  return rules.some((rule) => listHas(deny, rule)) || names(deniedMcpServers, server);
}

/** Whether the settings allow the server. A list of allowed servers forbids all others. */
function allows({ allowedMcpServers }: SettingsFile['values'], { server }: Registration): boolean {
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

/** Finds settings of VS Code that allow no MCP servers, or only those of a registry. */
function checkVsCode(registration: Registration): Finding[] {
  const { place } = registration.server;
  const folder = dirname(place.file);
  const [denying] = settingsIn(join(folder, 'settings.json')).filter(({ values }) => {
    return /^(?:none|registry)$/.test(String(values['chat.mcp.access'])) || values['chat.mcp.enabled'] === false;
  });
  if (denying === undefined) return [];
  const text = `the settings of ${titleOf(registration)} forbid Trunkline`;
  const remedy = 'Set `chat.mcp.access` to `all`.';
  return [finding('TL-CLIENT-DENIED', text, [denying.file], { remedy })];
}

/** One file, or none if it does not exist or cannot be understood. */
function settingsIn(file: string): SettingsFile[] {
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

const MAX_LOG_BYTES = 4 * 1024 * 1024;
const LAST_LINES = 50;
const SHOWN_LINES = 3;
const SHOWN_CHARACTERS = 300;

const TROUBLE =
  /\bENOENT\b|\bEACCES\b|\berror\b|"error"|timed? ?out|(?:closed|disconnected) unexpectedly|exit(?:ing|ed) (?:early|with)|Connection closed|Failed to connect|is not valid JSON/i;
/** Claude Code labels every line that Trunkline writes to stderr as an error. */
const STDERR = '"error":"Server stderr:';
/** Lines showing that the client got the tools. Failures before them are over. */
const GOOD =
  /"result":\{"tools"|"method":"tools\/call"|Successfully connected|Discovered \d+ tools|Connection established/;

/** Finds the last lines about trouble in the newest log of each registration, after the last line that shows success. */
async function checkClientLogs(
  registrations: readonly Registration[],
  machine: Machine,
  now: number,
): Promise<Finding[]> {
  const found: Finding[] = [];
  for (const registration of registrations) {
    const [newest] = logsOf(registration, machine)
      .map((path) => ({ path, stats: statSync(path, { throwIfNoEntry: false }) }))
      .sort((one, other) => (other.stats?.mtimeMs ?? 0) - (one.stats?.mtimeMs ?? 0));
    if (newest?.stats === undefined) continue;
    const { path, stats } = newest;
    if (now - stats.mtimeMs > RECENT_MS || stats.size > MAX_LOG_BYTES) continue;
    const lines = (await readFile(path, 'utf8')).trimEnd().split('\n').slice(-LAST_LINES);
    const good = lines.findLastIndex((line) => GOOD.test(line));
    const trouble = lines.slice(good + 1).filter((line) => TROUBLE.test(line.replace(STDERR, '')));
    if (trouble.length === 0) continue;
    const shown = trouble.slice(-SHOWN_LINES).map((line) => line.slice(0, SHOWN_CHARACTERS));
    const text = `the log of ${titleOf(registration)} shows a failure`;
    found.push(finding('TL-CLIENT-LOG', text, [path, ...shown]));
  }
  return found;
}

/** The files that can be the log of a client about its entry. VS Code and Cursor have a folder of logs for each window. */
function logsOf({ server: { place, name } }: Registration, machine: Machine): string[] {
  const { platform, home, cwd } = machine;
  switch (place.client) {
    case 'claude-desktop': {
      // The logs are beside the file of servers, except on macOS.
      const beside = join(dirname(place.file), 'logs');
      const folders = platform === 'darwin' ? [join(home, 'Library', 'Logs', 'Claude'), beside] : [beside];
      return folders.map((folder) => join(folder, `mcp-server-${name}.log`));
    }
    case 'claude-code': {
      const project = cwd.replaceAll(/[^a-zA-Z0-9]/g, '-');
      const folder = join(cacheFolder(machine), 'claude-cli-nodejs', project, `mcp-logs-${name}`);
      return fileNamesIn(folder).flatMap((file) => (/\.(?:jsonl|txt)$/.test(file) ? [join(folder, file)] : []));
    }
    case 'vscode':
    case 'vscode-insiders':
      return windowLogs(dirname(dirname(place.file)), ['exthost', ''], (file) => isOf(file, /^mcpServer\./, name));
    case 'cursor': {
      const folders = [join('exthost', 'anysphere.cursor-mcp')];
      const program = join(folderNamed('config', machine), 'Cursor');
      return windowLogs(program, folders, (file) => isOf(file, /^MCP /, name));
    }
    default:
      return [];
  }
}

function isOf(file: string, kind: RegExp, name: string): boolean {
  return kind.test(file) && file.endsWith('.log') && file.includes(name);
}

/** The logs of all windows of the latest run: `logs/RUN/windowN/FOLDER/FILE`. */
function windowLogs(program: string, folders: readonly string[], isWanted: (file: string) => boolean): string[] {
  const logs = join(program, 'logs');
  const [latest] = fileNamesIn(logs).sort().reverse();
  if (latest === undefined) return [];
  const windows = fileNamesIn(join(logs, latest)).filter((name) => name.startsWith('window'));
  const paths = windows.flatMap((window) => folders.map((folder) => join(logs, latest, window, folder)));
  return paths.flatMap((path) => fileNamesIn(path).flatMap((name) => (isWanted(name) ? [join(path, name)] : [])));
}

function cacheFolder(machine: Machine): string {
  const { platform, home, env } = machine;
  if (platform === 'darwin') return join(home, 'Library', 'Caches');
  return platform === 'win32' ? folderNamed('local', machine) : (env.XDG_CACHE_HOME ?? join(home, '.cache'));
}
