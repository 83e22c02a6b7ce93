import type { ProcessReport, StatusReport } from '../status/status.js';
import type { HistoryReport } from '../status/usage-history.js';
import type { ByteReader } from '../wire/io/byte-reader.js';

/*
 * Messages between a command of a user and a hub, or another gateway of the user, after a hello with the role `control`. Each message is a line of JSON.
 */

export interface ControlRequest {
  readonly id: number;
  readonly command: string;
  readonly params: Readonly<Record<string, unknown>>;
}

/** A command may have events before its result. A command that runs until the connection is closed has no result. */
export type ControlReply =
  | { readonly id: number; readonly event: unknown }
  | { readonly id: number; readonly result: unknown }
  /** A sentence for the user. */
  | { readonly id: number; readonly error: string };

/** Reads lines of text. `onLine` gets `undefined` if an unfinished line is longer than `maxLength`. */
export function lineReader(
  onLine: (line: string | undefined) => void,
  maxLength = Number.POSITIVE_INFINITY,
): ByteReader {
  const decoder = new TextDecoder();
  const buffer = new Uint8Array(64 * 1024);
  let text = '';
  return {
    freeSpace: buffer,
    filled: (byteLength) => {
      text += decoder.decode(buffer.subarray(0, byteLength), { stream: true });
      const lines = text.split('\n');
      text = lines.pop() ?? '';
      for (const line of lines) onLine(line);
      if (text.length > maxLength) onLine(undefined);
    },
  };
}

/*
 * Answers of a hub to the commands of a user. Members may be added, but not changed, because the two ends may have different versions.
 */

/** Kind of clients that a process of Trunkline serves: those of a hub, those over HTTP, or one on stdin. */
export type GatewayKind = 'hub' | 'http' | 'stdio';

export interface HubDescription {
  /** Older hubs do not send it. */
  readonly kind?: GatewayKind;
  /** The URL of a gateway that serves HTTP, without the path. */
  readonly url?: string;
  readonly pid: number;
  readonly version: string;
  /** The number of the hub among those of its configuration; 0 for a gateway that is no hub. */
  readonly number: number;
  /** Start of the hub, as an ISO date. */
  readonly since: string;
  readonly uptimeSeconds: number;
  readonly configFile: string;
  /** Null if a gateway that is no hub logs to stderr. The command `log` then has the latest records. */
  readonly logFile: string | null;
  /** Whether the hub has begun to start its servers, which it does when its first client comes. */
  readonly hasStarted: boolean;
  /** Whether the hub takes no more clients, because it is ending or a later hub serves. */
  readonly isDraining: boolean;
  readonly clients: readonly ClientDescription[];
  readonly servers: readonly ProcessReport[];
  /** Sentences about servers that lack variables of users, or whose processes could be fewer. Older hubs do not send it. */
  readonly advice?: readonly string[];
}

export interface ClientDescription {
  /** The name that the client gives itself in its handshake; null before that. */
  readonly name: string | null;
  readonly version: string | null;
  /** Id of the attach process, or of the gateway that serves only this client; null for a client over HTTP. */
  readonly pid: number | null;
  readonly since: string;
  readonly uptimeSeconds: number;
  readonly inFlight: number;
  /** The protocol revision of the session; null before the handshake. Older hubs do not send it. */
  readonly revision?: string | null;
  /** The version of the attach process. Older hubs do not send it. */
  readonly trunkline?: string;
  /** Its view of the configuration; null if it sees everything. Older hubs do not send it. */
  readonly view?: string | null;
  /** The name of its user, or of its machine; null if clients need not say who they are. Older gateways do not send it. */
  readonly user?: string | null;
}

/** The result of the command `status`, and each of its events. */
export interface StatusAnswer {
  readonly text: string;
  readonly structure: unknown;
}

export type PageEvent =
  /** The state, when it has changed, at most once a second. `report` is null until the hub has started its servers. */
  | { readonly kind: 'state'; readonly hub: HubDescription; readonly report: StatusReport | null }
  /** Usage of the servers in the last hour: at first, every ten seconds, and every two seconds while calls end. */
  | ({ readonly kind: 'history' } & HistoryReport)
  | ({ readonly kind: 'calls' } & CallsEvent);

/** The calls since the event before, 200 at most. `left` counts the others by outcome. */
export interface CallsEvent {
  readonly calls: readonly CallRow[];
  readonly left: Readonly<Record<string, number>>;
  /** Time from which calls are reported, in milliseconds since 1970. Only in the first event. */
  readonly since?: number;
}

export interface CallRow {
  /** Number of the call, unique among the calls of this hub and of all hubs before. */
  readonly id: number;
  /** Time of the end, in milliseconds since 1970. */
  readonly at: number;
  /** Number of the session, or its hash in the call log; and description of its client. */
  readonly session: number | string;
  readonly client: string;
  readonly server: string | null;
  readonly method: string;
  readonly name: string | null;
  readonly outcome: 'ok' | 'tool_error' | 'rpc_error' | 'failed' | 'cancelled';
  readonly reason: string | null;
  readonly ms: number;
  /** Time before the call was sent to its server, and from then to the answer; null if it was not sent. */
  readonly queueMs: number | null;
  readonly serverMs: number | null;
  /** Set for a call from the call log, which does not have these two times. */
  readonly isLogged?: true;
  readonly bytesIn: number;
  readonly bytesOut: number;
}

export interface CallDetail {
  readonly call: CallRow;
  /** In order of time, without known secrets. `text` is null if the message was too large to keep; `bytes` always counts. */
  readonly messages: readonly {
    readonly leg: 'client' | 'server';
    readonly direction: 'request' | 'answer';
    readonly text: string | null;
    readonly bytes: number;
  }[];
  /** A `trunkline call …` command. */
  readonly command: string | null;
}

/** The result of the command `find`. */
export interface FoundTools {
  /** The result of `trunkline__find_tools`, with the definitions of all tools in it. */
  readonly result: {
    readonly content: readonly unknown[];
    readonly structuredContent?: Readonly<Record<string, unknown>> | undefined;
  };
  /** Whether servers are starting whose tools are not known yet. */
  readonly isStarting: boolean;
}

/** A line in the result of the command `output`, which has the last lines. */
export interface OutputLine {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly text: string;
  /** Whether Trunkline says here that the server was started. */
  readonly isStart?: true;
}
