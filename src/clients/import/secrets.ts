import { canBeInEnv } from '../../config/edit/env-draft.js';
import { namesIn } from '../../config/resolve/expand.js';
import { findSecretShapes } from '../../observe/secret-shapes.js';
import { secretsOf } from '../../observe/secret-values.js';
import { literal, literalIn, type Run } from './run.js';
import { CannotImport, variableName } from './translate.js';

/** Takes a secret in, and returns the name of the variable that has it from now on. */
export interface SecretStore {
  put(name: string, value: string): string;
}

/** Whether this can stand in the configuration. Whatever is not obviously a setting counts as a secret. */
export function isPlainSetting(name: string, value: string): boolean {
  if (value === '') return true;
  if (isSecret(name, value)) return false;
  return WORD.test(value) || SHORT_NUMBER.test(value) || PATH.test(value) || isPlainAddress(value);
}

function isSecret(name: string, value: string): boolean {
  return (
    findSecretShapes(value).length > 0 || secretsOf({ env: { [name]: value.padEnd(6, '.') }, args: [] }).length > 0
  );
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

export function looksRandom(part: string): boolean {
  return findSecretShapes(part).length > 0 || secretsOf({ env: {}, args: [part] }).length > 0;
}

/**
 * The same run with each secret replaced by a reference. `key` begins the names of the variables that take the secrets, and
 * `secret` names variables of the server that are secrets whatever they look like.
 */
export function withoutSecrets(run: Run, key: string, store: SecretStore, secret: readonly string[] = []): Run {
  const owner = variableName(key);
  const put = (name: string, value: string) => {
    if (!canBeInEnv(value)) {
      const what = value.includes('\r') ? 'line ends of Windows' : 'all kinds of quotes';
      throw new CannotImport(`its ${name} contains ${what}, which no environment file can hold`);
    }
    const wanted = variableName(name);
    return `\${${store.put(wanted.startsWith(`${owner}_`) ? wanted : `${owner}_${wanted}`, value)}}`;
  };
  const env = Object.entries(run.env).map(([name, text]) => {
    const value = literalIn(text);
    if (value !== undefined)
      return [name, isPlainSetting(name, value) && !secret.includes(name) ? text : put(name, value)];
    if (hasSecretBesideReferences(text)) {
      throw new CannotImport(`its variable ${name} is a mixture of a secret and of other variables`);
    }
    return [name, text];
  });
  return { ...run, args: withoutSecretArgs(run.args, put), env: Object.fromEntries(env) };
}

function hasSecretBesideReferences(text: string): boolean {
  const rest = namesIn([text]).reduce((left, name) => left.replaceAll(`\${${name}}`, ' '), text);
  return findSecretShapes(rest).length > 0 || rest.split(/[\s,;:/]+/).some(looksRandom);
}

function withoutSecretArgs(args: readonly string[], put: (name: string, value: string) => string): string[] {
  const values = args.map(literalIn);
  // A flag and its value can be two arguments.
  const known = secretsOf({ env: {}, args: values.map((value) => value ?? '') });
  return args.map((arg, at) => {
    const value = values[at];
    // A reference that the server itself replaces is no secret.
    if (value === undefined || /\$\{[A-Za-z_]\w*\}$/.test(value)) return arg;
    const [flag, assigned] = /^(--?[\w-]+)=(.+)$/s.exec(value)?.slice(1) ?? [];
    const previous = values[at - 1] ?? '';
    const name = flag ?? (/^--?[A-Za-z]/.test(previous) ? previous : 'secret');
    if (/:\/\//.test(value) && isAddressWithSecret(assigned ?? value)) {
      return assigned === undefined ? put('url', value) : `${literal(`${flag}=`)}${put(`${name}_url`, assigned)}`;
    }
    const found = known.filter((secret) => value.includes(secret)).sort((a, b) => b.length - a.length)[0];
    if (found !== undefined) return replaced(value, value.indexOf(found), found.length, (text) => put(name, text));
    const [shape] = findSecretShapes(value);
    if (shape === undefined) return arg;
    return replaced(value, shape.start, shape.end - shape.start, (text) => put(name, text));
  });
}

function isAddressWithSecret(text: string): boolean {
  return URL.canParse(text) && !isPlainAddress(text) && /^\w+:\/\/[^\s]*$/.test(text) && hasParts(new URL(text));
}

function hasParts({ username, password, search, pathname }: URL): boolean {
  return [username, password, search].some((part) => part !== '') || pathname.split('/').some(looksRandom);
}

function replaced(value: string, start: number, length: number, put: (text: string) => string): string {
  return (
    literal(value.slice(0, start)) + put(value.slice(start, start + length)) + literal(value.slice(start + length))
  );
}
