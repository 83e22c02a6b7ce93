import { createHash } from 'node:crypto';
import type { ClusterConfig, HttpConfig } from '../config/file/check-file.js';
import type { Config } from '../config/resolve/config.js';
import { currentFolder } from '../config/resolve/resolve-config.js';
import { addressText } from '../config/schema/cluster-address.js';
import { HttpBindError, literal } from '../downstream/http/bind.js';
import type { HttpUsers } from '../downstream/http/caller.js';
import { createHttpClients } from '../downstream/http/http-client.js';
import { FIXED_LIMITS } from '../downstream/http/limits.js';
import { SealedIds } from '../downstream/http/sealed-ids.js';
import { type Decorate, type HttpTransport, openHttpTransport } from '../downstream/http/server.js';
import type { SessionRecords } from '../downstream/http/session-records.js';
import type { User } from '../downstream/port.js';
import type { ClusterEndpoint } from '../extras/cluster/cluster-endpoint.js';
import type { ClusterStore } from '../extras/cluster/store.js';
import { errorCode } from '../host/errors/error-text.js';
import { FileError } from '../host/errors/file-error.js';
import { UsageError } from '../host/errors/usage-error.js';
import { readRegularFile } from '../host/files/whole-file.js';
import type { Logger } from '../host/observe/logger.js';
import { systemClock } from '../host/observe/system-clock.js';
import { programOf } from '../spec/server-spec.js';
import { readOrCreateToken, TokenFileError } from '../state/token-file.js';
import { tokenFile } from '../state/user-files.js';
import { type CountedName, RefusedNames } from '../status/refused-names.js';
import { IDENTITY, VERSION } from '../version.js';
import type { GatewayProcess } from './gateway-process.js';
import { logClusterEvents, logHttpEvents } from './log-events.js';
import { createEraChooser } from './platform.js';

/** The HTTP options of the command line. */
export interface HttpSettings {
  readonly host: string;
  readonly port: number;
  readonly noAuth: boolean;
  readonly allowedHosts: readonly string[];
  readonly allowedOrigins: readonly string[];
  readonly tls: { readonly certFile: string; readonly keyFile: string } | undefined;
}

export interface ServeHttpOptions {
  readonly settings: HttpSettings;
  /** The limits and the users. */
  readonly http: HttpConfig;
  readonly composition: GatewayProcess;
  readonly logger: Logger;
  /** The cluster of this gateway. Absent if it serves alone. */
  readonly cluster?: { readonly config: ClusterConfig; readonly store: ClusterStore } | undefined;
}

/** The open listener. */
export interface ServedHttp extends Pick<HttpTransport, 'url' | 'drain' | 'close'> {
  readonly refusedNames: readonly CountedName[];
  /** The facts about the cluster, for the metrics. `undefined` if this gateway serves alone. */
  readonly cluster: ClusterEndpoint['cluster']['facts'] | undefined;
}

/** Opens the HTTP listener. Throws a `UsageError` when the options do not allow it. */
export async function serveHttp(options: ServeHttpOptions): Promise<ServedHttp> {
  const { clock, events } = options.composition.platform;
  const names = new RefusedNames();
  events.subscribe('http.refused', ({ named }) => named && names.count(named, clock.now()));
  const { cluster } = options;
  let joined: ClusterEndpoint | undefined;
  const transport = await listen(
    options,
    cluster &&
      (async (endpoint, route) => {
        joined = await joinCluster(cluster, options, [endpoint, route]);
        return joined;
      }),
  );
  return {
    url: transport.url,
    get refusedNames() {
      return names.all;
    },
    get cluster() {
      return joined?.cluster.facts;
    },
    drain: (ms) => transport.drain(ms),
    close: () => transport.close(),
  };
}

async function listen(
  { settings, http, composition, logger, cluster }: ServeHttpOptions,
  decorate: Decorate | undefined,
): Promise<HttpTransport> {
  const { platform, gateway, seals } = composition;
  const { host, port, noAuth, allowedHosts, allowedOrigins, tls } = settings;
  const { auth, publicUrl } = http;
  logHttpEvents(platform.events, logger);
  try {
    const ofUsers = auth === undefined ? undefined : await loadUsers(auth, { http, composition, logger });
    const [publicHosts, publicOrigins] = publicUrl === undefined ? [[], []] : [[new URL(publicUrl).host], [publicUrl]];
    const transport = await openHttpTransport({
      core: createHttpClients({
        scan: platform.scan,
        backpressure: platform.backpressure,
        messages: platform.messages,
        chooseEra: createEraChooser(platform, gateway, IDENTITY),
        hasServer: (key) => gateway.pool.has(key),
        hasView: (name) => composition.config.gateway.views.some((view) => view.name === name),
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
      limits: http,
      ids: new SealedIds({
        sessionKeys: seals.keysFor('sessions'),
        eventKeys: seals.keysFor('events'),
        instance: seals.instance,
      }),
      records: cluster && (await openRecords(cluster.store, http, composition)),
      events: platform.events,
      decorate,
      readMetrics: composition.features.texts.metrics,
    });
    const withToken = noAuth ? '' : '; `trunkline token` shows the token';
    // Without a terminal, it is not the file of the current folder.
    const what = `${transport.url}/mcp with the configuration ${composition.config.file}`;
    process.stderr.write(`Trunkline serves ${what}${auth === undefined ? withToken : loginOf(auth)}\n`);
    return transport;
  } catch (error) {
    throw asUsageError(error, settings, cluster?.config.listen.port);
  }
}

async function openRecords(
  store: ClusterStore,
  limits: HttpConfig,
  { seals }: GatewayProcess,
): Promise<SessionRecords> {
  const { StoredSessions } = await import('../extras/cluster/stored-sessions.js');
  return new StoredSessions({ store, keys: seals.keysFor('records'), limits });
}

/** Joins the cluster, and logs what happens to it. */
async function joinCluster(
  { config, store }: NonNullable<ServeHttpOptions['cluster']>,
  { http, composition, logger }: ServeHttpOptions,
  decorated: Parameters<Decorate>,
): Promise<ClusterEndpoint> {
  const { seals, platform } = composition;
  const { ClusterEndpoint } = await import('../extras/cluster/cluster-endpoint.js');
  logClusterEvents(platform.events, logger, composition.notices);
  const { advertise, listen: address } = config;
  const { instance } = seals;
  try {
    const joined = await ClusterEndpoint.join(
      {
        hasUsers: http.auth !== undefined,
        ...{ store, instance, advertise, listen: address, version: VERSION },
        servers: () => digestOfServers(composition.config),
        ...{ keys: seals.keysFor('hops'), limits: { ...FIXED_LIMITS, ...http } },
        // Leases end while the machine sleeps, too.
        ...{ clock: systemClock, events: platform.events },
      },
      ...decorated,
    );
    composition.placeSoleServers(joined.cluster.soleServers);
    return joined;
  } catch (error) {
    const reason = LISTEN_FAULTS.get(errorCode(error) ?? '');
    if (reason === undefined) throw error;
    throw new UsageError(
      `cannot listen on ${addressText(address)} for the other gateways: ${reason}`,
      'choose another address with `gateway.cluster.listen`, or another port with `gateway.cluster.advertise`',
    );
  }
}

/** Identifies the entries of the servers without values of variables, which gateways may have of their own. */
function digestOfServers({ servers }: Config): string {
  const entries = servers.map((server) => {
    const { key, prefix, tools, methods, package: used } = server;
    return { key, prefix, tools, methods, package: used?.request.shown, runsOnce: programOf(server)?.soleKey };
  });
  return createHash('sha256').update(JSON.stringify(entries)).digest('base64url').slice(0, 8);
}

type Auth = NonNullable<HttpConfig['auth']>;

function loginOf({ jwt }: Auth): string {
  return jwt === undefined ? ' to the machines of `auth.tokens`' : `; users log in at ${jwt.issuer}`;
}

/** Loads what users need: the check of their tokens, the endpoints that are open to them, and their variables. */
async function loadUsers(auth: Auth, { http, composition, logger }: Omit<ServeHttpOptions, 'settings'>) {
  const { clock } = composition.platform;
  const [{ UserCheck }, { endpointFor }, { UserVariables }] = await Promise.all([
    import('../downstream/users/user-check.js'),
    import('../downstream/users/endpoints.js'),
    import('../downstream/users/user-variables.js'),
  ]);
  const log = { warn: (text: string) => logger.warn(text), error: (text: string) => logger.error(text) };
  const users: HttpUsers = new UserCheck({ ...http, clock, now: Date.now, log });
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
  return { users, ofCore };
}

const PEM_HINT = 'pass readable PEM files with --tls-cert and --tls-key';
/** Far above the size of a chain of certificates, which takes some kilobytes. */
const MAX_PEM_BYTES = 1024 * 1024;

async function readPems({ certFile, keyFile }: NonNullable<HttpSettings['tls']>) {
  return { cert: await readPem('--tls-cert', certFile), key: await readPem('--tls-key', keyFile) };
}

/** Reads a certificate or key. Symbolic links are allowed, because programs that renew certificates create them. */
async function readPem(option: string, file: string): Promise<Buffer> {
  const found = await readRegularFile(file, { maxBytes: MAX_PEM_BYTES, followsLinks: true });
  if (found.kind === 'read') return found.bytes;
  const reason = found.kind === 'absent' ? 'it does not exist' : found.reason;
  throw new UsageError(`cannot read the file ${file} of ${option}: ${reason}`, PEM_HINT);
}

function asUsageError(error: unknown, { host, port, tls }: HttpSettings, peerPort: number | undefined): unknown {
  if (error instanceof HttpBindError || error instanceof TokenFileError) {
    return new UsageError(error.message, 'see `trunkline serve --help`', { cause: error });
  }
  if (error instanceof FileError) return new UsageError(error.message, error.hint, { cause: error });
  const code = errorCode(error);
  if (error instanceof Error && tls !== undefined && code?.startsWith('ERR_OSSL')) {
    return new UsageError(`cannot use the TLS certificate or key (${error.message})`, PEM_HINT, { cause: error });
  }
  // The peer port is opened first.
  const isPeerPort = code === 'EADDRINUSE' && port === peerPort;
  const reason = isPeerPort ? 'it is the port for the other gateways, too' : LISTEN_FAULTS.get(code ?? '');
  if (reason === undefined) return error;
  return new UsageError(
    `cannot listen on ${literal(host)}:${port}: ${reason}`,
    'choose another address with --http HOST:PORT',
  );
}

const LISTEN_FAULTS = new Map([
  ['EADDRINUSE', 'another program already uses the port'],
  ['EADDRNOTAVAIL', 'this machine does not have that address'],
  ['EACCES', 'this user may not listen on that port'],
  ['ENOTFOUND', 'the host name does not exist'],
  ['EAI_AGAIN', 'the name server did not answer'],
]);
