import { extname } from 'node:path';
import { valueAt, withoutValue, withValue } from '../../../host/files/edit/edit-text.js';
import { FileRefusal, type Format, parseText } from '../../../host/files/edit/parse-text.js';
import { isRecord } from '../../../wire/json/json-value.js';
import { clientNamed, type Shape } from './client-table.js';
import type { ClientEntry, ClientLocation, FoundCommand, FoundRemote, FoundServer } from './found-server.js';

/**
 * The servers in the text of a client's file. For a client that Trunkline does not know, the format and the members that
 * lead to the servers are found by the name of the file and by its content.
 *
 * Throws a `FileRefusal`, an `Error` that says in one sentence why the text cannot be read, and shows nothing of it.
 */
export function readServers(place: ClientLocation, text: string): FoundServer[] {
  if (clientNamed(place.client) !== undefined) return serversIn(place, parseText(place.format, text));
  const { format, data } = parseGuessed(place, text);
  const path = [place.path, ...USUAL_PATHS].find((each) => valueAt(data, each) !== undefined);
  if (path === undefined) throw new FileRefusal(`it has no servers: no ${USUAL_NAMES}`);
  const isList = Array.isArray(valueAt(data, path));
  return serversIn({ ...place, format, path, ...(isList && { isList }) }, data);
}

export function serversIn(place: ClientLocation, data: unknown): FoundServer[] {
  return namedEntries(place, valueAt(data, place.path)).flatMap(([name, entry]) => {
    const found = readEntry(place, name, entry);
    if (found === undefined) return [];
    return isLeftOut(place, name, data) ? { ...found, isDisabled: true } : found;
  });
}

/** Whether the lists `mcp.allowed` and `mcp.excluded` of Gemini CLI keep the server from being started. */
function isLeftOut({ client }: ClientLocation, name: string, data: unknown): boolean {
  if (client !== 'gemini') return false;
  const [allowed, excluded] = ['allowed', 'excluded'].map((list) => valueAt(data, ['mcp', list]));
  return (Array.isArray(allowed) && !allowed.includes(name)) || (Array.isArray(excluded) && excluded.includes(name));
}

/** The entry of this name as the file has it; empty if it is no object, and `undefined` if there is none. */
export function entryIn(text: string, place: ClientLocation, name: string): ClientEntry | undefined {
  const entry = valueAt(parseText(place.format, text), [...place.path, name]);
  return entry === undefined || isRecord(entry) ? entry : {};
}

/** Adds an entry to the text of a client's file, or replaces the entry of this name. Throws a `FileRefusal`. */
export function withEntry(
  text: string,
  { format, path, isList }: ClientLocation,
  name: string,
  entry: ClientEntry,
): string {
  return withValue(format, text, [...path, name], entry, { isList });
}

/** Removes an entry; returns the same text if there is none. Throws a `FileRefusal`. */
export function withoutEntry(text: string, { format, path }: ClientLocation, name: string): string {
  return withoutValue(format, text, [...path, name]);
}

/** Members that may lead to the servers, in the order of the search. */
const USUAL_PATHS = [
  ...[['mcpServers'], ['mcp_servers'], ['servers'], ['context_servers'], ['amp.mcpServers']],
  ...[['mcp', 'servers'], ['mcp'], ['extensions']],
];
const USUAL_NAMES = '`mcpServers`, `servers`, `mcp_servers`, `context_servers`, `mcp` or `extensions`';

function parseGuessed({ file, format }: ClientLocation, text: string): { format: Format; data: unknown } {
  const ending = extname(file).slice(1).toLowerCase().replace('yml', 'yaml');
  const named = (['json', 'jsonc', 'toml', 'yaml'] as const).find((each) => each === ending);
  if (named !== undefined) return { format: named, data: parseText(named, text) };
  // YAML comes last, because almost every text is YAML.
  for (const each of new Set<Format>([format, 'jsonc', 'toml', 'yaml'])) {
    try {
      const data = parseText(each, text);
      if (isRecord(data)) return { format: each, data };
    } catch {
      // The text has another format.
    }
  }
  throw new FileRefusal('it is neither JSON, TOML nor YAML');
}

function namedEntries({ isList }: ClientLocation, value: unknown): [string, unknown][] {
  if (isList === true && Array.isArray(value)) {
    return value.flatMap((entry: unknown) => {
      return isRecord(entry) && typeof entry.name === 'string' ? [[entry.name, entry]] : [];
    });
  }
  return isRecord(value) ? Object.entries(value) : [];
}

/**
 * Reads one entry, whatever shape it has: the members of different clients have different names, with few exceptions.
 * `undefined` if the entry is no server, such as an extension that the client has built in.
 */
export function readEntry(place: ClientLocation, name: string, entry: unknown): FoundServer | undefined {
  if (!isRecord(entry)) return undefined;
  const client = clientNamed(place.client);
  const shape = client?.shape ?? 'plain';
  const run = commandOf(entry, shape) ?? remoteOf(entry, shape);
  if (run === undefined) return undefined;
  const refersToVariables = ['env_vars', 'env_keys', 'bearer_token_env_var', 'env_http_headers'].some(
    (member) => entry[member] !== undefined,
  );
  const isDisabled = entry.disabled === true || entry.enabled === false;
  // VS Code alone calls the member `servers`.
  const usual = client?.variables ?? (place.path[0] === 'servers' ? 'vscode' : 'claude-code');
  const variables = refersToVariables ? 'claude-code' : usual;
  const allowed = toolNames(entry.includeTools ?? entry.enabled_tools ?? entry.available_tools ?? entry.tools);
  const denied = toolNames(entry.excludeTools ?? entry.disabled_tools ?? entry.disabledTools);
  const tools = { ...(allowed && { allowedTools: allowed }), ...(denied && { deniedTools: denied }) };
  return { place, name, run, isDisabled, variables, ...tools };
}

function commandOf(entry: ClientEntry, shape: Shape): FoundCommand | undefined {
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
  const timeoutMs = timeoutOf(entry, shape);
  return {
    kind: 'command',
    command,
    args,
    env,
    ...(typeof entry.cwd === 'string' && { cwd: entry.cwd }),
    ...(typeof entry.envFile === 'string' && { envFile: entry.envFile }),
    ...(timeoutMs !== undefined && { timeoutMs }),
  };
}

function remoteOf(entry: ClientEntry, shape: Shape): FoundRemote | undefined {
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

function transportOf(entry: ClientEntry, url: string, shape: Shape): FoundRemote['transport'] {
  const type = entry.type ?? entry.transport;
  if (typeof type === 'string') return type.toLowerCase() === 'sse' ? 'sse' : 'http';
  // Gemini CLI has two names for the two transports.
  if (shape === 'gemini') return entry.httpUrl === undefined ? 'sse' : 'http';
  return /\/sse\/?(?:[?#]|$)/.test(url) ? 'sse' : 'http';
}

function timeoutOf(entry: ClientEntry, shape: Shape): number | undefined {
  const isInSeconds = shape === 'cline' || shape === 'goose';
  const [value, unit] =
    typeof entry.tool_timeout_sec === 'number'
      ? [entry.tool_timeout_sec, 1_000]
      : [entry.toolTimeoutMs ?? entry.timeout, isInSeconds ? 1_000 : 1];
  if (typeof value !== 'number' || !(value > 0)) return undefined;
  // Claude Code ignores shorter timeouts.
  if (shape === 'claude-code' && value < 1_000) return undefined;
  return Math.round(value * unit);
}

/** Returns the headers of a remote server in a file of Continue. */
function requestHeaders({ requestOptions }: ClientEntry): unknown {
  return isRecord(requestOptions) ? requestOptions.headers : undefined;
}

/** Returns the named tools; `undefined` for all tools, for which Copilot CLI writes `["*"]`. */
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

/** Returns a text, a number or a boolean as a text, because clients accept all three. */
function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  return typeof value === 'number' || typeof value === 'boolean' || typeof value === 'bigint' ? `${value}` : undefined;
}

/** Translates the variables of OpenCode, which have a notation of their own. */
function translated(text: string, shape: Shape): string {
  return shape === 'opencode' ? text.replaceAll(/\{env:(\w+)\}/g, '$${$1}') : text;
}
