import { stringAt, valuesAt } from '../json/json-text.js';
import { isRecord } from '../json/json-value.js';
import type { ResponseEnvelope } from './envelope.js';
import type { RequestTokens } from './relayed-request.js';

/** Extension for the skills of servers. See its specification, SEP-2640. */
export const SKILLS_EXTENSION = 'io.modelcontextprotocol/skills';

export const SKILL_METHODS = {
  list: 'skills/list',
  get: 'skills/get',
  readDirectory: 'resources/directory/read',
} as const;

/** Reads a server's declaration of its skills; `undefined` if it has none. */
export function declaredSkills({ extensions }: Readonly<Record<string, unknown>>): SkillsOffer | undefined {
  const settings = isRecord(extensions) ? extensions[SKILLS_EXTENSION] : undefined;
  if (settings === undefined || settings === null || settings === false) return undefined;
  return { readsDirectories: isRecord(settings) && settings.directoryRead === true };
}

interface SkillsOffer {
  /** Whether the server answers `resources/directory/read`. */
  readonly readsDirectories: boolean;
}

/** Returns the beginning of the URIs of a skill's files, with the slash at its end. `uri` is that of the main file. */
export function skillRoot(uri: string): string {
  return uri.endsWith(MAIN_FILE) ? uri.slice(0, -MAIN_FILE.length + 1) : `${uri}/`;
}

const MAIN_FILE = '/SKILL.md';

/** Extension for the tasks of revision 2026-07-28. See its specification, SEP-2663. */
export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks';

/** Whether the client of a request without a handshake accepts a task as the answer. */
export function declaresTasks({ bytes, tokens: { eraCapabilities } }: RequestTokens): boolean {
  if (eraCapabilities === undefined) return false;
  return valuesAt(bytes, eraCapabilities, ['extensions', TASKS_EXTENSION]).length > 0;
}

/** Whether a server answered with a task of the extension. */
export function isTaskResult({ bytes, tokens: { resultType } }: ResponseEnvelope): boolean {
  return stringAt(bytes, resultType) === 'task';
}
