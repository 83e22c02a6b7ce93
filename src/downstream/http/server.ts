import type { RequestListener, Server } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { isLocalhost } from '../../host/http/addresses.js';
import type { EventSink } from '../../host/observe/events/events.js';
import type { FairMemory } from '../../wire/io/shared-limit.js';
import type { ScanEnvelope } from '../../wire/mcp/envelope.js';
import type { Clock } from '../../wire/timing/clock.js';
import { Deadlines } from '../../wire/timing/deadlines.js';
import { allowedNames, checkBind, type HttpBind, inBrackets } from './bind.js';
import type { HttpUsers } from './caller.js';
import { createFastifyApp } from './fastify-app.js';
import { BearerCheck } from './header-guards.js';
import type { HttpSessionPort } from './http-client.js';
import { Drain } from './http-drain.js';
import type { HttpRoute } from './http-route.js';
import { type ConfigurableLimits, FIXED_LIMITS, type HttpLimits } from './limits.js';
import { clientOf, Listener, listenAlso, portOf } from './listener.js';
import { Endpoint, type HttpEndpoint } from './mcp-endpoint.js';
import { readRequestBody } from './mcp-request.js';
import { SessionlessClients, Sessions } from './mcp-sessions.js';
import { RequestRates } from './rate-limit.js';
import type { SealedIds } from './sealed-ids.js';
import type { SessionRecords } from './session-records.js';
import type { Timed } from './sse-stream.js';

export interface HttpTransportOptions {
  readonly core: HttpSessionPort;
  readonly clock: Clock;
  readonly scan: ScanEnvelope;
  readonly bind: HttpBind;
  /** Absent if all clients have the tokens of `bind`. */
  readonly users?: HttpUsers | undefined;
  /** Limits. Tests shorten some of the fixed ones too. */
  readonly limits: ConfigurableLimits & Partial<HttpLimits>;
  /** Limit of the incomplete bodies of all requests together. The transport sets its size. */
  readonly requestBodies: FairMemory;
  readonly ids: SealedIds;
  /** The records of sessions that several processes share. Absent if this one serves alone. */
  readonly records?: SessionRecords | undefined;
  readonly events: EventSink;
  /** Puts another endpoint around that of this process, before the first request is served. */
  readonly decorate?: Decorate | undefined;
  /** Paths of features, besides those of MCP. */
  readonly routes?: readonly HttpRoute[] | undefined;
  /** Returns the text of /metrics. Absent if there are no metrics. */
  readonly readMetrics?: (() => Promise<string>) | undefined;
}

export interface HttpTransport {
  /** URL without the path of the endpoint, such as `http://localhost:8080`. */
  readonly url: string;
  readonly port: number;
  readonly sessions: number;
  /** Finishes the calls in flight, and accepts no more. Resolves after `ms` at the latest. Called once, before `close`. */
  drain(ms: number): Promise<void>;
  /** Ends every session and connection. May be called twice. */
  close(): Promise<void>;
}

/** Returns an endpoint that serves some requests itself. `route` serves requests that came to another port. */
export type Decorate = (endpoint: Endpoint, route: RequestListener) => Promise<HttpEndpoint>;

/** Time that clients have to read their last bytes when the transport closes. */
const CLOSE_GRACE_MS = 500;

/** Serves MCP over Streamable HTTP. Rejects with an `HttpBindError` if the settings would let unknown clients in. */
export async function openHttpTransport(options: HttpTransportOptions): Promise<HttpTransport> {
  const { core, clock, scan, bind, events, ids, records, requestBodies, users } = options;
  const problem = checkBind({ ...bind, hasUsers: users !== undefined });
  if (problem !== undefined) throw problem;

  const limits = { ...FIXED_LIMITS, ...options.limits };
  requestBodies.limitTo(limits.maxPartialBytes);
  const listener = new Listener({ https: bind.https, limits, events });
  const timers = new Deadlines<Timed>(clock, (timed) => timed.onDue());
  const sessions = new Sessions({ core, scan, ids, records, clock, timers, limits, events });
  const sessionless = new SessionlessClients({
    clock,
    timers,
    limits,
    open: (...args) => core.openSession(...args),
    onCut: (unwrittenBytes) => events.emit({ kind: 'http.stream-cut', unwrittenBytes }),
  });
  const callers = users ?? new BearerCheck({ ...limits, tokens: bind.noAuth ? [] : bind.tokens });
  let names: ReturnType<typeof allowedNames> | undefined;
  const namesNow = () => {
    names ??= allowedNames(bind, portOf(app.server));
    return names;
  };
  const own = new Endpoint({
    core,
    clock,
    scan,
    limits,
    requestBodies,
    callers,
    ids,
    sessions,
    sessionless,
    events,
    rates: new RequestRates(limits),
    onAuthenticated: (socket) => listener.authenticated(socket),
    names: namesNow,
  });
  let endpoint: HttpEndpoint = own;
  let draining: Drain | undefined;
  const app = createFastifyApp({
    listener,
    users,
    events,
    names: namesNow,
    readMetrics: options.readMetrics,
    routes: options.routes ?? [],
    readBody: (request, maxBytes) => {
      const owners = () => ['without a token', clientOf(request).address];
      return readRequestBody(request, { maxBytes, memory: requestBodies, owners });
    },
    endpoint: () => endpoint,
    read: (request) => own.read(request),
    state: () => (draining !== undefined ? 'draining' : core.isReady() ? 'ready' : 'not ready'),
    onRequest: () => draining?.requested(),
  });

  let closing: Promise<void> | undefined;
  const close = async () => {
    draining?.cancel();
    await endpoint.endClients();
    timers.close();
    const cancel = clock.schedule(CLOSE_GRACE_MS, () => listener.destroy());
    await listener.end();
    cancel();
    await endpoint.close();
    await app.close();
  };

  try {
    await app.ready();
    const route: RequestListener = (request, response) => app.routing(request, response);
    endpoint = (await options.decorate?.(own, route)) ?? own;
    await listen(app, listener, bind);
  } catch (error) {
    await close();
    throw error;
  }
  const port = portOf(app.server);
  const url = `${bind.https === undefined ? 'http' : 'https'}://${inBrackets(bind.host)}:${port}`;
  events.emit({ kind: 'http.listening', url });
  return {
    url,
    port,
    get sessions() {
      return sessions.size;
    },
    drain: (ms) => {
      events.emit({ kind: 'http.draining', ms });
      listener.closeAfterResponses();
      endpoint.drain();
      draining = new Drain({
        clock,
        ms,
        isBusy: () => endpoint.hasCalls,
        connections: () => listener.connections + endpoint.otherConnections,
        stopAccepting: async () => {
          await listener.stopListeningWhenIdle();
          endpoint.endStreams();
        },
      });
      return draining.over;
    },
    close: () => {
      closing ??= close();
      return closing;
    },
  };
}

async function listen(app: FastifyInstance, listener: Listener, { host, port }: HttpBind): Promise<void> {
  if (!isLocalhost(host)) {
    await app.listen({ host, port });
    return;
  }
  await app.listen({ host: '127.0.0.1', port });
  const other: Server = listener.create((request, response) => app.routing(request, response));
  other.on('clientError', (error, socket) => app.server.emit('clientError', error, socket));
  await listenAlso(other, '::1', portOf(app.server));
}
