import { dirname, isAbsolute, resolve } from 'node:path';
import { ServerFault } from '../../../config/file/config-error.js';
import { launchedBy, programName, withoutVersion } from '../../../config/resolve/command-words.js';
import { EXACT_VERSION, packageParts } from '../../../config/resolve/package-bin.js';
import { expand, expandHome, type Variables, variableNamesIn } from '../../../config/resolve/references.js';
import { remoteUrl } from '../../../config/resolve/resolve-config.js';
import { HEADER_NAME, TRANSPORT_HEADERS } from '../../../config/schema/schema.js';
import { isRecord } from '../../../wire/json/json-value.js';
import type { ClientSystem, FoundCommand, FoundRemote, FoundServer } from '../files/found-server.js';
import { withoutShell } from '../files/own-entry.js';

/** The program of a server with its arguments and variables, or its URL. All texts are in the notation of the configuration: `${NAME}` refers to a variable. */
export interface Run {
  readonly program:
    | { readonly package: string; readonly version?: string }
    | { readonly command: string }
    | {
        readonly url: string;
        readonly transport: FoundRemote['transport'];
        readonly headers: FoundRemote['headers'];
      };
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** The reason why a server cannot be imported, as a sentence without values. */
export class CannotImport extends Error {
  override readonly name = 'CannotImport';
}

export interface ToRunOptions {
  readonly system: { readonly platform: ClientSystem['platform']; readonly home: string };
  /** The variables of an environment file; undefined if it cannot be read. */
  readonly readEnvFile: (file: string) => Readonly<Record<string, string | undefined>> | undefined;
}

/** Translates an entry of a client. Throws `CannotImport` if Trunkline cannot run it. */
export function toRun(server: FoundServer, options: ToRunOptions): Run {
  const project = projectOf(server);
  const our = (text: string) => translate(text, server.variables, { ...options.system, project });
  const { run } = server;
  return run.kind === 'remote' ? remoteRun(run, our) : commandRun(run, our, project, options);
}

function projectOf({ place: { scope, file, path } }: FoundServer): string | undefined {
  if (scope === 'user' || scope === 'extension') return undefined;
  if (scope === 'local') return path[1];
  const folder = dirname(file);
  // The file may be in a folder of its client, such as `.cursor/mcp.json`.
  return /[\\/]\.[\w-]+$/.test(folder) ? dirname(folder) : folder;
}

function commandRun(
  run: FoundCommand,
  our: (text: string) => string,
  project: string | undefined,
  { system, readEnvFile }: ToRunOptions,
): Run {
  const { command, args } = withoutShell(run.command, run.args);
  const env = Object.fromEntries(Object.entries(run.env).map(([name, value]) => [name, our(value)]));
  const fromFile = run.envFile === undefined ? {} : variablesOf(our(run.envFile), project, system.home, readEnvFile);
  const ours = { program: { command: our(command) }, args: args.map(our), env: { ...fromFile, ...env } };
  const isPath = /^\.{1,2}[\\/]/.test(command);
  const needsFolder = isPath || ours.args.some(isRelative);
  const cwd = run.cwd === undefined ? (needsFolder ? project : undefined) : our(run.cwd);
  const folder = cwd !== undefined && project !== undefined && !/^[~$]/.test(cwd) ? resolve(project, cwd) : cwd;
  // Trunkline would resolve a relative command from the folder of the configuration, so the entry gets an absolute path.
  const program = isPath && folder !== undefined ? { command: resolve(folder, ours.program.command) } : ours.program;
  const launched = packageOf(program.command, ours.args, ours.env);
  return withoutBridge({ ...ours, program, ...launched, ...(folder !== undefined && { cwd: folder }) });
}

function variablesOf(
  envFile: string,
  project: string | undefined,
  home: string,
  readEnvFile: ToRunOptions['readEnvFile'],
): Record<string, string> {
  const path = expandHome(envFile, home);
  const file = project === undefined ? path : resolve(project, path);
  const variables = isAbsolute(file) ? readEnvFile(file) : undefined;
  if (variables === undefined) throw new CannotImport('its environment file cannot be read');
  return Object.fromEntries(Object.entries(variables).map(([name, value]) => [name, escapeReferences(value ?? '')]));
}

/** A server behind a URL. Throws `CannotImport` if Trunkline would not connect to the URL. */
export function remoteRun({ url, transport, headers }: FoundRemote, our: (text: string) => string): Run {
  const shown = our(url);
  const fault = faultOfUrl(shown);
  if (fault !== undefined) throw new CannotImport(fault);
  const invalid = Object.keys(headers).find((name) => !HEADER_NAME.test(name));
  if (invalid !== undefined) throw new CannotImport('the name of one of its headers is not valid');
  // Some clients need headers in their files that Trunkline sets itself, such as `Accept`.
  const kept = Object.entries(headers).filter(([name]) => !TRANSPORT_HEADERS.has(name.toLowerCase()));
  const ours = Object.fromEntries(kept.map(([name, value]) => [name, our(value)]));
  return { program: { url: shown, transport, headers: ours }, args: [], env: {} };
}

/** Returns what is wrong with a URL. A URL with variables is checked when their values are known. */
function faultOfUrl(text: string): string | undefined {
  const url = literalIn(text);
  if (url === undefined) return undefined;
  try {
    remoteUrl(url);
  } catch (error) {
    if (error instanceof ServerFault) return error.message;
    throw error;
  }
  return undefined;
}

/**
 * The server behind the URL, if the run is that of the bridge `mcp-remote` and Trunkline can do without the bridge. With
 * other options, and with variables for the bridge itself, the run stays as it is.
 */
function withoutBridge(run: Run): Run {
  const { program, args, env } = run;
  if (!('package' in program) || program.package !== 'mcp-remote') return run;
  const [url = '', ...options] = args;
  const headers: Record<string, string> = {};
  const used = new Set<string>();
  let transport: FoundRemote['transport'] = 'http';
  for (let at = 0; at < options.length; at += 1) {
    const option = options[at] ?? '';
    if (option === '--header') {
      at += 1;
      const [, name, value = ''] = /^([^:]+): *(.*)$/s.exec(options[at] ?? '') ?? [];
      if (name === undefined) return run;
      // The bridge replaces the variables that Trunkline or the client has left in the text.
      headers[name] = value.replace(/\$?\$\{([A-Za-z_]\w*)\}/g, (_, variable: string) => {
        used.add(variable);
        return env[variable] ?? `\${${variable}}`;
      });
    } else if (option === '--transport') {
      at += 1;
      if (/^sse/.test(options[at] ?? '')) transport = 'sse';
    } else if (!/^(?:\d+|--allow-http|--debug|--silent)$/.test(option)) return run;
  }
  const isWhole = Object.keys(env).every((name) => used.has(name)) && faultOfUrl(url) === undefined;
  return isWhole ? remoteRun({ kind: 'remote', url, transport, headers }, (text) => text) : run;
}

/** The reason why a server behind a URL cannot be added with arguments of a program. */
export const NO_ARGUMENTS = 'it is behind a URL, so it has no arguments';

/** A remark about a server behind a URL that may need a login; empty for any other. */
export function loginRemark({ program }: Run): string {
  const isOpen = 'url' in program && Object.keys(program.headers).length === 0;
  return isOpen ? 'if it needs a login, run `trunkline login` with its name' : '';
}

/** The run of an entry of the configuration; undefined if it has neither a program nor a URL. */
export function runOf(entry: unknown): Run | undefined {
  if (!isRecord(entry)) return undefined;
  const { package: used, command, url, headers, args, env, cwd } = entry;
  const rest = {
    args: Array.isArray(args) ? args.filter((arg) => typeof arg === 'string') : [],
    env: textsOf(env),
    ...(typeof cwd === 'string' && { cwd }),
  };
  if (typeof used === 'string') return withoutBridge({ ...rest, program: { package: withoutVersion(used) } });
  if (typeof url === 'string') return { ...rest, program: { url, transport: 'http', headers: textsOf(headers) } };
  return typeof command === 'string' ? { ...rest, program: { command } } : undefined;
}

function textsOf(map: unknown): Record<string, string> {
  const texts = Object.entries(isRecord(map) ? map : {}).filter(([, value]) => typeof value === 'string');
  return Object.fromEntries(texts) as Record<string, string>;
}

/**
 * The package that `npx` would run, if Trunkline can run it itself, because it then starts faster, and without a network. The version is
 * kept if it is exact; a tag stays a tag.
 */
export function packageOf(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): { readonly program: Run['program']; readonly args: readonly string[] } | undefined {
  if (programName(command) !== 'npx') return undefined;
  // The entry names another registry for this server alone.
  if (Object.keys(env).some((name) => /^npm_config_/i.test(name))) return undefined;
  const launched = launchedBy(command, args);
  const { name, version = '' } = packageParts(literalIn(launched?.spec ?? '') ?? '') ?? {};
  // An address or a folder is no package of the registry.
  if (launched?.isPlain !== true || name === undefined || /[/:]/.test(version)) return undefined;
  const isKept = EXACT_VERSION.test(version) || (TAG.test(version) && version !== 'latest');
  return { program: { package: name, ...(isKept && { version }) }, args: launched.rest };
}

const TAG = /^[a-z][\w.-]*$/i;

/** The values of client variables. `project` is the folder of the project that has the entry. */
type Surroundings = ToRunOptions['system'] & { readonly project: string | undefined };

/**
 * A text of a client's file in the notation of the configuration: its variables become ours, and a literal `${` is escaped.
 * Throws `CannotImport` for a variable that only the client can resolve.
 */
export function translate(text: string, notation: FoundServer['variables'], surroundings: Surroundings): string {
  switch (notation) {
    case 'none':
      return escapeReferences(text);
    case 'claude-code':
      return text.replace(BRACES_WITH_DEFAULT, shellReference);
    case 'gemini':
      return translateGemini(text, surroundings);
    case 'vscode':
    case 'cursor':
      return text.replace(EDITOR_REFERENCE, (all, body?: string) => {
        return body === undefined ? escapeReferences(all) : editorReference(body, surroundings);
      });
  }
}

const BRACES_WITH_DEFAULT = /\$\{(?:([A-Za-z_]\w*)(?::-([^}]*))?\})?/g;
const EDITOR_REFERENCE = /\$\{(?:([^}]*)\})?/g;
const GEMINI_REFERENCE = /\$\{(?:([A-Za-z_]\w*)(?::-([^}]*))?\})?|\$([A-Za-z_]\w*)/g;
const WINDOWS_REFERENCE = /%([A-Za-z_]\w*)%/g;

function shellReference(all: string, name?: string, fallback?: string): string {
  if (name === undefined) return escapeReferences(all);
  if (fallback?.includes('{')) throw new CannotImport(`the default of \${${name}} contains a brace`);
  return fallback === undefined ? `\${${name}}` : `\${${name}:-${fallback}}`;
}

function translateGemini(text: string, { platform }: Surroundings): string {
  const translated = text.replace(GEMINI_REFERENCE, (all, name?: string, fallback?: string, bare?: string) => {
    return bare === undefined ? shellReference(all, name, fallback) : `\${${bare}}`;
  });
  return platform === 'win32' ? translated.replace(WINDOWS_REFERENCE, (_, name: string) => `\${${name}}`) : translated;
}

function editorReference(body: string, { platform, home, project }: Surroundings): string {
  const [, kind = '', name = ''] = /^(?:(env|input):)(.*)$/.exec(body) ?? [];
  if (kind === 'env' && /^[A-Za-z_]\w*$/.test(name)) return `\${${name}}`;
  // Makes it a variable that the user sets, because only the editor can ask for an input.
  if (kind === 'input' && name !== '') return `\${${variableName(name)}}`;
  switch (body) {
    case 'userHome':
      return escapeReferences(home);
    case 'pathSeparator':
    case '/':
      return platform === 'win32' ? '\\' : '/';
    case 'workspaceFolder':
    case 'workspaceFolderBasename':
      if (project === undefined) throw new CannotImport('it refers to the folder that is open in the editor');
      return escapeReferences(body === 'workspaceFolder' ? project : (project.split(/[\\/]/).at(-1) ?? ''));
  }
  const isShown = /^[\w:.-]{1,40}$/.test(body);
  const what = isShown ? `\${${body}}, which only its client` : 'a variable that only its client';
  throw new CannotImport(`it uses ${what} can resolve`);
}

/** A valid name of a variable that is similar to this text. */
export function variableName(text: string): string {
  const name = text
    .replace(/[^A-Za-z0-9]+/g, '_')
    .replace(/^_+|_+$/g, '')
    .toUpperCase();
  return /^[A-Z]/.test(name) ? name : `VALUE_${name}`;
}

/** Escapes a text, so that it stands for itself in the notation of the configuration. */
export function escapeReferences(text: string): string {
  return text.replaceAll('${', () => '$${');
}

/** The literal value of a text; `undefined` if it refers to a variable. */
export function literalIn(text: string): string | undefined {
  return variableNamesIn([text]).length > 0 ? undefined : text.replaceAll('$${', () => '${');
}

/**
 * The identity of a run, equal for two entries that run the same program with the same arguments and variables, or have the same URL and
 * headers. The version of a package does not count. The text must stay in memory, because it contains secrets.
 */
export function identityOfRun({ program, args, env, cwd }: Run, variables: Variables): string {
  if ('url' in program) {
    const headers = Object.entries(program.headers).map(([key, value]) => [key.toLowerCase(), value] as const);
    const url = resolved(program.url, variables).replace(/\/+$/, '');
    return JSON.stringify(['url', url, resolvedSorted(headers, variables)]);
  }
  const name = 'package' in program ? ['package', program.package] : ['command', resolved(program.command, variables)];
  return JSON.stringify([
    name,
    args.map((arg) => resolved(arg, variables)),
    resolvedSorted(Object.entries(env), variables),
    args.some(isRelative) || ('command' in program && isRelative(program.command)) ? (cwd ?? '') : '',
  ]);
}

function resolvedSorted(entries: readonly (readonly [string, string])[], variables: Variables): [string, string][] {
  const sorted = [...entries].sort(([one], [other]) => (one < other ? -1 : 1));
  return sorted.map(([key, value]) => [key, resolved(value, variables)]);
}

/** Whether an argument is a path that depends on the working folder. */
function isRelative(arg: string): boolean {
  return /^\.{1,2}(?:[\\/]|$)/.test(arg) || /^[\w.-]+(?:[\\/][\w.-]+)*\.(?:[cm]?[jt]s|py|sh|rb)$/.test(arg);
}

function resolved(text: string, variables: Variables): string {
  try {
    // Texts that name the same secret are equal.
    return expand(text, variables, (name) => `\${secret:${name}}`);
  } catch (error) {
    // The variable is not set. Texts that name the same unset variable are equal.
    if (error instanceof ServerFault) return text;
    throw error;
  }
}
