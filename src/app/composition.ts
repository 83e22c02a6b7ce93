import type { ConfigChanges } from '../config/resolve/compare.js';
import type { Config } from '../config/resolve/config.js';
import type { CallFeed } from '../gateway/call-feed.js';
import type { Gateway } from '../gateway/gateway.js';
import type { StatusFacts } from '../gateway/status/status-facts.js';
import type { KnownSecrets } from '../observe/redact.js';
import type { Approvals } from '../state/approvals.js';
import type { StopLadder } from '../supervision/launcher.js';
import type { Platform } from './platform.js';

/** The running gateway, for the transports that open in front of it. */
export interface Composition {
  readonly gateway: Gateway;
  readonly platform: Platform;
  /** The active configuration. */
  readonly config: Config;
  readonly approvals: Pick<Approvals, 'of'>;
  /** Finds the known secrets in what is recorded. */
  readonly secrets: Pick<KnownSecrets, 'find' | 'redact'>;
  /** The calls of all clients, for the call log. */
  readonly calls: CallFeed;
  /** Resolves when the cached catalogues are listed to the clients. */
  cachedListsShown(): Promise<void>;
  /** Loads the code that starts processes, and starts every server. */
  start(): Promise<void>;
  status(): StatusFacts;
  /** Reads what all processes use now, for the status that is asked for next. */
  readUsage(): Promise<void>;
  /** Restarts all processes of a server. Returns whether there is one. */
  restart(key: string): boolean;
  /** Applies another configuration; servers that it does not change keep running. */
  change(config: Config): Changed;
  /** Reports a file with mistakes and changes nothing else. Returns false when the same report was given before. */
  refuse(report: string): boolean;
  /** Stops all servers; a second call with a shorter ladder speeds it up. Resolves when no process is left. */
  stop(ladder: StopLadder): Promise<void>;
}

export interface Changed extends ConfigChanges {
  /** Whether anything is different. */
  readonly isOther: boolean;
  /** Changed settings that take effect when Trunkline is restarted. */
  readonly needsRestart: readonly string[];
}
