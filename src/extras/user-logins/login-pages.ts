import { type RouteAnswer, type RouteRequest, singleParams } from '../../downstream/http/http-route.js';
import { RequestError } from '../../host/http/send-request.js';
import type { LoginSettings, RemoteSpec } from '../../spec/server-spec.js';
import type { OpenedLogin } from '../../upstream/auth/login.js';
import { LoginError, VaultError } from '../../upstream/auth/vault.js';
import { printable } from '../../wire/json/printable.js';
import { Cookies, withCookies } from '../cookies.js';
import type { FeatureHost, GatewayUsers, Person } from '../feature.js';
import { LOGIN_MS, randomText, type SealedTexts } from '../sealed-texts.js';
import { ShortMemory } from '../short-memory.js';
import { escaped, faultPage, redirect, termRows, webPage } from '../web-page.js';
import type { ForgottenUsers } from './forgotten-users.js';
import { callbackOf, codeOf, pathOf, type Ticket } from './ticket.js';

export interface LoginPagesOptions {
  readonly host: FeatureHost;
  readonly users: GatewayUsers;
  readonly publicUrl: string;
  readonly sealed: SealedTexts;
  readonly forgotten: ForgottenUsers;
}

/** A login that continues in a browser: its person, its server, and the data that its end needs. */
interface Visit extends OpenedLogin {
  readonly server: string;
  readonly person: Person;
}

/** A page that was shown: its ticket, and the host at which it says that the person will log in. */
interface Shown extends Ticket {
  readonly host: string;
}

/** Number of the logins that may go on in a browser at the same time. */
const MAX_VISITS = 4;
const VISIT_ID = /^[\w-]{22}$/;
/** Time for which a ticket counts as used. The clock of another gateway, for which it is valid longer, may be that much behind. */
const TAKEN_MS = 2 * LOGIN_MS;
const EXPIRED =
  'Its address is not valid, or no longer. Call a tool of the server again: the answer has a new address.';
const OTHER_BROWSER = 'It took too long, or it was begun in another browser. Call a tool of the server again.';
const OTHER_SERVER =
  'The answer is for another server than the one at which it was begun. Call a tool of the server again.';
const OTHER_USER = 'It was begun by another user of this gateway. If somebody sent you the address, do not go on.';

/**
 * The pages on which a user logs in at a server. Anybody could send the address to a victim, whose account would then be used by
 * another. So the page says for whom the login is, and if persons can sign in here, it is only for this person. The rest of the login
 * goes on in the same browser, because a cookie has its state, sealed.
 */
export class LoginPages {
  readonly #options: LoginPagesOptions;
  readonly #cookies: Cookies;
  readonly #onThisMachine: ShortMemory;

  constructor(options: LoginPagesOptions) {
    this.#options = options;
    this.#cookies = new Cookies(options.publicUrl);
    this.#onThisMachine = new ShortMemory(options.host.platform.clock);
  }

  /** Asks the person whether to log in. Nothing is registered or used up before the form is sent. */
  async show({ query, params, headers }: RouteRequest): Promise<RouteAnswer> {
    const { server = '' } = params;
    const { sealed, forgotten } = this.#options;
    const { ticket: text = '' } = singleParams(query) ?? {};
    const ticket = sealed.open<Ticket>('ticket', text);
    if (ticket === undefined || ticket.server !== server || forgotten.has(ticket)) return faultPage(400, EXPIRED);
    const refusal = await this.#refuse(ticket, headers.cookie, pathOf(server, text));
    if (refusal !== undefined) return refusal;
    const spec = this.#specOf(ticket);
    if (spec === undefined) return faultPage(404, EXPIRED);
    const browser = this.#browserOf(headers.cookie) ?? randomText(16);
    return await this.#faultsShown(server, async () => {
      const { findLoginHost } = await import('../../upstream/auth/login.js');
      const shown: Shown = { ...ticket, host: await findLoginHost(await this.#loginAt(spec)) };
      // The user may have been removed while the server was asked.
      if (forgotten.has(ticket)) return faultPage(400, EXPIRED);
      return withCookies(this.#question(shown, spec, sealed.seal(`begin ${browser}`, shown, LOGIN_MS)), [
        this.#cookies.set('logins', sealed.seal('logins', { browser }), LOGIN_MS),
      ]);
    });
  }

  /** The page that asks the person. It names the host of the login, because a hostile server can lead to the provider of another one. */
  #question(shown: Shown, spec: UserSpec, request: string): RouteAnswer {
    const { server, name, host } = shown;
    const { publicUrl } = this.#options;
    const gateway = new URL(publicUrl).host;
    const rows: [string, string][] = [
      ['For the user', `<q><bdi>${escaped(printable(name))}</bdi></q> of ${escaped(gateway)}`],
      ['Code', `<strong>${escaped(codeOf(shown))}</strong>`],
      ['At the server', escaped(`${server} (${new URL(spec.url).host})`)],
      ['You will log in on the page of', `<strong>${escaped(host)}</strong>`],
      ['Who will use it', escaped(`${gateway} uses your account there for this user, until the login is ended`)],
    ];
    return webPage(
      200,
      `Log in at ${server}?`,
      `${termRows(rows)}
<p>Continue only if this is your user name, your program shows the same code now, and the login is on a page that belongs to this server. If somebody sent you this address, close the page:
they would get access to your account.</p>
<form method="post" action="${escaped(pathOf(server))}"><input type="hidden" name="request" value="${escaped(request)}">
<button name="decision" value="allow">Continue</button></form>`,
    );
  }

  /** Begins the login at the server, after the person has agreed. */
  async begin({ params, body, headers }: RouteRequest): Promise<RouteAnswer> {
    const { publicUrl, sealed, forgotten } = this.#options;
    if (headers.origin !== publicUrl) return faultPage(403, 'Another site sent its form.');
    const { request = '' } = singleParams(new URLSearchParams(body)) ?? {};
    const ticket = sealed.open<Shown>(`begin ${this.#browserOf(headers.cookie)}`, request);
    if (ticket === undefined || ticket.server !== params.server) return faultPage(400, OTHER_BROWSER);
    if (forgotten.has(ticket)) return faultPage(400, EXPIRED);
    const refusal = await this.#refuse(ticket, headers.cookie, undefined);
    if (refusal !== undefined) return refusal;
    const spec = this.#specOf(ticket);
    if (spec === undefined) return faultPage(404, EXPIRED);
    const { server, principal, name, host } = ticket;
    return await this.#faultsShown(server, async () => {
      if (!(await this.#takeOnce(ticket.id))) return faultPage(400, EXPIRED);
      const { openLogin } = await import('../../upstream/auth/login.js');
      const id = randomText(16);
      const { url, opened } = await openLogin(await this.#loginAt(spec), `${publicUrl}${callbackOf(server)}`, id);
      if (forgotten.has(ticket)) return faultPage(400, EXPIRED);
      if (new URL(url).host !== host)
        throw new LoginError('the server names another page for the login than it did before');
      const visit: Visit = { ...opened, server, person: { principal, name } };
      return withCookies(redirect(url), [
        ...this.#cookies.outdated(headers.cookie, 'visit', MAX_VISITS - 1),
        this.#cookies.set(`visit-${id}`, sealed.seal(`visit-${id}`, visit, LOGIN_MS), LOGIN_MS),
      ]);
    });
  }

  /** Ends the login with the answer of the authorization server of the server. */
  async callback({ params, query, headers }: RouteRequest): Promise<RouteAnswer> {
    const { sealed, forgotten } = this.#options;
    const { state: id = '' } = singleParams(query) ?? {};
    const cookie = `visit-${id}`;
    const visit = VISIT_ID.test(id)
      ? sealed.open<Visit>(cookie, this.#cookies.read(headers.cookie, cookie))
      : undefined;
    if (visit === undefined) return faultPage(400, OTHER_BROWSER);
    const { server, person, until = 0, ...opened } = visit;
    const isForgotten = () => forgotten.has({ ...person, until });
    if (isForgotten()) return withCookies(faultPage(400, EXPIRED), [this.#cookies.remove(cookie)]);
    const answer = await this.#faultsShown(server, async () => {
      if (params.server !== server) return faultPage(400, OTHER_SERVER);
      const spec = this.#specOf({ server, ...person });
      if (spec === undefined || !this.#mayBe(person, headers.cookie)) return faultPage(403, OTHER_USER);
      if (!(await this.#takeOnce(id))) return faultPage(400, OTHER_BROWSER);
      const { completeLogin, endLogin } = await import('../../upstream/auth/login.js');
      const login = await this.#loginAt(spec);
      await completeLogin(login, opened, query);
      // The user was removed while the authorization server answered.
      if (isForgotten()) {
        await endLogin(login, true);
        return faultPage(400, EXPIRED);
      }
      return webPage(
        200,
        `You are logged in at ${server}`,
        '<p>You can close this page. A call that waits in your program goes on; otherwise, call the tool again.</p>',
      );
    });
    return withCookies(answer, [this.#cookies.remove(cookie)]);
  }

  /** The page for a browser that must not use this ticket; `undefined` if it may. With `path`, an unknown person has to sign in first. */
  async #refuse({ principal }: Ticket, cookie: string | undefined, path: string | undefined) {
    const persons = this.#options.host.features.first('persons');
    if (persons === undefined) return undefined;
    const person = persons.personOf(cookie);
    if (person === undefined) return path === undefined ? faultPage(403, OTHER_BROWSER) : persons.signIn(path, cookie);
    return person.principal === principal ? undefined : faultPage(403, OTHER_USER);
  }

  /** Whether the person of a login may be the user of this browser, because no other person has signed in with it. */
  #mayBe({ principal }: Person, cookie: string | undefined): boolean {
    const person = this.#options.host.features.first('persons')?.personOf(cookie);
    return person === undefined || person.principal === principal;
  }

  #specOf({ server, principal, name }: Omit<Ticket, 'id'>): UserSpec | undefined {
    return specOf(this.#options, server, { principal, name });
  }

  async #loginAt(spec: UserSpec) {
    const { host } = this.#options;
    return { spec, vault: await host.openVault(), clock: host.platform.clock };
  }

  async #takeOnce(id: string): Promise<boolean> {
    if (!this.#onThisMachine.add(id, TAKEN_MS)) return false;
    // The cluster is another feature.
    const taken = this.#options.host.features.first('takeOnce')?.(`login ${id}`, TAKEN_MS);
    return (
      (await taken?.catch((error: unknown) => {
        throw new RequestError('the gateways of the cluster cannot agree that the login is used once', false, error);
      })) ?? true
    );
  }

  /**
   * Shows the reason if a login fails, without secrets of the configuration. The messages of connections that fail, and of the store of
   * the logins, only go to the log, because they tell about this network and this machine.
   */
  async #faultsShown(server: string, work: () => Promise<RouteAnswer>): Promise<RouteAnswer> {
    try {
      return await work();
    } catch (err) {
      const { logger, secrets } = this.#options.host;
      logger.warn({ server, err }, 'a login of a user at this server failed');
      if (err instanceof VaultError) return faultPage(502, `The login at ${server} cannot be stored.`);
      if (err instanceof LoginError) return faultPage(502, secrets.redact(`At ${server}, ${err.message}.`));
      if (!(err instanceof RequestError)) throw err;
      return faultPage(
        503,
        `The login at ${server} cannot go on now, because a part of it does not answer. Try again later.`,
      );
    }
  }

  #browserOf(cookie: string | undefined): string | undefined {
    const { sealed } = this.#options;
    return sealed.open<{ browser: string }>('logins', this.#cookies.read(cookie, 'logins'))?.browser;
  }
}

export type UserSpec = RemoteSpec & { readonly login: LoginSettings };

/** The server as it is for this person; `undefined` if users do not log in there. */
export function specOf({ host, users }: LoginPagesOptions, server: string, person: Person): UserSpec | undefined {
  const { spec } = host.config.serverFor(server, users.originOf(person)) ?? {};
  if (spec?.kind !== 'remote' || spec.user !== person.principal || spec.login === undefined) return undefined;
  return { ...spec, login: spec.login };
}
