import { dirname, isAbsolute, resolve } from 'node:path';
import { ServerFault } from '../../config/file/config-error.js';
import { expand, namesIn, type Variables } from '../../config/resolve/references.js';
import { isRecord } from '../../json/json-value.js';
import type { ClientSystem, FoundCommand, FoundRemote, FoundServer } from '../files/found-server.js';
import { programName, withoutShell } from '../files/own-entry.js';

/** The program of a server with its arguments and variables. All texts are in the notation of the configuration: `${NAME}` refers to a variable. */
export interface Run {
  readonly program: { readonly package: string; readonly version?: string } | { readonly command: string };
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** The reason why a server cannot be imported, as a sentence without values. */
export class CannotImport extends Error {
  override readonly name = 'CannotImport';
}

export interface ToRunOptions {
  readonly system: Pick<ClientSystem, 'platform' | 'home'>;
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

/** The folder of the project that has the entry. */
function projectOf({ place: { scope, file, path } }: FoundServer): string | undefined {
  if (scope === 'user' || scope === 'extension') return undefined;
  if (scope === 'local') return path[1];
  const folder = dirname(file);
  // Such as `.cursor/mcp.json`.
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
  // A relative command is relative to the configuration, not to the working folder.
  const program = isPath && folder !== undefined ? { command: resolve(folder, ours.program.command) } : ours.program;
  const launched = packageOf(program.command, ours.args, ours.env);
  return { ...ours, program, ...launched, ...(folder !== undefined && { cwd: folder }) };
}

function variablesOf(
  envFile: string,
  project: string | undefined,
  home: string,
  readEnvFile: ToRunOptions['readEnvFile'],
): Record<string, string> {
  const path = envFile.replace(/^~(?=[\\/])/, () => home);
  const file = project === undefined ? path : resolve(project, path);
  const variables = isAbsolute(file) ? readEnvFile(file) : undefined;
  if (variables === undefined) throw new CannotImport('its environment file cannot be read');
  return Object.fromEntries(Object.entries(variables).map(([name, value]) => [name, literal(value ?? '')]));
}

/**
 * A remote server by way of `mcp-remote`, which is a server on stdio. Headers reach it as variables, because other users of
 * the machine can read arguments.
 */
export function remoteRun({ url, transport, headers }: FoundRemote, our: (text: string) => string): Run {
  const args = [our(url)];
  if (transport === 'sse') args.push('--transport', 'sse-first');
  // It refuses the unencrypted protocol otherwise.
  if (/^http:\/\/(?!localhost[:/]|127\.|\[::1\])/i.test(url)) args.push('--allow-http');
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    const variable = variableName(`header_${name}`);
    env[variable] = our(value);
    // `mcp-remote` replaces the variable, so the reference is literal for Trunkline.
    args.push('--header', literal(`${name}:\${${variable}}`));
  }
  return { program: { package: 'mcp-remote' }, args, env };
}

/** The run of an entry of the configuration; undefined if it has no program. */
export function runOf(entry: unknown): Run | undefined {
  if (!isRecord(entry)) return undefined;
  const { package: used, command, args, env, cwd } = entry;
  const variables = Object.entries(isRecord(env) ? env : {}).filter(([, value]) => typeof value === 'string');
  const rest = {
    args: Array.isArray(args) ? args.filter((arg) => typeof arg === 'string') : [],
    env: Object.fromEntries(variables) as Record<string, string>,
    ...(typeof cwd === 'string' && { cwd }),
  };
  if (typeof used === 'string') return { ...rest, program: { package: used.replace(/(?<=.)@[^@/]*$/, '') } };
  return typeof command === 'string' ? { ...rest, program: { command } } : undefined;
}

/**
 * The package that `npx` would run, if Trunkline can run it itself: it starts faster then, and without a network. The
 * version is kept if it is exact; a tag stays a tag.
 */
export function packageOf(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Pick<Run, 'program' | 'args'> | undefined {
  if (programName(command) !== 'npx') return undefined;
  // Another registry for this server alone.
  if (Object.keys(env).some((name) => /^npm_config_/i.test(name))) return undefined;
  const at = args.findIndex((arg) => !PLAIN_OPTION.test(arg));
  const spec = literalIn(args[at] ?? '');
  const [, name, version] = SPEC.exec(spec ?? '') ?? [];
  if (name === undefined) return undefined;
  const isKept = version !== undefined && (EXACT.test(version) || (TAG.test(version) && version !== 'latest'));
  return { program: { package: name, ...(isKept && { version }) }, args: args.slice(at + 1) };
}

const PLAIN_OPTION = /^(?:-y|--yes|-q|--quiet|--prefer-online|--prefer-offline|--)$/;
const SPEC = /^((?:@[a-z0-9~][\w.~-]*\/)?[a-z0-9~][\w.~-]*)(?:@([^/:]*))?$/i;
const EXACT = /^\d+\.\d+\.\d+(?:[-+][\w.+-]+)?$/;
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
      return literal(text);
    case 'claude-code':
      return text.replace(BRACES_WITH_DEFAULT, shellReference);
    case 'gemini':
      return translateGemini(text, surroundings);
    case 'vscode':
    case 'cursor':
      return text.replace(EDITOR_REFERENCE, (all, body?: string) => {
        return body === undefined ? literal(all) : editorReference(body, surroundings);
      });
  }
}

const BRACES_WITH_DEFAULT = /\$\{(?:([A-Za-z_]\w*)(?::-([^}]*))?\})?/g;
const EDITOR_REFERENCE = /\$\{(?:([^}]*)\})?/g;
const GEMINI_REFERENCE = /\$\{(?:([A-Za-z_]\w*)(?::-([^}]*))?\})?|\$([A-Za-z_]\w*)/g;
const WINDOWS_REFERENCE = /%([A-Za-z_]\w*)%/g;

function shellReference(all: string, name?: string, fallback?: string): string {
  if (name === undefined) return literal(all);
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
  // The editor asks for it; here it is a variable that the user sets.
  if (kind === 'input' && name !== '') return `\${${variableName(name)}}`;
  switch (body) {
    case 'userHome':
      return literal(home);
    case 'pathSeparator':
    case '/':
      return platform === 'win32' ? '\\' : '/';
    case 'workspaceFolder':
    case 'workspaceFolderBasename':
      if (project === undefined) throw new CannotImport('it refers to the folder that is open in the editor');
      return literal(body === 'workspaceFolder' ? project : (project.split(/[\\/]/).at(-1) ?? ''));
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

/** A text that stands for itself, in the notation of the configuration. */
export function literal(text: string): string {
  return text.replaceAll('${', () => '$${');
}

/** The literal value of a text; `undefined` if it refers to a variable. */
export function literalIn(text: string): string | undefined {
  return namesIn([text]).length > 0 ? undefined : text.replaceAll('$${', () => '${');
}

/**
 * An identity: equal for two entries that run the same program with the same arguments and variables. The
 * version of a package does not count. The text contains secrets: it must stay in memory.
 */
export function identityOfRun({ program, args, env, cwd }: Run, variables: Variables): string {
  const name = 'package' in program ? ['package', program.package] : ['command', resolved(program.command, variables)];
  const sorted = Object.entries(env).sort(([one], [other]) => (one < other ? -1 : 1));
  return JSON.stringify([
    name,
    args.map((arg) => resolved(arg, variables)),
    sorted.map(([key, value]) => [key, resolved(value, variables)]),
    args.some(isRelative) || ('command' in program && isRelative(program.command)) ? (cwd ?? '') : '',
  ]);
}

/** Whether an argument is a path that depends on the working folder. */
function isRelative(arg: string): boolean {
  return /^\.{1,2}(?:[\\/]|$)/.test(arg) || /^[\w.-]+(?:[\\/][\w.-]+)*\.(?:[cm]?[jt]s|py|sh|rb)$/.test(arg);
}

function resolved(text: string, variables: Variables): string {
  try {
    // Two texts that name a secret are the same.
    return expand(text, variables, (name) => `\${secret:${name}}`);
  } catch (error) {
    // A variable that is not set: two texts that name it are the same.
    if (error instanceof ServerFault) return text;
    throw error;
  }
}
