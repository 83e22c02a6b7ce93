// The server of the page in the test's process, with a scripted source behind it and a clock that the test moves.
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import * as http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { onTestFinished } from 'vitest';
import type { Frame } from '../../../src/web/server/contract.js';
import { PageRefusal, type PageSource } from '../../../src/web/server/page-source.js';
import { type WebOptions, WebServer } from '../../../src/web/server/web-server.js';
import { FakeClock } from '../../support/fake-clock.js';

export type Headers = Readonly<Record<string, string>>;

export interface Answer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly text: string;
}

export const HELLO: Frame = { kind: 'hello', isReadOnly: false, configFile: '/c/trunkline.yaml' };
export const STATE: Frame = {
  kind: 'state',
  at: 1,
  hub: { kind: 'none', because: 'No hub runs.', remedy: '', servers: [], fault: null },
  needs: [],
};

/** A source that records what the server asks for, and sends the frames of the test. */
export class ScriptedSource {
  /** Paths and parameters of reads and actions, in their order. */
  readonly asked: unknown[][] = [];
  /** Followings that were begun, and those that were ended. */
  followings = 0;
  ends = 0;
  /** Sends a frame to the server. */
  send: (frame: Frame) => void = () => {};

  readonly source: PageSource = {
    follow: (take) => {
      this.followings += 1;
      this.send = take;
      take(HELLO);
      take(STATE);
      return () => {
        this.ends += 1;
      };
    },
    answers: this.#answering(),
    openRecording: async (file) => {
      if (file !== 'mine.jsonl') throw new PageRefusal(404, 'There is no such recording.');
      return Readable.from(['{"a":1}\n', '{"a":2}\n']);
    },
  };

  /** Answers every request with its values. The server `missing` is refused, and `broken` fails as a bug would. */
  #answering(): PageSource['answers'] {
    return new Proxy({} as PageSource['answers'], {
      get: (_, request) => async (values: { readonly server?: string }) => {
        this.asked.push([request, values]);
        if (values.server === 'missing') throw new PageRefusal(404, 'There is no server "missing".');
        if (values.server === 'broken') throw new Error('the token hunter2 is wrong');
        return { request, values };
      },
    });
  }
}

export class WebPlace {
  readonly clock = new FakeClock();
  readonly scripted = new ScriptedSource();
  /** URLs that the server asked to print, each with the reason. */
  readonly printed: [url: string, reason: string][] = [];
  readonly faults: unknown[] = [];
  server!: WebServer;

  static async open(options: Partial<WebOptions> = {}): Promise<WebPlace> {
    const place = new WebPlace();
    const files = mkdtempSync(join(tmpdir(), 'trunkline-page-'));
    for (const [name, text] of [
      ['index.html', '<!doctype html><title>Trunkline</title>'],
      ['page-abc.js', 'export {};'],
      ['page-def.css', ':root {}'],
    ] as const) {
      writeFileSync(join(files, name), text);
      writeFileSync(join(files, `${name}.gz`), gzipSync(text));
    }
    place.server = await WebServer.open({
      port: 0,
      files,
      isReadOnly: false,
      clock: place.clock,
      loadSource: async () => place.scripted.source,
      onNewUrl: (url, reason) => place.printed.push([url, reason]),
      onFault: (error) => place.faults.push(error),
      ...options,
    });
    onTestFinished(async () => {
      const closed = place.server.closed;
      place.server.close();
      await closed;
      rmSync(files, { recursive: true });
    });
    return place;
  }

  get port(): number {
    return this.server.port;
  }

  /** Headers of a browser that sends a request of the page. */
  get own(): Headers {
    return { Origin: `http://127.0.0.1:${this.port}`, 'Sec-Fetch-Site': 'same-origin' };
  }

  /** Sends a request with these headers and no others but `Host`, which they may replace. */
  async request(method: string, path: string, headers: Headers = {}, body: string | Buffer = ''): Promise<Answer> {
    const response = await this.begin(method, path, headers, body);
    const pieces: Buffer[] = [];
    for await (const piece of response) pieces.push(piece as Buffer);
    return { status: response.statusCode ?? 0, headers: response.headers, text: Buffer.concat(pieces).toString() };
  }

  /** Sends a request, and resolves with the beginning of its answer. */
  async begin(
    method: string,
    path: string,
    headers: Headers = {},
    body: string | Buffer = '',
  ): Promise<http.IncomingMessage> {
    const named = { Host: `127.0.0.1:${this.port}`, ...headers };
    const length = body.length > 0 ? { 'Content-Length': String(body.length) } : undefined;
    const options = { host: '127.0.0.1', port: this.port, method, path, agent: false, setHost: false };
    const sent = http.request({ ...options, headers: { ...length, ...named } });
    sent.end(body);
    const [response] = (await once(sent, 'response')) as [http.IncomingMessage];
    return response;
  }

  async post(path: string, body: unknown, headers: Headers = {}): Promise<Answer> {
    const json = { 'Content-Type': 'application/json' };
    return await this.request('POST', path, { ...this.own, ...json, ...headers }, JSON.stringify(body));
  }

  /** Opens a session with a new URL. Returns the headers of its requests. */
  async session(): Promise<{ readonly cookie: string; readonly key: string; readonly headers: Headers }> {
    const { headers, text: key } = await this.post('/session', { code: codeOf(this.server.newUrl()) });
    const [cookie = ''] = headers['set-cookie']?.[0]?.split(';') ?? [];
    return { cookie, key, headers: { ...this.own, Cookie: cookie, 'X-Trunkline-Key': key } };
  }
}

export function codeOf(url: string): string {
  return new URL(url).hash.slice(1);
}

/** Reads the frames and comments of a stream as they come. */
export class StreamReader {
  readonly #pieces: AsyncIterator<string>;
  #text = '';
  readonly response: http.IncomingMessage;

  constructor(response: http.IncomingMessage) {
    this.response = response.setEncoding('utf8');
    this.#pieces = response[Symbol.asyncIterator]();
  }

  /** The next event as a whole; `undefined` at the end of the stream. */
  async next(): Promise<string | undefined> {
    for (;;) {
      const end = this.#text.indexOf('\n\n');
      if (end >= 0) {
        const event = this.#text.slice(0, end);
        this.#text = this.#text.slice(end + 2);
        return event;
      }
      const { value, done } = await this.#pieces.next().catch(() => ({ value: undefined, done: true }));
      if (done === true) return undefined;
      this.#text += value;
    }
  }

  async frame(): Promise<Frame> {
    const event = (await this.next()) ?? '';
    return JSON.parse(event.slice(event.indexOf('data: ') + 6));
  }
}
