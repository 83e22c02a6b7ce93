import { type RouteAnswer, type RouteRequest, singleParams } from '../../downstream/http/http-route.js';
import { LoginError, loginIdOf, unreadable } from '../../upstream/auth/vault.js';
import { printable } from '../../wire/json/printable.js';
import { LOGIN_MS } from '../sealed-texts.js';
import { escaped, faultPage, redirect, webPage } from '../web-page.js';
import { type LoginPagesOptions, specOf, type UserSpec } from './login-pages.js';
import { LOGIN_PAGES } from './ticket.js';

/** The request to end a login, which the page seals into its form. */
interface Ending {
  readonly server: string;
  readonly principal: string;
}

const NO_FRONT =
  'This gateway cannot tell who you are in a browser. An administrator can add auth.front, or end your logins with trunkline auth forget.';

/** The page on which a user sees and ends the own logins. It is only for persons who have signed in, because its address says nothing. */
export class OwnLogins {
  readonly #options: LoginPagesOptions;

  constructor(options: LoginPagesOptions) {
    this.#options = options;
  }

  async show({ headers }: RouteRequest): Promise<RouteAnswer> {
    const { host, sealed, publicUrl } = this.#options;
    const persons = host.features.first('persons');
    if (persons === undefined) return faultPage(404, NO_FRONT);
    const person = persons.personOf(headers.cookie);
    if (person === undefined) return await persons.signIn(LOGIN_PAGES.logins, headers.cookie);
    const vault = await host.openVault();
    const rows: string[] = [];
    for (const { key } of host.config.servers) {
      const spec = specOf(this.#options, key, person);
      const record = spec && (await vault.read(loginIdOf(spec)).catch(unreadable(null)));
      if (record === undefined) continue;
      const ending: Ending = { server: key, principal: person.principal };
      const request = sealed.seal('ending', ending, LOGIN_MS);
      const state = record?.state === 'logged_in' ? 'logged in' : 'expired';
      rows.push(`<tr><td>${escaped(key)}</td><td>${state}</td><td>${escaped(printable(record?.issuer ?? ''))}</td>
<td><form method="post" action="${LOGIN_PAGES.logins}"><input type="hidden" name="request" value="${escaped(request)}"><button>End</button></form></td></tr>`);
    }
    const table = `<table><tr><th>Server</th><th>State</th><th>At</th><th></th></tr>${rows.join('')}</table>`;
    const who = `<p>You are <q><bdi>${escaped(printable(person.name))}</bdi></q> at ${escaped(new URL(publicUrl).host)}.</p>`;
    return webPage(200, 'Your logins', `${who}${rows.length === 0 ? '<p>You are logged in at no server.</p>' : table}`);
  }

  /** Ends a login. Only the form of this page can ask for it, for the person who sees the page. */
  async end({ headers, body }: RouteRequest): Promise<RouteAnswer> {
    const { host, sealed, publicUrl } = this.#options;
    if (headers.origin !== publicUrl) return faultPage(403, 'Another site sent its form.');
    const person = host.features.first('persons')?.personOf(headers.cookie);
    const { request = '' } = singleParams(new URLSearchParams(body)) ?? {};
    const ending = sealed.open<Ending>('ending', request);
    if (person === undefined || ending === undefined || ending.principal !== person.principal)
      return faultPage(403, 'The page is too old, or it is of another person. Open it again.');
    const spec = specOf(this.#options, ending.server, person);
    if (spec !== undefined) await this.#remove(spec);
    return redirect(`${publicUrl}${LOGIN_PAGES.logins}`);
  }

  async #remove(spec: UserSpec): Promise<void> {
    const { host } = this.#options;
    const { endLogin } = await import('../../upstream/auth/login.js');
    const options = { spec, vault: await host.openVault(), clock: host.platform.clock };
    const { problem } = await endLogin(options, true).catch((error: unknown) => {
      if (!(error instanceof LoginError)) throw error;
      return { problem: error.message };
    });
    if (problem !== null)
      host.logger.warn({ server: spec.key, problem }, 'the login of a user was ended, but not revoked');
  }
}
