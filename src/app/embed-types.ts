/*
 * The types of the package for programs that import it. The build copies this file as it is, so it imports nothing, and uses no type
 * that needs another package.
 */

/**
 * Starts the servers of a configuration in this program: of the file with this path, or of an object with the same members as the
 * file. Resolves when transports can be opened, while the servers are still starting. Rejects with a `ConfigurationError`.
 */
export declare function openTrunkline(configuration: string | object, options?: OpenOptions): Promise<Trunkline>;

export interface OpenOptions {
  /** Folder of an object: its relative paths begin there, and its `trunkline.lock` is there. Default: the working folder. */
  readonly folder?: string | undefined;
  /** Takes each record of the log, a line of JSON: a function, or a stream such as `process.stderr`. Nothing is logged without it. */
  readonly log?: ((line: string) => void) | { write(line: string): unknown } | undefined;
  /** The least important records that are logged. Default: `warn`. */
  readonly logLevel?: 'warn' | 'info' | 'debug' | undefined;
}

export interface Trunkline {
  /**
   * Makes a transport for one client of the official SDK, of either generation: `await client.connect(trunkline.transport())`. Each
   * client needs a transport of its own. `view` names a view of the configuration; without it, the client sees all tools.
   */
  transport(options?: { readonly view?: string | undefined }): Transport;
  /** Returns the state of each server, and what to do about problems. */
  status(): Status;
  /** Ends all clients, and then the servers. Resolves when none of their processes is left, within three seconds. */
  close(): Promise<void>;
}

/** Takes the place of the SDK's own transports. `Client.connect` calls `start`, and sets the three functions. */
export interface Transport {
  start(): Promise<void>;
  send(message: object): Promise<void>;
  close(): Promise<void>;
  onclose?: (() => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  onmessage?: ((message: object) => void) | undefined;
}

/** Says why a configuration cannot be used, with each mistake, as the command line prints it. */
export interface ConfigurationError extends Error {
  readonly code: 'config-not-found' | 'config-unreadable' | 'config-syntax' | 'config-invalid' | 'view-not-found';
}

/** Has more members than these, which later versions may change. */
export interface Status {
  readonly version: string;
  /** The path of the file. For an object, a name in its folder. */
  readonly configFile: string | null;
  /** The mistakes of a changed file. The previous configuration is in force while there are some. */
  readonly configFault: string | null;
  /** Advice about all servers together; empty if there is nothing to do. */
  readonly advice: string;
  readonly servers: readonly ServerStatus[];
}

export interface ServerStatus {
  /** The key in the configuration. */
  readonly server: string;
  readonly state:
    | 'stopped'
    | 'idle'
    | 'installing'
    | 'starting'
    | 'ready'
    | 'suspect'
    | 'backoff'
    | 'offline'
    | 'blocked'
    | 'parked'
    | 'stopping'
    | 'misconfigured'
    | 'per user';
  readonly pid: number | null;
  readonly restarts: number;
  /** `exposed` has the names of its tools, as clients see them. */
  readonly tools: { readonly exposed: readonly string[] };
  /** A sentence that says what is wrong; empty without a problem. */
  readonly problem: string;
  /** The code of the problem in the page of codes. */
  readonly code: string | null;
  /** Sentences that say what to do. */
  readonly advice: string;
}
