import { type RouteAnswer, type RouteRequest, singleParams } from '../../downstream/http/http-route.js';
import { parseJson } from '../../wire/json/json-value.js';
import { type SealedTexts, sha256 } from '../sealed-texts.js';
import { ClientRefused, type Clients } from './clients.js';
import { CODE_MS, descriptionOf, isOwnResource, isVerified, type LoginCode, OTHER_RESOURCE } from './logins.js';
import { type Provider, ProviderAway, type TokenAnswer } from './provider.js';

/** Time for which a code counts as used. The clock of another gateway, for which the code is valid longer, may be that much behind. */
const TAKEN_MS = 10 * CODE_MS;

interface TokenRequestsOptions {
  readonly publicUrl: string;
  readonly clients: Clients;
  readonly provider: Provider;
  readonly sealed: SealedTexts;
  /** As in `Feature`: takes a name, which is the id of a code here. */
  readonly takeOnce: (name: string, ms: number) => Promise<boolean>;
  /** Whether the provider may be asked for a renewal of this client, whose earlier ones it may have refused. */
  readonly mayRenew: (client: string) => boolean;
  readonly onRefused: (client: string) => void;
}

/** Requests of clients without a browser: registration, codes and renewals. The answers of the provider pass as they are. */
export class TokenRequests {
  readonly #options: TokenRequestsOptions;

  constructor(options: TokenRequestsOptions) {
    this.#options = options;
  }

  register({ body }: RouteRequest): RouteAnswer {
    try {
      return jsonAnswer(201, this.#options.clients.register(parseJson(body)));
    } catch (error) {
      if (!(error instanceof ClientRefused)) throw error;
      return refusal(400, 'invalid_redirect_uri', error.message);
    }
  }

  /** Whether a request redeems a code of this gateway. A person has logged in for it, so no flood of others may keep it out. */
  redeemsCode({ body }: RouteRequest): boolean {
    const { grant_type: grant, code = '' } = singleParams(new URLSearchParams(body)) ?? {};
    return grant === 'authorization_code' && this.#options.sealed.open('code', code) !== undefined;
  }

  async token({ body }: RouteRequest): Promise<RouteAnswer> {
    const { clients, publicUrl } = this.#options;
    const params = singleParams(new URLSearchParams(body));
    if (params === undefined) return refusal(400, 'invalid_request', 'A parameter stands there twice');
    const { grant_type: grant, client_id: id = '' } = params;
    if (grant !== 'authorization_code' && grant !== 'refresh_token')
      return refusal(400, 'unsupported_grant_type', 'grant_type must be authorization_code or refresh_token');
    if (!clients.isKnown(id)) return refusal(401, 'invalid_client', 'The client is not registered; register it again');
    if (!isOwnResource(params.resource, publicUrl)) return refusal(400, 'invalid_target', OTHER_RESOURCE);
    try {
      return grant === 'refresh_token' ? await this.#renew(id, params.refresh_token) : await this.#redeem(params);
    } catch (error) {
      if (error instanceof ClientRefused) return refusal(503, 'temporarily_unavailable', error.message);
      if (error instanceof ProviderAway) return refusal(503, 'temporarily_unavailable', error.message);
      throw error;
    }
  }

  async #redeem(params: Readonly<Record<string, string | undefined>>): Promise<RouteAnswer> {
    const { sealed, provider, takeOnce } = this.#options;
    const { code: text = '', client_id: id = '', redirect_uri: redirectUri, code_verifier: verifier = '' } = params;
    const code = sealed.open<LoginCode>('code', text);
    if (code === undefined) return refusal(400, 'invalid_grant', 'The code is not valid, or it has expired');
    if (code.client !== sha256(id)) return refusal(400, 'invalid_grant', 'The code is of another client');
    if (code.redirectUri !== redirectUri) return refusal(400, 'invalid_grant', 'The code is for another redirect_uri');
    if (!isVerified(verifier, code.challenge)) return refusal(400, 'invalid_grant', 'The code_verifier is wrong');
    let isFirst: boolean;
    try {
      isFirst = await takeOnce(code.id, TAKEN_MS);
    } catch {
      return refusal(503, 'temporarily_unavailable', 'The gateways cannot agree on the use of a code; log in again');
    }
    if (!isFirst) return refusal(400, 'invalid_grant', 'The code was used before');
    return passed(await provider.redeem(code.as, code.code, code.verifier));
  }

  async #renew(id: string, refreshToken = ''): Promise<RouteAnswer> {
    const { clients, provider, mayRenew, onRefused } = this.#options;
    if (refreshToken === '') return refusal(400, 'invalid_request', 'refresh_token is missing');
    const client = await clients.find(id);
    const name = sha256(id);
    if (!mayRenew(name)) return tooMany('5');
    const answer = await provider.renew(clients.idAtProvider(client), refreshToken);
    if (answer.status >= 400) onRefused(name);
    return passed(answer);
  }
}

/** Answers that browsers may read from pages of every origin, because clients may run there. They depend on no cookie. */
export const OPEN = { 'access-control-allow-origin': '*' };
const TOKEN_HEADERS = { ...OPEN, 'content-type': 'application/json', 'cache-control': 'no-store', pragma: 'no-cache' };

/** The answer of the provider, byte for byte. */
function passed({ status, body }: TokenAnswer): RouteAnswer {
  return { status, headers: TOKEN_HEADERS, body };
}

export function jsonAnswer(
  status: number,
  value: object,
  headers: RouteAnswer['headers'] = TOKEN_HEADERS,
): RouteAnswer {
  return { status, headers, body: JSON.stringify(value) };
}

/** An error as OAuth has it (RFC 6749, section 5.2). */
function refusal(status: number, error: string, words: string, more: RouteAnswer['headers'] = {}): RouteAnswer {
  return jsonAnswer(status, { error, error_description: descriptionOf(words) }, { ...TOKEN_HEADERS, ...more });
}

export function tooMany(wait: string): RouteAnswer {
  return refusal(429, 'temporarily_unavailable', 'Too many requests', { 'retry-after': wait });
}
