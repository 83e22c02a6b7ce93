import { isRecord } from '../json/is-record.js';

/** Skills that servers have. See the specification of the extension, SEP-2640. */
export const SKILLS_EXTENSION = 'io.modelcontextprotocol/skills';

export const SKILL_METHODS = {
  list: 'skills/list',
  get: 'skills/get',
  readDirectory: 'resources/directory/read',
} as const;

/** What a server declares about its skills; `undefined` if it has none. */
export function declaredSkills({ extensions }: Readonly<Record<string, unknown>>): SkillsOffer | undefined {
  const settings = isRecord(extensions) ? extensions[SKILLS_EXTENSION] : undefined;
  if (settings === undefined || settings === null || settings === false) return undefined;
  return { readsDirectories: isRecord(settings) && settings.directoryRead === true };
}

interface SkillsOffer {
  /** Whether the server answers `resources/directory/read`. */
  readonly readsDirectories: boolean;
}

/** The beginning of the URIs of all files of a skill, with the slash at its end, by the URI of its main file. */
export function skillRoot(uri: string): string {
  return uri.endsWith(MAIN_FILE) ? uri.slice(0, -MAIN_FILE.length + 1) : `${uri}/`;
}

const MAIN_FILE = '/SKILL.md';
