import { type Entry, type Header, parseLine, textOfMessage } from '../../extras/record/format.js';
import { isRecord, parseJson } from '../../wire/json/json-value.js';
import { utf8Length } from '../../wire/json/printable.js';

export interface RecordedMessage {
  readonly index: number;
  readonly at: number;
  readonly direction: Entry['dir'];
  /** Client or server at the other end. */
  readonly party: string;
  /** Method, also in an answer; '' if it is unknown. */
  readonly method: string;
  /** Name of the tool or prompt, or the URI; '' without one. */
  readonly name: string;
  readonly kind: 'request' | 'notification' | 'answer' | 'error' | 'other';
  /** Milliseconds since its request; null for everything but answers, and if the request is unknown. */
  readonly ms: number | null;
  readonly text: string | null;
  readonly bytes: number;
}

export interface RecordingFile {
  /** Null if the file is no recording. */
  readonly header: Header | null;
  readonly messages: readonly RecordedMessage[];
  /** Number of messages that were not recorded, because they were too many. */
  readonly dropped: number;
  /** Number of lines that do not have the format of a recording. */
  readonly unreadable: number;
}

type Requests = Map<string, { readonly at: number; readonly method: string; readonly name: string }>;

/** Reads the lines of a recording, and finds the request of each answer. */
export function parseRecording(text: string): RecordingFile {
  const requests: Requests = new Map();
  const messages: RecordedMessage[] = [];
  let header: Header | null = null;
  let dropped = 0;
  let unreadable = 0;
  for (const line of text.split('\n')) {
    if (line === '') continue;
    const parsed = parseLine(line);
    if (parsed?.kind === 'header') header = parsed.header;
    else if (parsed?.kind === 'gap') dropped += parsed.dropped;
    else if (parsed?.kind === 'entry') messages.push(messageOf(parsed.entry, messages.length, requests));
    else unreadable += 1;
  }
  return { header, messages, dropped, unreadable };
}

function messageOf(entry: Entry, index: number, requests: Requests): RecordedMessage {
  const { t: at, dir: direction, server, instance, client, conn, gen } = entry;
  const isClient = direction === 'c>g' || direction === 'g>c';
  const text = textOfMessage(entry) ?? null;
  const content = text === null ? undefined : parseJson(text);
  const party = isClient ? `${client ?? 'client'} #${conn}` : (instance ?? server ?? 'server');
  const bytes = entry.omitted ?? utf8Length(text ?? '');
  const base = { index, at, direction, party, text, bytes, method: '', name: '', ms: null, kind: 'other' } as const;
  if (!isRecord(content)) return base;
  const { id, method } = content;
  // An answer goes against the direction of its request, on the same connection.
  const key = (from: string) => JSON.stringify([from, conn, gen, server, id]);
  if (typeof method === 'string') {
    const name = nameOf(content.params);
    if (id === undefined) return { ...base, kind: 'notification', method, name };
    requests.set(key(direction), { at, method, name });
    return { ...base, kind: 'request', method, name };
  }
  const asked = key([...direction].reverse().join(''));
  const request = requests.get(asked);
  requests.delete(asked);
  const kind = content.error === undefined ? 'answer' : 'error';
  if (request === undefined) return { ...base, kind };
  return { ...base, kind, method: request.method, name: request.name, ms: at - request.at };
}

function nameOf(params: unknown): string {
  if (!isRecord(params)) return '';
  const name = params.name ?? params.uri;
  return typeof name === 'string' ? name : '';
}
