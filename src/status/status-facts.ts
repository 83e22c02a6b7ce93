import type { ServerLayer } from '../config/resolve/config.js';
import type { SharingRule } from '../config/resolve/sharing.js';
import type { DownstreamClient } from '../downstream/port.js';
import type { Backend } from '../gateway/registry/backend.js';
import type { VisibleLists } from '../gateway/routing/own-tool.js';
import type { ChildSnapshot } from '../spec/server-state.js';
import type { EraSource } from '../upstream/server-era.js';
import type { FairMemory, SharedLimit } from '../wire/io/shared-limit.js';
import type { CountedName } from './refused-names.js';

export interface ServerFacts extends SupervisedFacts, SharedServer {
  readonly backend: Backend;
  /** The merged lists with the server, if they are others than those of all servers together. */
  readonly catalogs?: VisibleLists['catalogs'] | undefined;
}

export interface SharedServer {
  /** The clients that share a process, the rule, and its reason. */
  readonly sharing?: SharingRule | undefined;
  /** All instances of the server. Clients with different profiles use different instances. */
  readonly instances: readonly InstanceFacts[];
}

export interface SupervisedFacts {
  /** Absent if the configuration of this server is wrong. */
  readonly lifecycle: ChildSnapshot | undefined;
  /** `isOfUser` is set if only a variable of a user is missing: of `any` user, or of the `one` who is served. */
  readonly problem: { readonly message: string; readonly hint: string; readonly isOfUser?: 'any' | 'one' } | undefined;
  /** Whether this instance cannot run, because the server needs variables of a user over HTTP and the instance has no user. */
  readonly isPerUser?: boolean | undefined;
  /** Whether the server is behind a URL, so that it has a connection instead of a process. */
  readonly isRemote?: boolean | undefined;
  /** The project that the server belongs to. Absent for a server of the user's own file. */
  readonly layer?: ServerLayer | undefined;
  /** Whether its messages cross a network in plain text, as its entry allows. */
  readonly isInsecure?: boolean | undefined;
  /** A sentence about the login of the user of this instance. Present if each user has a login of their own. */
  readonly userLogin?: string | undefined;
  /** The clients that share a process, the rule, and its reason. */
  readonly sharing?: SharingRule | undefined;
  /** Limits of all processes of one instance together. Absent if nothing is limited. */
  readonly limits?: { readonly memoryBytes?: number; readonly processes?: number } | undefined;
  readonly era?: EraSource | undefined;
  /** The exact version of the server's package. Absent if the server runs a command, or the package is not installed. */
  readonly packageVersion?: string | undefined;
  /** The last lines of stderr, and of stdout lines that were not messages. Without secrets, oldest first. */
  readonly logLines: readonly string[];
  /** The lines that name the cause of the latest failure. Without secrets. Empty while the server runs. */
  readonly cause: readonly string[];
  /** Bytes of output that were dropped from the log because too many came at once. */
  readonly droppedLogBytes: number;
  /** Sentences about the sandbox, such as its refusals. Absent if the server is not confined. */
  readonly sandboxRemarks?: readonly string[] | undefined;
}

export interface InstanceFacts extends SupervisedInstance {
  /** Whether the instance waits for its first client. */
  readonly isUnclaimed: boolean;
}

export interface SupervisedInstance {
  readonly backend: Backend;
  /** Absent if the server cannot run with the variables of its clients. */
  readonly lifecycle: ChildSnapshot | undefined;
  readonly problem?: ServerFacts['problem'];
  readonly isPerUser?: boolean | undefined;
}

/** Usage of the process group of a server at the latest reading. */
interface UsageFacts {
  readonly memoryBytes: number;
  readonly processes: number;
  readonly cpuMs: number;
  /** Share of one processor since the previous reading. Absent after the first reading. */
  readonly cpuShare?: number;
}

export interface ConfigFacts {
  readonly file: string | undefined;
  /** Problem with the current file, the time since which it exists, and whether the previous configuration is in force instead. */
  readonly fault: { readonly report: string; readonly since: number; readonly isPreviousInForce: boolean } | undefined;
  readonly reloads: number;
  /** Settings that take effect only after a restart of Trunkline. */
  readonly needsRestart: readonly string[];
}

/** Service of the clients: by a hub, over HTTP, or by a process for one client. Times are milliseconds on the monotonic clock. */
export type ServiceFacts =
  | { readonly kind: 'hub'; readonly pid: number; readonly since: number; readonly clients: number }
  /** `refusedNames` are the names for which requests were refused. */
  | { readonly kind: 'http'; readonly refusedNames: readonly CountedName[] }
  /** The client cannot share servers with other clients, although it should. `because` is a sentence without a period. */
  | { readonly kind: 'alone'; readonly because: string };

/** Tracing of calls: the endpoint for the spans, or the reason why tracing is off. Times are milliseconds on the monotonic clock. */
export type TracingFacts =
  | { readonly offBecause: string }
  | {
      readonly endpoint: string;
      readonly sampler: string;
      /** Origin of the endpoint: `gateway.tracing`, or the name of a variable. */
      readonly from: string;
      readonly exported: number;
      readonly dropped: number;
      /** Present while the collector takes no spans. */
      readonly failing: { readonly since: number; readonly fault: string } | undefined;
    };

/** A server that looks at the messages of others, and the reason for which it cannot, as a clause. */
export interface InterceptorFacts {
  readonly server: string;
  /** The keys of the servers and the names of the views that it guards. */
  readonly guards: readonly string[];
  readonly views: readonly string[];
  readonly failsOpen: boolean;
  readonly fault: string | undefined;
}

/** A call that a rule lets pass only with the yes of a person. Texts have no secrets, and are safe to print. */
export interface OpenQuestion {
  /** The name that a person types. */
  readonly id: string;
  readonly principal: string;
  /** The client that has called. It alone, besides the operator, learns of the question. */
  readonly caller: DownstreamClient;
  readonly server: string;
  readonly kind: 'tool' | 'prompt' | 'resource';
  /** The server's own name of the tool or the prompt, or the URI, in quotes. */
  readonly name: string;
  /** The arguments as JSON, with long texts cut; '' if there are none. */
  readonly arguments: string;
  readonly client: string;
  /** Absent if clients need not say who their user is. */
  readonly user: string | undefined;
  readonly rule: string;
  readonly say: string | undefined;
  /** Time until which the question can be answered, in milliseconds on the clock. */
  readonly until: number;
}

export interface StatusFacts extends VisibleLists {
  readonly now: number;
  readonly startedAt: number;
  readonly version: string;
  /** As in `process.platform`. Absent where nothing depends on it. */
  readonly platform?: string;
  readonly config: ConfigFacts;
  /** Absent if the servers are meant for a single client or command. */
  readonly service?: ServiceFacts | undefined;
  /** Absent if neither the configuration nor the environment asks for traces. */
  readonly tracing?: TracingFacts | undefined;
  /** The interceptors. Absent if there are none. */
  readonly interceptors?: readonly InterceptorFacts[] | undefined;
  /** The client that reads the status with the status tool. Absent for the operator. */
  readonly reader?: DownstreamClient | undefined;
  /** The calls that wait for the yes of a person, the oldest first. */
  readonly questions?: readonly OpenQuestion[] | undefined;
  /** Sentences to the user about Trunkline itself, such as a port that it cannot listen on. */
  readonly notices?: readonly string[] | undefined;
  readonly redact: (text: string) => string;
  /** Calls that wait for admission, over all servers. */
  readonly waiting: SharedLimit;
  /** Bytes of unfinished messages, over the pipes of all servers and clients. */
  readonly partialFrames: FairMemory;
  /** Bytes of incomplete request bodies, over all HTTP clients. */
  readonly requestBodies: FairMemory;
  /** The large results that are kept for all clients. Absent if none is kept. */
  readonly keptResults?: { readonly count: number; readonly bytes: number } | undefined;
  /** Number of internal errors, each of which failed one request. */
  readonly internalErrorCount: number;
  readonly servers: readonly ServerFacts[];
  /**
   * Keys of the servers that have no instance now, because each session gets a process of its own. Absent in the status that a
   * client reads with the status tool.
   */
  readonly withoutInstance?: readonly string[] | undefined;
  /** Delays of the event loop since the start, in milliseconds: the 99th percentile and the maximum. */
  readonly eventLoop: { readonly p99Ms: number; readonly maxMs: number };
  /** Usage of the process group with this pid at the latest reading; `undefined` if it was not read. */
  readonly usageOf: (pid: number) => UsageFacts | undefined;
  readonly canRestart: boolean;
  /** Returns the command with which a user restarts a server of the hub. */
  readonly restartCommand?: ((server: string) => string) | undefined;
}

/**
 * Reduces the facts to those that a user may know. Leaves out the instances of other users, and most facts about the machine.
 * Leaves out the output of a process for all users, because it may be about any of them.
 */
export function factsForUser(facts: StatusFacts, principal: string): StatusFacts {
  const isOwn = ({ clients }: Backend) => [...clients].some((client) => client.principal === principal);
  return {
    ...facts,
    config: { ...facts.config, file: undefined },
    restartCommand: undefined,
    keptResults: undefined,
    ...(facts.service?.kind === 'http' && { service: { kind: 'http', refusedNames: [] } }),
    servers: facts.servers.map((server) => ({
      ...server,
      ...(server.sharing?.sharing === 'all' && {
        logLines: [],
        cause: [],
        ...(server.sandboxRemarks && { sandboxRemarks: [] }),
      }),
      instances: server.instances.filter(({ backend }) => isOwn(backend)),
    })),
  };
}
