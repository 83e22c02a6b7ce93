import type { ServerEntry } from '../schema/schema.js';
import type { GATEWAY_SETTINGS, HTTP_SETTINGS, SERVER_SETTINGS, ValuesOf } from '../schema/settings.js';
import type { ConfigProblem, PathPosition, ServerProblem } from './config-error.js';

/**
 * A checked configuration file: defaults are filled in, durations and sizes are numbers. Variables and packages of this
 * machine are not resolved yet. It is plain data, so that it can be cached as JSON.
 */
export interface CheckedFile {
  /** In the order of the file, without those that are `disabled`. */
  readonly servers: readonly CheckedServer[];
  /** The names in `defaults.env`. */
  readonly sharedVariables: readonly string[];
  /** The words of the commands that print secrets, by the names of the secrets. */
  readonly secretCommands: Readonly<Record<string, readonly string[]>>;
  readonly gateway: Omit<GatewayConfig, 'startLimit'> & Partial<Pick<GatewayConfig, 'startLimit'>>;
  readonly warnings: readonly ConfigProblem[];
}

export interface CheckedServer {
  readonly key: string;
  /** With the variables of `defaults.env` in `env`, and with `defaults.envFile` if it has no `envFile` of its own. */
  readonly entry: CheckedEntry;
  readonly settings: ServerSettings;
  /** The reason why the server cannot run on any machine; set for remote servers. */
  readonly problem?: ServerProblem;
  /** Places of the entry and of its values that are resolved later. */
  readonly positions: readonly PathPosition[];
}

/** The entry of a server without its settings. */
export type CheckedEntry = Omit<ServerEntry, 'settings'>;

/** The settings of a server: its own, or else those of `defaults:`, or else the built-in ones. */
export type ServerSettings = ValuesOf<typeof SERVER_SETTINGS>;

/** The map of servers has one of two names. */
export type ServersKey = 'servers' | 'mcpServers';

/** The settings of `gateway:`, and the views. */
export type GatewayConfig = ValuesOf<typeof GATEWAY_SETTINGS> & {
  readonly startLimit: number;
  /** In the order of the file. */
  readonly views: readonly ViewConfig[];
  /** The views of clients that ask for none: globs for their names, in the order of the file. */
  readonly clientViews: readonly { readonly client: string; readonly view: string }[];
};

/** Limits of the HTTP server. */
export type HttpConfig = ValuesOf<typeof HTTP_SETTINGS>;

/** Some of the servers, and some of their tools. */
export interface ViewConfig {
  readonly name: string;
  /** Keys. Absent means all servers. */
  readonly servers?: readonly string[];
  /** Globs over names such as `KEY__TOOL`. Absent means all tools. */
  readonly tools?: Partial<ToolFilter>;
}

/** Globs over the original tool names. Without `allow` all tools are allowed. `deny` overrides `allow`. */
export interface ToolFilter {
  readonly allow?: readonly string[];
  readonly deny: readonly string[];
}
