import type { NewEntry } from '../../config/edit/edit-config.js';
import { namesIn, type Variables } from '../../config/resolve/expand.js';
import { parseDuration } from '../../config/schema/units.js';
import type { Run } from './run.js';
import { type SecretStore, withoutSecrets } from './secrets.js';

/** The environment file of the configuration, as far as an entry has to know it. */
export interface SecretFile extends SecretStore {
  /** What an entry has to say to get its variables; undefined if `defaults` says so already. */
  readonly envFile: string | undefined;
  readonly values: Variables;
}

/** What an entry has besides what it runs. */
export interface EntrySettings {
  readonly isDisabled?: boolean;
  readonly allowedTools?: readonly string[] | undefined;
  readonly deniedTools?: readonly string[] | undefined;
  readonly timeoutMs?: number | undefined;
  /** The variables that are secrets whatever they look like. */
  readonly secretVariables?: readonly string[];
}

export interface WrittenEntry {
  readonly entry: NewEntry;
  /** The variables that it refers to and that are set nowhere now. */
  readonly unset: readonly string[];
}

/** An entry of the configuration without secrets: the environment file takes them. */
export function toEntry(
  run: Run,
  key: string,
  { secrets, env, ...settings }: EntrySettings & { readonly secrets: SecretFile; readonly env: Variables },
): WrittenEntry {
  const clean = withoutSecrets(run, key, secrets, settings.secretVariables);
  const { program, args, cwd } = clean;
  const texts = [...args, ...Object.values(clean.env), cwd ?? '', 'command' in program ? program.command : ''];
  const names = namesIn(texts);
  const inFile = (name: string) => Object.hasOwn(secrets.values, name);
  const { allowedTools, deniedTools } = settings;
  const entry = {
    ...('package' in program
      ? { package: program.version === undefined ? program.package : `${program.package}@${program.version}` }
      : program),
    ...(args.length > 0 && { args }),
    ...(cwd !== undefined && { cwd }),
    ...(Object.keys(clean.env).length > 0 && { env: clean.env }),
    ...(secrets.envFile !== undefined && names.some(inFile) && { envFile: secrets.envFile }),
    ...((allowedTools ?? deniedTools) && {
      tools: { ...(allowedTools && { allow: allowedTools }), ...(deniedTools && { deny: deniedTools }) },
    }),
    ...timeouts(settings.timeoutMs),
    ...(settings.isDisabled === true && { disabled: true }),
  };
  const withoutDefault = names.filter((name) => texts.some((text) => text.includes(`\${${name}}`)));
  return { entry, unset: withoutDefault.filter((name) => !inFile(name) && env[name] === undefined) };
}

const LONGEST = '24h';
const USUAL_MAX_MS = 600_000;

function timeouts(timeoutMs: number | undefined): NewEntry {
  // Shorter ones are in another unit, or would end calls that work.
  if (timeoutMs === undefined || timeoutMs < 1_000 || timeoutMs > parseDuration(LONGEST)) return {};
  const timeout = timeoutMs % 1_000 === 0 ? `${timeoutMs / 1_000}s` : `${timeoutMs}ms`;
  return { timeout, ...(timeoutMs > USUAL_MAX_MS && { maxTimeout: timeout }) };
}
