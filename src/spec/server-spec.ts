/*
 * Spec: the types that all rooms share. This file has the resolved entry of a server (`ServerSpec`), `server-rules.ts` the limits
 * and shapes of its calls and tools, `launch.ts` the interface between supervision and transports, `server-state.ts` the state
 * that supervision keeps, `tool-approvals.ts` the verdicts on tools, `list-modes.ts` the forms of the tool list. It imports no room.
 */

/**
 * Program to run for one server of the configuration, with its timeouts and its restart policy.
 *
 * All values are resolved: `command` is executable as it stands, `env` holds only what the configuration declares (the
 * allowlist of the parent's variables is added at spawn), and paths are absolute.
 */
export interface ChildSpec extends CommonSpec, Program {
  readonly kind?: undefined;
  /** The login whose access token these variables get. Absent if no variable is `${login:SERVER}`. */
  readonly token?: {
    readonly variables: readonly string[];
    readonly from: RemoteSpec & { readonly login: LoginSettings };
  };
  /** Whether processes that have left the group of the child may outlive it. */
  readonly leaveRunning: boolean;
  /** The server's key in the configuration. Present for a sole server, which runs on one gateway of a cluster only. */
  readonly soleKey?: string;
  /** Permissions in the sandbox. Absent if the program runs unconfined. */
  readonly sandbox?: SandboxSpec;
  /** The package to install before `command` can run. Its program then becomes the first of `args`. */
  readonly missing?: PackageRequest;
}

export interface Program {
  readonly command: string;
  /** The command as the entry writes it, for messages. Present if the command itself may contain a secret. */
  readonly label?: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

/** Files, names and sockets that the entry of a confined server opens to it. Paths are absolute. */
export interface SandboxSpec {
  /** The server's key in the configuration. */
  readonly server: string;
  /** The user for whom the process runs. All processes of a server for one user share a home folder. Absent without users. */
  readonly user?: string;
  readonly read: readonly string[];
  readonly write: readonly string[];
  /** Host names with an optional port, such as `*.example.com:443`. */
  readonly network: readonly string[];
  readonly unixSockets: boolean;
  /** Whether the working folder is open, because the entry or the client chose it. The folder of the configuration is closed. */
  readonly opensFolder: boolean;
}

/** A server behind a URL. Variables in the entry are already expanded. */
export interface RemoteSpec extends CommonSpec {
  readonly kind: 'remote';
  readonly url: string;
  /** `auto` finds out whether the server speaks Streamable HTTP or the older HTTP with SSE. */
  readonly transport: 'auto' | 'http' | 'sse';
  /** Headers of every request, by lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  /** Command whose output, a JSON object, gives further headers. */
  readonly headersCommand?: HeadersCommand;
  /** Whether `url` may be `http:` to another machine. */
  readonly isInsecure?: boolean;
  /** URL of the proxy. Without it, the variables of the environment decide. */
  readonly proxy?: string;
  /** Certificates of authorities to trust besides the usual ones, in PEM. */
  readonly ca?: string;
  /** Settings of the login. Absent if the entry has credentials of its own. */
  readonly login?: LoginSettings;
  /** Exchange of a token for one of this server. Absent without `auth.exchange`. */
  readonly exchange?: ExchangeSettings;
  /** The principal in whose name the requests are made. Absent if they are made in the name of the machine. */
  readonly user?: string;
  readonly missing?: undefined;
}

export interface HeadersCommand {
  /** Line for a shell. */
  readonly line: string;
  /** Variables besides those of Trunkline. */
  readonly env: Readonly<Record<string, string>>;
}

/** A login with OAuth at a server behind a URL. Members that the entry does not set are discovered. */
export interface LoginSettings {
  /** The server's key in the configuration. */
  readonly server: string;
  readonly configFile: string;
  /** Whether a person logs in, or the client itself. */
  readonly grant: 'authorization_code' | 'client_credentials';
  readonly clientId?: string;
  readonly clientSecret?: string;
  /** URL of the document that describes the client, which is its id then. */
  readonly clientMetadataUrl?: string;
  /** Private key in PEM with which the client authenticates. */
  readonly privateKey?: string;
  /** The keys of `oauth` with secrets, which only the right authorization server may get. */
  readonly confidential?: readonly string[];
  readonly scopes?: readonly string[];
  readonly issuer?: string;
  /** The `resource` of requests for tokens; `false` sends none. */
  readonly resource?: string | false;
  /** Port of the default redirect URI on 127.0.0.1. */
  readonly callbackPort?: number;
  /** Redirect URI in place of `http://127.0.0.1:PORT/callback`. */
  readonly redirectUri?: string;
  /** Parameters that are added to the authorization URL, and to token requests (`tokenParams`). */
  readonly authorizationParams?: Readonly<Record<string, string>>;
  readonly tokenParams?: Readonly<Record<string, string>>;
  /** Headers of the requests to the authorization server, and for documents of the server. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Members that replace those of the metadata of the authorization server. */
  readonly metadata?: Readonly<Record<string, unknown>>;
}

/** An authorization server, and the client with which it is asked. Has an `issuer` or a `tokenEndpoint`. */
export interface ExchangeParty {
  readonly issuer?: string;
  readonly tokenEndpoint?: string;
  readonly clientId?: string;
  readonly clientSecret?: string;
  readonly parameters?: Readonly<Record<string, string>>;
}

/** How the token of a user, or the one in a file, becomes a token for a server. */
export interface ExchangeSettings extends ExchangeParty {
  readonly grant: 'token-exchange' | 'on-behalf-of' | 'id-jag' | 'jwt-bearer';
  readonly audience?: string;
  readonly resource?: string;
  readonly scopes?: readonly string[];
  readonly subjectTokenType: 'access_token' | 'id_token' | 'refresh_token' | 'jwt';
  /** File with the token to exchange, absolute. Absent if it is the one of the user. */
  readonly subjectTokenFile?: string;
  /** The authorization server of the server, which takes an ID-JAG. */
  readonly authorizationServer?: ExchangeParty;
}

/** The server at which there must be a login before this server can run: the server itself, or that of its token. */
export function loginServerOf(
  spec: ServerSpec | undefined,
): (RemoteSpec & { readonly login: LoginSettings }) | undefined {
  if (spec?.kind !== 'remote') return spec?.token?.from;
  return spec.login && { ...spec, login: spec.login };
}

/** A server of the configuration: a program to run, or a URL. */
export type ServerSpec = ChildSpec | RemoteSpec;

/** The program of a server; `undefined` for one behind a URL, and for one that cannot run. */
export function programOf({ spec }: { readonly spec: ServerSpec | undefined }): ChildSpec | undefined {
  return spec?.kind === 'remote' ? undefined : spec;
}

interface CommonSpec {
  readonly key: string;
  readonly timeouts: ChildTimeouts;
  readonly restart: RestartPolicy;
}

export interface ChildTimeouts {
  /** Limit of the handshake, from its start to its end. Reading the lists has limits of its own. */
  readonly startMs: number;
  /** Time from closing stdin to SIGTERM when one child is stopped. */
  readonly stopGraceMs: number;
  /** Time from SIGTERM to SIGKILL. */
  readonly killAfterMs: number;
}

/** Times in milliseconds. Defaults and their origin: `docs/configuration.md`. */
interface RestartPolicy {
  readonly firstDelayMs: number;
  readonly maxDelayMs: number;
  /** Consecutive failures after which the child is parked. */
  readonly budget: number;
  /** Earlier failures no longer count after the child has been ready for this long. */
  readonly stableAfterMs: number;
  /** Delay before the first retry of a parked child. It doubles up to `parkedProbeMaxMs`. */
  readonly parkedProbeMs: number;
  readonly parkedProbeMaxMs: number;
  /** The shortest time between two starts of a parked child on demand. */
  readonly demandEveryMs: number;
}

export interface PackageRequest extends PackageName {
  /** The name as the configuration writes it, with variables not expanded. Messages show this text. */
  readonly shown: string;
  /** Program to run of a package that has several. */
  readonly bin: string | undefined;
  readonly installScripts: boolean;
  /** Whether dependencies may come from elsewhere than from the registry. */
  readonly foreignDependencies: boolean;
  /** Whether npm is confined, as the server is. */
  readonly isConfined: boolean;
  /** Variables of `defaults.env` for npm, besides the environment of Trunkline. */
  readonly env: Readonly<Record<string, string>>;
  /** Time limit of the installation, not counting the wait for other installations. */
  readonly budgetMs: number;
}

export interface PackageName {
  readonly name: string;
  /** An exact version, a range such as `^1.2`, or a dist-tag such as `latest`; undefined when any version is accepted. */
  readonly version: string | undefined;
}
