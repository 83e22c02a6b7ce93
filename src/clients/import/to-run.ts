import { dirname, isAbsolute, resolve } from 'node:path';
import type { ClientSystem, FoundCommand, FoundRemote, FoundServer } from '../files/found-server.js';
import { packageOf, withoutShell } from './launcher.js';
import { isRelative, literal, type Run } from './run.js';
import { CannotImport, type Surroundings, translate, variableName } from './translate.js';

export interface ToRunOptions {
  readonly system: Pick<ClientSystem, 'platform' | 'home'>;
  /** The variables of an environment file; undefined if it cannot be read. */
  readonly readEnvFile: (file: string) => Readonly<Record<string, string | undefined>> | undefined;
}

/** What an entry of a client runs. Throws `CannotImport` if Trunkline cannot run it. */
export function toRun(server: FoundServer, options: ToRunOptions): Run {
  const project = projectOf(server);
  const surroundings: Surroundings = { ...options.system, project };
  const our = (text: string) => translate(text, server.variables, surroundings);
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
