/** A location where a client keeps servers: one file, and the members in it that lead to the servers. */
export interface ClientLocation {
  /** The stable name on command lines, such as `claude-desktop`. */
  readonly client: string;
  /** The name for people, such as *Claude Desktop*. */
  readonly title: string;
  /**
   * `local` is one project in a file of the user, as Claude Code has it. `extension` is a server that the client has
   * installed itself: its file is never written.
   */
  readonly scope: 'user' | 'project' | 'local' | 'extension';
  /** The absolute path of the file. */
  readonly file: string;
  readonly format: 'json' | 'jsonc' | 'toml' | 'yaml';
  /** The members that lead to the servers, such as `['mcpServers']`, or `['projects', '/home/me/x', 'mcpServers']`. */
  readonly path: readonly string[];
  /** Whether the servers are a list whose entries have a `name`, as Continue has it. */
  readonly isList?: boolean;
}

/** An entry in the shape of its client. In a list, its name is one of its members. */
export type ClientEntry = Readonly<Record<string, unknown>>;

/** An entry of a client's file in one form for all clients. Values of variables and headers are secrets. */
export interface FoundServer {
  readonly place: ClientLocation;
  readonly name: string;
  readonly run: FoundCommand | FoundRemote;
  readonly isDisabled: boolean;
  /** The tools that the client shows, if it names them. */
  readonly allowedTools?: readonly string[];
  readonly deniedTools?: readonly string[];
  /** The notation of variables in values: see *Variables* in `docs/clients.md`. */
  readonly variables: 'none' | 'claude-code' | 'vscode' | 'cursor' | 'gemini';
}

export interface FoundCommand {
  readonly kind: 'command';
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly envFile?: string;
  /** Longest duration of a call for this client, in milliseconds. */
  readonly timeoutMs?: number;
}

export interface FoundRemote {
  readonly kind: 'remote';
  readonly url: string;
  readonly transport: 'http' | 'sse';
  readonly headers: Readonly<Record<string, string>>;
}

/** A file that exists and could not be read, with a sentence that says why and shows no values. */
export interface UnreadableLocation {
  readonly place: ClientLocation;
  readonly because: string;
}

export interface FoundServers {
  readonly servers: readonly FoundServer[];
  readonly unreadable: readonly UnreadableLocation[];
}

/** The facts on which the locations of clients depend, so that tests can name any system. */
export interface ClientSystem {
  readonly platform: 'darwin' | 'linux' | 'win32';
  readonly home: string;
  /** The folder in which project files are looked for, upwards. */
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}
