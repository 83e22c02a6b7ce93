import type { ToolShapes } from '../../gateway/catalog/tool-shaping.js';
import type { CallLimits } from '../../gateway/dispatch/call.js';
import type { ChildSpec, PackageRequest } from '../../supervision/launcher.js';
import type { GatewayConfig, ServerSettings, ToolFilter } from '../file/checked-file.js';
import type { ServerProblem } from '../file/config-error.js';
import type { Stamp } from '../file/find-config.js';

/** A configuration file, checked and resolved. Times are milliseconds, sizes bytes, paths absolute. */
export interface Config {
  readonly file: string;
  /** Absent if the configuration was not read from a file. */
  readonly stamp?: Stamp;
  /** In the order of the file, without those that are `disabled`. */
  readonly servers: readonly ServerConfig[];
  readonly gateway: GatewayConfig;
  /** Warnings about accepted settings that are probably mistakes, each as `FILE:LINE:COL: message`. */
  readonly warnings: readonly string[];
  /** The environment files that servers use; absolute. */
  readonly envFiles: readonly string[];
  /** Resolves one server for another origin; `undefined` if there is no such server. Checks nothing again. */
  readonly serverFor: (key: string, origin: Origin) => ServerConfig | undefined;
}

/** Input of the resolution of a server: the values of `${NAME}`, and the working folder of the clients. */
export interface Origin {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Absolute; only `sharing: folder` uses it. */
  readonly folder: string;
}

/** One server: its resolved entry, and the settings of the file that apply to it as they are. */
export interface ServerConfig
  extends Pick<ServerSettings, 'sharing' | 'start' | 'idleStopMs' | 'era' | 'approval' | 'trusted' | 'limits'> {
  readonly key: string;
  /** The text before `__` in exposed names: the key, or '' if the prefix is disabled. */
  readonly prefix: string;
  /** Undefined when `problem` is set. */
  readonly child: ChildSpec | undefined;
  readonly problem?: ServerProblem;
  /** The package that the server runs; absent for a `command` and for a server with a `problem`. */
  readonly package?: ServerPackage;
  readonly tools: ToolFilter;
  /** The form in which the tools are shown and called, with the values of variables. Absent if nothing is changed. */
  readonly shapes?: ToolShapes;
  /** Globs over methods that this server answers although MCP does not define them. */
  readonly methods: readonly string[];
  readonly calls: CallLimits;
  readonly frames: Pick<ServerSettings, 'maxFrameBytes' | 'maxUnwrittenBytes'>;
  /** The names of all variables that the entry refers to as `${NAME}`, without those of its `envFile`, sorted. */
  readonly variables: readonly string[];
  /** The values of all references, also of those to its `envFile`, so that secrets can be removed from logs. */
  readonly references: Readonly<Record<string, string>>;
  /** Values that are secrets, whatever they look like. Absent if there are none. */
  readonly secrets?: Readonly<Record<string, string>>;
  /** With `sharing: folder`: the working folder of the clients. */
  readonly folder?: string;
}

export interface ServerPackage {
  readonly request: PackageRequest;
  /** Absent if the package is not installed yet. */
  readonly found?: FoundPackage;
}

/** The place where a package was found, and its program, which runs with Node. */
export interface FoundPackage {
  /** `near`: in `node_modules` next to the configuration file. `store`: in Trunkline's own store. */
  readonly place: 'near' | 'store';
  readonly version: string | undefined;
  /** Absolute. */
  readonly program: string;
}
