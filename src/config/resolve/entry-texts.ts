import type { ServerEntry } from '../schema/schema.js';
import { textsIn } from '../schema/tool-shapes.js';
import { namesIn, type ReadSecret, secretNamesIn, type Variables, variableIn } from './expand.js';
import type { Secret } from './read-secrets.js';
import { ServerFault } from './server-fault.js';

/** All texts of an entry that may refer to variables and secrets. */
export function textsOf({
  args = [],
  command = '',
  package: used = '',
  cwd = '',
  env = {},
  tools,
}: ServerEntry): string[] {
  return [command, used, cwd, ...args, ...Object.values(env), ...textsIn(tools)];
}

/**
 * The values in an entry that are secrets whatever they look like: its secrets, and the variables in values of parameters.
 */
export function secretValuesOf(
  entry: ServerEntry,
  environment: Variables,
  secrets: ReadonlyMap<string, Secret> = new Map(),
): Record<string, string> {
  const ofParams = namesIn(textsIn(entry.tools)).map((name) => [name, variableIn(name, environment)] as const);
  const stored = secretNamesIn(textsOf(entry)).map((name) => {
    const secret = secrets.get(name);
    return [`secret:${name}`, secret !== undefined && 'value' in secret ? secret.value : undefined] as const;
  });
  return Object.fromEntries(
    [...ofParams, ...stored].flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}

/** Looks up the secrets that were read. Its result throws a `ServerFault` for one that could not be read. */
export function secretReader(secrets: ReadonlyMap<string, Secret> = new Map()): ReadSecret {
  return (name) => {
    const secret = secrets.get(name) ?? {
      fault: `the secret ${name} was not read`,
      hint: 'save the configuration again',
    };
    if ('fault' in secret) throw new ServerFault(secret.fault, secret.hint);
    return secret.value;
  };
}
