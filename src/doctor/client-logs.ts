import { existsSync, readdirSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type Finding, finding } from './finding.js';
import type { Machine } from './machine.js';
import { type Registration, titleOf } from './registrations.js';

/** Older logs are about another problem. */
const RECENT_MS = 24 * 60 * 60 * 1_000;
const MAX_LOG_BYTES = 4 * 1024 * 1024;
const LAST_LINES = 50;
const SHOWN_LINES = 3;
const SHOWN_CHARACTERS = 300;

const TROUBLE =
  /\bENOENT\b|\bEACCES\b|\berror\b|"error"|timed? ?out|(?:closed|disconnected) unexpectedly|exit(?:ing|ed) (?:early|with)|Connection closed|Failed to connect|is not valid JSON/i;
/** Claude Code labels every line that Trunkline writes to stderr as an error. */
const STDERR = '"error":"Server stderr:';
/** Lines showing that the client got the tools: failures before them are over. */
const GOOD =
  /"result":\{"tools"|"method":"tools\/call"|Successfully connected|Discovered \d+ tools|Connection established/;

/** The last lines about trouble in the newest log of each client about Trunkline, since the last time it went well. */
export async function checkClientLogs(
  registrations: readonly Registration[],
  machine: Machine,
  now: number,
): Promise<Finding[]> {
  const found: Finding[] = [];
  for (const registration of registrations) {
    const file = newest(logsOf(registration, machine));
    if (file === undefined || now - file.mtimeMs > RECENT_MS || file.size > MAX_LOG_BYTES) continue;
    const lines = (await readFile(file.path, 'utf8')).trimEnd().split('\n').slice(-LAST_LINES);
    const good = lines.findLastIndex((line) => GOOD.test(line));
    const trouble = lines.slice(good + 1).filter((line) => TROUBLE.test(line.replace(STDERR, '')));
    if (trouble.length === 0) continue;
    const shown = trouble.slice(-SHOWN_LINES).map((line) => line.slice(0, SHOWN_CHARACTERS));
    const text = `the log of ${titleOf(registration)} shows a failure`;
    found.push(finding('TL-CLIENT-LOG', text, { evidence: [file.path, ...shown] }));
  }
  return found;
}

/** The files that can be the log of a client about its entry. Those of VS Code and Cursor are named after the window. */
function logsOf({ server: { place, name } }: Registration, machine: Machine): string[] {
  const { platform, home, cwd } = machine;
  switch (place.client) {
    case 'claude-desktop': {
      // Beside the file of servers, except on macOS.
      const beside = join(dirname(place.file), 'logs');
      const folders = platform === 'darwin' ? [join(home, 'Library', 'Logs', 'Claude'), beside] : [beside];
      return folders.map((folder) => join(folder, `mcp-server-${name}.log`));
    }
    case 'claude-code': {
      const project = cwd.replaceAll(/[^a-zA-Z0-9]/g, '-');
      return filesIn(join(cacheFolder(machine), 'claude-cli-nodejs', project, `mcp-logs-${name}`), /\.(?:jsonl|txt)$/);
    }
    case 'vscode':
    case 'vscode-insiders':
      return windowLogs(dirname(dirname(place.file)), ['exthost', ''], (file) => isOf(file, /^mcpServer\./, name));
    case 'cursor': {
      const folders = [join('exthost', 'anysphere.cursor-mcp')];
      return windowLogs(configFolderOf(machine, 'Cursor'), folders, (file) => isOf(file, /^MCP /, name));
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
  const [latest] = namesIn(logs).sort().reverse();
  if (latest === undefined) return [];
  const windows = namesIn(join(logs, latest)).filter((name) => name.startsWith('window'));
  return windows.flatMap((window) =>
    folders.flatMap((folder) => {
      const path = join(logs, latest, window, folder);
      return namesIn(path)
        .filter(isWanted)
        .map((name) => join(path, name));
    }),
  );
}

function configFolderOf({ platform, home, env }: Machine, program: string): string {
  if (platform === 'darwin') return join(home, 'Library', 'Application Support', program);
  if (platform === 'win32') return join(env.APPDATA ?? join(home, 'AppData', 'Roaming'), program);
  return join(env.XDG_CONFIG_HOME ?? join(home, '.config'), program);
}

function cacheFolder({ platform, home, env }: Machine): string {
  if (platform === 'darwin') return join(home, 'Library', 'Caches');
  if (platform === 'win32') return env.LOCALAPPDATA ?? join(home, 'AppData', 'Local');
  return env.XDG_CACHE_HOME ?? join(home, '.cache');
}

function filesIn(folder: string, wanted: RegExp): string[] {
  return namesIn(folder)
    .filter((name) => wanted.test(name))
    .map((name) => join(folder, name));
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    // There is none.
    return [];
  }
}

function newest(files: readonly string[]) {
  const known = files.filter((path) => existsSync(path)).map((path) => ({ path, ...timesOf(path) }));
  return known.sort((one, other) => other.mtimeMs - one.mtimeMs)[0];
}

function timesOf(path: string): { readonly mtimeMs: number; readonly size: number } {
  const { mtimeMs, size } = statSync(path);
  return { mtimeMs, size };
}
