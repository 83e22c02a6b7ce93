import type { ServerConfig } from '../config/resolve/config.js';
import { type Finding, finding } from './finding.js';

/** Placeholders in examples, such as `YOUR_API_KEY`. The whole value has to match. */
const PLACEHOLDER =
  /^(?:<[^<>]*>|\[[a-z _-]*\]|\.{3,}|[x*]{3,}|(?:sk|ghp|pk|xox[bp])[-_](?:\.{3}|[x*]{3,}|your.*)|(?:your|my|insert|enter|put|paste|add|replace)[-_ ].*|.*[-_ ](?:goes[-_ ])?here|change[-_ ]?me|to[-_]?do|tbd|placeholder|example|dummy|(?:api[-_]?key|token|secret|password))$/i;

/** Whether a value is a placeholder of an example. */
export function isPlaceholder(value: string): boolean {
  return PLACEHOLDER.test(value.trim());
}

/** Whether the values of variables are usable. Never shows one. */
export function checkVariables(servers: readonly ServerConfig[]): Finding[] {
  return servers.flatMap(({ key, child, references }) => {
    // A variable of an entry often has the name of the one that it refers to: that is one mistake.
    const values = new Map([...Object.entries(references), ...Object.entries(child?.env ?? {})]);
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
