import { isRecord } from '../json/is-record.js';
import { declares } from '../mcp/initialize-result.js';
import { isModernRevision } from '../mcp/revisions.js';
import { SKILLS_EXTENSION } from '../mcp/skills.js';
import { TASKS_EXTENSION } from '../mcp/task-extension.js';

type Settings = Readonly<Record<string, unknown>>;

/**
 * The extensions that the gateway declares to a client of this revision: those of the servers. `undefined` without any.
 *
 * An extension that several servers have gets the settings of the first one, unless the gateway serves it for all of them.
 */
export function declaredExtensions(revision: string | undefined, offered: readonly Settings[]): Settings | undefined {
  const all = new Map<string, unknown[]>();
  for (const { extensions } of offered) {
    for (const [name, settings] of Object.entries(isRecord(extensions) ? extensions : {})) {
      all.set(name, [...(all.get(name) ?? []), settings]);
    }
  }
  // A client with a handshake gets the tasks of its own revision, or the results of tasks.
  if (revision === undefined || !isModernRevision(revision)) all.delete(TASKS_EXTENSION);
  else if (offered.some((each) => declares(each, 'tasks.requests.tools.call'))) all.set(TASKS_EXTENSION, [{}]);
  if (all.size === 0) return undefined;
  return Object.fromEntries([...all].map(([name, settings]) => [name, MERGES.get(name)?.(settings) ?? settings[0]]));
}

/** What the servers together have of an extension, from what each of them declares. */
const MERGES = new Map<string, (all: readonly unknown[]) => Settings>([
  // MCP Apps: the kinds of user interfaces.
  [
    'io.modelcontextprotocol/ui',
    (all) => {
      const records = all.filter(isRecord);
      const types = records.flatMap(({ mimeTypes }) => (Array.isArray(mimeTypes) ? mimeTypes : []));
      return { ...records[0], ...(types.length > 0 && { mimeTypes: [...new Set(types)] }) };
    },
  ],
  [
    SKILLS_EXTENSION,
    (all) => {
      const records = all.filter(isRecord);
      const hasDirectories = records.some(({ directoryRead }) => directoryRead === true);
      return { ...records[0], ...(hasDirectories && { directoryRead: true }) };
    },
  ],
]);
