import type { GlobalOptions } from '../app/global-options.js';
import { readConfig } from '../app/read-config.js';
import { cachedToolNames } from '../state/cached-tool-names.js';
import { catalogueFolder } from '../state/user-files.js';
import type { Names } from './completion.js';

/** Servers of the configuration, and tools that they listed in an earlier run. Without a configuration there are none. */
export function configuredNames(settings: GlobalOptions): Names {
  return {
    servers: async () => {
      try {
        return (await readConfig(settings)).servers.map(({ key }) => key);
      } catch {
        // A shell has no place for a message here; the command itself reports the mistake.
        return [];
      }
    },
    tools: async (server) => cachedToolNames(catalogueFolder(), server),
  };
}
