import { type IncomingMessage, METHODS, type ServerResponse } from 'node:http';
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import type { EventSink } from '../../host/observe/events/events.js';
import type { AllowedNames } from './bind.js';
import { type HttpUsers, METADATA_PATH } from './caller.js';
import * as guards from './header-guards.js';
import { endpointOfView } from './http-client.js';
import { FAILED, FOR_MACHINES, type HttpRefusal, NOT_FOUND, OVERLOADED, refusalBody } from './http-refusal.js';
import { type HttpRoute, MAX_ROUTE_BODY_BYTES, type RouteRequest } from './http-route.js';
import { clientOf, endBrokenConnection, type Listener, remoteAddressOf } from './listener.js';
import type { HttpEndpoint, Served } from './mcp-endpoint.js';
import { McpRequest, type ReadBody } from './mcp-request.js';

export interface FastifyAppOptions {
  readonly listener: Listener;
  readonly endpoint: () => HttpEndpoint;
  /** Reads the body of a request. Returns `undefined` if the request is to be served. */
  readonly read: (request: McpRequest) => Promise<Served | undefined>;
  readonly users?: HttpUsers | undefined;
  readonly routes: readonly HttpRoute[];
  readonly readBody: (request: IncomingMessage, maxBytes: number) => Promise<ReadBody>;
  /** Returns the text of /metrics. Absent if there are no metrics. */
  readonly readMetrics?: (() => Promise<string>) | undefined;
  readonly state: () => 'ready' | 'not ready' | 'draining';
  /** Called for each request of a client of MCP that was not refused for its headers. */
  readonly onRequest: () => void;
  /** Accepted names. Available once the server listens. */
  readonly names: () => AllowedNames;
  readonly events: EventSink;
}

/** The paths that the transport serves, and the refusals as HTTP answers. */
export function createFastifyApp({ listener, names, events, ...options }: FastifyAppOptions): FastifyInstance {
  const { endpoint, read, users, readMetrics, state, onRequest } = options;
  const refuse = (request: FastifyRequest, reply: FastifyReply, refusal: HttpRefusal): FastifyReply => {
    const { status, message, headers = {}, named } = refusal;
    const { method, raw } = request;
    const { address } = clientOf(raw);
    const user = mcpOf(request)?.caller.user;
    const who = user && { [user.kind]: user.name };
    events.emit({ kind: 'http.refused', status, message, method, address, ...who, ...(named && { named }) });
    if (!reply.raw.shouldKeepAlive && isBodyComing(raw)) closeAfterBody(raw, reply.raw);
    return reply.code(status).headers(headers).type('application/json').send(refusalBody(refusal));
  };

  const app = fastify({
    serverFactory: (handler) => listener.create(handler),
    clientErrorHandler: (error, socket) => {
      events.emit({ kind: 'http.connection-failed', code: error.code, address: remoteAddressOf(socket) });
      endBrokenConnection(error, socket);
    },
    frameworkErrors: (_error, request, reply) => refuse(request, reply, NOT_FOUND),
    exposeHeadRoutes: false,
    routerOptions: { ignoreTrailingSlash: true },
  });
  // Removes the parsers, because the endpoint reads the bodies itself to relay them unchanged.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => done(null));
  app.setNotFoundHandler((request, reply) => refuse(request, reply, NOT_FOUND));
  app.setErrorHandler((error, request, reply) => {
    events.emit({ kind: 'internal.error', error });
    return refuse(request, reply, FAILED);
  });
  app.decorateRequest('mcp', null);
  app.addHook('onRequest', (request, reply, done) => {
    const refusal = refuseAmbiguous(request.raw);
    if (refusal === undefined) done();
    else refuse(request, reply, refusal);
  });

  // Adds the less common methods, which fastify would answer with 404. The endpoint answers them with 405.
  for (const method of METHODS) if (!app.supportedMethods.includes(method)) app.addHttpMethod(method);
  const admit = async (request: FastifyRequest, reply: FastifyReply) => {
    if (isPreflight(request, reply, names())) return reply.code(204).send();
    const mcp = new McpRequest(request.raw, reply.raw, request.url, askedEndpoint(request));
    request.setDecorator('mcp', mcp);
    const refusal = (await endpoint().identify(mcp)) ?? (await endpoint().admit(mcp));
    if (refusal !== undefined) return refuse(request, reply, refusal);
    // The client may have left during the check of its token. Nothing reports that to the code that follows.
    if (request.raw.socket.destroyed) return reply.hijack();
    onRequest();
    return undefined;
  };
  const serve = async (request: FastifyRequest, reply: FastifyReply) => {
    const mcp = request.getDecorator<McpRequest>('mcp');
    const served = (await read(mcp)) ?? (await endpoint().serve(mcp));
    return served === 'answered' ? reply.hijack() : refuse(request, reply, served);
  };
  for (const url of ['/mcp', '/mcp/:key', '/mcp/v/:view']) app.all(url, { onRequest: admit }, serve);

  if (readMetrics !== undefined)
    app.get('/metrics', async (request, reply) => {
      const reader = new McpRequest(request.raw, reply.raw, request.url, undefined);
      request.setDecorator('mcp', reader);
      // Users get no facts about other users.
      const refusal =
        (await endpoint().identify(reader)) ??
        endpoint().refuseRate(reader) ??
        (reader.isOfUser ? FOR_MACHINES : undefined);
      if (refusal !== undefined) return refuse(request, reply, refusal);
      return reply
        .type('text/plain; version=0.0.4; charset=utf-8')
        .header('cache-control', 'no-store')
        .send(await readMetrics());
    });
  for (const route of options.routes) addRoute(app, route, { ...options, names, refuse });
  if (users !== undefined) addMetadata(app, users, refuse);
  // OAuth clients that got 401 ask here next. They show an error in the form of OAuth, and "invalid response" for anything else.
  else for (const url of ['/register', '/token']) app.post(url, (_request, reply) => reply.code(404).send(NO_LOGINS));
  // Routes for process monitors. They need no token and no allowed `Host`, and reveal only the state.
  for (const path of ['/livez', '/healthz']) app.get(path, (_request, reply) => reply.send('ok'));
  app.get('/readyz', (_request, reply) => reply.code(state() === 'ready' ? 200 : 503).send(state()));
  return app;
}

type Refuse = (request: FastifyRequest, reply: FastifyReply, refusal: HttpRefusal) => FastifyReply;

interface RouteContext {
  readonly names: () => AllowedNames;
  readonly readBody: FastifyAppOptions['readBody'];
  readonly refuse: Refuse;
}

function addRoute(app: FastifyInstance, { method, path, serve }: HttpRoute, context: RouteContext): void {
  const { names, readBody, refuse } = context;
  const handler = async (request: FastifyRequest, reply: FastifyReply) => {
    const { headers, raw } = request;
    const { hosts } = names();
    const refusal = guards.refuseHost(headers.host, hosts) ?? guards.refuseTarget(request.url, hosts);
    if (refusal !== undefined) return refuse(request, reply, refusal);
    const body = method === 'POST' ? await readBody(raw, MAX_ROUTE_BODY_BYTES) : Buffer.alloc(0);
    if (body === 'aborted') return reply.hijack();
    if (body === 'buffers-full') return refuse(request, reply, OVERLOADED);
    if (body === 'too-large') return refuse(request, reply, guards.tooLarge(MAX_ROUTE_BODY_BYTES));
    const answer = await serve({
      params: request.params as RouteRequest['params'],
      query: new URL(request.url, 'http://localhost').searchParams,
      headers,
      body: Buffer.from(body).toString(),
      address: clientOf(raw).address,
    });
    for (const [name, value] of Object.entries(answer.headers)) reply.header(name, value);
    return reply.code(answer.status).send(answer.body);
  };
  app.route({ method, url: path, handler });
}

/**
 * Serves the metadata of protected resources (RFC 9728), without a token, and to pages of every origin, because clients may run
 * in a browser. Serves it also for servers and views that do not exist, because it reveals nothing about them.
 */
function addMetadata(app: FastifyInstance, users: HttpUsers, refuse: Refuse): void {
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
      if (metadata === undefined) return refuse(request, reply, NOT_FOUND);
      return reply.headers({ ...open, 'cache-control': 'max-age=300' }).send(metadata);
    });
  }
}

const NO_LOGINS = {
  error: 'access_denied',
  error_description:
    'This gateway has no logins. Configure one of its bearer tokens as the Authorization header of the client',
};

/** Refuses, on every path, a request that a proxy could read differently. */
function refuseAmbiguous({ headers, httpVersion, rawHeaders }: IncomingMessage): HttpRefusal | undefined {
  return (
    guards.refuseHttpVersion(httpVersion) ??
    guards.refuseTransferEncoding(headers['transfer-encoding'], httpVersion) ??
    guards.refuseRepeatedHeader(headers, rawHeaders)
  );
}

/** Headers for browsers. `*` does not include `Authorization`. */
const CORS = {
  vary: 'Origin',
  'access-control-allow-methods': 'GET, POST, DELETE',
  'access-control-allow-headers': 'Authorization, *',
  'access-control-expose-headers': 'Mcp-Session-Id, WWW-Authenticate, Retry-After',
  'access-control-max-age': '600',
};

/**
 * Lets pages of the configured origins read the answers, also refusals. Returns whether the request is a CORS preflight, which
 * browsers send without a token.
 */
function isPreflight({ method, headers, url }: FastifyRequest, reply: FastifyReply, names: AllowedNames): boolean {
  const { origin } = headers;
  const isAllowed =
    origin !== undefined &&
    guards.refuseHost(headers.host, names.hosts) === undefined &&
    guards.refuseTarget(url, names.hosts) === undefined &&
    guards.refuseOrigin(origin, names.pages) === undefined;
  if (!isAllowed) return false;
  reply.raw.setHeader('access-control-allow-origin', origin);
  for (const [name, value] of Object.entries(CORS)) reply.raw.setHeader(name, value);
  return method === 'OPTIONS' && headers['access-control-request-method'] !== undefined;
}

function isBodyComing({ complete, headers }: IncomingMessage): boolean {
  return !complete && (headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0);
}

/**
 * Closes the connection after the body was read. Node would close it right after the answer. If the client was still writing, that would
 * reset the connection and lose the answer. The rest of the body is discarded, and the request timeout ends endless bodies.
 */
function closeAfterBody(request: IncomingMessage, response: ServerResponse): void {
  response.shouldKeepAlive = true;
  request.once('end', () => request.socket.destroySoon());
}

/** The request for MCP; `undefined` for requests on other paths, and before it was read. */
function mcpOf(request: FastifyRequest): McpRequest | undefined {
  // A request whose path cannot be read has no decorators.
  return ('mcp' in request && request.getDecorator<McpRequest | null>('mcp')) || undefined;
}

/** The server or view that the path names. */
function askedEndpoint(request: FastifyRequest): string | undefined {
  const { key, view } = request.params as { readonly key?: string; readonly view?: string };
  return view === undefined ? key : endpointOfView(view);
}
