import type { GatewayConfig, ServerProblem } from './config.js';
import type { ConfigProblem } from './config-error.js';
import type { ServerEntry, ServerSettings } from './schema.js';
import type { Place } from './server-fault.js';

/**
 * A checked configuration file: defaults are filled in, durations and sizes are numbers. Variables and packages of this
 * machine are not resolved yet. It is plain data, so that it can be cached as JSON.
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
  /** Why the server cannot run on any machine; set for remote servers. */
  readonly problem?: ServerProblem;
  /** Places of the entry and of its values that are resolved later. */
  readonly places: readonly Place[];
}

/** Caches checked files. Checking takes longer than every other step of reading a configuration. */
export interface CheckedFileCache {
  find(file: string, text: string): CheckedFile | undefined;
  put(file: string, text: string, checked: CheckedFile): void;
}
