import { REDACTED } from '../../host/observe/redact.js';
import { readString } from '../../wire/json/json-text.js';
import { isRecord } from '../../wire/json/json-value.js';
import { RPC_CODES } from '../../wire/jsonrpc/message.js';
import type { Envelope, RequestEnvelope, ResponseEnvelope } from '../../wire/mcp/envelope.js';
import { METHODS } from '../../wire/mcp/methods.js';
import { textOfMessage } from './format.js';
import { answerOf, idOf, matchesRedacted, matchKey, messagesIn, replaceToken } from './recorded-messages.js';
import type { RecordedEntry } from './recording-file.js';

export interface ReplayedConnection {
  send(text: string): void;
  close(): void;
}

export interface ClientReplayOptions {
  readonly entries: readonly RecordedEntry[];
  readonly connect: (receive: (text: string) => void) => ReplayedConnection;
  /** Names of members that differ in each run. */
  readonly ignored: ReadonlySet<string>;
  readonly timeoutMs: number;
}

export interface ReplayResult {
  readonly compared: number;
  /** Number of answers of Trunkline's own tools, which are not compared, because they differ in each run. */
  readonly skipped: number;
  readonly findings: readonly ChangedAnswer[];
}

export interface ChangedAnswer {
  /** Number of the line of the recorded answer in its file. */
  readonly line: number;
  readonly request: string;
  /** Empty if there was no answer. */
  readonly differences: readonly Difference[];
}

/**
 * Sends the messages of the clients in the recorded order, and compares the answers. A message that was recorded after
 * an answer is sent after that answer.
 */
export async function replayClients(options: ClientReplayOptions): Promise<ReplayResult> {
  const { entries, ignored, timeoutMs } = options;
  const clients = new Map<number, ReplayedClient>();
  const findings: ChangedAnswer[] = [];
  let compared = 0;
  let skipped = 0;
  for (const entry of entries) {
    if (entry.dir !== 'c>g' && entry.dir !== 'g>c') continue;
    const client = clients.get(entry.conn) ?? new ReplayedClient(options, entry.conn);
    clients.set(entry.conn, client);
    const text = textOfMessage(entry) ?? '';
    if (entry.dir === 'c>g') {
      client.send(text);
      continue;
    }
    for (const message of messagesIn(text)) {
      if (message.kind !== 'response') continue;
      const request = client.requestOf(idOf(message));
      if (request === undefined) continue;
      const answer = await client.answerTo(idOf(message), timeoutMs);
      if (isOwnTool(request)) {
        skipped += 1;
        continue;
      }
      compared += 1;
      const found = answer && differences(answerOf(message), answerOf(answer), ignored);
      if (found === undefined || found.length > 0)
        findings.push({ line: entry.line, request: requestText(request), differences: found ?? [] });
    }
  }
  for (const client of clients.values()) client.close();
  return { compared, skipped, findings };
}

/** One client of the recording. Answers server requests with the recorded answers. */
class ReplayedClient {
  readonly #connection: ReplayedConnection;
  readonly #requests = new Map<string, RequestEnvelope>();
  readonly #answers = new Map<string, ResponseEnvelope>();
  readonly #waiting = new Map<string, (answer: ResponseEnvelope) => void>();
  /** The recorded answers to server requests, by method and parameters of the request. */
  readonly #replies = new Map<string, ResponseEnvelope[]>();

  constructor({ entries, connect }: ClientReplayOptions, conn: number) {
    const asked = new Map<string, string>();
    for (const entry of entries) {
      if (entry.conn !== conn) continue;
      for (const message of messagesIn(textOfMessage(entry) ?? '')) {
        if (entry.dir === 'g>c' && message.kind === 'request') asked.set(idOf(message), matchKey(message));
        if (entry.dir !== 'c>g' || message.kind !== 'response') continue;
        const key = asked.get(idOf(message)) ?? '';
        this.#replies.set(key, [...(this.#replies.get(key) ?? []), message]);
      }
    }
    this.#connection = connect((text) => {
      for (const message of messagesIn(text)) this.#received(message);
    });
    const first = entries.find((entry) => entry.conn === conn && entry.dir === 'c>g');
    const [begin] = messagesIn((first && textOfMessage(first)) ?? '');
    // Opens the session if the recording began in the middle of it.
    if (begin?.kind !== 'request' || (begin.method !== METHODS.initialize && !begin.method.startsWith('server/'))) {
      this.#connection.send(HANDSHAKE);
      this.#connection.send(`{"jsonrpc":"2.0","method":"${METHODS.initialized}"}`);
    }
  }

  /** Sends recorded messages. Answers are left out, because they are sent when the server request comes. */
  send(text: string): void {
    const messages = messagesIn(text);
    for (const message of messages) if (message.kind === 'request') this.#requests.set(idOf(message), message);
    if (messages.length === 0 || messages.some(({ kind }) => kind !== 'response')) this.#connection.send(text);
  }

  requestOf(id: string): RequestEnvelope | undefined {
    return this.#requests.get(id);
  }

  /** Resolves with the answer, or with `undefined` if none comes in time. */
  async answerTo(id: string, timeoutMs: number): Promise<ResponseEnvelope | undefined> {
    const come = this.#answers.get(id);
    this.#answers.delete(id);
    if (come !== undefined) return come;
    return await new Promise((resolve) => {
      const timer = setTimeout(() => resolve(undefined), timeoutMs);
      this.#waiting.set(id, (answer) => {
        clearTimeout(timer);
        resolve(answer);
      });
    });
  }

  close(): void {
    this.#connection.close();
  }

  #received(message: Envelope): void {
    if (message.kind === 'response') {
      const id = idOf(message);
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (waiting === undefined) this.#answers.set(id, message);
      else waiting(message);
    } else if (message.kind === 'request') {
      this.#connection.send(this.#replyTo(message));
    }
  }

  #replyTo(request: RequestEnvelope): string {
    const replies = this.#replies.get(matchKey(request)) ?? [];
    const reply = replies.length > 1 ? replies.shift() : replies[0];
    const id = idOf(request);
    if (reply !== undefined) return replaceToken(reply, reply.id, id);
    const error = { code: RPC_CODES.methodNotFound, message: 'The client was not asked this in the recording' };
    const outcome = request.method === METHODS.ping ? '"result":{}' : `"error":${JSON.stringify(error)}`;
    return `{"jsonrpc":"2.0","id":${id},${outcome}}`;
  }
}

const HANDSHAKE = JSON.stringify({
  jsonrpc: '2.0',
  id: 'replayed handshake',
  method: METHODS.initialize,
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'replay', version: '1' } },
});

/** Whether the request calls one of Trunkline's own tools, whose answers differ in each run. */
function isOwnTool({ method, bytes, tokens: { name } }: RequestEnvelope): boolean {
  return method === METHODS.callTool && name !== undefined && readString(bytes, name).startsWith('trunkline__');
}

function requestText(request: RequestEnvelope): string {
  const { name } = request.tokens;
  return name === undefined ? request.method : `${request.method} ${readString(request.bytes, name)}`;
}

export interface Difference {
  /** Path to the value, such as `result.content[0].text`. */
  readonly path: string;
  readonly recorded: unknown;
  readonly now: unknown;
}

const ABSENT = Symbol('absent');

/** Dates and times in the usual forms of programs. */
const TIME = /\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?/g;

/**
 * Returns the differences between two answers. Times in texts, `_meta`, and members whose names are in `ignored` do not
 * count. A secret that was removed from the recording equals everything.
 */
export function differences(recorded: unknown, now: unknown, ignored: ReadonlySet<string>, path = ''): Difference[] {
  if (Array.isArray(recorded) && Array.isArray(now)) {
    const length = Math.max(recorded.length, now.length);
    return Array.from({ length }, (_, at) => at).flatMap((at) =>
      differences(itemAt(recorded, at), itemAt(now, at), ignored, `${path}[${at}]`),
    );
  }
  if (isRecord(recorded) && isRecord(now)) {
    const keys = new Set([...Object.keys(recorded), ...Object.keys(now)]);
    return [...keys].flatMap((key) =>
      key === '_meta' || ignored.has(key)
        ? []
        : differences(memberOf(recorded, key), memberOf(now, key), ignored, path === '' ? key : `${path}.${key}`),
    );
  }
  if (Object.is(recorded, now)) return [];
  if (typeof recorded === 'string' && typeof now === 'string') {
    const before = recorded.replaceAll(TIME, '<time>');
    const after = now.replaceAll(TIME, '<time>');
    if (before === after || matchesRedacted(before, after, REDACTED)) return [];
  }
  return recorded === REDACTED ? [] : [{ path, recorded, now }];
}

function itemAt(items: readonly unknown[], at: number): unknown {
  return at < items.length ? items[at] : ABSENT;
}

function memberOf(value: Readonly<Record<string, unknown>>, key: string): unknown {
  return Object.hasOwn(value, key) ? value[key] : ABSENT;
}

const LONGEST_VALUE = 100;
/** Characters that are shown of the common beginning of two long texts. */
const SHOWN_BEFORE = 20;

/** Describes a difference, such as `result.content[0].text: "a" is now "b"`. */
export function differenceText({ path, recorded, now }: Difference): string {
  const before = valueText(recorded);
  const after = valueText(now);
  let same = 0;
  while (same < before.length && before[same] === after[same]) same += 1;
  const start = before.length > LONGEST_VALUE && same > SHOWN_BEFORE ? same - SHOWN_BEFORE : 0;
  return `${path}: ${excerpt(before, start)} is now ${excerpt(after, start)}`;
}

function valueText(value: unknown): string {
  return value === ABSENT ? 'absent' : JSON.stringify(value);
}

function excerpt(text: string, start: number): string {
  const end = start + LONGEST_VALUE;
  return `${start > 0 ? '…' : ''}${text.slice(start, end)}${end < text.length ? '…' : ''}`;
}
