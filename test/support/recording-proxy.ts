// An HTTP proxy that records the requests of a client.
import { once } from 'node:events';
import * as http from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Message } from './gateway-process.js';

/** A request as it went through, and how it was answered. */
interface Seen {
  readonly method: string | undefined;
  readonly session: string | undefined;
  readonly authorization: string | undefined;
  readonly body: Message | undefined;
  readonly status: number | undefined;
}

/** Stands between an HTTP client and Trunkline, forwards everything as it comes, and records the requests. */
export class RecordingProxy {
  readonly seen: Seen[] = [];
  /** Target of the requests; may change while it listens. */
  target: URL | undefined;
  readonly #server = http.createServer((request, response) => {
    this.#forward(request, response).catch((error) => response.destroy(error));
  });

  async listen(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/mcp`;
  }

  async close(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  async #forward(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    const { method, headers } = request;
    // Trunkline goes by its own name.
    const onward = http.request(this.target ?? '', { method, headers: { ...headers, host: this.target?.host } });
    response.once('close', () => onward.destroy());
    // An error after the response has begun ends the reading of the response, too.
    onward.on('error', () => {});
    onward.end(body);
    const [answer] = (await once(onward, 'response')) as [http.IncomingMessage];
    this.seen.push({
      method,
      session: headers['mcp-session-id'] as string | undefined,
      authorization: headers.authorization,
      body: body.length > 0 ? JSON.parse(body.toString()) : undefined,
      status: answer.statusCode,
    });
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    response.flushHeaders();
    answer.once('error', (error) => response.destroy(error));
    answer.pipe(response);
  }
}
