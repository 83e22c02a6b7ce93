import { usableServerKey } from '../../../config/schema/server-key.js';
import { errorCode, errorMessage } from '../../../host/errors/error-text.js';
import { HintedError } from '../../../host/errors/usage-error.js';
import { isRecord } from '../../../wire/json/json-value.js';
import { CannotImport, escapeReferences, NO_ARGUMENTS, type Run, remoteRun, variableName } from './run.js';

const PUBLIC_REGISTRY = 'https://registry.modelcontextprotocol.io';

const TIMEOUT_MS = 15_000;
const MAX_HITS = 20;

/** The reason why the registry gave no server, with the next step. */
export class RegistryError extends HintedError {
  override readonly name = 'RegistryError';
}

/** The name of a server in the registry, such as `io.github.user/server`, and not of a package. */
export function isRegistryName(text: string): boolean {
  return /^[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+\/[\w.-]+$/.test(text);
}

/** The latest version of a server, as the registry describes it. Throws a `RegistryError`. */
export async function fetchServer(name: string, address = PUBLIC_REGISTRY): Promise<Readonly<Record<string, unknown>>> {
  const answer = await get(`/v0.1/servers/${encodeURIComponent(name)}/versions/latest`, address);
  if (isRecord(answer) && isRecord(answer.server)) return answer.server;
  if (answer !== undefined) throw notUnderstood(address);
  const similar = await namesLike(name.split('/').at(-1) ?? name, address);
  const hint = similar.length === 0 ? 'check the name' : `similar ones are ${similar.join(', ')}`;
  throw new RegistryError(`the registry has no server \`${name}\``, hint);
}

async function namesLike(text: string, address: string): Promise<string[]> {
  const query = new URLSearchParams({ search: text, version: 'latest', limit: String(MAX_HITS) });
  const answer = await get(`/v0.1/servers?${query}`, address);
  if (!isRecord(answer) || !Array.isArray(answer.servers)) return [];
  return answer.servers.flatMap((hit: unknown) => {
    const server = isRecord(hit) ? hit.server : undefined;
    return isRecord(server) && typeof server.name === 'string' && isRegistryName(server.name) ? [server.name] : [];
  });
}

/** The parsed answer; undefined for 404. */
async function get(path: string, address: string): Promise<unknown> {
  const url = `${address.replace(/\/+$/, '')}${path}`;
  let response: Response;
  try {
    response = await fetch(url, { headers: { accept: 'application/json' }, signal: AbortSignal.timeout(TIMEOUT_MS) });
    if (response.ok) return (await response.json()) as unknown;
  } catch (error) {
    if (error instanceof SyntaxError) throw notUnderstood(address);
    const cause = error instanceof Error ? error.cause : undefined;
    const reason = errorCode(cause) ?? errorMessage(cause ?? error);
    const hint = 'check your network and proxy, or name another registry with TRUNKLINE_REGISTRY_URL';
    throw new RegistryError(`the registry ${address} cannot be reached (${reason})`, hint, { cause: error });
  }
  if (response.status === 404) return undefined;
  throw new RegistryError(`the registry ${address} answered with status ${response.status}`, 'try again later');
}

function notUnderstood(address: string): RegistryError {
  return new RegistryError(`the answer of ${address} is not that of a registry`, 'check TRUNKLINE_REGISTRY_URL');
}

/** The user's additions to an entry of the registry, in the notation of the configuration. */
interface GivenInputs {
  readonly env: Readonly<Record<string, string>>;
  /** Arguments of the server, after its own. */
  readonly args: readonly string[];
}

export interface RegistryRun {
  readonly run: Run;
  /** The variables and headers that the registry marks as secrets. */
  readonly secretVariables: readonly string[];
}

type Data = Readonly<Record<string, unknown>>;

/**
 * Returns the run of a server of the registry: its npm package if it has one, or else a package of another kind, or its remote
 * endpoint. Throws `CannotImport` if it has none that Trunkline can run, or if inputs are missing.
 */
export function runFromRegistry(server: Data, given: GivenInputs): RegistryRun {
  const isStdio = ({ transport }: Data) => !isRecord(transport) || transport.type === 'stdio';
  const packages = records(server.packages).filter(isStdio);
  for (const kind of KINDS) {
    const found = packages.find(({ registryType }) => registryType === kind);
    if (found !== undefined) return new Inputs(given).runOf(kind, found);
  }
  const remotes = records(server.remotes);
  const remote = remotes.find(({ type }) => type === 'streamable-http') ?? remotes.find(({ type }) => type === 'sse');
  if (remote !== undefined) return new Inputs(given).remoteOf(remote);
  throw new CannotImport('the registry has no package of it that Trunkline can run, and no remote endpoint');
}

/** Kinds of packages, the preferred one first. */
const KINDS = ['npm', 'pypi', 'oci', 'nuget'] as const;

/** Fills in the inputs of a registry entry, and collects the missing ones. */
class Inputs {
  readonly #given: GivenInputs;
  readonly #missing: string[] = [];
  readonly #secret: string[] = [];

  constructor(given: GivenInputs) {
    this.#given = given;
  }

  runOf(kind: (typeof KINDS)[number], found: Data): RegistryRun {
    const identifier = textOf(found.identifier);
    const version = textOf(found.version);
    const env = this.#env(records(found.environmentVariables));
    const args = [...this.#args(records(found.packageArguments)), ...this.#given.args];
    const before = kind === 'npm' ? [] : this.#args(records(found.runtimeArguments));
    const run = (command: string, own: string[]): Run => ({ program: { command }, args: [...own, ...args], env });
    if (identifier === undefined) throw new CannotImport('the registry does not say which package it is');
    const at = (sign: string) => (version === undefined ? identifier : identifier + sign + version);
    switch (kind) {
      case 'npm':
        return this.#complete({ program: { package: identifier, ...(version && { version }) }, args, env });
      case 'pypi':
        return this.#complete(run('uvx', [...before, at('@')]));
      case 'nuget':
        return this.#complete(run('dnx', [...before, at('@'), '--yes']));
      case 'oci': {
        const names = Object.keys(env).flatMap((name) => ['-e', name]);
        return this.#complete(run('docker', ['run', '-i', '--rm', ...before, ...names, at(':')]));
      }
    }
  }

  remoteOf(remote: Data): RegistryRun {
    const url = this.#filled(textOf(remote.url) ?? '', remote.variables);
    const headers = records(remote.headers).flatMap((header) => {
      const name = textOf(header.name) ?? '';
      const variable = variableName(name);
      if (header.isSecret === true) this.#secret.push(name);
      const value = this.#given.env[variable] ?? this.#value(header, variable);
      return value === undefined ? [] : [[name, value] as const];
    });
    const transport = remote.type === 'sse' ? 'sse' : 'http';
    const run = remoteRun({ kind: 'remote', url, transport, headers: Object.fromEntries(headers) }, (text) => text);
    if (this.#given.args.length > 0) throw new CannotImport(NO_ARGUMENTS);
    return this.#complete(run);
  }

  #complete(run: Run): RegistryRun {
    if (this.#missing.length === 0) return { run, secretVariables: this.#secret };
    throw new CannotImport(`it needs ${[...new Set(this.#missing)].join(', ')}`);
  }

  #env(variables: readonly Data[]): Record<string, string> {
    const env: Record<string, string> = {};
    for (const variable of variables) {
      const name = textOf(variable.name) ?? '';
      const value = this.#given.env[name] ?? this.#value(variable, name);
      if (value !== undefined) env[name] = value;
      if (variable.isSecret === true) this.#secret.push(name);
    }
    return { ...env, ...this.#given.env };
  }

  #args(descriptions: readonly Data[]): string[] {
    return descriptions.flatMap((description) => {
      const name = textOf(description.name);
      const isNamed = description.type === 'named' && name !== undefined;
      const hint = textOf(description.valueHint) ?? name ?? 'an argument';
      // The arguments of the user behind `--` replace it.
      const isGiven = this.#given.args.length > 0 && description.value === undefined;
      const value = isGiven ? undefined : this.#value(description, undefined, hint);
      if (value === undefined) return [];
      return isNamed ? [name, value] : [value];
    });
  }

  /** The value of an input: a fixed one, or the default of one that is required. */
  #value(input: Data, variable: string | undefined, hint?: string): string | undefined {
    const fixed = textOf(input.value);
    if (fixed !== undefined) return this.#filled(fixed, input.variables);
    if (input.isRequired !== true) return undefined;
    const fallback = textOf(input.default);
    if (fallback !== undefined) return escapeReferences(fallback);
    this.#missing.push(variable === undefined ? `\`-- ${hint?.toUpperCase()}\`` : `\`--env ${variable}=VALUE\``);
    return undefined;
  }

  /** A text with its `{name}` replaced. */
  #filled(text: string, variables: unknown): string {
    const known = isRecord(variables) ? variables : {};
    return escapeReferences(text).replace(/\{(\w+)\}/g, (all, name: string) => {
      const variable = known[name];
      if (!isRecord(variable)) return all;
      const wanted = variableName(name);
      const given = this.#given.env[name] ?? this.#given.env[wanted];
      return given ?? this.#value({ isRequired: true, ...variable }, wanted) ?? '';
    });
  }
}

function records(value: unknown): Data[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** A short key for a package or a server of the registry: `filesystem` for `@modelcontextprotocol/server-filesystem`. */
export function packageKey(name: string): string {
  const [scope = '', base = ''] = name.includes('/') ? name.split('/') : ['', name];
  const short = base.replace(/^(?:mcp[-_])?(?:server[-_])?/i, '').replace(/(?:[-_]mcp)?(?:[-_]server)?$/i, '');
  const isGeneric = short === '' || /^(?:mcp|server)$/i.test(short);
  const vendor = scope.replace(/^@/, '').split('.').at(-1) ?? '';
  return usableServerKey(isGeneric && vendor !== '' ? vendor : short) ?? usableServerKey(base) ?? 'server';
}
