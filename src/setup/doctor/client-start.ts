import { createInterface } from 'node:readline';
import { systemClock } from '../../host/observe/system-clock.js';
import { endGroup } from '../../servers/process/end-group.js';
import { type SpawnedChild, spawnChild } from '../../servers/process/spawn-child.js';
import { isRecord, parseJson } from '../../wire/json/json-value.js';
import { plural } from '../../wire/json/printable.js';
import type { FoundCommand } from '../clients/files/found-server.js';
import { type Finding, finding } from './finding.js';
import { type OperatingSystem, variableOf } from './machine.js';

/** The result of running a client's command as the client runs it. */
export interface ClientStart {
  /** Time from the spawn to the first list of tools, or to the failure. */
  readonly afterMs: number;
  /** Names of the tools in the first list, or the reason why there is none, as a phrase. */
  readonly tools: readonly string[] | string;
  /** Lines of stdout that are no messages. */
  readonly junk: readonly string[];
  /** The last lines of stderr. */
  readonly output: readonly string[];
}

/** Time limit for the list of tools: longer than the 10 s that Codex waits, shorter than the 30 s that others wait. */
const LIST_WITHIN_MS = 20_000;
const SLOW_MS = 10_000;
const LADDER = { termAfterMs: 2_000, killAfterMs: 4_000 };
const MAX_LINES = 200;
const UNREAD_MS = 100;

/** The variables that a desktop program passes to an MCP server: those of the stdio client of the MCP SDK. */
const INHERITED = ['HOME', 'LOGNAME', 'SHELL', 'TERM', 'USER', 'LANG', 'TMPDIR'];
const INHERITED_ON_WINDOWS = [
  ...['APPDATA', 'HOMEDRIVE', 'HOMEPATH', 'LOCALAPPDATA', 'PROCESSOR_ARCHITECTURE', 'SYSTEMDRIVE', 'SYSTEMROOT'],
  ...['TEMP', 'USERNAME', 'USERPROFILE', 'PROGRAMFILES'],
];

/** The variables that the command gets, with the PATH of the desktop. */
export function clientEnvironment(run: FoundCommand, path: string, machine: OperatingSystem): Record<string, string> {
  const names = machine.platform === 'win32' ? INHERITED_ON_WINDOWS : INHERITED;
  const inherited = names.flatMap((name) => {
    const value = variableOf(machine, name);
    return value === undefined ? [] : [[name, value] as const];
  });
  return { ...Object.fromEntries(inherited), PATH: path, ...run.env };
}

/** Runs the command, introduces a client, asks for the tools, and ends the command. Never rejects. */
export async function startAsClient(run: FoundCommand, env: Record<string, string>, cwd: string): Promise<ClientStart> {
  const startedAt = performance.now();
  const junk: string[] = [];
  const output: string[] = [];
  let fail: (reason: string) => void = () => {};
  const failed = new Promise<string>((resolve) => {
    // The output of a program that has ended may still be unread, so the reason takes effect a moment later.
    fail = (reason) => void setTimeout(resolve, UNREAD_MS, reason);
  });
  let isSpawned = true;
  const child = spawnChild(
    { command: run.command, args: run.args, cwd: run.cwd ?? cwd, env },
    {
      onSpawnError: ({ message }) => {
        isSpawned = false;
        fail(message);
      },
      onExit: ({ code, signal }) => fail(signal === null ? `it ended with exit code ${code}` : `it ended by ${signal}`),
    },
  );
  createInterface({ input: child.stderr }).on('line', (line) => {
    output.push(line);
    if (output.length > MAX_LINES) output.shift();
  });
  const timer = setTimeout(() => fail(`it did not answer within ${LIST_WITHIN_MS / 1_000} s`), LIST_WITHIN_MS);
  const tools = await Promise.race([listTools(child, junk), failed]);
  clearTimeout(timer);
  const afterMs = performance.now() - startedAt;
  if (isSpawned) await endGroup(child, LADDER, systemClock);
  return { afterMs, tools, junk, output };
}

/** Resolves with the names of the tools, or with the reason why there are none. Collects lines that are no messages. */
function listTools({ stdin, stdout }: SpawnedChild, junk: string[]): Promise<readonly string[] | string> {
  const send = (message: object) => stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  const clientInfo = { name: 'trunkline-doctor', version: '1' };
  send({ id: 1, method: 'initialize', params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo } });
  return new Promise((resolve) => {
    createInterface({ input: stdout }).on('line', (line) => {
      const message = parseJson(line);
      if (!isRecord(message) || message.jsonrpc !== '2.0') {
        if (line.trim() !== '' && junk.length < MAX_LINES) junk.push(line);
        return;
      }
      const { id, method, result, error } = message;
      if (method !== undefined) return;
      if (isRecord(error)) resolve(`it answered with an error: ${String(error.message)}`);
      else if (id === 1) {
        send({ method: 'notifications/initialized' });
        send({ id: 2, method: 'tools/list' });
      } else if (id === 2) {
        const tools = isRecord(result) && Array.isArray(result.tools) ? result.tools : [];
        resolve(tools.flatMap((tool) => (isRecord(tool) ? [String(tool.name)] : [])));
      }
    });
  });
}

/** Turns the result of a start into findings about these clients. `servers`: number of servers in the configuration. */
export function checkClientStart(start: ClientStart, titles: readonly string[], servers: number): Finding[] {
  const who = titles.join(' and ');
  const asThey = `started as ${who} ${titles.length === 1 ? 'does' : 'do'} it`;
  const found: Finding[] = [];
  if (start.junk.length > 0)
    found.push(finding('TL-START-STDOUT', `the command of ${who} writes text to stdout`, start.junk.slice(0, 3)));
  if (typeof start.tools === 'string')
    return [finding('TL-START-FAILED', `${asThey}, ${start.tools}`, start.output.slice(-20)), ...found];
  const seconds = (start.afterMs / 1_000).toFixed(1);
  const tools = start.tools.filter((name) => !name.startsWith('trunkline__'));
  // In search mode, the other tools are not in the list.
  const isSearch = start.tools.includes('trunkline__find_tools');
  const what = isSearch ? 'the tools of the search' : plural(tools.length, 'tool');
  const text = `${asThey}, Trunkline listed ${what} after ${seconds} s`;
  if (start.afterMs > SLOW_MS) found.push(finding('TL-START-SLOW', text));
  if (tools.length === 0 && servers > 0 && !isSearch)
    found.push(finding('TL-START-EMPTY', text, start.output.slice(-5)));
  return found.length > 0 ? found : [finding('TL-START-OK', text)];
}
