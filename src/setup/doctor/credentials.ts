import { existsSync, readdirSync, statSync } from 'node:fs';
import { chmod } from 'node:fs/promises';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { readConfigText } from '../../config/file/find-config.js';
import { parseYaml, type YamlSource } from '../../config/file/yaml-source.js';
import type { ServerConfig } from '../../config/resolve/config.js';
import { findSecretShapes } from '../../host/observe/redact.js';
import { programOf } from '../../spec/server-spec.js';
import { readToken, TokenFileError } from '../../state/token-file.js';
import { isRecord } from '../../wire/json/json-value.js';
import { type Finding, finding, type Repair } from './finding.js';
import type { Machine } from './machine.js';

/** Finds credentials in the configuration itself, and whether other users can read such a file. */
export function checkLiterals(file: string, { uid }: Machine): Finding[] {
  const source = parseYaml(readConfigText(file), file);
  const literals = literalsIn(source);
  const found = literals.map(({ path, line, column }) => {
    const evidence = [`${file}:${line}:${column}`];
    return finding('TL-SECRET-LITERAL', `${path.join('.')} looks like a credential`, evidence);
  });
  if (literals.length > 0 && isReadableByOthers(file, uid)) found.push(exposed(file, 'TL-CONFIG-EXPOSED'));
  return found;
}

function literalsIn({ value, positionOf }: YamlSource) {
  if (!isRecord(value)) return [];
  const shared = isRecord(value.defaults) ? envIn(['defaults'], value.defaults.env) : [];
  const values = ['servers', 'mcpServers'].flatMap((root) =>
    Object.entries(isRecord(value[root]) ? value[root] : {}).flatMap(([key, entry]) => {
      if (!isRecord(entry)) return [];
      const args: unknown[] = Array.isArray(entry.args) ? entry.args : [];
      const texts = args.map((text, at) => ({ path: [root, key, 'args', at], name: '', text }));
      return [...envIn([root, key], entry.env), ...texts];
    }),
  );
  return [...shared, ...values].flatMap(({ path, name, text }) =>
    typeof text === 'string' && isCredential(name, text) ? [{ path, ...positionOf(path) }] : [],
  );
}

function envIn(path: readonly string[], env: unknown) {
  if (!isRecord(env)) return [];
  return Object.entries(env).map(([name, text]) => ({ path: [...path, 'env', name], name, text }));
}

/** Names whose values are secrets; `PATH`-like values, numbers and switches are not. */
const SECRET_NAME = /(?:key|token|secret|passw(?:or)?d|credentials?|pat|dsn)$/i;
const HARMLESS = /^(?:\d+|true|false|yes|no|on|off|[.~]?[\\/].*|[a-z]:\\.*|https?:\/\/[^@]*)$/i;

function isCredential(name: string, text: string): boolean {
  if (/\$\{/.test(text) || isPlaceholder(text) || text.length < 8) return false;
  if (findSecretShapes(text).length > 0) return true;
  return SECRET_NAME.test(name) && !HARMLESS.test(text) && !/\s/.test(text);
}

/** Checks files with variables, beside the configuration or named by an argument, for readers among other users. */
export function checkEnvFiles(configFile: string, servers: readonly ServerConfig[], { uid }: Machine): Finding[] {
  const folder = dirname(configFile);
  const beside = readdirSync(folder).filter((name) => /^\.env(?:\.(?!example|sample|template)[\w-]+)?$/.test(name));
  const named = servers.flatMap((server) => {
    const spec = programOf(server);
    if (spec === undefined) return [];
    return spec.args.flatMap((arg, at) => {
      const file = /^--env-file=(.+)$/.exec(arg)?.[1] ?? (spec.args[at - 1] === '--env-file' ? arg : undefined);
      return file === undefined ? [] : [isAbsolute(file) ? file : resolve(spec.cwd, file)];
    });
  });
  const files = [...new Set([...beside.map((name) => join(folder, name)), ...named])];
  return files.filter((file) => isReadableByOthers(file, uid)).map((file) => exposed(file, 'TL-CONFIG-EXPOSED'));
}

/** Checks the files with the token for HTTP clients and with the key that protects caches. */
export async function checkSecretFiles(
  { tokenFile, sealFile }: { readonly tokenFile: string; readonly sealFile: string },
  { uid }: Machine,
): Promise<Finding[]> {
  const open = [tokenFile, sealFile].filter((file) => isReadableByOthers(file, uid));
  const found = open.map((file) => exposed(file, 'TL-TOKEN-EXPOSED'));
  try {
    await readToken(tokenFile);
  } catch (error) {
    if (!(error instanceof TokenFileError)) throw error;
    const isExposed = error.code === 'token-file-exposed';
    const code = isExposed ? 'TL-TOKEN-EXPOSED' : 'TL-TOKEN-MALFORMED';
    if (!isExposed || found.length === 0) found.push(finding(code, error.message, [tokenFile]));
  }
  return found;
}

function isReadableByOthers(file: string, uid: number | undefined): boolean {
  return uid !== undefined && existsSync(file) && (statSync(file).mode & 0o044) !== 0;
}

function exposed(file: string, code: 'TL-CONFIG-EXPOSED' | 'TL-TOKEN-EXPOSED'): Finding {
  const repair: Repair = { done: `closed ${file} to other users`, apply: async () => await chmod(file, 0o600) };
  const mode = (statSync(file).mode & 0o777).toString(8).padStart(4, '0');
  const evidence = [`${file} has mode ${mode}`];
  return finding(code, `other users can read ${file}`, evidence, { remedy: `chmod 600 ${file}`, repair });
}

/** Placeholders in examples, such as `YOUR_API_KEY`. The whole value has to match. */
const PLACEHOLDER =
  /^(?:<[^<>]*>|\[[a-z _-]*\]|\.{3,}|[x*]{3,}|(?:sk|ghp|pk|xox[bp])[-_](?:\.{3}|[x*]{3,}|your.*)|(?:your|my|insert|enter|put|paste|add|replace)[-_ ].*|.*[-_ ](?:goes[-_ ])?here|change[-_ ]?me|to[-_]?do|tbd|placeholder|example|dummy|(?:api[-_]?key|token|secret|password))$/i;

export function isPlaceholder(value: string): boolean {
  return PLACEHOLDER.test(value.trim());
}

/** Whether the values of variables are usable. Never shows one. */
export function checkVariables(servers: readonly ServerConfig[]): Finding[] {
  return servers.flatMap((server) => {
    const { key, references } = server;
    // A variable of an entry often has the name of the variable that it refers to. Both are one mistake.
    const values = new Map([...Object.entries(references), ...Object.entries(programOf(server)?.env ?? {})]);
    return [...values].flatMap(([name, value]) => checkValue(key, name, value));
  });
}

function checkValue(server: string, name: string, value: string): Finding[] {
  const of = `the variable ${name} of server \`${server}\``;
  if (value === '') return [finding('TL-VAR-EMPTY', `${of} is empty`)];
  const odd = oddityOf(value);
  const found = odd === undefined ? [] : [finding('TL-VAR-WHITESPACE', `${of} ${odd}`)];
  if (isPlaceholder(value)) found.push(finding('TL-VAR-PLACEHOLDER', `${of} is still a placeholder`));
  return found;
}

function oddityOf(value: string): string | undefined {
  if (/\r$/.test(value)) return 'ends with a carriage return, as in a file with Windows line ends';
  if (/^\s|\s$/.test(value)) return `${/^\s/.test(value) ? 'begins' : 'ends'} with white space`;
  if (/^(["']).*\1$/s.test(value)) return 'is in quotes, which are a part of the value';
  return undefined;
}
