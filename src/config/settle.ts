import { BUILT_IN, type GlobalOptions, type Tunables } from './schema.js';

/** Merges settings: an entry overrides `defaults:`, which overrides the built-in settings. */
export function settle(entry: Tunables, defaults: Tunables): GlobalOptions {
  return {
    ...BUILT_IN,
    ...defaults,
    ...entry,
    restart: { ...BUILT_IN.restart, ...defaults.restart, ...entry.restart },
  };
}
