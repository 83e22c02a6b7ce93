import type { GatewayConfig, ServerProblem } from './config.js';
import type { ConfigProblem } from './config-error.js';
import type { ServerEntry, ServerSettings } from './schema.js';
import type { Place } from './server-fault.js';

/**
 * All that a configuration file says, checked: defaults settled, durations and sizes as numbers, but with nothing of
 * this machine in it yet, neither variables nor packages. It is plain data, so that it can be kept as JSON.
 */
export interface CheckedFile {
  /** In the order of the file, without those that are `disabled`. */
  readonly servers: readonly CheckedServer[];
  readonly gateway: Omit<GatewayConfig, 'startLimit'> & { readonly startLimit: number | null };
  readonly warnings: readonly ConfigProblem[];
}

export interface CheckedServer {
  readonly key: string;
  readonly entry: ServerEntry;
  readonly settings: ServerSettings;
  /** Why it can run nowhere; set for servers that are reached by URL. */
  readonly problem?: ServerProblem;
  /** Where the entry and what is resolved of it stands. */
  readonly places: readonly Place[];
}

/** Caches checked files. Checking takes longer than every other step of reading a configuration. */
export interface CheckedFileCache {
  find(file: string, text: string): CheckedFile | undefined;
  put(file: string, text: string, checked: CheckedFile): void;
}
