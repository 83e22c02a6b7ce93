import { Agent, type ClientRequest, type IncomingMessage, type ServerResponse, request as send } from 'node:http';
import type { Socket } from 'node:net';
import { hostAndPort } from '../../config/schema/cluster-address.js';
import { closedSocketsNoticed } from '../../host/http/send-request.js';
import { isRecord, parseJson } from '../../wire/json/json-value.js';
import type { Clock } from '../../wire/timing/clock.js';
import type { PlacedRequest } from './homes.js';
import { type MemberFacts, type MemberLoad, NoAnswer } from './members.js';
import { HOMES_PATH, type HopFacts, PING_PATH, type RequestSigner, SIGNATURE_HEADER } from './signed-request.js';

/** Header of an answer with status 421. Names the gateway that serves the request. */
export const HOME_HEADER = 'trunkline-home';

/** A request to pass on, and the response to its client. */
export interface PassedRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Path of the endpoint. */
  readonly url: string;
  readonly body?: Uint8Array | undefined;
  readonly placed: PlacedRequest;
  readonly endpoint: string | undefined;
  /** Whether the request stays open, such as a GET stream or a subscription. The gateway does not wait for its end when it drains. */
  readonly staysOpen: boolean;
}

/** Status of the answer of a gateway that does not serve the request, and names the one that does. */
const MISDIRECTED = 421;

export type Hopped =
  | { readonly kind: 'answered' }
  /** The gateway has served nothing, and has named the home of the request. */
  | { readonly kind: 'refused'; readonly home: string }
  /** No byte has reached the gateway, or it is ending, or it does not accept the signature. */
  | { readonly kind: 'unsent'; readonly because: string }
  | { readonly kind: 'lost' };

interface HopsOptions {
  readonly clock: Clock;
  readonly signer: RequestSigner;
  /** Names in lower case of the headers of clients that servers get. */
  readonly passedHeaders: () => readonly string[];
}

interface Receiver {
  readonly name: string;
  readonly address: string;
}

/** How long a connection, a ping, and the question for a home may take, in milliseconds. A request waits for the last one. */
const CONNECT_MS = 1_000;
const PING_MS = 1_500;
const HOME_MS = 250;
/**
 * Time after which an idle connection is closed, in milliseconds: shorter than at the other end, which must not close it under a request.
 */
export const IDLE_MS = 60_000;
/** Longest answer of a gateway about itself and the others. */
const MAX_ANSWER = 1024 * 1024;

/** Headers of clients that gateways read. Credentials are not among them. */
const PASSED_ON = new Set([
  ...['accept', 'content-type', 'content-encoding', 'last-event-id', 'user-agent'],
  ...['traceparent', 'tracestate', 'baggage'],
]);

/** Headers of an answer that are not passed to the client, because its connection has its own, or because they are for gateways. */
const OF_CONNECTION = new Set(['connection', 'keep-alive', 'transfer-encoding', 'date', SIGNATURE_HEADER]);

/** Passes requests of clients to other gateways, and their answers back. */
export class Hops {
  readonly #options: HopsOptions;
  readonly #agent = new Agent({ keepAlive: true, timeout: IDLE_MS });
  /** Open requests by the names of the receivers. */
  readonly #open = new Map<
    string,
    Set<{ readonly outgoing: ClientRequest; readonly response: ServerResponse; readonly staysOpen: boolean }>
  >();
  readonly counts = { answered: 0, refused: 0, unsent: 0, lost: 0 };

  constructor(options: HopsOptions) {
    this.#options = options;
  }

  isAwaited(name: string): boolean {
    return this.#open.has(name);
  }

  get hasCalls(): boolean {
    for (const open of this.#open.values()) for (const { staysOpen } of open) if (!staysOpen) return true;
    return false;
  }

  async pass(to: Receiver, passed: PassedRequest, facts: HopFacts): Promise<Hopped> {
    if (Object.keys(this.#agent.freeSockets).length > 0) await closedSocketsNoticed();
    const hopped = await new Promise<Hopped>((resolve) => this.#pass(to, passed, facts, resolve));
    this.counts[hopped.kind] += 1;
    return hopped;
  }

  /** Ends the requests to a gateway that does not answer. */
  break(name: string): void {
    for (const { outgoing } of this.#open.get(name) ?? []) outgoing.destroy(new Error('the gateway does not answer'));
  }

  endOpenStreams(): void {
    for (const open of this.#open.values())
      for (const { outgoing, response, staysOpen } of open) {
        if (!staysOpen) continue;
        if (response.headersSent) response.end();
        outgoing.destroy();
      }
  }

  /** Asks a gateway for its state and load. Rejects like `readSigned`. */
  async ping(to: Receiver): Promise<MemberLoad> {
    return (await this.#ask(to, PING_PATH, PING_MS)) as unknown as MemberFacts;
  }

  /** Asks a gateway whether it is the home. Rejects like `readSigned`. */
  async isHome(to: Receiver, key: string): Promise<boolean> {
    return (await this.#ask(to, `${HOMES_PATH}${encodeURIComponent(key)}`, HOME_MS)).isHome === true;
  }

  async #ask({ name: to, address }: Receiver, path: string, timeoutMs: number): Promise<Record<string, unknown>> {
    const answer = parseJson(await readSigned({ signer: this.#options.signer, to, address, path, timeoutMs }));
    if (!isRecord(answer)) throw new Error('the answer is not that of a gateway');
    return answer;
  }

  close(): void {
    for (const name of this.#open.keys()) this.break(name);
    this.#agent.destroy();
  }

  #pass({ name, address }: Receiver, passed: PassedRequest, facts: HopFacts, resolve: (hopped: Hopped) => void): void {
    const { signer, clock } = this.#options;
    const { request, response, url: path, body, staysOpen } = passed;
    const method = request.method ?? '';
    const headers = signer.sign({
      to: name,
      method,
      path,
      body,
      facts,
      headers: { ...passedHeaders(request, this.#options.passedHeaders()), host: address },
    });
    const length = body === undefined ? {} : { 'content-length': String(body.length) };
    const outgoing = send({
      ...hostAndPort(address),
      agent: this.#agent,
      method,
      path,
      headers: { ...headers, ...length },
    });
    const open = { outgoing, response, staysOpen };
    const ofReceiver = this.#open.get(name) ?? new Set();
    this.#open.set(name, ofReceiver.add(open));
    let isConnected = false;
    const cancel = clock.schedule(CONNECT_MS, () => outgoing.destroy(new Error('no connection in time')));
    const whenLeft = () => outgoing.destroy();
    const settle = (hopped: Hopped) => {
      cancel();
      response.off('close', whenLeft);
      ofReceiver.delete(open);
      if (ofReceiver.size === 0 && this.#open.get(name) === ofReceiver) this.#open.delete(name);
      resolve(hopped);
    };
    response.once('close', whenLeft);
    if (response.destroyed) whenLeft();
    outgoing.once('socket', (socket: Socket) => {
      const connected = () => {
        isConnected = true;
        cancel();
      };
      if (socket.connecting) socket.once('connect', connected);
      else connected();
    });
    outgoing.on('error', (error) => {
      if (response.headersSent || response.destroyed) settle({ kind: 'answered' });
      else settle(isConnected ? { kind: 'lost' } : { kind: 'unsent', because: error.message });
    });
    outgoing.once('response', (answer) => {
      const home = answer.headers[HOME_HEADER];
      const isProven = signer.isProven(headers, answer);
      const isRefused = isProven && answer.statusCode === MISDIRECTED && typeof home === 'string';
      const isUnsent = answer.statusCode === 401;
      if (isRefused || isUnsent || !isProven) {
        answer.resume();
        if (isRefused) settle({ kind: 'refused', home });
        else settle(isUnsent ? { kind: 'unsent', because: 'it accepts no request of this gateway' } : { kind: 'lost' });
        return;
      }
      response.writeHead(answer.statusCode ?? 502, answeredHeaders(answer));
      // Sends the headers now, because the first event may come much later.
      if (answer.headers['content-type']?.startsWith('text/event-stream') === true) response.flushHeaders();
      // The client learns from a cut connection that the rest is missing.
      answer.once('close', () => {
        if (!answer.complete) response.destroy();
        settle({ kind: 'answered' });
      });
      for (const stream of [answer, response]) stream.on('error', () => {});
      answer.pipe(response);
    });
    outgoing.end(body);
  }
}

interface SignedGet {
  readonly to: string;
  readonly path: string;
  readonly signer: RequestSigner;
  readonly address: string;
  readonly timeoutMs: number;
}

/** The gateway has answered with another status than 200. */
export class UnexpectedStatus extends Error {
  override readonly name = 'UnexpectedStatus';
  readonly status: number | undefined;

  constructor(status: number | undefined) {
    super(`it answers HTTP ${status}`);
    this.status = status;
  }
}

/**
 * Sends a signed GET, and resolves with the text of the answer. Rejects with `UnexpectedStatus` if the status is not 200, with
 * `NoAnswer` if the gateway accepts the connection and does not answer in time, and with another error if no member answers.
 */
export async function readSigned({ signer, to, address, path, timeoutMs }: SignedGet): Promise<string> {
  const headers = signer.sign({ to, method: 'GET', path, headers: { host: address } });
  return await new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(timeoutMs);
    let isConnected = false;
    const request = send({ ...hostAndPort(address), agent: false, path, headers, signal }, (answer) => {
      let text = '';
      answer.setEncoding('utf8');
      answer.on('data', (chunk: string) => {
        text += chunk;
        if (text.length > MAX_ANSWER) request.destroy(new Error('the answer is too long'));
      });
      answer.once('error', reject);
      answer.once('end', () => {
        if (answer.statusCode !== 200) reject(new UnexpectedStatus(answer.statusCode));
        else if (signer.isProven(headers, answer, text)) resolve(text);
        else reject(new Error('another program answers'));
      });
    });
    request.once('socket', (socket) =>
      socket.once('connect', () => {
        isConnected = true;
      }),
    );
    request.once('error', (error) => {
      const within = `within ${timeoutMs / 1_000} s`;
      if (!signal.aborted) reject(error);
      else reject(isConnected ? new NoAnswer(`no answer ${within}`) : new Error(`no connection ${within}`));
    });
    request.end();
  });
}

function passedHeaders({ headers }: IncomingMessage, forServers: readonly string[]): Record<string, string> {
  const isPassed = (name: string) => PASSED_ON.has(name) || name.startsWith('mcp-') || forServers.includes(name);
  const passed = Object.entries(headers).filter(([name]) => isPassed(name));
  return Object.fromEntries(passed.map(([name, value]) => [name, [value].flat().join(', ')]));
}

function answeredHeaders({ headers }: IncomingMessage): Record<string, string | string[]> {
  const kept = Object.entries(headers).filter(([name]) => !OF_CONNECTION.has(name));
  return Object.fromEntries(kept.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
}
