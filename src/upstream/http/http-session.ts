import type { HttpAnswer } from '../../host/http/decode.js';
import type { NotificationEnvelope, RequestEnvelope, ScanEnvelope } from '../../wire/mcp/envelope.js';
import type { MirroredParam } from '../../wire/mcp/mirrored-params.js';
import type { EndedBecause, RequestFailure } from '../../wire/mcp/outcome.js';
import type { MessageReader } from '../channel/message-reader.js';
import { EventStreamReader } from './event-stream.js';

/** Reason for which a connection over HTTP ends by itself. */
export type ConnectionLoss =
  /** The server forgot the session, or ended the stream that the session depends on. */
  | 'lapsed'
  | 'unreachable'
  /** The server does not accept the credentials. */
  | 'blocked';

/** The bridge and its dialer, as the HTTP side sees them. */
export interface HttpIncoming {
  /** Opens the reader of an answer: messages, each ended by a newline. `request` is the request that is answered. */
  open(request?: number): MessageReader;
  close(reader: MessageReader): void;
  /**
   * Passes the bytes of an answer to `push` as they come, while the clients and the pace of the server allow it. Resolves at its
   * end with whether it is complete, and never rejects.
   */
  follow(response: HttpAnswer, reader: MessageReader, push: (chunk: Uint8Array) => void): Promise<boolean>;
  isPending(id: number): boolean;
  /** Headers of the client's HTTP request that the configuration passes on with a request, by lower-case names. */
  passedHeaders(id: number): Readonly<Record<string, string>> | undefined;
  fail(id: number, reason: RequestFailure, sent: boolean, because?: EndedBecause): void;
  /** The connection is over. Called once. `because` is a clause with *it* as the subject. */
  lost(loss: ConnectionLoss, because: string): void;
  note(text: string): void;
  /** The server forgot the session, and has opened another one. */
  renewed(): void;
  /** Changes of lists may have been missed, so they are read again. */
  missedChanges(): void;
}

/** Thrown instead of sending a request, because the server wants a longer pause than a request waits. */
export class PausedError extends Error {
  override readonly name = 'PausedError';

  constructor(ms: number) {
    super(`it wants no request for ${Math.ceil(ms / 1_000)} s`);
  }
}

export interface SessionRequest {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly accept: string;
  readonly signal: AbortSignal;
  readonly body?: Uint8Array;
  /** The message in the body. Headers repeat parts of it. */
  readonly message?: RequestEnvelope | NotificationEnvelope | undefined;
  /** Headers of the client whose message it is. All others replace those of the same name. */
  readonly passed?: Readonly<Record<string, string>> | undefined;
  /** Resumes a stream behind this event. */
  readonly lastEventId?: string | undefined;
  /** Called when bytes of the request can reach the server. */
  readonly onSent?: () => void;
}

/** The parameters of tools that headers must repeat (`x-mcp-header`). */
export interface ToolHeaders {
  readonly paramsOf: (tool: string) => readonly MirroredParam[];
  /** Reads the tools of the server again. Never rejects. */
  readonly rereadTools: () => Promise<void>;
}

export interface SessionOptions extends ToolHeaders {
  readonly transport: 'auto' | 'http' | 'sse';
  readonly scan: ScanEnvelope;
  /** The longest message that the server may send, in bytes. */
  readonly maxFrameBytes: number;
  readonly incoming: HttpIncoming;
}

/** The session, as the senders of its messages and the readers of its streams see it. */
export interface HttpSession {
  readonly options: SessionOptions;
  /** Whether nothing can be sent anymore. */
  readonly isOver: boolean;
  /** Whether answers come on one stream for all requests (revision 2024-11-05). */
  readonly hasOneStream: boolean;
  /** The id of the session, which only the revisions with a handshake have. */
  readonly sessionId: string | undefined;
  /** Whether the stream for messages that belong to no request is open. */
  readonly isListening: boolean;
  /** Sends an HTTP request with the headers of the session. Throws `RequestError`, `BlockedError` or `PausedError`. */
  request(request: SessionRequest): Promise<HttpAnswer>;
  /** Takes the id of the session from the answer to `initialize`. `handshake` is the message that opens another session like this one. */
  takeSession(response: HttpAnswer, handshake: Uint8Array): void;
  /** Whether the server answers another request of this session, or cannot be asked. */
  answersPing(): Promise<boolean>;
  /** Opens a session in place of one that the server refuses. Resolves with whether there is one. Never rejects. */
  renew(refused: string | undefined): Promise<boolean>;
  /** Sends no request for this time, in milliseconds. */
  pauseFor(ms: number): void;
  /** Resolves after the time, in milliseconds, or at once when the signal aborts. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
  /** Opens the stream on which all answers come. Resolves with whether the server is of revision 2024-11-05. */
  openOneStream(): Promise<boolean>;
  /** Takes the endpoint of that stream to be below the folder of the server's URL. Returns whether this is another URL. */
  tryPrefixedEndpoint(): boolean;
  /** Sends nothing more, because the connection cannot be used, and closes it soon. */
  lose(loss: ConnectionLoss, because: string): void;
}

export const EVENT_STREAM = 'text/event-stream';
export const SESSION_GONE = 'it does not know the session anymore';

/** The body of a refusal is read up to this size, in bytes, and for this time, in milliseconds. */
const MAX_BODY_BYTES = 1024 * 1024;
const BODY_MS = 5_000;

/** Reads a body, up to 1 MiB and for up to 5 s. Never rejects, because the beginning of a body may tell enough. */
export async function readAnswerBody(response: HttpAnswer): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  const timer = setTimeout(() => response.destroy(), BODY_MS);
  try {
    for await (const chunk of response as AsyncIterable<Uint8Array>) {
      length += chunk.length;
      if (length > MAX_BODY_BYTES) break;
      chunks.push(chunk);
    }
  } catch {
    // Returns the beginning, because the rest will not come.
  }
  clearTimeout(timer);
  return Buffer.concat(chunks);
}

/** The media type of an answer, without parameters, in lower case. */
export function mediaTypeOf({ headers }: HttpAnswer): string {
  return (headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

/** Reads an answer that is an event stream to its end. Returns its reader, which knows where the stream can be resumed. */
export async function readEvents(
  { options: { incoming } }: HttpSession,
  response: HttpAnswer,
  { request, onEndpoint }: { readonly request?: number | undefined; readonly onEndpoint?: (url: string) => void } = {},
): Promise<EventStreamReader> {
  const messages = incoming.open(request);
  const events = new EventStreamReader({ messages, ...(onEndpoint && { onEndpoint }) });
  await incoming.follow(response, messages, (chunk) => events.push(chunk));
  incoming.close(messages);
  return events;
}
