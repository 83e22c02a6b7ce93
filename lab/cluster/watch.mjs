// A proxy between a client and nginx in a run with real clients. Sees each request, and lets the run do something before a call.
import { once } from 'node:events';
import * as http from 'node:http';

/** Passes everything on, byte by byte. nginx names the gateway of each answer in `x-gateway`. */
export class Watch {
  /** The requests of the client: `method` of JSON-RPC or HTTP, `revision`, `session`, `status`, and the `port` of the gateway. */
  requests = [];
  #host;
  #server;
  #beforeCall;
  #calls = 0;

  /** `beforeCall` gets the number of the call, from 1 on, and is awaited before the call is passed on. */
  constructor(host, beforeCall) {
    this.#host = host;
    this.#beforeCall = beforeCall;
  }

  async open() {
    this.#server = http.createServer((request, response) => {
      void this.#pass(request, response).catch(() => response.destroy());
    });
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return `http://127.0.0.1:${this.#server.address().port}/mcp`;
  }

  close() {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  /** The gateway that has answered last. */
  get port() {
    return this.requests.findLast(({ port }) => port !== undefined)?.port;
  }

  async #pass(request, response) {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    const { method = request.method, params } = body.length === 0 ? {} : JSON.parse(body);
    // Some clients state their revision in `initialize` only.
    const revision = request.headers['mcp-protocol-version'] ?? params?.protocolVersion;
    const seen = { method, revision, session: request.headers['mcp-session-id'] };
    if (method === 'tools/call') {
      this.#calls += 1;
      await this.#beforeCall(this.#calls);
    }
    this.requests.push(seen);
    const headers = { ...request.headers, host: this.#host };
    const sent = http.request(`http://${this.#host}${request.url}`, { method: request.method, headers });
    response.once('close', () => sent.destroy());
    // An error after the response has begun ends the reading of the response, too.
    sent.on('error', () => {});
    sent.end(body);
    const [answer] = await once(sent, 'response');
    seen.status = answer.statusCode;
    // Of several gateways that nginx has tried, the last one answered.
    seen.port = Number(/:(\d+)$/.exec(answer.headers['x-gateway'] ?? '')?.[1]) || undefined;
    response.writeHead(answer.statusCode, answer.headers);
    response.flushHeaders();
    answer.once('error', () => response.destroy());
    answer.pipe(response);
  }
}
