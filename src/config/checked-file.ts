import type { GatewayConfig, ServerProblem } from './config.js';
import type { ConfigProblem } from './config-error.js';
import type { GlobalOptions, ServerEntry } from './schema.js';
import type { Path } from './yaml-source.js';

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
  readonly settings: GlobalOptions;
  /** Why it can run nowhere; set for servers that are reached by URL. */
  readonly problem?: ServerProblem;
  /** Where the entry and what is resolved of it stands. */
  readonly places: readonly Place[];
}

/** Where in the file something stands, for what turns out to be wrong with it later. */
export interface Place {
  /** From the root of the file. */
  readonly path: Path;
  readonly line: number;
  readonly column: number;
}
