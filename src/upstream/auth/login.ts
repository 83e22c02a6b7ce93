import { randomBytes, randomUUID } from 'node:crypto';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { errorCode, errorMessage } from '../../host/errors/error-text.js';
import { bare, isLocalhost, isLoopback } from '../../host/http/addresses.js';
import { createAgent } from '../../host/http/agents.js';
import type { createFetch } from '../../host/http/fetch.js';
import { sendRequest } from '../../host/http/send-request.js';
import { describeHttpRefusal } from '../../host/http/words.js';
import { isSameSecret } from '../../host/sealed-bytes.js';
import type { LoginSettings, RemoteSpec } from '../../spec/server-spec.js';
import { printable } from '../../wire/json/printable.js';
import type { Clock } from '../../wire/timing/clock.js';
import { type AuthChallenge, oauthChallenge } from './challenge.js';
import {
  authorizationUrl,
  type Binding,
  type Client,
  checkIssuer,
  clientFor,
  contextOf,
  type DeviceLogin,
  type Discovered,
  discover,
  exchangeCode,
  knownClient,
  OAuthRefusal,
  openDpop,
  registeredScopes,
  revoke,
  scopesFor,
  startDeviceLogin,
} from './oauth.js';
import { loginFetch, withForgottenClient } from './oauth-access.js';
import {
  digest,
  LoginError,
  type LoginId,
  type LoginRecord,
  loginIdOf,
  type StoredTokens,
  unreadable,
  type Vault,
  withoutSecret,
} from './vault.js';

/** Ports of redirect URIs, in the order of the tries. They are fixed, because authorization servers compare redirect URIs as texts. */
const PORTS = [27_890, 27_891, 27_892, 27_893, 27_894];
const CALLBACK = '/callback';
/** Longest wait for the person, in milliseconds. */
const LOGIN_MS = 10 * 60_000;

export interface LoginOptions {
  readonly spec: RemoteSpec & { readonly login: LoginSettings };
  readonly vault: Vault;
  readonly clock: Clock;
  /** Scopes to request instead of the scopes that the server names. */
  readonly scopes?: readonly string[] | undefined;
  /** Client id to log in with, instead of the configured one. */
  readonly clientId?: string | undefined;
  /** Asks the person whether this authorization server may get the values of these keys of `oauth`. Absent if only `issuer` can name it. */
  readonly confirmIssuer?: Binding['confirmIssuer'];
}

/** A login that waits for the person in the browser. */
export interface PendingLogin {
  readonly url: string;
  /** URL to which the page sends the browser back. The authorization server must know this URL. */
  readonly redirectUri: string;
  /** The refusal of the authorization server when Trunkline asked for the page. */
  readonly refusal: string | undefined;
  /** Takes the URL to which the browser was sent back. Returns whether the text is such a URL of this login. */
  submit(text: string): boolean;
  /** Resolves when the login is stored. Rejects with a `LoginError` or a `RequestError`. */
  readonly finished: Promise<LoginRecord>;
}

/**
 * Begins a login with OAuth 2.1 and PKCE (page basic/authorization of the specification). The login before stays until the
 * new one is stored. Rejects with a `LoginError` or a `RequestError`.
 */
export async function beginLogin(options: LoginOptions): Promise<PendingLogin> {
  const plan = await prepare(options);
  const { found, settings, before } = plan;
  const { listener, redirectUri } = await openListener(settings, before);
  try {
    const state = randomBytes(32).toString('base64url');
    const { client, started, refusal } = await openPage(plan, redirectUri, state);
    const { authorizationUrl: url, codeVerifier } = started;
    const answers = new Answers(listener, state, redirectUri, found);
    const finish = async () => redeem(options, plan, client, { code: await answers.first, codeVerifier, redirectUri });
    const finished = finish().then(
      (record) => {
        answers.finish(`You are logged in at ${settings.server}. You can close this page.`);
        return record;
      },
      (error: unknown) => {
        answers.finish('The login failed. The terminal says why.', 400);
        throw error;
      },
    );
    // Marks a rejection as handled, because the login may fail before a caller waits for it.
    finished.catch(() => {});
    return { url: url.href, redirectUri, refusal, submit: (text) => answers.submit(text), finished };
  } catch (error) {
    listener?.close();
    throw error;
  }
}

/** A login whose page a browser of a user has open. The browser keeps it, sealed, so that any gateway can go on. */
export interface OpenedLogin {
  readonly codeVerifier: string;
  readonly redirectUri: string;
  /** Digest of the authorization server and the client. The answer is valid for these two only. */
  readonly parties: string;
}

/** Finds the host on whose page a user would log in. Registers nothing. Rejects as `beginLogin` does. */
export async function findLoginHost(options: LoginOptions): Promise<string> {
  const { found } = await prepare(options);
  return new URL(found.metadata?.authorization_endpoint ?? found.issuer).host;
}

/** Begins a login of a user, who is sent back to `redirectUri` of this gateway. Rejects as `beginLogin` does. */
export async function openLogin(
  options: LoginOptions,
  redirectUri: string,
  state: string,
): Promise<{ readonly url: string; readonly opened: OpenedLogin }> {
  const plan = await prepare(options);
  const { client, started } = await openPage(plan, redirectUri, state);
  if (client.isRegistered && client.client_id !== plan.registered?.client.client_id)
    await keepRegistration(options, plan, client);
  const { authorizationUrl: url, codeVerifier } = started;
  return { url: url.href, opened: { codeVerifier, redirectUri, parties: partiesOf(plan, client) } };
}

/** Ends a login of a user with the parameters of the answer of the authorization server. Rejects as `beginLogin` does. */
export async function completeLogin(
  options: LoginOptions,
  { codeVerifier, redirectUri, parties }: OpenedLogin,
  answer: URLSearchParams,
): Promise<LoginRecord> {
  const plan = await prepare(options);
  const { found, settings, registered } = plan;
  const code = codeIn(answer, found);
  const client = knownClient(found, settings, redirectUri, registered);
  // Stops here, because another authorization server would get the code, or this one would not know the client.
  if (client === undefined || partiesOf(plan, client) !== parties)
    throw new LoginError('the server names another authorization server, or another client, than it did before');
  return await redeem(options, plan, client, { code, codeVerifier, redirectUri });
}

function partiesOf({ found: { issuer, metadata } }: Plan, { client_id }: Client): string {
  return digest(JSON.stringify([issuer, metadata?.authorization_endpoint, metadata?.token_endpoint, client_id]));
}

/** Keeps a registration for the logins of all users at a server, because each of them would otherwise register another client. */
async function keepRegistration(
  { vault }: LoginOptions,
  { registeredAt, registered, found, scopes }: Plan,
  client: Client,
) {
  const { issuer, metadata } = found;
  const record: LoginRecord = {
    ...registeredAt,
    state: 'expired',
    identity: randomUUID(),
    issuer,
    client,
    requestedScopes: registeredScopes(found, registered, scopes),
    ...(metadata && { metadata }),
  };
  await vault.locked(registeredAt, AbortSignal.timeout(LOGIN_MS), async (login) => await login.write(record));
}

/** Exchanges the code of an answer, and stores the login. */
async function redeem(
  options: LoginOptions,
  plan: Plan,
  client: Client,
  answer: Parameters<typeof exchangeCode>[1],
): Promise<LoginRecord> {
  const { found, settings, fetch } = plan;
  const dpop = found.wantsDpop ? await openDpop() : undefined;
  const context = { ...found, client, settings, dpop: dpop?.session, fetch };
  const tokens = await exchangeCode(context, answer).catch(async (error: unknown) => {
    throw await withoutForgotten(options, plan, error);
  });
  return await store(options, plan, client, tokens, dpop?.key);
}

/**
 * Makes the URL of the page for the browser. Unless the client is new, requests the page once, because an authorization server
 * that has forgotten the client, or does not know its redirect URI, says so on the page only, and never sends the browser back.
 * Registers such a client again, once.
 */
async function openPage({ found, settings, registered, scopes, fetch }: Plan, redirectUri: string, state: string) {
  const params = settings.authorizationParams;
  for (let isForgotten = false; ; isForgotten = true) {
    const client = await clientFor(found, settings, { redirectUri, before: registered, scopes, fetch, isForgotten });
    const started = await authorizationUrl(found, client, { redirectUri, scopes, state, params });
    const isNew = client.isRegistered && registered?.client.client_id !== client.client_id;
    if (isNew) return { client, started, refusal: undefined };
    const response = await fetch(started.authorizationUrl, { redirect: 'manual' }).catch(() => undefined);
    const words =
      response && response.status >= 400 ? describeHttpRefusal(response.status, '', await response.text()) : '';
    const about = `${words} ${response?.headers.get('location') ?? ''}`;
    if (isForgotten || !client.isRegistered || !ABOUT_CLIENT.test(about))
      return { client, started, refusal: words === '' ? undefined : words };
  }
}

const ABOUT_CLIENT =
  /invalid_client|unauthorized_client|(?:unknown|invalid|unregistered)\W+(?:oauth\W+)?client|client\W.{0,40}(?:not\W+(?:found|registered|exist)|unknown|invalid)/i;

/** Drops the registration of a client that the authorization server does not know. Returns the error to throw. */
async function withoutForgotten({ vault }: LoginOptions, { registeredAt }: Plan, error: unknown): Promise<unknown> {
  const { cause } = error as Error;
  if (!(error instanceof LoginError && cause instanceof OAuthRefusal && cause.isAboutClient)) return error;
  await vault.locked(registeredAt, AbortSignal.timeout(LOGIN_MS), async (login) => {
    const record = await login.read();
    if (record !== undefined) await login.write(withForgottenClient(record));
  });
  return new LoginError(error.message, 'log in again; Trunkline registers itself anew');
}

export interface PendingDeviceLogin extends Pick<DeviceLogin, 'userCode' | 'verificationUri'> {
  readonly finished: Promise<LoginRecord>;
}

/** Begins a login with a code for another device (RFC 8628). Rejects as `beginLogin` does. */
export async function beginDeviceLogin(options: LoginOptions): Promise<PendingDeviceLogin> {
  const plan = await prepare(options);
  const { found, settings, before, scopes, fetch } = plan;
  const redirectUri =
    settings.redirectUri ?? before?.client.redirectUri ?? redirectUriOf(settings.callbackPort ?? PORTS[0] ?? 0);
  const client = await clientFor(found, settings, { redirectUri, before, scopes, fetch });
  const dpop = found.wantsDpop ? await openDpop() : undefined;
  const device = await startDeviceLogin({ ...found, client, settings, dpop: dpop?.session, fetch }, scopes);
  const finish = async () => {
    const end = options.clock.now() + device.expiresInMs;
    let waitMs = device.intervalMs;
    while (options.clock.now() < end) {
      await new Promise<void>((resolve) => options.clock.schedule(waitMs, resolve));
      const answer = await device.poll();
      if (typeof answer !== 'number') return await store(options, plan, client, answer, dpop?.key);
      waitMs = answer;
    }
    throw new LoginError('the code has expired', 'log in again');
  };
  return { userCode: device.userCode, verificationUri: device.verificationUri, finished: finish() };
}

/** Longest wait for a gateway that renews the login, in milliseconds. */
const LOCK_MS = 60_000;

/**
 * Removes a login, and with `isRevoked` revokes it at the authorization server first. `problem` says as a clause why it is not
 * revoked. Rejects with a `LoginError` or a `RequestError`.
 */
export async function endLogin({ spec, vault, clock }: LoginOptions, isRevoked: boolean) {
  return await vault.locked(loginIdOf(spec), AbortSignal.timeout(LOCK_MS), async (login) => {
    // A login that cannot be read is removed, too.
    const record = await login.read().catch(unreadable(null));
    if (record === undefined) return { result: 'none', problem: null } as const;
    const problem = isRevoked && record?.tokens ? await revokedFault(record, spec, clock) : undefined;
    // Removes the registration of the client, too, because the authorization server may have forgotten it.
    await login.remove();
    return { result: 'logged_out', problem: problem ?? null } as const;
  });
}

/** Revokes the tokens. Resolves with the reason of a failure, as a clause. */
async function revokedFault(
  record: LoginRecord,
  spec: LoginOptions['spec'],
  clock: Clock,
): Promise<string | undefined> {
  const fetch = loginFetch(clock, spec);
  try {
    const isRevoked =
      record.tokens !== undefined && (await revoke(await contextOf(record, spec.login, fetch), record.tokens));
    return isRevoked ? undefined : 'the authorization server offers no revocation';
  } catch (error) {
    return errorMessage(error);
  }
}

interface Plan {
  readonly id: LoginId;
  readonly settings: LoginSettings;
  readonly found: Discovered;
  readonly before: LoginRecord | undefined;
  /** The record with the registered client: that of the login, or one for the logins of all users at the server. */
  readonly registered: LoginRecord | undefined;
  readonly registeredAt: LoginId;
  readonly scopes: readonly string[];
  readonly fetch: ReturnType<typeof createFetch>;
}

async function prepare(options: LoginOptions): Promise<Plan> {
  const { spec, vault, clock, scopes: wanted, clientId, confirmIssuer } = options;
  const settings = clientId === undefined ? spec.login : { ...spec.login, clientId };
  const url = new URL(spec.url);
  const id = loginIdOf(spec);
  // A login that cannot be read is replaced.
  const before = await vault.read(id).catch(unreadable(undefined));
  // No principal is an empty text.
  const registeredAt = spec.user === undefined ? id : { ...id, user: '' };
  const registered = registeredAt === id ? before : await vault.read(registeredAt).catch(unreadable(undefined));
  const fetch = loginFetch(clock, { ...spec, login: settings });
  const found = await discover(url, await probe(url, spec, clock), settings, fetch, { before, confirmIssuer });
  const scopes = scopesFor(found, settings, before, wanted);
  return { id, settings, found, before, registered, registeredAt, scopes, fetch };
}

async function store(
  { vault }: LoginOptions,
  { id, found, scopes }: Plan,
  client: Client,
  tokens: StoredTokens,
  dpopKey: LoginRecord['dpopKey'],
): Promise<LoginRecord> {
  const { issuer, metadata, resource } = found;
  const record: LoginRecord = {
    ...id,
    ...{
      state: 'logged_in',
      identity: randomUUID(),
      issuer,
      client: withoutSecret(client),
      tokens,
      requestedScopes: scopes,
    },
    ...(metadata && { metadata }),
    ...(resource !== undefined && { resource }),
    ...(dpopKey && { dpopKey }),
  };
  await vault.locked(id, AbortSignal.timeout(LOGIN_MS), async (login) => await login.write(record));
  return record;
}

/** Sends a request without a token, to get the challenge of the 401. Resolves with `undefined` if there is none. */
async function probe(url: URL, spec: RemoteSpec, clock: Clock): Promise<AuthChallenge | undefined> {
  const agent = createAgent(url, spec);
  const body = Buffer.from(PROBE);
  const json = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' };
  const requests = [
    { method: 'POST', headers: { ...json, 'mcp-method': 'server/discover', 'mcp-protocol-version': REVISION }, body },
    { method: 'GET', headers: { accept: 'text/event-stream' } },
  ] as const;
  try {
    for (const request of requests) {
      const signal = AbortSignal.timeout(PROBE_MS);
      const response = await sendRequest(clock, {
        ...request,
        url,
        agent,
        signal,
        headers: { ...spec.headers, ...request.headers },
      });
      response.destroy();
      const challenge = oauthChallenge(response.headersDistinct['www-authenticate'] ?? []);
      if (response.statusCode === 401 || challenge !== undefined) return challenge;
    }
    return undefined;
  } finally {
    agent.destroy();
  }
}

const REVISION = '2026-07-28';
const PROBE_MS = 30_000;
const PROBE = JSON.stringify({
  ...{ jsonrpc: '2.0', id: 1, method: 'server/discover' },
  params: {
    _meta: {
      'io.modelcontextprotocol/protocolVersion': REVISION,
      'io.modelcontextprotocol/clientInfo': { name: 'trunkline', version: '0' },
      'io.modelcontextprotocol/clientCapabilities': {},
    },
  },
});

function redirectUriOf(port: number): string {
  return `http://127.0.0.1:${port}${CALLBACK}`;
}

/**
 * Listens for the browser on loopback: at the configured URI or port, or else at the port of the registration, a fixed one, or
 * any free one. Listens nowhere if the configured URI is not on loopback, so that the person has to paste the URL.
 */
async function openListener(
  { callbackPort, clientId, server, redirectUri: own }: LoginSettings,
  before: LoginRecord | undefined,
): Promise<{ listener: Server | undefined; redirectUri: string }> {
  if (own !== undefined && !(new URL(own).protocol === 'http:' && isLoopback(new URL(own).hostname)))
    return { listener: undefined, redirectUri: own };
  const { redirectUri } = before?.client ?? {};
  const registered = redirectUri === undefined ? [] : [portOf(redirectUri)];
  const chosen = own === undefined ? callbackPort : portOf(own);
  const ports = chosen === undefined ? [...registered, ...PORTS] : [chosen];
  // If Trunkline registers the client, the redirect URI can have any port.
  if (chosen === undefined && clientId === undefined) ports.push(0);
  for (const port of ports) {
    const listener = createServer();
    const isTaken = await new Promise<boolean>((resolve, reject) => {
      listener.once('error', (error) => (TAKEN.has(errorCode(error) ?? '') ? resolve(true) : reject(error)));
      listener.listen(port, own === undefined ? '127.0.0.1' : addressOf(own), () => resolve(false));
    });
    if (!isTaken) return { listener, redirectUri: own ?? redirectUriOf((listener.address() as AddressInfo).port) };
  }
  throw new LoginError(
    `another program uses port ${ports.join(', ')}, which the browser needs for the end of the login`,
    `end the other login, or set \`oauth: { callbackPort: … }\` of the server ${server}`,
  );
}

/** Reasons for which a port cannot be used: another program has it, or only an administrator may. */
const TAKEN: ReadonlySet<string> = new Set(['EADDRINUSE', 'EACCES']);

function addressOf(url: string): string {
  const { hostname } = new URL(url);
  return isLocalhost(hostname) ? '127.0.0.1' : bare(hostname);
}

function portOf(url: string): number {
  return Number(new URL(url).port || 80);
}

/** Returns the code in the answer of an authorization server. Throws a `LoginError` with its words if there is none. */
function codeIn(params: URLSearchParams, found: Discovered): string {
  checkIssuer(found, params.get('iss') ?? undefined);
  const code = params.get('code');
  if (code !== null) return code;
  const description = params.get('error_description') ?? '';
  const about = description === '' ? '' : `: ${printable(description.slice(0, 300))}`;
  const error = printable((params.get('error') ?? '').slice(0, 100));
  throw new LoginError(`the authorization server answers \`${error}\`${about}`);
}

/** Waits for the first answer, from the browser or from the person. */
class Answers {
  readonly first: Promise<string>;
  readonly #listener: Server | undefined;
  readonly #state: string;
  readonly #found: Discovered;
  #take: (code: string) => void = () => {};
  #reject: (error: Error) => void = () => {};
  #page: ServerResponse | undefined;
  readonly #timer: NodeJS.Timeout;

  constructor(listener: Server | undefined, state: string, redirectUri: string, found: Discovered) {
    this.#listener = listener;
    this.#state = state;
    this.#found = found;
    this.first = new Promise((resolve, reject) => {
      this.#take = resolve;
      this.#reject = reject;
    });
    this.#timer = setTimeout(
      () => this.fail(new LoginError('nobody logged in within 10 minutes', 'log in again')),
      LOGIN_MS,
    );
    const { pathname, host } = new URL(redirectUri);
    listener?.on('request', (request, response) => {
      const [path, query = ''] = (request.url ?? '').split('?', 2);
      const isHere = request.method === 'GET' && path === pathname && request.headers.host === host;
      if (isHere && this.#page === undefined && this.#answered(new URLSearchParams(query))) this.#page = response;
      else show(response, 404, 'This is not the answer to the login that waits here. The login goes on.');
    });
  }

  submit(text: string): boolean {
    const trimmed = text.trim();
    return URL.canParse(trimmed) && this.#answered(new URL(trimmed).searchParams);
  }

  fail(error: Error): void {
    this.#reject(error);
  }

  /** Shows the end of the login in the browser, and stops listening. */
  finish(text: string, status = 200): void {
    clearTimeout(this.#timer);
    if (this.#page !== undefined) show(this.#page, status, text);
    this.#listener?.close();
    this.#listener?.closeIdleConnections();
  }

  /**
   * Takes an answer, which may be an error. Returns whether it belongs to this login. Any web page can send parameters, but does
   * not know `state`, so it changes nothing.
   */
  #answered(params: URLSearchParams): boolean {
    if (!(params.has('code') || params.has('error')) || !isSameSecret(params.get('state') ?? '', this.#state))
      return false;
    try {
      this.#take(codeIn(params, this.#found));
    } catch (fault) {
      this.fail(fault as Error);
    }
    return true;
  }
}

/** Shows a page without scripts, and without any part of the address, because the address has the code. */
function show(response: ServerResponse, status: number, text: string): void {
  const escaped = text.replace(/[&<>]/g, (char) => `&#${char.charCodeAt(0)};`);
  response.writeHead(status, {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': "default-src 'none'",
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-store',
    connection: 'close',
  });
  response.end(`<!doctype html><meta charset="utf-8"><title>Trunkline</title><p>${escaped}</p>\n`);
}
