import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Caller } from '../../downstream/http/http-client.js';
import type { ClientAddress } from '../../downstream/http/listener.js';
import { isSigned, type Keys, openBytes, sealBytes, sign } from '../../host/sealed-bytes.js';
import { NewestMap } from '../../wire/io/newest-map.js';
import { isRecord, parseJson } from '../../wire/json/json-value.js';

/** Header with the facts about a request between gateways, and its signature. */
export const SIGNATURE_HEADER = 'trunkline-hop';
/** Paths of the peer port: ping, list of the gateways, and whether this gateway is the home of the user or session whose key follows. */
export const PING_PATH = '/cluster/ping';
export const MEMBERS_PATH = '/cluster/members';
export const HOMES_PATH = '/cluster/homes/';
/**
 * Stands for the receiver in the request of a command, because the command does not know the name of the gateway. Such a
 * request may only ask for the list of the gateways.
 */
export const ANY_RECEIVER = '*';

/** Facts about the request of a client, signed by the gateway that passes the request on. */
export interface HopFacts {
  readonly caller: Caller;
  readonly client: ClientAddress;
  readonly endpoint?: string | undefined;
  /** The user or session that has its home at the receiver. */
  readonly key?: string | undefined;
  /** The token of the user, sealed, if a server gets another one in exchange for it. */
  readonly subject?: string | undefined;
}

interface Signed extends Partial<HopFacts> {
  /** The instances that sign and receive. */
  readonly from: string;
  readonly to: string;
  /** Number of the request among those of this sender to this receiver. */
  readonly seq: number;
  /** SHA-256 of the body. */
  readonly body: string;
}

export interface ToSign {
  readonly to: string;
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | undefined;
  readonly facts?: HopFacts;
}

/**
 * Headers that are not signed: the signature itself, and those that Node writes for one connection. `content-length` and
 * `transfer-encoding` need no signature, because the hash of the body is signed.
 */
const OF_CONNECTION: ReadonlySet<string> = new Set([
  ...[SIGNATURE_HEADER, 'connection', 'content-length', 'transfer-encoding'],
]);

/**
 * Signs requests to other gateways with the key that all of them have. Method, path, headers and body are signed. The name of
 * the receiver and a number are signed, too, so a copy of a request is refused, by the same receiver and by any other. Answers
 * are signed for their requests, because another program may listen at the address of a gateway that has ended.
 */
export class RequestSigner {
  readonly #keys: Keys;
  readonly #from: string;
  readonly #numbers = new Map<string, number>();

  constructor(keys: Keys, from: string) {
    this.#keys = keys;
    this.#from = from;
  }

  sign({ to, method, path, headers, body = NOTHING, facts }: ToSign): Readonly<Record<string, string>> {
    const seq = (this.#numbers.get(to) ?? 0) + 1;
    this.#numbers.set(to, seq);
    const signed: Signed = { ...facts, from: this.#from, to, seq, body: digestOf(body) };
    const text = Buffer.from(JSON.stringify(signed)).toString('base64url');
    const mac = sign(this.#keys, [text, method, path, Object.entries(headers).sort(byName)]);
    return { ...headers, [SIGNATURE_HEADER]: `${text}.${mac}` };
  }

  /** Whether the answer to the request with these headers comes from a gateway that has the key. */
  isProven(
    request: Readonly<Record<string, string>>,
    { headers }: { readonly headers: IncomingHttpHeaders },
    body = '',
  ): boolean {
    return isSigned(this.#keys, String(headers[SIGNATURE_HEADER]), answerTo(request[SIGNATURE_HEADER], body));
  }
}

export interface VerifiedRequest extends Signed {
  isBody(body: Uint8Array): boolean;
}

/** Verifies the requests of other gateways, each of which is valid once. */
export class RequestVerifier {
  readonly #keys: Keys;
  readonly #instance: string;
  /** By sender, the least recently seen first. */
  readonly #seen = new NewestMap<string, SeenNumbers>(MAX_SENDERS);

  constructor(keys: Keys, instance: string) {
    this.#keys = keys;
    this.#instance = instance;
  }

  /**
   * Returns the request; `undefined` if its signature is not valid, or if it is for another gateway or came before. A request to
   * `ANY_RECEIVER` may come again. `isBody` checks the body, because it is not read yet.
   */
  verify({ method, url, headers, rawHeaders }: IncomingMessage): VerifiedRequest | undefined {
    const [, text, mac] = /^([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)$/.exec(String(headers[SIGNATURE_HEADER])) ?? [];
    if (text === undefined || mac === undefined) return undefined;
    const content = [text, method, url, pairsOf(rawHeaders).sort(byName)];
    if (!isSigned(this.#keys, mac, content)) return undefined;
    const signed = parseJson(Buffer.from(text, 'base64url').toString());
    if (!isRecord(signed)) return undefined;
    const request = signed as unknown as Signed;
    const isForAny = request.to === ANY_RECEIVER && url === MEMBERS_PATH;
    if (!isForAny && (request.to !== this.#instance || !this.#isNew(request))) return undefined;
    return { ...request, isBody: (body) => digestOf(body) === request.body };
  }

  /** `body` is the body of an answer of this gateway about itself or the others. The body of the answer to a client is not signed. */
  proofFor({ headers }: IncomingMessage, body = ''): string {
    return sign(this.#keys, answerTo(headers[SIGNATURE_HEADER], body));
  }

  #isNew({ from, seq }: Signed): boolean {
    const seen = this.#seen.get(from) ?? new SeenNumbers();
    this.#seen.set(from, seen);
    return seen.add(seq);
  }
}

/** Limit of the senders whose numbers are known. A gateway that starts again is a new sender. */
const MAX_SENDERS = 1_000;

/** Limit of the requests that may overtake one. At 10,000 a second, 10,000 overtake a request whose connection takes a second to open. */
const WINDOW = 32_768;

/** The numbers that came from one sender. Numbers far below the highest one count as seen. */
class SeenNumbers {
  #highest = 0;
  #bits: Uint8Array | undefined;

  add(seq: number): boolean {
    if (!Number.isSafeInteger(seq) || seq <= this.#highest - WINDOW || seq < 1) return false;
    this.#bits ??= new Uint8Array(WINDOW / 8);
    const first = Math.max(this.#highest + 1, seq - WINDOW + 1);
    for (let passed = first; passed <= seq; passed += 1) this.#set(this.#bits, passed, false);
    this.#highest = Math.max(this.#highest, seq);
    if (this.#has(this.#bits, seq)) return false;
    this.#set(this.#bits, seq, true);
    return true;
  }

  #has(bits: Uint8Array, seq: number): boolean {
    const at = seq % WINDOW;
    return ((bits[at >> 3] ?? 0) & (1 << (at & 7))) !== 0;
  }

  #set(bits: Uint8Array, seq: number, isSeen: boolean): void {
    const at = seq % WINDOW;
    const byte = bits[at >> 3] ?? 0;
    const mask = 1 << (at & 7);
    bits[at >> 3] = isSeen ? byte | mask : byte & ~mask;
  }
}

/** The content that the signature of an answer covers. `request` is the signature of the request. */
function answerTo(request: unknown, body: string): readonly unknown[] {
  return ['answer', request, body];
}

/** Encrypts the token of a user for another gateway. */
export function sealSubject(keys: Keys, principal: string, token: string): string {
  return sealBytes(keys, Buffer.from(token), Buffer.from(principal)).toString('base64url');
}

/** Returns the token that another gateway has encrypted for this user; `undefined` if it is not valid for this user. */
export function openSubject(keys: Keys, principal: string, sealed: string): string | undefined {
  return openBytes(keys, Buffer.from(sealed, 'base64url'), Buffer.from(principal))?.toString();
}

/** Signs the text with which a gateway introduces itself in the store. */
export function signText(keys: Keys, name: string, text: string): string {
  return `${sign(keys, [name, text])}.${text}`;
}

/** Returns a signed text; `undefined` if no gateway with the key has written it under this name. */
export function verifyText(keys: Keys, name: string, signed: string): string | undefined {
  const at = signed.indexOf('.');
  const mac = signed.slice(0, Math.max(0, at));
  const text = signed.slice(at + 1);
  return isSigned(keys, mac, [name, text]) ? text : undefined;
}

const NOTHING = new Uint8Array();

function pairsOf(rawHeaders: readonly string[]): [string, string][] {
  const pairs: [string, string][] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = (rawHeaders[at] ?? '').toLowerCase();
    if (!OF_CONNECTION.has(name)) pairs.push([name, rawHeaders[at + 1] ?? '']);
  }
  return pairs;
}

function byName([one]: readonly string[], [other]: readonly string[]): number {
  return (one ?? '') < (other ?? '') ? -1 : one === other ? 0 : 1;
}

function digestOf(body: Uint8Array): string {
  return createHash('sha256').update(body).digest('base64url');
}
