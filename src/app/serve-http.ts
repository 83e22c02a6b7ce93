import type { HttpConfig } from '../config/file/check-file.js';
import { currentFolder } from '../config/file/find-config.js';
import type { Config } from '../config/resolve/config.js';
import { HttpBindError, inBrackets } from '../downstream/http/bind.js';
import { createHttpClients } from '../downstream/http/http-client.js';
import { SealedIds } from '../downstream/http/sealed-ids.js';
import { type HttpTransport, openHttpTransport } from '../downstream/http/server.js';
import type { User } from '../downstream/port.js';
import type { Person } from '../extras/feature.js';
import { errorCode, LISTEN_FAULTS } from '../host/errors/error-text.js';
import { FileError } from '../host/errors/file-error.js';
import { UsageError } from '../host/errors/usage-error.js';
import { readNamedFile } from '../host/files/whole-file.js';
import type { Logger } from '../host/observe/logger.js';
import { readOrCreateToken, TokenFileError } from '../state/token-file.js';
import { tokenFile } from '../state/user-files.js';
import { type CountedName, RefusedNames } from '../status/refused-names.js';
import { IDENTITY } from '../version.js';
import type { GatewayProcess } from './gateway-process.js';
import { logHttpEvents } from './log-events.js';
import { createEraChooser } from './platform.js';

export interface HttpSettings {
  readonly host: string;
  readonly port: number;
  readonly noAuth: boolean;
  readonly allowedHosts: readonly string[];
  readonly allowedOrigins: readonly string[];
  readonly tls: { readonly certFile: string; readonly keyFile: string } | undefined;
}

export interface ServeHttpOptions extends HttpService {
  readonly settings: HttpSettings;
}

interface HttpService {
  readonly http: HttpConfig;
  readonly composition: GatewayProcess;
  readonly logger: Logger;
}

export interface ServedHttp {
  /** URL without the path of the endpoint, such as `http://localhost:8080`. */
  readonly url: string;
  readonly drain: HttpTransport['drain'];
  readonly close: HttpTransport['close'];
  readonly refusedNames: readonly CountedName[];
}

/** Opens the HTTP listener. Throws a `UsageError` when the options do not allow it. */
export async function serveHttp(options: ServeHttpOptions): Promise<ServedHttp> {
  const { clock, events } = options.composition.platform;
  const names = new RefusedNames();
  events.subscribe('http.refused', ({ named }) => named && names.count(named, clock.now()));
  const transport = await listen(options);
  return {
    url: transport.url,
    get refusedNames() {
      return names.all;
    },
    drain: (ms) => transport.drain(ms),
    close: () => transport.close(),
  };
}

async function listen({ settings, http, composition, logger }: ServeHttpOptions): Promise<HttpTransport> {
  const { platform, gateway, seals, features } = composition;
  const { host, port, noAuth, allowedHosts, allowedOrigins, tls } = settings;
  const { auth, publicUrl } = http;
  logHttpEvents(platform.events, logger);
  try {
    const ofUsers = auth === undefined ? undefined : await loadUsers(auth, { http, composition, logger });
    const routes = ofUsers?.ofPages && (await features.routes?.(ofUsers.ofPages));
    const [publicHosts, publicOrigins] = publicUrl === undefined ? [[], []] : [[new URL(publicUrl).host], [publicUrl]];
    const transport = await openHttpTransport({
      core: createHttpClients({
        backpressure: platform.backpressure,
        messages: platform.messages,
        chooseEra: createEraChooser(platform, gateway, IDENTITY),
        hasServer: (key) => gateway.pool.has(key),
        hasView: (name) => composition.config.gateway.views.some((view) => view.name === name),
        passedHeaders: () => composition.config.passHeaders,
        isReady: () => gateway.isReady,
        endSubscriptions: () => gateway.endSubscriptions(),
        principals: () => gateway.pool.principals,
        endKept: (principal) => gateway.pool.endKept(principal),
        ...ofUsers?.ofCore,
      }),
      ...platform,
      bind: {
        host,
        port,
        noAuth,
        tokens: noAuth || auth !== undefined ? [] : [await readOrCreateToken(tokenFile())],
        allowedHosts: [...allowedHosts, ...publicHosts],
        allowedOrigins: [...allowedOrigins, ...publicOrigins],
        ...(tls === undefined ? {} : { https: await readPems(tls) }),
      },
      users: ofUsers?.users,
      routes,
      limits: http,
      ids: new SealedIds({
        sessionKeys: seals.keysFor('sessions'),
        eventKeys: seals.keysFor('events'),
        instance: seals.instance,
      }),
      ...features.first('http'),
      events: platform.events,
      readMetrics: features.texts.metrics,
    });
    const withToken = noAuth ? '' : '; `trunkline token` shows the token';
    // Names the configuration, because without a terminal, it is not the file of the current folder.
    const what = `${transport.url}/mcp with the configuration ${composition.config.file}`;
    process.stderr.write(`Trunkline serves ${what}${auth === undefined ? withToken : loginOf(auth)}\n`);
    return transport;
  } catch (error) {
    throw asUsageError(error, settings, composition.config);
  }
}

type Auth = NonNullable<HttpConfig['auth']>;

function loginOf({ jwt, front }: Auth): string {
  if (jwt === undefined) return ' to the machines of `auth.tokens`';
  return `; users log in at ${jwt.issuer}${front === undefined ? '' : ', through this gateway'}`;
}

/** Loads the check of the tokens of users, the endpoints that are open to them, their variables, and the facts for pages. */
async function loadUsers(auth: Auth, { http, composition, logger }: HttpService) {
  const { platform, features } = composition;
  const { clock } = platform;
  const [{ UserCheck, endpointFor }, { UserVariables }] = await Promise.all([
    import('../downstream/users/user-check.js'),
    import('../downstream/users/user-variables.js'),
  ]);
  const log = { warn: (text: string) => logger.warn(text), error: (text: string) => logger.error(text) };
  const users = new UserCheck({
    ...http,
    clock,
    now: Date.now,
    log,
    onToken: (...token) => features.first('noteToken')?.(...token),
  });
  const variables = new UserVariables({
    folder: auth.variables,
    names: () => composition.config.servers.flatMap((server) => server.variables),
    environment: process.env,
    workingFolder: currentFolder(),
    now: () => clock.now(),
    onFault: (file, reason) => logger.warn({ file, reason }, 'the variable of a user cannot be used'),
  });
  const ofCore = {
    originOf: (user: User) => variables.originOf(user),
    endpointFor: (asked: string | undefined, { groups }: User) =>
      endpointFor(asked, groups, composition.config.gateway.views),
  };
  const { provider } = users;
  const ofPages = provider && {
    provider,
    userOf: (token: string) => users.userOf(token),
    originOf: (person: Person) => variables.originOf({ ...person, kind: 'user', groups: [] }),
  };
  return { users, ofCore, ofPages };
}

const PEM_HINT = 'pass readable PEM files with --tls-cert and --tls-key';
/** Largest PEM file, far above the size of a chain of certificates, which takes some kilobytes. */
const MAX_PEM_BYTES = 1024 * 1024;

async function readPems({ certFile, keyFile }: NonNullable<HttpSettings['tls']>) {
  return { cert: await readPem('--tls-cert', certFile), key: await readPem('--tls-key', keyFile) };
}

/** Reads a certificate or key. Symbolic links are allowed, because programs that renew certificates create them. */
async function readPem(option: string, file: string): Promise<Buffer> {
  return await readNamedFile(file, option, { maxBytes: MAX_PEM_BYTES, followsLinks: true }, PEM_HINT);
}

function asUsageError(error: unknown, { host, port, tls }: HttpSettings, { gateway: { cluster } }: Config): unknown {
  if (error instanceof HttpBindError || error instanceof TokenFileError) {
    return new UsageError(error.message, 'see `trunkline serve --help`', { cause: error });
  }
  if (error instanceof FileError) return new UsageError(error.message, error.hint, { cause: error });
  const code = errorCode(error);
  if (error instanceof Error && tls !== undefined && code?.startsWith('ERR_OSSL')) {
    return new UsageError(`cannot use the TLS certificate or key (${error.message})`, PEM_HINT, { cause: error });
  }
  // The peer port is opened first.
  const isPeerPort =
    code === 'EADDRINUSE' && cluster !== undefined && 'listen' in cluster && port === cluster.listen.port;
  const reason = isPeerPort ? 'it is the port for the other gateways, too' : LISTEN_FAULTS.get(code ?? '');
  if (reason === undefined) return error;
  return new UsageError(
    `cannot listen on ${inBrackets(host)}:${port}: ${reason}`,
    'choose another address with --http HOST:PORT',
  );
}
