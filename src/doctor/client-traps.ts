import { existsSync, readdirSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { readJsonFile } from '../files/json-file.js';
import { isRecord } from '../json/is-record.js';
import { type Finding, finding } from './finding.js';
import { type Machine, variableOf } from './machine.js';
import { type Registration, titleOf } from './registrations.js';

/** What single clients do that makes a correct entry useless. */
export async function checkTraps(
  registrations: readonly Registration[],
  machine: Machine,
  now: number,
): Promise<Finding[]> {
  return [
    ...checkStoreApp(registrations, machine),
    ...checkDenied(registrations, machine),
    ...(await checkLogs(registrations, machine, now)),
  ];
}

/**
 * The Claude Desktop of the Windows store reads only the file in its package folder, and ignores the usual one without a
 * word: https://github.com/anthropics/claude-code/issues/26073. Untried on Windows.
 */
function checkStoreApp(registrations: readonly Registration[], machine: Machine): Finding[] {
  if (machine.platform !== 'win32') return [];
  const local = variableOf(machine, 'LOCALAPPDATA') ?? join(machine.home, 'AppData', 'Local');
  const packages = join(local, 'Packages');
  const names = existsSync(packages) ? readdirSync(packages).filter((name) => name.startsWith('Claude_')) : [];
  if (names.length === 0) return [];
  const files = registrations
    .filter(({ server }) => server.place.client === 'claude-desktop')
    .map(({ server }) => server.place.file);
  if (files.length === 0 || files.some((file) => /[\\/]Packages[\\/]Claude_/.test(file))) return [];
  const target = join(packages, names[0] ?? '', 'LocalCache', 'Roaming', 'Claude', 'claude_desktop_config.json');
  const remedy = `Register Trunkline in ${target}, and remove it from ${files[0]}.`;
  return [finding('TL-CLIENT-MSIX', 'Claude Desktop does not read this file', { evidence: files, remedy })];
}

/** Rules of Claude Code that forbid the tools of an MCP server, or the server itself. */
function checkDenied(registrations: readonly Registration[], machine: Machine): Finding[] {
  const { home, cwd, env } = machine;
  const folder = env.CLAUDE_CONFIG_DIR ?? join(home, '.claude');
  const settings = [
    join(folder, 'settings.json'),
    ...['settings.json', 'settings.local.json'].map((name) => join(cwd, '.claude', name)),
  ];
  return registrations.flatMap((registration) => {
    const { place, name } = registration.server;
    if (place.client !== 'claude-code') return [];
    const rules = new Set([`mcp__${name}`, `mcp__${name}__*`, 'mcp__*']);
    const denying = settings.filter((file) => {
      const value = readJsonFile(file);
      if (!isRecord(value)) return false;
      const { deny } = isRecord(value.permissions) ? value.permissions : {};
      const denied = Array.isArray(value.deniedMcpServers) ? value.deniedMcpServers : [];
      const isRule = Array.isArray(deny) && deny.some((rule) => rules.has(String(rule)));
      return isRule || denied.some((one) => isRecord(one) && one.serverName === name);
    });
    const state = readJsonFile(place.file);
    const projects = isRecord(state) && isRecord(state.projects) ? state.projects : {};
    const project = projects[cwd];
    const disabled = isRecord(project) ? project.disabledMcpServers : undefined;
    if (Array.isArray(disabled) && disabled.includes(name)) denying.push(place.file);
    if (denying.length === 0) return [];
    return [
      finding('TL-CLIENT-DENIED', `the settings of ${titleOf(registration)} forbid Trunkline`, { evidence: denying }),
    ];
  });
}

/** Older logs are about another problem. */
const RECENT_MS = 24 * 60 * 60 * 1_000;
const MAX_LOG_BYTES = 4 * 1024 * 1024;
const TROUBLE =
  /\bENOENT\b|\bEACCES\b|\berror\b|timed? ?out|disconnected unexpectedly|exited (?:early|with)|is not valid JSON/i;

/** Claude Desktop has a log for each server. The last lines about trouble, since the last time it went well. */
async function checkLogs(registrations: readonly Registration[], machine: Machine, now: number): Promise<Finding[]> {
  const found: Finding[] = [];
  for (const registration of registrations) {
    const { place, name } = registration.server;
    if (place.client !== 'claude-desktop') continue;
    const file = logFolders(dirname(place.file), machine)
      .map((folder) => join(folder, `mcp-server-${name}.log`))
      .find((each) => existsSync(each));
    if (file === undefined) continue;
    const { mtimeMs, size } = statSync(file);
    if (now - mtimeMs > RECENT_MS || size > MAX_LOG_BYTES) continue;
    const lines = (await readFile(file, 'utf8')).trimEnd().split('\n').slice(-50);
    const good = lines.findLastIndex((line) => /"result":\{"tools"|"method":"tools\/call"/.test(line));
    const trouble = lines.slice(good + 1).filter((line) => TROUBLE.test(line));
    if (trouble.length === 0) continue;
    const evidence = [file, ...trouble.slice(-3).map((line) => line.slice(0, 300))];
    found.push(finding('TL-CLIENT-LOG', `the log of ${titleOf(registration)} shows a failure`, { evidence }));
  }
  return found;
}

/** Beside the file of servers, except on macOS. */
function logFolders(folder: string, { platform, home }: Machine): string[] {
  const beside = join(folder, 'logs');
  return platform === 'darwin' ? [join(home, 'Library', 'Logs', 'Claude'), beside] : [beside];
}
