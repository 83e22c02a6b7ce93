import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { checkClientLogs } from './client-logs.js';
import { checkClientSettings } from './client-settings.js';
import { type Finding, finding } from './finding.js';
import { type Machine, variableOf } from './machine.js';
import type { Registration } from './registrations.js';

/** Finds peculiarities of single clients that keep a correct entry from working. */
export async function checkTraps(
  registrations: readonly Registration[],
  machine: Machine,
  now: number,
): Promise<Finding[]> {
  return [
    ...checkStoreApp(registrations, machine),
    ...checkClientSettings(registrations, machine),
    ...(await checkClientLogs(registrations, machine, now)),
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
    .filter(({ server }) => server.place.client === 'claude-desktop' && server.place.scope === 'user')
    .map(({ server }) => server.place.file);
  if (files.length === 0 || files.some((file) => /[\\/]Packages[\\/]Claude_/.test(file))) return [];
  const target = join(packages, names[0] ?? '', 'LocalCache', 'Roaming', 'Claude', 'claude_desktop_config.json');
  const remedy = `Register Trunkline in ${target}, and remove it from ${files[0]}.`;
  return [finding('TL-CLIENT-MSIX', 'Claude Desktop does not read this file', { evidence: files, remedy })];
}
