import type { Origin, ServerConfig } from './config.js';
import { variableIn } from './expand.js';

/**
 * Identifies what the server is for clients of this origin. Clients for which it is the same may share a process: the
 * variables that the entry refers to are equal and, with `sharing: folder`, so is the working folder. Without an origin,
 * the one that the server was resolved for.
 *
 * The text contains the values of variables: it must stay in memory.
 */
export function variantOf(
  { variables, sharing, references, folder = '' }: ServerConfig,
  origin: Origin = { environment: references, folder },
): string {
  const values = variables.map((name) => variableIn(name, origin.environment) ?? null);
  return JSON.stringify(sharing === 'folder' ? [values, origin.folder] : [values]);
}
