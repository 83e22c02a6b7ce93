// A collector of OpenTelemetry, which takes spans as JSON over HTTP.
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { until } from './processes.js';

/** A span as OTLP has it, with its attributes as a map. */
export interface CollectedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly name: string;
  /** 2 for SERVER, 3 for CLIENT. */
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly status: { readonly code: number; readonly message?: string };
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly resource: Readonly<Record<string, unknown>>;
}

export class TraceCollector {
  readonly spans: CollectedSpan[] = [];
  /** Headers of the requests. */
  readonly requests: (IncomingHttpHeaders & { readonly path: string })[] = [];
  /** Status of the answers. */
  status = 200;
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        this.requests.push({ ...request.headers, path: request.url ?? '' });
        if (this.status === 200) this.#take(Buffer.concat(chunks).toString());
        response.writeHead(this.status, { 'content-type': 'application/json' }).end('{}');
      });
    });
  }

  /** Listens on the port of an earlier collector, or on a free one. */
  static async start(port = 0): Promise<TraceCollector> {
    const collector = new TraceCollector();
    await new Promise<void>((resolve) => collector.#server.listen(port, '127.0.0.1', resolve));
    return collector;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Resolves with the spans of these names, in this order, when all have come. */
  async spansNamed<const Names extends readonly string[]>(
    ...names: Names
  ): Promise<{ [K in keyof Names]: CollectedSpan }> {
    await until(`spans ${names.join(', ')}`, () => names.every((name) => this.#find(name) !== undefined));
    return names.map((name) => this.#find(name)) as { [K in keyof Names]: CollectedSpan };
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #find(name: string): CollectedSpan | undefined {
    return this.spans.find((span) => span.name === name);
  }

  #take(text: string): void {
    for (const { resource, scopeSpans } of JSON.parse(text).resourceSpans) {
      for (const { spans } of scopeSpans) {
        for (const span of spans) {
          this.spans.push({ ...span, attributes: mapOf(span.attributes), resource: mapOf(resource.attributes) });
        }
      }
    }
  }
}

type KeyValue = { readonly key: string; readonly value: Readonly<Record<string, unknown>> };

function mapOf(list: readonly KeyValue[]): Record<string, unknown> {
  return Object.fromEntries(list.map(({ key, value }) => [key, Object.values(value)[0]]));
}
