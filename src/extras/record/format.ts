import type { Direction } from '../../wire/io/message-feed.js';
import { isRecord, parseJson } from '../../wire/json/json-value.js';
import { printable } from '../../wire/json/printable.js';

/*
 * The lines of a recording: one header, then entries, all of them JSON. A reader ignores unknown members and unknown
 * kinds of lines. A change that an older reader would misread needs another `FORMAT`. The format does not depend on the
 * content of messages, so that messages of every protocol era can be recorded.
 */

export const FORMAT = 1;

export interface Header extends RecordingSource {
  readonly trunkline: 'recording';
  readonly format: number;
  /** Id of the recording, the same in all its parts. */
  readonly recording: string;
  /** Number of the part, from 1. A new part begins when a file is full; the newest two parts are stored. */
  readonly part: number;
  /** Says that earlier messages were removed. */
  readonly note?: string;
  readonly startedAt: string;
}

export interface RecordingSource {
  readonly version: string;
  /** Digest of the configured servers without secrets. Equal servers have equal digests. */
  readonly configDigest: string;
  readonly servers: readonly string[];
  /** The latest protocol revision that Trunkline speaks. */
  readonly revision: string;
}

export interface Entry {
  /** Milliseconds since 1970. */
  readonly t: number;
  readonly dir: Direction;
  /** The key of the server. In an entry of a client, the only server that the client sees. */
  readonly server?: string | undefined;
  /** Instance of the server, if there are several. */
  readonly instance?: string | undefined;
  readonly gen?: number | undefined;
  readonly conn: number;
  /** Name and version of the client. */
  readonly client?: string | undefined;
  /** The exact text, without line feed and secrets. */
  readonly raw?: string;
  /** A message that is not UTF-8, in Base64. */
  readonly base64?: string;
  /** Bytes of a message that is too large for a recording. */
  readonly omitted?: number;
}

/** Returns the line that stands for this many missing messages. */
export function describeGap(lines: number): string {
  return JSON.stringify({ t: Date.now(), dropped: lines });
}

/** Content of one line. `undefined` for a line that is incomplete or unknown to this version. */
export type RecordedLine =
  | { readonly kind: 'header'; readonly header: Header }
  | { readonly kind: 'entry'; readonly entry: Entry }
  | { readonly kind: 'gap'; readonly dropped: number };

export function parseLine(line: string): RecordedLine | undefined {
  const value = parseJson(line);
  if (!isRecord(value)) return undefined;
  if (value.trunkline === 'recording') return { kind: 'header', header: value as unknown as Header };
  if (typeof value.dropped === 'number') return { kind: 'gap', dropped: value.dropped };
  if (typeof value.dir !== 'string' || typeof value.conn !== 'number') return undefined;
  return { kind: 'entry', entry: value as unknown as Entry };
}

/** The text of a message; `undefined` if it was too large. Uses no `Buffer`, because a page in the browser reads recordings, too. */
export function textOfMessage({ raw, base64 }: Entry): string | undefined {
  if (raw !== undefined || base64 === undefined) return raw;
  return new TextDecoder().decode(Uint8Array.from(atob(base64), (each) => each.charCodeAt(0)));
}

/** Names of the parties on the left and on the right: clients, Trunkline, servers. */
const ARROWS: Readonly<Record<Entry['dir'], string>> = {
  'c>g': 'client → ',
  'g>c': 'client ← ',
  'g>s': '       → server',
  's>g': '       ← server',
};

/** Returns a message as one readable line: the time, the parties, and the content. */
export function messageText(entry: Entry): string {
  const { t, dir, server, instance, gen, conn, client } = entry;
  const isAtServer = dir === 'g>s' || dir === 's>g';
  const who = isAtServer ? `${instance ?? server ?? '?'} gen ${gen ?? '?'}` : `${client ?? 'client'} #${conn}`;
  const time = new Date(t).toTimeString().slice(0, 8);
  const ms = String(Math.floor(t % 1_000)).padStart(3, '0');
  return printable(`${time}.${ms} ${(ARROWS[dir] ?? dir).padEnd(15)} ${who}: ${contentText(entry)}`);
}

function contentText(entry: Entry): string {
  const { omitted } = entry;
  const text = textOfMessage(entry);
  if (text === undefined) return `a message of ${omitted ?? 'unknown'} bytes, too large to be recorded`;
  const message = parseJson(text);
  if (!isRecord(message)) return Array.isArray(message) ? `batch ${text}` : `no message: ${text}`;
  const { method, id, params, result, error } = message;
  const idText = id === undefined ? '' : ` ${JSON.stringify(id)}`;
  if (typeof method === 'string')
    return `${method}${idText}${params === undefined ? '' : ` ${JSON.stringify(params)}`}`;
  if (error !== undefined) return `error${idText} ${JSON.stringify(error)}`;
  return `answer${idText} ${JSON.stringify(result)}`;
}
