import { BUILT_IN, type ServerSettings, type Tunables } from './schema.js';

/** The entry's own settings, then those of `defaults:`, then the built-in ones. */
export function settle(entry: Tunables, defaults: Tunables): ServerSettings {
  return {
    ...BUILT_IN,
    ...defaults,
    ...entry,
    restart: { ...BUILT_IN.restart, ...defaults.restart, ...entry.restart },
  };
}
