import { availableParallelism, homedir } from 'node:os';
import { dirname, resolve } from 'node:path';
import { readTextFile, statOf } from '../../host/files/whole-file.js';
import { isProtected } from '../../host/http/addresses.js';
import type { ToolShapes } from '../../spec/server-rules.js';
import {
  type ExchangeSettings,
  type LoginSettings,
  loginServerOf,
  type PackageRequest,
  type RemoteSpec,
  type SandboxSpec,
} from '../../spec/server-spec.js';
import { printable } from '../../wire/json/printable.js';
import type { CheckedFile, TracingConfig, WrittenCluster, WrittenServer } from '../file/check-file.js';
import { faultsAt, formatProblem, locateFault, ServerFault, type ServerProblem } from '../file/config-error.js';
import { currentFolder } from '../file/find-config.js';
import type { CallRule } from '../rules/rule.js';
import { AddressFault, addressText, hostAndPort, reachableAddress, storeLocation } from '../schema/cluster-address.js';
import {
  DEMAND_EVERY_MS,
  GATEWAY_SETTINGS,
  loopbackOf,
  MIN_START_LIMIT,
  STOP_KILL_AFTER_MS,
  settingsOf,
} from '../schema/settings.js';
import type { Config, Origin, ServerConfig, ServerPackage } from './config.js';
import { EnvFiles } from './env-file.js';
import { checkNesting } from './nesting.js';
import { findPackage, type InstalledPackages, parsePackage } from './package-bin.js';
import {
  commandLine,
  expandHome,
  expand as expandIn,
  loginReference,
  mapTexts,
  type Secret,
  secretReader,
  secretValuesOf,
  userVariable,
  type Variables,
} from './references.js';

export interface LoadOptions {
  /** The variables of this process. */
  readonly env: Variables;
  /** Variables and folder for the servers. Default: the variables and the working folder of this process. */
  readonly origin?: Origin;
  /** The Node that runs servers with a `package`. */
  readonly nodePath: string;
  /** Folder of Trunkline itself, whose packages no server runs. */
  readonly ownFolder: string;
  /** The packages in Trunkline's own store. */
  readonly store?: InstalledPackages;
  /** The secrets that the file refers to. */
  readonly secrets?: ReadonlyMap<string, Secret>;
}

/** The facts about this machine with which an entry is resolved. */
interface Surroundings extends LoadOptions {
  readonly origin: Origin;
  /** The configuration file, and its folder; absolute. */
  readonly file: string;
  readonly folder: string;
  readonly home: string;
  readonly envFiles: EnvFiles;
  /** The names in `defaults.env`. */
  readonly sharedVariables: readonly string[];
  /** The issuer of the tokens of users. */
  readonly issuer: string | undefined;
  /** All servers of the file. */
  readonly written: readonly WrittenServer[];
}

/** Resolves a checked file on this machine. A server that cannot run gets a `problem`. */
export function resolveConfig(path: string, checked: CheckedFile, options: LoadOptions): Config {
  const { env, origin = { environment: env, folder: currentFolder() } } = options;
  const file = resolve(path);
  const folder = dirname(file);
  const home = env.HOME || env.USERPROFILE || homedir();
  const envFiles = new EnvFiles(folder);
  const { sharedVariables } = checked;
  const { issuer } = checked.gateway.http.auth?.jwt ?? {};
  const { servers: written } = checked;
  const resolveFor = (of: Origin, server: WrittenServer) =>
    resolveServer(server, { ...options, origin: of, file, folder, home, envFiles, sharedVariables, issuer, written });
  const { startLimit, record, sealKeyFile, secretFolder, tracing, cluster, metrics, http, ...gateway } =
    checked.gateway;
  const { listen } = metrics;
  const { auth } = http;
  const { tokens, variables } = auth ?? {};
  const near = (path: string) => resolve(folder, expandHome(path, home));
  return {
    file,
    servers: checked.servers.map((server) => resolveFor(origin, server)),
    disabled: checked.disabled,
    gateway: {
      ...gateway,
      ...mapped({ record, sealKeyFile, secretFolder }, near),
      http: auth === undefined ? http : { ...http, auth: { ...auth, ...mapped({ tokens, variables }, near) } },
      ...(tracing !== undefined && { tracing: resolveTracing(tracing, options) }),
      ...(cluster !== undefined && { cluster: resolveCluster(cluster, near, options) }),
      metrics: {
        ...metrics,
        ...(listen !== undefined && loopbackOf(listen) === undefined && { listen: near(listen) }),
      },
      startLimit: startLimit ?? Math.max(MIN_START_LIMIT, availableParallelism()),
    },
    warnings: [...checked.warnings.map((warning) => formatProblem(path, warning)), ...envFiles.warnings],
    envFiles: envFiles.paths,
    passHeaders: [...new Set(checked.servers.flatMap(passedHeaders))],
    serverFor: (key, other) => {
      const found = checked.servers.find((server) => server.key === key);
      return found && resolveFor(other, found);
    },
  };
}

function passedHeaders({ passHeaders = [] }: WrittenServer): readonly string[] {
  return passHeaders.map((name) => name.toLowerCase());
}

/** Replaces each text that is set by the result of `map`, and leaves out the others. */
function mapped<Name extends string>(
  texts: { readonly [N in Name]?: string | undefined },
  map: (text: string) => string,
): { readonly [N in Name]?: string } {
  const entries = Object.entries<string | undefined>(texts);
  const found = entries.flatMap(([name, text]) => (text === undefined ? [] : [[name, map(text)]]));
  return Object.fromEntries(found);
}

/** Resolves references in the settings of traces with the variables of this process, because all clients share the collector. */
function resolveTracing(tracing: TracingConfig, { env, secrets }: LoadOptions): TracingConfig {
  if (tracing === 'off' || 'fault' in tracing) return tracing;
  const expand = (text: string) => expandIn(text, env, secretReader(secrets));
  const { endpoint, headers, ...others } = tracing;
  try {
    return {
      ...others,
      ...mapped({ endpoint }, expand),
      ...(headers && { headers: mapped(headers, expand) as typeof headers }),
    };
  } catch (error) {
    if (!(error instanceof ServerFault)) throw error;
    return { fault: `${error.message}; ${error.hint}` };
  }
}

/** Resolves references in the settings of a cluster with the variables of this process, because the process is its member. */
function resolveCluster(
  { store, advertise, listen, storeUser, storePasswordFile, storeCaFile, name = 'trunkline' }: WrittenCluster,
  near: (path: string) => string,
  { env, secrets }: LoadOptions,
): NonNullable<Config['gateway']['cluster']> {
  const files = mapped({ storePasswordFile, storeCaFile }, near);
  const parsed = <T>(setting: string, text: string, parse: (text: string) => T): T => {
    try {
      return parse(expandIn(text, env, secretReader(secrets)));
    } catch (error) {
      if (error instanceof ServerFault)
        throw new AddressFault(`gateway.cluster.${setting}: ${error.message}; ${error.hint}`);
      throw error instanceof AddressFault ? new AddressFault(`gateway.cluster.${setting}: ${error.message}`) : error;
    }
  };
  try {
    const own = parsed('advertise', advertise, reachableAddress);
    const all = own.host.includes(':') ? '::' : '0.0.0.0';
    return {
      name,
      store: parsed('store', store, storeLocation),
      advertise: addressText(own),
      listen: listen === undefined ? { host: all, port: own.port } : parsed('listen', listen, hostAndPort),
      ...(storeUser !== undefined && { storeUser }),
      ...files,
    };
  } catch (error) {
    if (!(error instanceof AddressFault)) throw error;
    return { fault: error.message, ...files };
  }
}

/** Resolves one server of the file. The result has a `problem` and no `spec` if the server cannot run. */
function resolveServer(written: WrittenServer, surroundings: Surroundings): ServerConfig {
  const { key, settings, prefix = key, methods = [], tools: { allow, deny = [] } = {} } = written;
  const { origin, home, envFiles } = surroundings;
  const { variables, references, fault } = envFiles.variablesOf(written, origin.environment, home);
  const readSecret = secretReader(surroundings.secrets);
  const { own, references: tokens } = withoutTokens(written);
  const secrets = secretValuesOf(written, references, surroundings.secrets);
  const { interceptors, isInterceptor } = written;
  const run = (): Resolved => {
    if (settings.placement === 'one' && variables.some((name) => userVariable(name) !== undefined))
      throw new ServerFault(
        'a server with `placement: one` runs once for all users, and cannot have variables of users',
        `remove \`placement\`, or every \${user:NAME}`,
      );
    if (isInterceptor === true && (actsForUsers(written) || variables.some((name) => userVariable(name) !== undefined)))
      throw new ServerFault(
        'an interceptor runs once for all users, and cannot have variables or logins of users',
        'remove them from this entry',
      );
    if (settings.placement === 'one' && tokens.length > 0)
      throw new ServerFault(
        'a server with `placement: one` runs once for all users, and cannot have the login of one',
        `remove \`placement\`, or every \${login:SERVER}`,
      );
    if (fault !== undefined) throw fault;
    const entry = mapTexts(own, (text, path) => {
      const expand = () => expandIn(text, references, readSecret, origin);
      return faultsAt(path, written.url === undefined ? () => refuseNul(expand()) : expand);
    });
    const resolved =
      entry.url === undefined
        ? withToken(childAndPackage(entry, written, surroundings), tokens, surroundings)
        : { spec: remoteSpec(entry, entry.url, written, surroundings) };
    const { allow: _, deny: __, ...shapes } = entry.tools ?? {};
    const { rules } = entry;
    return { ...resolved, ...(Object.keys(shapes).length > 0 && { shapes }), ...(rules !== undefined && { rules }) };
  };
  return {
    ...settings,
    key,
    prefix,
    methods,
    passHeaders: passedHeaders(written),
    tools: { ...(allow && { allow }), deny },
    variables,
    references,
    ...withProblem(written, run),
    ...(Object.keys(secrets).length > 0 && { secrets }),
    ...(settings.sharing === 'folder' && { folder: origin.folder }),
    ...(actsForUsers(written) && { actsForUsers: true }),
    ...(interceptors && { interceptors }),
    ...(isInterceptor && { isInterceptor }),
  };
}

/** Whether the requests to a server are made in the name of the user of the client, or its process has a token of the user. */
function actsForUsers({ login, auth, env = {} }: WrittenServer): boolean {
  const { exchange } = auth ?? {};
  const isExchanged = exchange !== undefined && exchange.subjectTokenFile === undefined;
  return login === 'user' || isExchanged || Object.values(env).some((value) => loginReference(value) !== undefined);
}

/** A variable of `env`, and the key of the server whose token it gets. */
type TokenReference = readonly [variable: string, server: string];

/** Splits the variables that get a token from an entry with a program. */
function withoutTokens(written: WrittenServer): {
  readonly own: WrittenServer;
  readonly references: readonly TokenReference[];
} {
  const { env = {}, url } = written;
  const references = Object.entries(env).flatMap(([name, value]): TokenReference[] => {
    const server = url === undefined ? loginReference(value) : undefined;
    return server === undefined ? [] : [[name, server]];
  });
  if (references.length === 0) return { own: written, references };
  const names = new Set(references.map(([name]) => name));
  const others = Object.entries(env).filter(([name]) => !names.has(name));
  return { own: { ...written, env: Object.fromEntries(others) }, references };
}

/** Adds the login whose token variables get. Throws a `ServerFault` if there is no such login, or more than one. */
function withToken(resolved: Resolved, references: readonly TokenReference[], surroundings: Surroundings): Resolved {
  const { spec } = resolved;
  const [key, ...others] = new Set(references.map(([, server]) => server));
  if (key === undefined || spec === undefined || spec.kind === 'remote') return resolved;
  return faultsAt(['env'], () => {
    const written = surroundings.written.find((server) => server.key === key);
    const from = written?.login === 'user' ? resolveServer(written, surroundings) : undefined;
    if (others.length > 0)
      throw new ServerFault('its variables refer to logins at several servers', 'keep one of them in this entry');
    if (from === undefined)
      throw new ServerFault(
        `there is no server \`${key}\` with \`login: user\`, to whose login \${login:${key}} refers`,
        'add it, also if no client is to use it: a view can leave it out',
      );
    if (from.problem !== undefined)
      throw new ServerFault(`${key}: ${from.problem.message}`, from.problem.hint, [], from.problem.isOfUser);
    const server = loginServerOf(from.spec);
    if (server === undefined) throw new Error(`The server ${key} has no login`);
    return { ...resolved, spec: { ...spec, token: { variables: references.map(([name]) => name), from: server } } };
  });
}

/** The parts of the resolved entry that programs and remote servers have in common. */
function commonSpec({ key, settings: { startTimeoutMs, stopGraceMs, restart } }: WrittenServer) {
  return {
    key,
    timeouts: { startMs: startTimeoutMs, stopGraceMs, killAfterMs: STOP_KILL_AFTER_MS },
    restart: { ...restart, demandEveryMs: DEMAND_EVERY_MS },
  };
}

interface Resolved {
  readonly spec: ServerConfig['spec'];
  readonly problem?: ServerProblem;
  readonly package?: ServerPackage;
  readonly shapes?: ToolShapes;
  readonly rules?: readonly CallRule[];
}

/** Returns the result of `resolveIt`, or the problem if it throws a `ServerFault`. */
function withProblem({ problem, positions }: WrittenServer, resolveIt: () => Resolved): Resolved {
  if (problem !== undefined) return { spec: undefined, problem };
  try {
    return resolveIt();
  } catch (fault) {
    if (!(fault instanceof ServerFault)) throw fault;
    return { spec: undefined, problem: locateFault(fault, positions) };
  }
}

function childAndPackage(entry: WrittenServer, written: WrittenServer, surroundings: Surroundings): Resolved {
  const { env, sharedVariables, file, home } = surroundings;
  const { key, settings, env: variables = {} } = entry;
  const forNpm = Object.fromEntries(Object.entries(variables).filter(([name]) => sharedVariables.includes(name)));
  const { package: used, ...toRun } = program(entry, written, forNpm, surroundings);
  const spec = {
    ...commonSpec(entry),
    ...toRun,
    cwd: faultsAt(['cwd'], () => workingFolder(entry, written.cwd, surroundings)),
    env: variables,
    leaveRunning: settings.leaveRunning,
    ...(settings.placement === 'one' && { soleKey: key }),
    ...sandboxOf(entry, surroundings),
  };
  const nesting = checkNesting(spec, { file, home, env, packageName: used?.request.name });
  return { spec: { ...spec, env: { ...spec.env, ...nesting } }, ...(used && { package: used }) };
}

/** The openings of a confined server. None for a server that runs unconfined. */
function sandboxOf(
  { key: server, cwd, settings: { sandbox, sharing } }: WrittenServer,
  { folder, home, origin }: Surroundings,
): { readonly sandbox?: SandboxSpec } {
  if (sandbox === false) return {};
  const { read = [], write = [], network = [], unixSockets = false } = sandbox === true ? {} : sandbox;
  const pathsOf = (paths: readonly string[]) =>
    faultsAt(['sandbox'], () => paths.map((path) => openable(path, folder, home)));
  const opensFolder = cwd !== undefined || sharing === 'folder';
  const user = origin.user === undefined ? {} : { user: origin.user };
  return {
    sandbox: { server, ...user, read: pathsOf(read), write: pathsOf(write), network, unixSockets, opensFolder },
  };
}

function openable(path: string, folder: string, home: string): string {
  const found = resolve(folder, expandHome(path, home));
  if (statOf(found) !== undefined) return found;
  const hint = path.includes('${')
    ? 'write the path without variables; `~` is the home folder'
    : `create it, or correct the path, which is relative to ${folder}`;
  throw new ServerFault(`\`sandbox\` opens ${path}, which does not exist`, hint);
}

/** Refuses a NUL character in the value of a variable or secret. The schema refuses one in the file. */
function refuseNul(value: string): string {
  if (!value.includes('\0')) return value;
  throw new ServerFault(
    'the value of a variable or secret has a NUL character, which no program can be started with',
    'set the variable or store the secret again, without that character',
  );
}

function remoteSpec(entry: WrittenServer, url: string, written: WrittenServer, surroundings: Surroundings): RemoteSpec {
  const { folder, home, origin } = surroundings;
  const { transport, type, headersCommand, env = {}, proxy, caFile, insecure } = entry;
  const headers = Object.entries(entry.headers ?? {}).map(
    ([name, value]) => [name.toLowerCase(), faultsAt(['headers', name], () => headerValue(value))] as const,
  );
  const exchange = faultsAt(['auth', 'exchange'], () => exchangeSettings(entry, url, surroundings));
  const hasOwn = headersCommand !== undefined || headers.some(([name]) => name === 'authorization');
  const isLogin = !hasOwn && exchange === undefined;
  return {
    kind: 'remote',
    ...commonSpec(entry),
    url: faultsAt(['url'], () => remoteUrl(url, insecure)),
    ...(insecure === true && { isInsecure: true }),
    transport: transport ?? (type === 'sse' ? 'sse' : type === undefined ? 'auto' : 'http'),
    headers: Object.fromEntries(headers),
    ...(headersCommand !== undefined && {
      headersCommand: { line: faultsAt(['headersCommand'], () => commandLine(headersCommand)), env },
    }),
    ...(proxy !== undefined && { proxy: faultsAt(['proxy'], () => proxyUrl(proxy)) }),
    ...(caFile !== undefined && {
      ca: faultsAt(['caFile'], () => certificates(resolve(folder, expandHome(caFile, home)))),
    }),
    ...(isLogin && { login: loginSettings(entry, written, surroundings) }),
    ...(exchange !== undefined && { exchange }),
    ...(actsForUsers(entry) && origin.user !== undefined && { user: personOf(origin, exchange !== undefined) }),
  };
}

/**
 * The principal of a user who can log in, or whose token can be exchanged. Throws a `ServerFault` for a machine, because it has no browser
 * and no person, and its token is not of the identity provider.
 */
function personOf({ user = '', userName = '', isMachine }: Origin, isExchange: boolean): string {
  if (isMachine !== true) return user;
  const lack = isExchange
    ? 'has no token of the identity provider for `auth.exchange`'
    : 'cannot log in at a server with `login: user`';
  throw new ServerFault(
    `the machine ${printable(userName)} ${lack}, which needs a person`,
    `give the machine a view without this server, or add an entry for machines whose \`headers\` have a \${user:NAME}`,
    [isExchange ? 'auth' : 'login'],
    'one',
  );
}

/** How a server gets tokens. Throws a `ServerFault` if nobody gives any, or if the server would get the token of the user. */
function exchangeSettings(
  { auth }: WrittenServer,
  url: string,
  { folder, home, issuer: issuerOfUsers }: Surroundings,
): ExchangeSettings | undefined {
  if (auth?.exchange === undefined) return undefined;
  const { grant = 'token-exchange', subjectTokenType = 'access_token', subjectTokenFile, ...others } = auth.exchange;
  const issuer = others.issuer ?? (others.tokenEndpoint === undefined ? issuerOfUsers : undefined);
  const providers = [issuer, others.tokenEndpoint].filter((each) => each !== undefined);
  if (providers.length === 0)
    throw new ServerFault('no provider is named that gives tokens', 'add `issuer`, or `gateway.http.auth.jwt`');
  if (subjectTokenFile === undefined && providers.some((each) => isSameOrigin(each, url)))
    throw new ServerFault(
      'the server is at the provider itself, and would get the token of the user, which is not for it',
      'use another host for one of them, or `login: user`',
    );
  return {
    ...others,
    grant,
    subjectTokenType,
    ...(issuer !== undefined && { issuer }),
    ...(subjectTokenFile !== undefined && { subjectTokenFile: resolve(folder, expandHome(subjectTokenFile, home)) }),
  };
}

function isSameOrigin(one: string, other: string): boolean {
  return URL.canParse(one) && URL.canParse(other) && new URL(one).origin === new URL(other).origin;
}

/** Keys of `oauth` that are secrets however they are written. The others are secrets if they refer to one. */
const SECRET_KEYS: ReadonlySet<string> = new Set(['clientSecret', 'privateKeyFile']);

function loginSettings(
  { key, oauth = {} }: WrittenServer,
  { oauth: written = {} }: WrittenServer,
  { file, folder, home }: Surroundings,
): LoginSettings {
  const { privateKeyFile, redirectUri, grant = 'authorization_code', ...others } = oauth;
  const confidential = Object.entries(written)
    .filter(([name, value]) => SECRET_KEYS.has(name) || JSON.stringify(value).includes('${secret:'))
    .map(([name]) => name);
  const keyOf = (path: string) => {
    const text = readTextFile(resolve(folder, expandHome(path, home)));
    if (text !== undefined) return text;
    throw new ServerFault(
      'the file of `privateKeyFile` cannot be read',
      'correct the path, which is relative to the folder of the configuration file',
    );
  };
  return {
    server: key,
    configFile: file,
    grant,
    ...(confidential.length > 0 && { confidential }),
    ...others,
    ...(redirectUri !== undefined && {
      redirectUri: faultsAt(['oauth', 'redirectUri'], () => redirectUriOf(redirectUri)),
    }),
    ...(privateKeyFile !== undefined && {
      privateKey: faultsAt(['oauth', 'privateKeyFile'], () => keyOf(privateKeyFile)),
    }),
  };
}

/**
 * The URL of a remote server. Credentials must not cross a network in plain text, so `http:` is for this machine only, unless the entry has
 * `insecure`. Throws a `ServerFault` for a URL that cannot be used.
 */
export function remoteUrl(text: string, isInsecure = false): string {
  const hint = 'write a URL such as https://example.com/mcp';
  if (!URL.canParse(text)) throw new ServerFault('the URL is not valid', hint);
  const url = new URL(text);
  if (url.username !== '' || url.password !== '')
    throw new ServerFault('the URL has a user name or a password', 'use `headers` with `Authorization` instead');
  if (isProtected(url) || (url.protocol === 'http:' && isInsecure)) return url.href;
  throw new ServerFault(
    url.protocol === 'http:'
      ? 'the URL is not encrypted, and its host is not this machine'
      : `the URL begins with ${url.protocol}, which is no protocol of remote servers`,
    url.protocol === 'http:'
      ? 'write a URL with `https:`, or add `insecure: true` if you trust everyone on the network between'
      : hint,
  );
}

function redirectUriOf(text: string): string {
  if (URL.canParse(text)) return text;
  throw new ServerFault('the redirect URI is not a valid URL', 'write a URL such as http://localhost:27890/callback');
}

function proxyUrl(text: string): string {
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return text;
  throw new ServerFault('the proxy is not a valid URL', 'write a URL such as http://proxy.example.com:3128');
}

function headerValue(text: string): string {
  if (/^[\t\x20-\x7e\x80-\xff]*$/.test(text)) return text.trim();
  throw new ServerFault(
    'the value of the header has characters that no header can have',
    'remove line breaks and other control characters',
  );
}

function certificates(file: string): string {
  const text = readTextFile(file);
  if (text?.includes('-----BEGIN CERTIFICATE-----') === true) return text;
  throw new ServerFault(
    text === undefined ? `the file ${file} cannot be read` : `the file ${file} has no certificate in PEM`,
    'correct `caFile`, which is relative to the folder of the configuration file',
  );
}

interface Program {
  readonly command: string;
  readonly label?: string;
  readonly args: readonly string[];
  readonly missing?: PackageRequest;
  readonly package?: ServerPackage;
}

/** The program of a server. `forNpm` are the variables for the installation of its package. */
function program(
  { args = [], package: spec, bin, command = '', settings }: WrittenServer,
  { package: shown, command: writtenCommand = '' }: WrittenServer,
  forNpm: Readonly<Record<string, string>>,
  { folder, home, nodePath, ownFolder, store }: Surroundings,
): Program {
  if (spec === undefined || shown === undefined) {
    const path = faultsAt(['command'], () => commandPath(command, folder, home));
    return { command: path, label: firstWord(writtenCommand), args };
  }
  return faultsAt(['package'], () => {
    const { installScripts, foreignDependencies, sandbox, installTimeoutMs: budgetMs } = settings;
    const request = {
      shown,
      ...parsePackage(spec, shown),
      bin,
      installScripts,
      foreignDependencies,
      isConfined: sandbox !== false,
      env: forNpm,
      budgetMs,
    };
    const found = findPackage({ request, configFolder: folder, ownFolder, ...(store && { store }) });
    if (found === undefined) return { command: nodePath, args, missing: request, package: { request } };
    return { command: nodePath, args: [found.program, ...args], package: { request, found } };
  });
}

/** The first word of `command`, because some users write a whole command line there, which may contain secrets. */
function firstWord(command: string): string {
  const [first = '', ...rest] = command.trim().split(/\s+/);
  return rest.length === 0 ? first : `${first} …`;
}

/** The program to run. A path with a leading dot is relative to the file; any other name is looked up in PATH. */
function commandPath(command: string, folder: string, home: string): string {
  if (command === '') {
    throw new ServerFault(
      'the command is empty after its variables are replaced; expected a program to run',
      'set the variables that `command` refers to',
    );
  }
  const expanded = expandHome(command, home);
  return /^\.\.?[\\/]/.test(expanded) ? resolve(folder, expanded) : expanded;
}

/** The folder in which a server runs. `shown` is its `cwd` as the file has it. */
function workingFolder(
  { cwd, settings: { sharing } }: WrittenServer,
  shown: string | undefined,
  { folder, home, origin }: Surroundings,
): string {
  const isOfClient = sharing === 'folder' && cwd === undefined;
  const path = isOfClient ? origin.folder : resolve(folder, expandHome(cwd ?? '.', home));
  if (statOf(path)?.isDirectory() === true) return path;
  if (isOfClient) {
    throw new ServerFault(
      `the working folder of the client does not exist${path === '' ? '' : `: ${path}`}; with \`sharing: folder\`, the server runs there`,
      'start the client in a folder that exists, or set `cwd`',
    );
  }
  throw new ServerFault(
    `the folder ${shown ?? '.'} does not exist; expected a folder to run the server in`,
    `create the folder, or correct \`cwd\`, which is relative to ${folder}`,
  );
}

/** A configuration without servers, in place of a file that cannot be used. `file` is undefined if no file was found. */
export function emptyConfig(file: string | undefined): Config {
  return {
    file: file === undefined ? '' : resolve(file),
    servers: [],
    disabled: [],
    gateway: {
      ...settingsOf(GATEWAY_SETTINGS),
      views: [],
      clientViews: [],
      startupWaitMs: 0,
      idleStopMs: 0,
      startLimit: MIN_START_LIMIT,
    },
    warnings: [],
    envFiles: [],
    passHeaders: [],
    serverFor: () => undefined,
  };
}
