import type { Params, RouteAnswer } from '../../downstream/http/http-route.js';
import type { User } from '../../downstream/port.js';
import { isRecord, parseJson } from '../../wire/json/json-value.js';
import { type Cookies, withCookies } from '../cookies.js';
import type { Persons, SignedInPerson } from '../feature.js';
import { LOGIN_MS, randomText, type SealedTexts, sha256 } from '../sealed-texts.js';
import { faultPage, redirect } from '../web-page.js';
import { type Provider, ProviderAway } from './provider.js';

interface FrontPersonsOptions {
  readonly clientId: string;
  readonly provider: Provider;
  readonly sealed: SealedTexts;
  readonly cookies: Cookies;
  /** The user of an access token; `undefined` if this gateway does not accept the token. */
  readonly userOf: (token: string) => Promise<User | undefined>;
  /** The groups that pages ask for. Others would make the cookie too large. */
  readonly groups: () => readonly string[];
}

interface BegunSignIn {
  /** The path of the page that needs to know the person. */
  readonly path: string;
  readonly verifier: string;
}

/** Number of the sign-ins that may go on in a browser at the same time. */
const MAX_SIGN_INS = 4;

/**
 * Identifies persons in browsers, for pages that are only for one user. A person signs in at the provider as for a client, with the
 * same redirect URI, and the token is checked as that of a client. The token is then dropped, and a cookie names the person.
 */
export class FrontPersons implements Persons {
  readonly #options: FrontPersonsOptions;

  constructor(options: FrontPersonsOptions) {
    this.#options = options;
  }

  personOf(header: string | undefined): SignedInPerson | undefined {
    const { sealed, cookies } = this.#options;
    return sealed.open<SignedInPerson>('person', cookies.read(header, 'person'));
  }

  async signIn(path: string, header: string | undefined): Promise<RouteAnswer> {
    const { clientId, provider, sealed, cookies } = this.#options;
    const id = randomText(16);
    const begun: BegunSignIn = { path, verifier: randomText(32) };
    try {
      const url = await provider.loginUrl(clientId, id, sha256(begun.verifier));
      return withCookies(redirect(url), [
        ...cookies.outdated(header, 'sign-in', MAX_SIGN_INS - 1),
        cookies.set(`sign-in-${id}`, sealed.seal(`sign-in-${id}`, begun, LOGIN_MS), LOGIN_MS),
      ]);
    } catch (error) {
      return awayPage(error);
    }
  }

  /** Answers the request with which the provider sends a person back; `undefined` if this browser has begun no such sign-in. */
  async answer(id: string, params: Params, header: string | undefined): Promise<RouteAnswer | undefined> {
    const { sealed, cookies, provider } = this.#options;
    const name = `sign-in-${id}`;
    const begun = sealed.open<BegunSignIn>(name, cookies.read(header, name));
    if (begun === undefined) return undefined;
    // A sign-in is answered once.
    const used = [cookies.remove(name)];
    const { iss, code } = params;
    if (!(await provider.isFrom(iss)) || code === undefined)
      return withCookies(faultPage(403, 'The identity provider did not say who you are.'), used);
    try {
      const user = await this.#userOf(code, begun.verifier);
      if (user?.kind !== 'user')
        return withCookies(faultPage(403, 'This gateway does not accept the token of the identity provider.'), used);
      const groups = this.#options.groups().filter((group) => user.groups.includes(group));
      const person: SignedInPerson = { principal: user.principal, name: user.name, groups };
      return withCookies(redirect(begun.path), [
        ...used,
        cookies.set('person', sealed.seal('person', person, LOGIN_MS), LOGIN_MS),
      ]);
    } catch (error) {
      return withCookies(awayPage(error), used);
    }
  }

  async #userOf(code: string, verifier: string): Promise<User | undefined> {
    const { clientId, provider, userOf } = this.#options;
    const { status, body } = await provider.redeem(clientId, code, verifier);
    const answer = parseJson(body);
    if (status !== 200 || !isRecord(answer) || typeof answer.access_token !== 'string') return undefined;
    return await userOf(answer.access_token);
  }
}

function awayPage(error: unknown): RouteAnswer {
  if (!(error instanceof ProviderAway)) throw error;
  return faultPage(503, `${error.message}.`);
}
