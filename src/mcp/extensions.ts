import { isString, readString, type Span, stringAt, valuesAt } from '../json/json-text.js';
import { isRecord } from '../json/json-value.js';
import type { ResponseEnvelope } from './envelope.js';
import { HASH_LENGTH, type Sha256 } from './exposed-name.js';
import type { RelayedRequest } from './relayed-request.js';

/** Skills that servers have. See the specification of the extension, SEP-2640. */
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

/** The beginning of the URIs of all files of a skill, with the slash at its end, by the URI of its main file. */
export function skillRoot(uri: string): string {
  return uri.endsWith(MAIN_FILE) ? uri.slice(0, -MAIN_FILE.length + 1) : `${uri}/`;
}

const MAIN_FILE = '/SKILL.md';

/** The tasks of revision 2026-07-28. See the specification of the extension, SEP-2663. */
export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks';

/** Whether the client of a request without a handshake takes a task as the answer. */
export function declaresTasks({
  bytes,
  tokens: { eraCapabilities },
}: Pick<RelayedRequest, 'bytes' | 'tokens'>): boolean {
  if (eraCapabilities === undefined) return false;
  return valuesAt(bytes, eraCapabilities, ['extensions', TASKS_EXTENSION]).length > 0;
}

/** Whether a server answered with a task of the extension. */
export function isTaskResult({ bytes, tokens: { resultType } }: ResponseEnvelope): boolean {
  return stringAt(bytes, resultType) === 'task';
}

/** Whether a URI names a user interface of MCP Apps: HTML that a host shows for the results of a tool. */
export function isUiUri(uri: string): boolean {
  return uri.startsWith('ui://');
}

/**
 * Returns the URI under which clients see `uri` of the server `key` if another server owns that URI.
 *
 * It depends on key and URI alone. The path stays the same, so that people recognize it.
 */
export function uiAlias(key: string, uri: string, sha256: Sha256): string {
  const path = uri.replace(/^ui:\/\/[^/?#]*\/?/, '');
  return `ui://${key}--${sha256(`${key}\0${uri}`).slice(0, HASH_LENGTH)}/${path}`;
}

/** Returns the key in a URI that has the form of an alias. No key contains the two dashes that follow it. */
export function keyInUiAlias(uri: string): string | undefined {
  return /^ui:\/\/([^/?#]+)--[0-9a-f]{8}(?:[/?#]|$)/.exec(uri)?.[1];
}

/**
 * Members of `_meta` that name the user interface of a tool: that of MCP Apps, that of its first draft, and OpenAI's.
 */
const POINTERS: readonly (readonly string[])[] = [['ui', 'resourceUri'], ['ui/resourceUri'], ['openai/outputTemplate']];

/** Returns where a tool, or the result of one, at `span` names a user interface. */
export function uiPointers(bytes: Uint8Array, span: Span): readonly { readonly uri: string; readonly span: Span }[] {
  const metas = valuesAt(bytes, span, ['_meta']);
  const tokens = metas.flatMap((meta) => POINTERS.flatMap((path) => valuesAt(bytes, meta, path)));
  return tokens
    .filter((token) => isString(bytes, token))
    .map((token) => ({ uri: readString(bytes, token), span: token }))
    .filter(({ uri }) => isUiUri(uri));
}
