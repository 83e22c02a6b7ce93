import type { NewEntry } from '../../../config/edit/edit-config.js';
import { canBeInEnv } from '../../../config/edit/env-draft.js';
import { type Variables, variableNamesIn } from '../../../config/resolve/references.js';
import { NOTATIONS } from '../../../config/schema/settings.js';
import { findSecretShapes, secretValuesIn } from '../../../host/observe/redact.js';
import { suggestedEntry } from '../../../servers/sandbox/needs.js';
import type { FoundServer } from '../files/found-server.js';
import type { KeptFile } from './kept-file.js';
import type { OpenedPath } from './opened-paths.js';
import { CannotImport, escapeReferences, literalIn, type Run, variableName } from './run.js';

/** The environment file of the configuration, as far as an entry has to know it. */
export interface ImportEnvFile {
  /** Takes a secret in, and returns the name of the variable that has it from now on. */
  put(name: string, value: string): string;
  /** The `envFile` of an entry that needs these variables; undefined if `defaults` has it already. */
  readonly envFile: string | undefined;
  readonly values: Variables;
}

interface EntrySettings {
  readonly secrets: ImportEnvFile;
  readonly env: Variables;
  readonly isDisabled?: boolean;
  readonly allowedTools?: readonly string[] | undefined;
  readonly deniedTools?: readonly string[] | undefined;
  readonly timeoutMs?: number | undefined;
  /** Whether the program is confined. Its sandbox opens the known needs of its package, and the paths in `opened`. */
  readonly isConfined?: boolean;
  readonly opened?: readonly OpenedPath[] | undefined;
  /** The variables and headers that are secrets whatever they look like. */
  readonly secretVariables?: readonly string[];
  /** The file in the data folder for a server that would write beside its program. */
  readonly kept?: KeptFile | undefined;
}

/**
 * Returns an entry of the configuration, and moves its secrets to the environment file. `unset` names the variables to which the entry
 * refers although they are set nowhere.
 */
export function toEntry(
  run: Run,
  key: string,
  { secrets, env, ...settings }: EntrySettings,
): { entry: NewEntry; unset: string[] } {
  const clean = moveSecrets(run, key, secrets, settings.secretVariables);
  const { program, args, cwd } = clean;
  const ofProgram = 'url' in program ? [program.url, ...Object.values(program.headers)] : [];
  if ('command' in program) ofProgram.push(program.command);
  const texts = [...args, ...Object.values(clean.env), cwd ?? '', ...ofProgram];
  const names = variableNamesIn(texts);
  const inFile = (name: string) => Object.hasOwn(secrets.values, name);
  const { allowedTools, deniedTools, kept } = settings;
  const variables = { ...clean.env, ...(kept && { [kept.variable]: kept.value }) };
  const entry = {
    ...howToRun(program),
    ...(args.length > 0 && { args }),
    ...(cwd !== undefined && { cwd }),
    ...(Object.keys(variables).length > 0 && { env: variables }),
    ...(secrets.envFile !== undefined && names.some(inFile) && { envFile: secrets.envFile }),
    ...((allowedTools ?? deniedTools) && {
      tools: { ...(allowedTools && { allow: allowedTools }), ...(deniedTools && { deny: deniedTools }) },
    }),
    ...timeouts(settings.timeoutMs),
    ...(settings.isConfined === true &&
      !('url' in program) && {
        sandbox: suggestedEntry('package' in program ? program.package : '', args, settings.opened),
      }),
    ...(settings.isDisabled === true && { disabled: true }),
  };
  const withoutDefault = names.filter((name) => texts.some((text) => text.includes(`\${${name}}`)));
  return { entry, unset: withoutDefault.filter((name) => !inFile(name) && env[name] === undefined) };
}

function howToRun(program: Run['program']): NewEntry {
  if ('package' in program)
    return { package: program.version === undefined ? program.package : `${program.package}@${program.version}` };
  if ('command' in program) return program;
  const { url, transport, headers } = program;
  return {
    url,
    ...(transport === 'sse' && { transport }),
    ...(Object.keys(headers).length > 0 && { headers }),
  };
}

const LONGEST = '24h';
const USUAL_MAX_MS = 600_000;

function timeouts(timeoutMs: number | undefined): NewEntry {
  // Shorter timeouts are in another unit, or would end calls that work.
  if (timeoutMs === undefined || timeoutMs < 1_000 || timeoutMs > NOTATIONS.duration.parse(LONGEST)) return {};
  const timeout = timeoutMs % 1_000 === 0 ? `${timeoutMs / 1_000}s` : `${timeoutMs}ms`;
  return { timeout, ...(timeoutMs > USUAL_MAX_MS && { maxTimeout: timeout }) };
}

/** Whether a value may be written into the configuration. Every value that is not obviously a setting counts as a secret. */
export function isPlainSetting(name: string, value: string): boolean {
  if (value === '') return true;
  // A short value under the name of a secret is one, too.
  const isNamed = secretValuesIn({ env: { [name]: value.padEnd(6, '.') }, args: [] }).length > 0;
  if (isNamed || findSecretShapes(value).length > 0) return false;
  return WORD.test(value) || SHORT_NUMBER.test(value) || PATH.test(value) || isPlainAddress(value);
}

/** A word such as `production`, a locale, or a few of them with commas. */
const WORD = /^[A-Za-z][A-Za-z._-]{0,31}(?:,[A-Za-z][A-Za-z._-]{0,31}){0,9}$/;
const SHORT_NUMBER = /^-?\d{1,6}(?:\.\d{1,6}){0,3}(?:ms|s|m|h|MB|kB)?$/;
const PATH = /^(?:~?|\.{1,2}|[A-Za-z]:|\$\{HOME\})[\\/][^\s=?#]*$/;

/** Whether an address has neither credentials nor a query, nor a part that looks random. */
function isPlainAddress(text: string): boolean {
  if (!/^(?:https?|wss?):\/\//i.test(text) || !URL.canParse(text)) return false;
  const { username, password, search, hash, pathname } = new URL(text);
  return [username, password, search, hash].every((part) => part === '') && !pathname.split('/').some(looksRandom);
}

function looksRandom(part: string): boolean {
  return findSecretShapes(part).length > 0 || secretValuesIn({ env: {}, args: [part] }).length > 0;
}

/**
 * The same run with each secret replaced by a reference. `key` begins the names of the variables that take the secrets, and `secret` names
 * variables and headers of the server that are secrets whatever they look like.
 */
export function moveSecrets(
  run: Run,
  key: string,
  store: { put(name: string, value: string): string },
  secret: readonly string[] = [],
): Run {
  const owner = variableName(key);
  const put = (name: string, value: string) => {
    if (!canBeInEnv(value)) {
      const what = value.includes('\r') ? 'line ends of Windows' : 'all kinds of quotes';
      throw new CannotImport(`its ${name} contains ${what}, which no environment file can hold`);
    }
    const wanted = variableName(name);
    return `\${${store.put(wanted.startsWith(`${owner}_`) ? wanted : `${owner}_${wanted}`, value)}}`;
  };
  const cleanOf = (what: string, values: Readonly<Record<string, string>>) => {
    const clean = Object.entries(values).map(([name, text]) => {
      const value = text.search(STORED_SECRET) >= 0 ? undefined : literalIn(text);
      if (value !== undefined)
        return [name, isPlainSetting(name, value) && !secret.includes(name) ? text : put(name, value)];
      if (hasSecretBesideReferences(text)) {
        throw new CannotImport(`its ${what} ${name} is a mixture of a secret and of other variables`);
      }
      return [name, text];
    });
    return Object.fromEntries(clean) as Record<string, string>;
  };
  const { program } = run;
  if (!('url' in program)) return { ...run, args: withoutSecretArgs(run.args, put), env: cleanOf('variable', run.env) };
  const [url = ''] = withoutSecretArgs([program.url], put);
  return { ...run, program: { ...program, url, headers: cleanOf('header', program.headers) } };
}

/** Reference to a secret that `trunkline secret` stores. After a doubled `$`, the brace is text and no reference. */
const STORED_SECRET = /(?<!\$)\$\{secret:[^}]*\}/g;

function hasSecretBesideReferences(text: string): boolean {
  const others = text.replace(STORED_SECRET, ' ');
  const rest = variableNamesIn([others]).reduce((left, name) => left.replaceAll(`\${${name}}`, ' '), others);
  return findSecretShapes(rest).length > 0 || rest.split(/[\s,;:/]+/).some(looksRandom);
}

function withoutSecretArgs(args: readonly string[], put: (name: string, value: string) => string): string[] {
  const values = args.map(literalIn);
  // A flag and its value can be two arguments.
  const known = secretValuesIn({ env: {}, args: values.map((value) => value ?? '') });
  return args.map((arg, at) => {
    const value = values[at];
    // A reference that the server itself replaces is no secret.
    if (value === undefined || /\$\{[A-Za-z_]\w*\}$/.test(value)) return arg;
    const [flag, assigned] = /^(--?[\w-]+)=(.+)$/s.exec(value)?.slice(1) ?? [];
    const previous = values[at - 1] ?? '';
    const name = flag ?? (/^--?[A-Za-z]/.test(previous) ? previous : 'secret');
    if (/:\/\//.test(value) && isAddressWithSecret(assigned ?? value)) {
      return assigned === undefined
        ? put('url', value)
        : `${escapeReferences(`${flag}=`)}${put(`${name}_url`, assigned)}`;
    }
    const found = known.filter((secret) => value.includes(secret)).sort((a, b) => b.length - a.length)[0];
    if (found !== undefined) return replaced(value, value.indexOf(found), found.length, (text) => put(name, text));
    const [shape] = findSecretShapes(value);
    if (shape === undefined) return arg;
    return replaced(value, shape.start, shape.end - shape.start, (text) => put(name, text));
  });
}

function isAddressWithSecret(text: string): boolean {
  if (!URL.canParse(text) || !/^\w+:\/\/\S*$/.test(text)) return false;
  const { username, password, search, pathname } = new URL(text);
  return [username, password, search].some((part) => part !== '') || pathname.split('/').some(looksRandom);
}

function replaced(value: string, start: number, length: number, put: (text: string) => string): string {
  return (
    escapeReferences(value.slice(0, start)) +
    put(value.slice(start, start + length)) +
    escapeReferences(value.slice(start + length))
  );
}

/** Describes a run for people: a package, an address without credentials, or a program with its first argument. */
export function describeRun(found: FoundServer['run'], run: Run | undefined): string {
  if (found.kind === 'remote') return describeAddress(found.url);
  if (run !== undefined && 'package' in run.program) {
    const { package: name, version } = run.program;
    const [address = ''] = run.args;
    if (name === 'mcp-remote') return `${name} ${describeAddress(address)}`;
    return version === undefined ? name : `${name}@${version}`;
  }
  if (run !== undefined && 'url' in run.program) return describeAddress(run.program.url);
  // Some users write a whole command line as the command.
  const [program = '', ...excess] = found.command.trim().split(/\s+/);
  const first = found.args.find((arg) => !arg.startsWith('-'));
  const isPlain = first !== undefined && /^[@\w./\\:-]{1,60}$/.test(first) && !first.split('/').some(looksRandom);
  return `${program}${excess.length > 0 ? ' …' : ''}${isPlain ? ` ${first}` : ''}`;
}

/** The names of variables and headers, whose values may be secrets. */
export function variablesOf(run: FoundServer['run']): string[] {
  return Object.keys(run.kind === 'remote' ? run.headers : run.env);
}

function describeAddress(text: string): string {
  if (!URL.canParse(text)) return 'an address with variables';
  const { protocol, host, pathname } = new URL(text);
  const path = pathname.split('/').map((part) => (looksRandom(part) ? '…' : part));
  return `${protocol}//${host}${path.join('/')}`;
}
