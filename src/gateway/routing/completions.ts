import { toBytes } from '../../json/json-text.js';
import type { LegacyRevision } from '../../mcp/revisions.js';
import type { Backend } from '../registry/backend.js';

/** The oldest revision has completions, but no capability for them. */
export function completesNothing({ dispatcher: { connection } }: Backend): boolean {
  return connection !== undefined && connection.revision !== OLDEST && !connection.offers('completions');
}

const OLDEST: LegacyRevision = '2024-11-05';

/** The result for a server without completions. */
export const NO_COMPLETIONS = toBytes('{"completion":{"values":[],"total":0,"hasMore":false}}');
