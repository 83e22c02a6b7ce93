import { isRecord } from '../../json/is-record.js';
import { clientNamed, type Shape } from './client-table.js';
import type { ClientPlace, FoundCommand, FoundRemote, FoundServer } from './found-server.js';

type Entry = Readonly<Record<string, unknown>>;
type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

/**
 * Reads one entry, whatever shape it has: the members of different clients have different names, with few exceptions.
 * `undefined` if the entry is no server, such as an extension that the client has built in.
 */
export function readEntry(place: ClientPlace, name: string, entry: unknown): FoundServer | undefined {
  if (!isRecord(entry)) return undefined;
  const client = clientNamed(place.client);
  const shape = client?.shape ?? 'plain';
  const run = commandOf(entry, shape) ?? remoteOf(entry, shape);
  if (run === undefined) return undefined;
  const refersToVariables = ['env_vars', 'env_keys', 'bearer_token_env_var', 'env_http_headers'].some(
    (member) => entry[member] !== undefined,
  );
  const found: Mutable<FoundServer> = {
    place,
    name,
    run,
    isDisabled: entry.disabled === true || entry.enabled === false,
    variables: refersToVariables ? 'claude-code' : (client?.variables ?? guessVariables(place)),
  };
  const allowed = toolNames(entry.includeTools ?? entry.enabled_tools ?? entry.available_tools ?? entry.tools);
  const denied = toolNames(entry.excludeTools ?? entry.disabled_tools ?? entry.disabledTools);
  if (allowed !== undefined) found.allowedTools = allowed;
  if (denied !== undefined) found.deniedTools = denied;
  return found;
}

function commandOf(entry: Entry, shape: Shape): FoundCommand | undefined {
  const nested = isRecord(entry.command) ? entry.command : undefined;
  const whole = nested?.path ?? entry.command ?? entry.cmd;
  const [command, ...first] = typeof whole === 'string' ? [whole] : strings(whole);
  if (command === undefined || command === '') return undefined;
  const env = {
    ...values(nested?.env ?? entry.env ?? entry.environment ?? entry.envs, shape),
    // Variables of the user that the client passes on.
    ...references(entry.env_vars),
    ...references(entry.env_keys),
  };
  const args = [...first, ...strings(nested?.args ?? entry.args)].map((arg) => translated(arg, shape));
  const found: Mutable<FoundCommand> = { kind: 'command', command, args, env };
  if (typeof entry.cwd === 'string') found.cwd = entry.cwd;
  if (typeof entry.envFile === 'string') found.envFile = entry.envFile;
  const timeoutMs = timeoutOf(entry, shape);
  if (timeoutMs !== undefined) found.timeoutMs = timeoutMs;
  return found;
}

function remoteOf(entry: Entry, shape: Shape): FoundRemote | undefined {
  const url = [entry.httpUrl, entry.url, entry.serverUrl, entry.uri].find((each) => typeof each === 'string');
  if (typeof url !== 'string' || url === '') return undefined;
  const headers: Record<string, string> = {
    ...values(entry.headers ?? entry.http_headers ?? requestHeaders(entry), shape),
    ...mapped(entry.env_http_headers, (variable) => `\${${variable}}`),
  };
  if (typeof entry.bearer_token_env_var === 'string') {
    headers.Authorization = `Bearer \${${entry.bearer_token_env_var}}`;
  }
  return { kind: 'remote', url: translated(url, shape), transport: transportOf(entry, url, shape), headers };
}

function transportOf(entry: Entry, url: string, shape: Shape): FoundRemote['transport'] {
  const type = entry.type ?? entry.transport;
  if (typeof type === 'string') return type.toLowerCase() === 'sse' ? 'sse' : 'http';
  // Gemini CLI has two names for the two transports.
  if (shape === 'gemini') return entry.httpUrl === undefined ? 'sse' : 'http';
  return /\/sse\/?(?:[?#]|$)/.test(url) ? 'sse' : 'http';
}

function timeoutOf(entry: Entry, shape: Shape): number | undefined {
  const isInSeconds = shape === 'cline' || shape === 'goose';
  const [value, unit] =
    typeof entry.tool_timeout_sec === 'number'
      ? [entry.tool_timeout_sec, 1_000]
      : [entry.toolTimeoutMs ?? entry.timeout, isInSeconds ? 1_000 : 1];
  if (typeof value !== 'number' || !(value > 0)) return undefined;
  // Claude Code ignores shorter ones.
  if (shape === 'claude-code' && value < 1_000) return undefined;
  return Math.round(value * unit);
}

/** Continue has the headers of remote servers there. */
function requestHeaders({ requestOptions }: Entry): unknown {
  return isRecord(requestOptions) ? requestOptions.headers : undefined;
}

/** Copilot CLI writes `["*"]` for all tools. */
function toolNames(value: unknown): readonly string[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const names = strings(value);
  return names.length === 0 || names.includes('*') ? undefined : names;
}

function strings(value: unknown): string[] {
  return Array.isArray(value) ? value.flatMap((each: unknown) => textOf(each) ?? []) : [];
}

function values(value: unknown, shape: Shape): Record<string, string> {
  return mapped(value, (text) => translated(text, shape));
}

function references(value: unknown): Record<string, string> {
  return Object.fromEntries(strings(value).map((name) => [name, `\${${name}}`]));
}

function mapped(value: unknown, map: (text: string) => string): Record<string, string> {
  if (!isRecord(value)) return {};
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, each]) => {
      const text = textOf(each);
      return text === undefined ? [] : [[name, map(text)]];
    }),
  );
}

/** Numbers and switches are accepted where a text is expected, as clients accept them. */
function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  return typeof value === 'number' || typeof value === 'boolean' || typeof value === 'bigint' ? `${value}` : undefined;
}

/** OpenCode has a notation for variables of its own. */
function translated(text: string, shape: Shape): string {
  return shape === 'opencode' ? text.replaceAll(/\{env:(\w+)\}/g, '$${$1}') : text;
}

/** How a file of no known client writes variables: VS Code alone calls the member `servers`. */
function guessVariables({ path }: ClientPlace): FoundServer['variables'] {
  return path[0] === 'servers' ? 'vscode' : 'claude-code';
}
