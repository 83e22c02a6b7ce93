import { randomBytes } from 'node:crypto';
import { isSigned, type Keys, openBytes, sealBytes, sign } from '../../host/sealed-bytes.js';
import type { LostRequest } from '../../wire/mcp/lost-request.js';
import type { Caller } from './http-client.js';

export interface SealedIdsOptions {
  readonly sessionKeys: Keys;
  readonly eventKeys: Keys;
  /** The name of this process. */
  readonly instance: string;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

/** The owner of a session, who alone can use the id of the session. */
export interface SessionOwner extends Caller {
  /** The endpoint that opened the session. The session is unknown at other endpoints. */
  readonly endpoint: string | undefined;
}

export interface SealedSession {
  /** The params of `initialize`, as JSON. */
  readonly initialize: Uint8Array;
  /** Age in milliseconds. */
  readonly age: number;
}

/** Position of an event in its session: the process that sent it, the stream, and its number in the stream. */
export interface EventId {
  readonly instance: string;
  readonly stream: number;
  readonly seq: number;
}

/** Version of the ids of sessions. A gateway must open the ids of the version before. */
const VERSION = 't1';
const INSTANCE = '[a-z2-7]{10}';
const SESSION_ID = new RegExp(`^${VERSION}\\.(${INSTANCE})\\.([A-Za-z0-9_-]+)$`);
const EVENT_ID = new RegExp(
  `^(\\d{1,15})\\.(\\d{1,15})\\.(${INSTANCE})(?:\\.([A-Za-z0-9_-]+)\\.([A-Za-z0-9_-]{22}))?$`,
);

/** Longest id of a session, in characters. Proxies refuse headers of 8 KiB. */
const MAX_SESSION_ID = 4_096;
/** Longest list of requests in the id of an event, in characters, because each event of a stream has it. */
const MAX_REQUESTS = 1_024;

const TIME_BYTES = 4;
const MAC_LENGTH = 22;

/**
 * Ids that every gateway with the same key can read, so that no gateway needs the memory of another one.
 *
 * The id of a session has the `initialize` of its client, encrypted and bound to its owner. The id of an event names the
 * requests that its stream answers, signed for its session.
 */
export class SealedIds {
  readonly #options: SealedIdsOptions;
  readonly #now: () => number;

  constructor(options: SealedIdsOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
  }

  get instance(): string {
    return this.#options.instance;
  }

  /** Returns a new id for a session. If the params are very long, the id is random, and only this process can use it. */
  sealSession(initialize: Uint8Array, owner: SessionOwner): string {
    const { instance, sessionKeys } = this.#options;
    const head = `${VERSION}.${instance}`;
    const time = Buffer.alloc(TIME_BYTES);
    time.writeUInt32BE(Math.floor(this.#now() / 1_000));
    const sealed = sealBytes(sessionKeys, Buffer.concat([time, initialize]), boundTo(head, owner));
    const id = `${head}.${sealed.toString('base64url')}`;
    return id.length > MAX_SESSION_ID ? randomBytes(32).toString('base64url') : id;
  }

  /** Returns the content of the id; `undefined` if no gateway with the key has made the id for this owner. */
  openSession(id: string, owner: SessionOwner): SealedSession | undefined {
    const [, , text] = (id.length <= MAX_SESSION_ID && SESSION_ID.exec(id)) || [];
    if (text === undefined) return undefined;
    const sealed = Buffer.from(text, 'base64url');
    // Node ignores the bits of the last character that belong to no byte, so several texts would count as one id.
    if (sealed.toString('base64url') !== text) return undefined;
    const opened = openBytes(this.#options.sessionKeys, sealed, boundTo(id.slice(0, -text.length - 1), owner));
    if (opened === undefined) return undefined;
    const age = this.#now() - opened.readUInt32BE() * 1_000;
    return { initialize: opened.subarray(TIME_BYTES), age };
  }

  /** Returns the end of the ids of a stream's events, which names the requests that the stream answers. */
  sealStream(session: string, stream: number, requests: readonly LostRequest[]): string {
    const { instance, eventKeys } = this.#options;
    const text = Buffer.from(JSON.stringify(requests)).toString('base64url');
    if (requests.length === 0 || text.length > MAX_REQUESTS) return instance;
    const end = `${instance}.${text}`;
    return `${end}.${sign(eventKeys, [session, stream, end], MAC_LENGTH)}`;
  }

  /** Returns the requests in the id of an event of this session; `undefined` if there are none. */
  openStream(session: string, eventId: string): readonly LostRequest[] | undefined {
    const [, stream, , instance, text, mac] = EVENT_ID.exec(eventId) ?? [];
    if (stream === undefined || text === undefined || mac === undefined) return undefined;
    const signed = [session, Number(stream), `${instance}.${text}`];
    const isOurs = isSigned(this.#options.eventKeys, mac, signed, MAC_LENGTH);
    return isOurs ? (JSON.parse(Buffer.from(text, 'base64url').toString()) as LostRequest[]) : undefined;
  }
}

export function instanceOfSession(id: string): string | undefined {
  return SESSION_ID.exec(id)?.[1];
}

/** Reads the id of an event, without verification. Returns `undefined` for a text of another form. */
export function parseEventId(text: string): EventId | undefined {
  const [, stream, seq, instance] = EVENT_ID.exec(text) ?? [];
  return instance === undefined ? undefined : { instance, stream: Number(stream), seq: Number(seq) };
}

/** Joins the parts unambiguously, whatever characters they contain. */
function boundTo(head: string, { principal, endpoint }: SessionOwner): Buffer {
  return Buffer.from(JSON.stringify([head, principal, endpoint ?? null]));
}
