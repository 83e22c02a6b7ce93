import { METHODS, type Server } from 'node:http';
import { type FastifyInstance, fastify } from 'fastify';
import { isLocalhost } from '../../host/http/addresses.js';
import type { EventSink } from '../../host/observe/events/events.js';
import type { FairMemory } from '../../wire/io/shared-limit.js';
import type { ScanEnvelope } from '../../wire/mcp/envelope.js';
import type { Clock } from '../../wire/timing/clock.js';
import { Deadlines } from '../../wire/timing/deadlines.js';
import { allowedNames, checkBind, type HttpBind, literal } from './bind.js';
import { type HttpUsers, METADATA_PATH } from './caller.js';
import { Drain } from './drain.js';
import { Endpoint } from './endpoint.js';
import type { Timed } from './event-stream.js';
import { BearerCheck } from './guards.js';
import type { HttpSessionPort } from './http-client.js';
import { type ConfigurableLimits, FIXED_LIMITS, type HttpLimits } from './limits.js';
import { addressOf, endBrokenConnection, Listener, listenAlso, portOf } from './listener.js';
import { type ClusterFacts, type JoinCluster, type LocalClients, type Placement, userOf } from './placement.js';
import { RequestRates } from './rate-limit.js';
import type { SealedIds } from './sealed-ids.js';
import type { SessionRecords } from './session-records.js';
import { SessionlessClients, Sessions } from './sessions.js';

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
  /** The records of sessions that the gateways of a cluster share. Absent without a cluster. */
  readonly records?: SessionRecords | undefined;
  readonly events: EventSink;
  /** Absent if this gateway serves alone. */
  readonly joinCluster?: JoinCluster | undefined;
  /** Returns the text of /metrics. Absent if there are no metrics. */
  readonly readMetrics?: (() => Promise<string>) | undefined;
}

export interface HttpTransport {
  /** URL without the path of the endpoint, such as `http://localhost:8080`. */
  readonly url: string;
  readonly port: number;
  readonly sessions: number;
  /** `undefined` if this gateway serves alone. */
  readonly cluster: ClusterFacts | undefined;
  /** Finishes what is in flight, and accepts no more. Resolves after `ms` at the latest. Called once, before `close`. */
  drain(ms: number): Promise<void>;
  /** Ends every session and connection. May be called twice. */
  close(): Promise<void>;
}

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
  const endpoint = new Endpoint({
    core,
    clock,
    scan,
    limits,
    requestBodies,
    callers,
    hasUsers: users !== undefined,
    placement: () => placement,
    rates: new RequestRates(limits),
    ids,
    sessions,
    sessionless,
    onAuthenticated: (socket) => listener.authenticated(socket),
    onRequest: () => draining?.requested(),
    names: () => {
      names ??= allowedNames(bind, portOf(app.server));
      return names;
    },
    events,
  });
  let draining: Drain | undefined;
  const app = createApp(listener, endpoint, options, () => draining !== undefined);
  const clients: LocalClients = {
    homes: () => {
      const homes = new Map<string, boolean>();
      for (const some of [sessions, sessionless]) some.addHomes(homes);
      return homes;
    },
    principals: () => core.principals(),
    end: (keys) => {
      const moved = [...sessions.endMoved(keys), ...sessionless.endMoved(keys)];
      const users = [...keys].flatMap((key) => userOf(key) ?? []);
      for (const principal of new Set([...users, ...moved.map(({ owner }) => owner.principal)]))
        core.endKept(principal);
      return moved.length;
    },
    serve: (request, response) => app.routing(request, response),
  };
  let placement: Placement | undefined;

  let closing: Promise<void> | undefined;
  const close = async () => {
    draining?.cancel();
    // First, so that the others serve the users whose sessions end here.
    if (placement !== undefined) await placement.leave();
    sessions.close();
    sessionless.close();
    timers.close();
    const cancel = clock.schedule(CLOSE_GRACE_MS, () => listener.destroy());
    await listener.end();
    cancel();
    await placement?.close();
    await app.close();
  };

  try {
    await app.ready();
    placement = await options.joinCluster?.(clients);
    await listen(app, listener, bind);
  } catch (error) {
    await close();
    throw error;
  }
  const port = portOf(app.server);
  const url = `${bind.https === undefined ? 'http' : 'https'}://${literal(bind.host)}:${port}`;
  events.emit({ kind: 'http.listening', url });
  return {
    url,
    port,
    get sessions() {
      return sessions.size;
    },
    get cluster() {
      return placement?.facts;
    },
    drain: (ms) => {
      events.emit({ kind: 'http.draining', ms });
      listener.closeAfterResponses();
      placement?.drain();
      draining = new Drain({
        ...{ clock, ms },
        isBusy: () => sessions.hasCalls || sessionless.hasCalls || placement?.hasCalls === true,
        connections: () => listener.connections + (placement?.connections ?? 0),
        stopAccepting: async () => {
          await listener.stopListeningWhenIdle();
          sessions.endListening();
          placement?.endStanding();
          core.endSubscriptions();
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

function createApp(
  listener: Listener,
  endpoint: Endpoint,
  { core, events, readMetrics, users }: HttpTransportOptions,
  isDraining: () => boolean,
): FastifyInstance {
  const app = fastify({
    serverFactory: (handler) => listener.create(handler),
    clientErrorHandler: (error, socket) => {
      events.emit({ kind: 'http.connection-failed', code: error.code, address: addressOf(socket) });
      endBrokenConnection(error, socket);
    },
    frameworkErrors: (_error, request, reply) => endpoint.refuse(request, reply, NOT_FOUND),
    exposeHeadRoutes: false,
    routerOptions: { ignoreTrailingSlash: true },
  });
  // Removes the parsers, because the endpoint reads the bodies itself to relay them unchanged.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => done(null));
  app.setNotFoundHandler((request, reply) => endpoint.refuse(request, reply, NOT_FOUND));
  // OAuth clients that got 401 come here next. They show what has the form of OAuth, and "invalid response" for anything else.
  if (users === undefined)
    for (const url of ['/register', '/token']) app.post(url, (_request, reply) => reply.code(404).send(NO_LOGINS));
  app.setErrorHandler((error, request, reply) => {
    events.emit({ kind: 'internal.error', error });
    return endpoint.refuse(request, reply, FAILED);
  });
  app.decorateRequest('caller', null);
  app.decorateRequest('endpoint', null);
  app.decorateRequest('home', undefined);
  app.addHook('onRequest', endpoint.checkMessage);

  // Adds the less common methods, which fastify would answer with 404. The endpoint answers them with 405.
  for (const method of METHODS) if (!app.supportedMethods.includes(method)) app.addHttpMethod(method);
  for (const url of ['/mcp', '/mcp/:key', '/mcp/v/:view']) app.all(url, { onRequest: endpoint.admit }, endpoint.serve);
  if (readMetrics !== undefined)
    app.get('/metrics', { onRequest: endpoint.admitReader }, async (_request, reply) =>
      reply
        .type('text/plain; version=0.0.4; charset=utf-8')
        .header('cache-control', 'no-store')
        .send(await readMetrics()),
    );
  if (users !== undefined) addMetadata(app, users, endpoint);
  // Routes for process monitors. They need no token and no allowed `Host`, and reveal only the state.
  for (const path of ['/livez', '/healthz']) app.get(path, (_request, reply) => reply.send('ok'));
  app.get('/readyz', (_request, reply) => {
    const state = isDraining() ? 'draining' : core.isReady() ? 'ready' : 'not ready';
    return reply.code(state === 'ready' ? 200 : 503).send(state);
  });
  return app;
}

/**
 * Tells clients where their users log in, without a token, and also pages of every origin, because clients may run in a
 * browser. It says nothing about servers and views, so it does not matter whether they exist.
 */
function addMetadata(app: FastifyInstance, users: HttpUsers, endpoint: Endpoint): void {
  const open = { 'access-control-allow-origin': '*' };
  for (const path of [undefined, '/mcp', '/mcp/:key', '/mcp/v/:view']) {
    const url = `${METADATA_PATH}${path ?? ''}`;
    app.options(url, (_request, reply) =>
      reply
        .code(204)
        .headers({ ...open, 'access-control-allow-methods': 'GET', 'access-control-allow-headers': '*' })
        .send(),
    );
    app.get(url, (request, reply) => {
      const params = Object.entries(request.params as Readonly<Record<string, string>>);
      const own = params.reduce(
        (all, [name, value]) => all.replace(`:${name}`, () => encodeURIComponent(value)),
        path ?? '',
      );
      const metadata = users.metadata(path === undefined ? undefined : own);
      if (metadata === undefined) return endpoint.refuse(request, reply, NOT_FOUND);
      return reply.headers({ ...open, 'cache-control': 'max-age=300' }).send(metadata);
    });
  }
}

const NOT_FOUND = { status: 404, message: 'Not found' };
const NO_LOGINS = {
  error: 'access_denied',
  error_description:
    'This gateway has no logins. Configure one of its bearer tokens as the Authorization header of the client',
};
const FAILED = { status: 500, message: 'Internal error' };

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
