import type { ProcessReport } from '../gateway/status/status.js';
import type { ByteReader } from '../io/byte-reader.js';

/*
 * Messages between a command of a person and a hub, after a hello with the role `control`, as lines of JSON.
 */

export interface ControlRequest {
  readonly id: number;
  readonly command: string;
  readonly params: Readonly<Record<string, unknown>>;
}

/** Some commands have events before their result; one that goes on until the connection is closed has no result. */
export type ControlReply =
  | { readonly id: number; readonly event: unknown }
  | { readonly id: number; readonly result: unknown }
  /** A sentence for the person. */
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
 * Answers of a hub to the commands of a person. Versions may differ at the two ends, so members are added and never
 * changed.
 */

/** The result of the command `describe`. */
export interface HubDescription {
  readonly pid: number;
  readonly version: string;
  /** The number of the hub among those of its configuration. */
  readonly number: number;
  /** Since when it runs, as an ISO date. */
  readonly since: string;
  readonly uptimeSeconds: number;
  readonly configFile: string;
  readonly logFile: string;
  /** Whether its servers are being started, or were. A hub waits for its first client. */
  readonly hasStarted: boolean;
  /** Whether a later hub serves from now on: this one ends when its clients have nothing in flight. */
  readonly isDraining: boolean;
  readonly clients: readonly ClientDescription[];
  readonly servers: readonly ProcessReport[];
}

export interface ClientDescription {
  /** Description of the client from `initialize`; null before that. */
  readonly name: string | null;
  readonly version: string | null;
  /** The process that attached. */
  readonly pid: number;
  readonly since: string;
  readonly uptimeSeconds: number;
  readonly inFlight: number;
  /** The revision of MCP that it opened with; null before it did. Older hubs do not tell. */
  readonly revision?: string | null;
  /** The version of Trunkline that the client has started. Older hubs do not tell. */
  readonly trunkline?: string;
}

/** The result of the command `status`, and each of its events. */
export interface StatusAnswer {
  readonly text: string;
  readonly structure: unknown;
}
