import { readString } from '../json/json-text.js';
import { RPC_CODES } from '../jsonrpc/rpc-error.js';
import type { Envelope, RequestEnvelope, ResponseEnvelope } from '../mcp/envelope.js';
import { METHODS } from '../mcp/methods.js';
import { type Difference, differences } from './compare-replay.js';
import { textOf } from './format.js';
import { idOf, matchKey, messagesIn, outcomeOf, paramsOf, withToken } from './recorded-messages.js';
import type { RecordedEntry } from './recording-file.js';

/** A new connection to the gateway. */
export interface ReplayedConnection {
  send(text: string): void;
  close(): void;
}

export interface ClientReplayOptions {
  readonly entries: readonly RecordedEntry[];
  readonly connect: (receive: (text: string) => void) => ReplayedConnection;
  /** Names of members that differ each time. */
  readonly ignored: ReadonlySet<string>;
  /** How long to wait for an answer. */
  readonly timeoutMs: number;
}

export interface ReplayResult {
  readonly compared: number;
  /** Answers that say what happened meanwhile, such as those of Trunkline's own tools. */
  readonly skipped: number;
  readonly findings: readonly Finding[];
}

/** An answer that is not as it was. */
export interface Finding {
  readonly line: number;
  readonly request: string;
  /** Without any: there was no answer. */
  readonly differences: readonly Difference[];
}

/**
 * Sends what the clients sent, in the recorded order: a message that followed an answer is sent when that answer has come.
 * Compares the answers.
 */
export async function replayClients(options: ClientReplayOptions): Promise<ReplayResult> {
  const { entries, ignored, timeoutMs } = options;
  const clients = new Map<number, ReplayedClient>();
  const findings: Finding[] = [];
  let [compared, skipped] = [0, 0];
  for (const entry of entries) {
    if (entry.dir !== 'c>g' && entry.dir !== 'g>c') continue;
    const client = clients.get(entry.conn) ?? new ReplayedClient(options, entry.conn);
    clients.set(entry.conn, client);
    const text = textOf(entry) ?? '';
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
      const found = answer && differences(outcomeOf(message), outcomeOf(answer), ignored);
      if (found === undefined || found.length > 0)
        findings.push({ line: entry.line, request: requestText(request), differences: found ?? [] });
    }
  }
  for (const client of clients.values()) client.close();
  return { compared, skipped, findings };
}

/** One client of the recording, which answers server requests as it did then. */
class ReplayedClient {
  readonly #connection: ReplayedConnection;
  readonly #requests = new Map<string, RequestEnvelope>();
  readonly #answers = new Map<string, ResponseEnvelope>();
  readonly #waiting = new Map<string, (answer: ResponseEnvelope) => void>();
  /** The recorded answers to server requests, by what was asked. */
  readonly #replies = new Map<string, ResponseEnvelope[]>();

  constructor({ entries, connect }: ClientReplayOptions, conn: number) {
    const asked = new Map<string, string>();
    for (const entry of entries) {
      if (entry.conn !== conn) continue;
      for (const message of messagesIn(textOf(entry) ?? '')) {
        if (entry.dir === 'g>c' && message.kind === 'request')
          asked.set(idOf(message), matchKey(message.method, paramsOf(message)));
        if (entry.dir !== 'c>g' || message.kind !== 'response') continue;
        const key = asked.get(idOf(message)) ?? '';
        this.#replies.set(key, [...(this.#replies.get(key) ?? []), message]);
      }
    }
    this.#connection = connect((text) => {
      for (const message of messagesIn(text)) this.#received(message);
    });
    const first = entries.find((entry) => entry.conn === conn && entry.dir === 'c>g');
    const [begin] = messagesIn((first && textOf(first)) ?? '');
    // The recording began in the middle of a session.
    if (begin?.kind !== 'request' || (begin.method !== METHODS.initialize && !begin.method.startsWith('server/'))) {
      this.#connection.send(HANDSHAKE);
      this.#connection.send(`{"jsonrpc":"2.0","method":"${METHODS.initialized}"}`);
    }
  }

  /** Sends what was recorded. Answers to server requests wait until they are asked for. */
  send(text: string): void {
    const messages = messagesIn(text);
    for (const message of messages) if (message.kind === 'request') this.#requests.set(idOf(message), message);
    if (messages.length === 0 || messages.some(({ kind }) => kind !== 'response')) this.#connection.send(text);
  }

  requestOf(id: string): RequestEnvelope | undefined {
    return this.#requests.get(id);
  }

  /** `undefined` if there is none in time. */
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
    const replies = this.#replies.get(matchKey(request.method, paramsOf(request))) ?? [];
    const reply = replies.length > 1 ? replies.shift() : replies[0];
    const id = idOf(request);
    if (reply !== undefined) return withToken(reply, reply.id, id);
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

/** Trunkline's own tools say what it is doing, which is different each time. */
function isOwnTool({ method, bytes, tokens: { name } }: RequestEnvelope): boolean {
  return method === METHODS.callTool && name !== undefined && readString(bytes, name).startsWith('trunkline__');
}

function requestText(request: RequestEnvelope): string {
  const { name } = request.tokens;
  return name === undefined ? request.method : `${request.method} ${readString(request.bytes, name)}`;
}
