import type { GatewayConfig, ServerProblem } from './config.js';
import type { ConfigProblem } from './config-error.js';
import type { GlobalOptions, ServerEntry } from './schema.js';
import type { Path } from './yaml-source.js';

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
  readonly settings: GlobalOptions;
  /** Why the server cannot run on any machine; set for remote servers. */
  readonly problem?: ServerProblem;
  /** Places of the entry and of its values that are resolved later. */
  readonly places: readonly Place[];
}

/** A position in the file, for problems that are found after parsing. */
export interface Place {
  /** From the root of the file. */
  readonly path: Path;
  readonly line: number;
  readonly column: number;
}
