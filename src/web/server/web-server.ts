import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import {
  refuseContentEncoding,
  refuseContentType,
  refuseLength,
  tooLarge,
} from '../../downstream/http/header-guards.js';
import { isRecord, parseJson } from '../../wire/json/json-value.js';
import type { Clock } from '../../wire/timing/clock.js';
import type { Requests } from './contract.js';
import { type GuardRefusal, refuseForeign, SECURITY_HEADERS } from './guards.js';
import { PageRefusal, type PageSource } from './page-source.js';
import { PageStream, PageStreams, STREAM_LIMITS } from './page-streams.js';
import { type NewUrlReason, type PageSession, PageSessions } from './sessions.js';

export interface WebOptions {
  /** 0 takes a free port. */
  readonly port: number;
  /** Folder with the files of the page. */
  readonly files: string;
  readonly isReadOnly: boolean;
  readonly clock: Clock;
  /** Called with the first request that needs the source, and again with a later one if it rejects. */
  readonly loadSource: () => Promise<PageSource>;
  readonly onNewUrl: (url: string, reason: NewUrlReason) => void;
  readonly onOpened?: () => void;
  /** Gets errors that are bugs. */
  readonly onFault: (error: unknown) => void;
  readonly limits?: Partial<typeof WEB_LIMITS>;
}

export const WEB_LIMITS = {
  connections: 64,
  bodyBytes: 256 * 1024,
  headerBytes: 16 * 1024,
  /** Time for the headers, and for the whole request, to arrive. */
  headersMs: 5_000,
  requestMs: 10_000,
  /** Interval at which Node checks these times. */
  checkMs: 1_000,
};

type Check = (value: unknown) => boolean;
type Fields = Readonly<Record<string, Check>>;

const isText: Check = (value) => typeof value === 'string';
const listOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check);
const isTexts = listOf(isText);
const optional =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value);

const SERVER = { server: isText };
const CHANGE: Fields = {
  ...SERVER,
  isDisabled: optional((value) => typeof value === 'boolean'),
  deny: optional(isTexts),
  allow: optional(isTexts),
};
/** Members of the query of a `GET` and of the body of a `POST`. */
const REQUESTS: Readonly<Record<Route, Fields>> = {
  'GET /stream': {},
  'GET /recording': { file: isText },
  'GET /call': { id: isText },
  'GET /past': {},
  'GET /output': SERVER,
  'GET /settings': SERVER,
  'GET /tools': {},
  'GET /definition': { name: isText, view: isText },
  'GET /review': SERVER,
  'GET /logins': {},
  'GET /findings': {},
  'POST /restart': SERVER,
  'POST /answer': { id: isText, allow: (value) => typeof value === 'boolean' },
  'POST /configure': {
    changes: listOf((change) => isRecord(change) && hasFields(change, CHANGE)),
    hash: optional(isText),
  },
  'POST /undo': { undo: isText },
  'POST /approve': { ...SERVER, tool: isText, hash: isText },
  'POST /login': SERVER,
  'POST /logout': SERVER,
  'POST /record': {},
  'POST /record/stop': {},
};
type Route = 'GET /stream' | 'GET /recording' | keyof Requests;

/** An error that ends a request with this answer. */
class Refused extends Error {
  readonly refusal: GuardRefusal;

  constructor(refusal: GuardRefusal) {
    super(refusal.message);
    this.refusal = refusal;
  }
}

interface Loaded {
  readonly source: PageSource;
  readonly streams: PageStreams;
}

/** The server of the page, on 127.0.0.1. */
export class WebServer {
  readonly #options: WebOptions;
  readonly #limits: typeof WEB_LIMITS;
  readonly #server: Server;
  readonly #files: ReturnType<typeof readPageFiles>;
  readonly #sessions: PageSessions;
  /** Another path of the document, which a local file may open. Other sites do not know it. */
  readonly #door = `/${randomBytes(16).toString('hex')}`;
  #source: Promise<Loaded> | undefined;
  #streamCount = 0;

  private constructor(options: WebOptions) {
    this.#options = options;
    this.#limits = { ...WEB_LIMITS, ...options.limits };
    this.#files = readPageFiles(options.files);
    this.#sessions = new PageSessions(options.clock, (code, reason) => options.onNewUrl(this.#urlWith(code), reason));
    const { headerBytes, headersMs, requestMs, checkMs, connections } = this.#limits;
    this.#server = createServer(
      {
        maxHeaderSize: headerBytes,
        headersTimeout: headersMs,
        requestTimeout: requestMs,
        connectionsCheckingInterval: checkMs,
      },
      (request, response) => void this.#answer(request, response),
    );
    this.#server.maxConnections = connections;
  }

  /** Rejects with the system's error if the port cannot be used. */
  static async open(options: WebOptions): Promise<WebServer> {
    const web = new WebServer(options);
    web.#server.listen(options.port, '127.0.0.1');
    await once(web.#server, 'listening');
    return web;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Makes a URL that opens one session, and voids the URL before. */
  newUrl(): string {
    return this.#urlWith(this.#sessions.newCode());
  }

  /** Returns a form of the URL that a local file can forward to, because browsers treat such a file as another site. */
  forFile(url: string): string {
    return new URL(this.#door + new URL(url).hash, url).href;
  }

  get closed(): Promise<unknown> {
    return once(this.#server, 'close');
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
    void this.#source?.then(({ streams }) => streams.close());
  }

  #urlWith(code: string): string {
    // A fragment is never sent, so it is in no log.
    return `http://127.0.0.1:${this.port}/#${code}`;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    for (const [name, value] of Object.entries(SECURITY_HEADERS)) response.setHeader(name, value);
    response.setHeader('Cache-Control', 'no-store');
    response.on('error', () => {});
    try {
      await this.#route(request, response);
    } catch (error) {
      this.#refuse(response, error);
    }
  }

  #refuse(response: ServerResponse, error: unknown): void {
    if (response.headersSent || response.destroyed) {
      // The page has gone, or cannot be told any more.
      response.destroy();
      return;
    }
    const { status, message, headers } = refusalOf(error);
    if (status === 500) this.#options.onFault(error);
    for (const [name, value] of Object.entries(headers ?? {})) response.setHeader(name, value);
    sendJson(response, status, { error: message });
  }

  async #route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '' } = request;
    const isFromFile = url === this.#door;
    const file = method === 'GET' ? this.#files.get(isFromFile ? '/' : url) : undefined;
    const foreign = refuseForeign(request, this.port, file !== undefined, isFromFile);
    if (foreign !== undefined) throw new Refused(foreign);
    if (file !== undefined) {
      const isPacked = /\bgzip\b/.test(String(request.headers['accept-encoding']));
      const body = isPacked ? file.gzip : file.plain;
      const encoding = isPacked ? { 'Content-Encoding': 'gzip' } : undefined;
      response.writeHead(200, { ...file.headers, ...encoding, 'Content-Length': body.length }).end(body);
      return;
    }
    if (url === '/session' && method === 'POST') {
      this.#openSession(await this.#bodyOf(request), response);
      return;
    }
    const session = this.#sessionOf(request);
    if (session === undefined) throw new Refused(NO_SESSION);
    if (url === '/session' && method === 'DELETE') {
      this.#sessions.end(session);
      response.writeHead(204, { 'Set-Cookie': `${this.#cookieName}=; ${COOKIE_RULES}; Max-Age=0` }).end();
      return;
    }
    await this.#serve(request, response, session);
  }

  async #serve(request: IncomingMessage, response: ServerResponse, session: PageSession): Promise<void> {
    const { method, url = '' } = request;
    if (method === 'POST' && this.#options.isReadOnly)
      throw new Refused({ status: 403, message: 'This page is read-only, because it was started with `--read-only`.' });
    const [, path = '', query = ''] = /^([^?]*)\??(.*)$/.exec(url) ?? [];
    const route = `${method} ${path}`;
    if (!isRoute(route)) throw new Refused({ status: 404, message: 'There is no such page.' });
    const values = checked(method === 'GET' ? queryOf(query) : await this.#bodyOf(request), REQUESTS[route]);
    if (route === 'GET /stream') {
      await this.#stream(response, session);
      return;
    }
    const { source } = await this.#loaded();
    if (route === 'GET /recording') {
      const recording = await source.openRecording(values.file as string);
      response.writeHead(200, { 'Content-Type': 'application/x-ndjson', 'Content-Disposition': 'attachment' });
      await pipeline(recording, response);
      return;
    }
    sendJson(response, 200, await source.answers[route](values as never));
  }

  #openSession(body: Readonly<Record<string, unknown>>, response: ServerResponse): void {
    const { code } = checked(body, { code: optional(isText) });
    const opened = this.#sessions.open(code as string | undefined);
    if ('status' in opened) throw new Refused(opened);
    this.#options.onOpened?.();
    response.writeHead(200, {
      'Content-Type': 'text/plain; charset=utf-8',
      'Set-Cookie': `${this.#cookieName}=${opened.cookie}; ${COOKIE_RULES}`,
    });
    response.end(opened.key);
  }

  /** Browsers send a cookie to all ports of a host, so its name has the port, and the key is needed, too. */
  #sessionOf({ headers }: IncomingMessage): PageSession | undefined {
    const { cookie = '', 'x-trunkline-key': key } = headers;
    const start = `${this.#cookieName}=`;
    const pairs = cookie.split('; ').filter((pair) => pair.startsWith(start));
    const cookies = pairs.map((pair) => pair.slice(start.length));
    return typeof key === 'string' ? this.#sessions.find(key, cookies) : undefined;
  }

  get #cookieName(): string {
    return `trunkline_${this.port}`;
  }

  async #stream(response: ServerResponse, session: PageSession): Promise<void> {
    if (this.#streamCount >= STREAM_LIMITS.streams)
      throw new Refused({ status: 429, message: 'Too many pages are open. Close one of them.' });
    this.#streamCount += 1;
    const closed = new Promise<void>((resolve) => response.once('close', resolve));
    const end = () => void response.destroy();
    session.onEnd.add(end);
    try {
      const { streams } = await this.#loaded();
      if (response.destroyed) return;
      response.setHeader('Content-Type', 'text/event-stream; charset=utf-8');
      const sink = { write: (text: string) => response.write(text), isAlive: () => this.#sessions.use(session), end };
      const stream = new PageStream(sink, this.#options.clock);
      response.on('drain', () => stream.drained());
      try {
        streams.add(stream);
        response.flushHeaders();
        await closed;
      } finally {
        streams.remove(stream);
      }
    } finally {
      session.onEnd.delete(end);
      this.#streamCount -= 1;
    }
  }

  /** Loads the source with the first request that needs it. A later request tries again if this fails. */
  #loaded(): Promise<Loaded> {
    this.#source ??= this.#options.loadSource().then(
      (source) => ({ source, streams: new PageStreams(source, this.#options.clock) }),
      (error: unknown) => {
        this.#source = undefined;
        throw error;
      },
    );
    return this.#source;
  }

  async #bodyOf(request: IncomingMessage): Promise<Readonly<Record<string, unknown>>> {
    const { headers } = request;
    const { bodyBytes } = this.#limits;
    const refusal =
      refuseContentType(headers['content-type']) ??
      refuseContentEncoding(headers['content-encoding']) ??
      refuseLength(headers['content-length'], bodyBytes);
    if (refusal !== undefined) throw new Refused(refusal);
    const pieces: Buffer[] = [];
    let length = 0;
    for await (const piece of request as AsyncIterable<Buffer>) {
      length += piece.length;
      // Reads on, because the browser reads the answer after it has sent everything.
      if (length <= bodyBytes) pieces.push(piece);
    }
    if (length > bodyBytes) throw new Refused(tooLarge(bodyBytes));
    const body = parseJson(Buffer.concat(pieces).toString());
    if (!isRecord(body)) throw new Refused({ status: 400, message: 'The body must be a JSON object.' });
    return body;
  }
}

const COOKIE_RULES = 'HttpOnly; SameSite=Strict; Path=/';

const NO_SESSION: GuardRefusal = {
  status: 401,
  message: 'This page has no session, or its session has ended. Open the URL that `trunkline web` prints.',
};
const INTERNAL: GuardRefusal = {
  status: 500,
  message: 'This failed because of a bug in Trunkline. The terminal shows it.',
};

function refusalOf(error: unknown): GuardRefusal {
  if (error instanceof Refused) return error.refusal;
  return error instanceof PageRefusal ? error : INTERNAL;
}

function isRoute(route: string): route is Route {
  return Object.hasOwn(REQUESTS, route);
}

/** The parameters of a query. A repeated one has no valid value, because programs disagree about which value counts. */
function queryOf(text: string): Readonly<Record<string, unknown>> {
  const query = new URLSearchParams(text);
  return Object.fromEntries(
    [...query.keys()].map((name) => [name, query.getAll(name).length === 1 && query.get(name)]),
  );
}

/** Whether each member is known and has the right type, and none is missing. */
function hasFields(values: Readonly<Record<string, unknown>>, fields: Fields): boolean {
  const names = new Set([...Object.keys(values), ...Object.keys(fields)]);
  return [...names].every((name) => Object.hasOwn(fields, name) && fields[name]?.(values[name]) === true);
}

/** Returns the values if they fit the fields, and throws a `Refused` with 400 otherwise. */
function checked(values: Readonly<Record<string, unknown>>, fields: Fields): Readonly<Record<string, unknown>> {
  if (hasFields(values, fields)) return values;
  throw new Refused({ status: 400, message: 'The request has unknown, missing or wrong members. Reload the page.' });
}

function sendJson(response: ServerResponse, status: number, value: unknown): void {
  const body = Buffer.from(JSON.stringify(value));
  response.writeHead(status, { 'Content-Type': 'application/json; charset=utf-8', 'Content-Length': body.length });
  response.end(body);
}

/** A file of the page, with the compressed copy that the build made. */
interface PageFile {
  readonly headers: Readonly<Record<string, string>>;
  readonly plain: Buffer;
  readonly gzip: Buffer;
}

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
};

/**
 * Reads the files of the page, by the path of their address. Names of files other than the document contain a hash of their content,
 * so a browser may keep them.
 */
function readPageFiles(folder: string): ReadonlyMap<string, PageFile> {
  const names = readdirSync(folder).filter((name) => extname(name) in TYPES);
  const files = names.map((name): [string, PageFile] => {
    const isDocument = name === 'index.html';
    const headers = {
      'Content-Type': TYPES[extname(name)] ?? '',
      'Cache-Control': isDocument ? 'no-cache' : 'public, max-age=31536000, immutable',
      Vary: 'Accept-Encoding',
    };
    const plain = readFileSync(join(folder, name));
    const gzip = readFileSync(join(folder, `${name}.gz`));
    // The document has one address, because `Sec-Fetch-Site: none` is allowed there only.
    return [isDocument ? '/' : `/${name}`, { headers, plain, gzip }];
  });
  return new Map(files);
}
