import type { FrontConfig } from '../../config/file/check-file.js';
import type { IssuerDocument, IssuerMetadata } from '../../downstream/users/issuer-document.js';
import { errorMessage } from '../../host/errors/error-text.js';
import { isProtected } from '../../host/http/addresses.js';
import { describeHttpRefusal } from '../../host/http/words.js';
import { createRedactor } from '../../host/observe/redact.js';
import { isRecord, parseJson } from '../../wire/json/json-value.js';

interface ProviderOptions {
  readonly config: FrontConfig;
  readonly issuer: string;
  readonly scopes: readonly string[];
  /** The scopes without which no token is of use. */
  readonly needed: readonly string[];
  /** The redirect URI of this gateway, as it is registered at the provider. */
  readonly callback: string;
  readonly metadata: IssuerDocument<IssuerMetadata>;
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
  /** Called with a sentence for the operator, without secrets, and with `undefined` when the provider has given tokens. */
  readonly onFault: (fault: string | undefined) => void;
}

/** Thrown if the provider cannot be asked. The message is for clients and for the person. */
export class ProviderAway extends Error {
  override readonly name = 'ProviderAway';
}

export interface TokenAnswer {
  readonly status: number;
  readonly body: string;
}

/** Members of the metadata of the provider that hold for its tokens. Endpoints that ask for the id of a client are not among them. */
const MEMBERS = [
  ...['jwks_uri', 'scopes_supported', 'subject_types_supported', 'id_token_signing_alg_values_supported'],
  ...['claims_supported', 'userinfo_endpoint', 'service_documentation', 'op_policy_uri', 'op_tos_uri'],
];

/** Errors that are about the client of this gateway at the provider. The client of the person can mend none of them. */
const OF_GATEWAY = [
  'invalid_client',
  'unauthorized_client',
  'invalid_scope',
  'invalid_target',
  'unsupported_grant_type',
];

/**
 * Errors of a renewal that asks for other scopes or another resource than the login did, because the configuration has changed. The next
 * login asks for them.
 */
const OF_CONFIGURATION = ['invalid_scope', 'invalid_target'];
const OUTDATED: TokenAnswer = {
  status: 400,
  body: JSON.stringify({
    error: 'invalid_grant',
    error_description: 'The gateway asks for something else than at the login; log in again',
  }),
};

export class Provider {
  readonly #options: ProviderOptions;

  constructor(options: ProviderOptions) {
    this.#options = options;
  }

  /** The members of the provider's metadata for clients; `undefined` if they were never read. */
  async members(): Promise<Readonly<Record<string, unknown>> | undefined> {
    const metadata = await this.#options.metadata.current();
    return metadata && Object.fromEntries(Object.entries(metadata).filter(([name]) => MEMBERS.includes(name)));
  }

  /** The address of the login page. Rejects with `ProviderAway`. */
  async loginUrl(clientId: string, state: string, challenge: string): Promise<string> {
    const { config, callback } = this.#options;
    const url = new URL(await this.#endpoint('authorization_endpoint'));
    const params = {
      ...{ response_type: 'code', client_id: clientId, redirect_uri: callback, state },
      ...{ code_challenge: challenge, code_challenge_method: 'S256' },
      ...this.#asked,
      ...config.parameters,
    };
    for (const [name, value] of Object.entries(params)) url.searchParams.set(name, value);
    return url.href;
  }

  /** Whether an answer with this `iss` can be from the provider (RFC 9207). Another provider could have sent its code here. */
  async isFrom(iss: string | undefined): Promise<boolean> {
    const { metadata, issuer } = this.#options;
    const isNeeded = (await metadata.current())?.authorization_response_iss_parameter_supported === true;
    return iss === undefined ? !isNeeded : iss === issuer;
  }

  /** Redeems a code of the provider. Rejects with `ProviderAway`. */
  redeem(clientId: string, code: string, verifier: string): Promise<TokenAnswer> {
    const { callback } = this.#options;
    const { resource } = this.#asked;
    return this.#askForTokens({
      ...{ grant_type: 'authorization_code', client_id: clientId, code, code_verifier: verifier },
      redirect_uri: callback,
      ...(resource !== undefined && { resource }),
    });
  }

  /**
   * Renews tokens. Some providers want the scopes again. Others have given fewer than they were asked for, such as no `offline_access`, and
   * renew those alone. Rejects with `ProviderAway`.
   */
  async renew(clientId: string, refreshToken: string): Promise<TokenAnswer> {
    const form = { grant_type: 'refresh_token', client_id: clientId, refresh_token: refreshToken };
    const { scope, ...others } = this.#asked;
    const answer = await this.#askForTokens({ ...form, ...this.#asked });
    if (answer !== OUTDATED || scope === undefined) return answer;
    const given = await this.#askForTokens({ ...form, ...others });
    return this.#isEnough(given) ? given : OUTDATED;
  }

  /** Whether tokens have the scopes without which the gateway takes none. The configuration may have changed since the login. */
  #isEnough({ status, body }: TokenAnswer): boolean {
    const value = parseJson(body);
    const granted = isRecord(value) && typeof value.scope === 'string' ? value.scope.split(' ') : undefined;
    return status === 200 && granted !== undefined && this.#options.needed.every((scope) => granted.includes(scope));
  }

  /** The parameters that name the scopes and the resource of the tokens. */
  get #asked(): { readonly scope?: string; readonly resource?: string } {
    const { config, scopes } = this.#options;
    return {
      ...(scopes.length > 0 && { scope: scopes.join(' ') }),
      ...(config.resource !== undefined && { resource: config.resource }),
    };
  }

  async #endpoint(name: string): Promise<string> {
    const { metadata, issuer } = this.#options;
    const known = await metadata.current();
    if (known === undefined) throw this.#away(`the metadata of ${issuer} cannot be read: ${metadata.fault}`);
    const url = known[name];
    if (typeof url !== 'string' || !URL.canParse(url) || !isProtected(new URL(url)))
      throw this.#away(`the metadata of ${issuer} name no \`${name}\``);
    const methods = known.code_challenge_methods_supported;
    if (Array.isArray(methods) && !methods.includes('S256'))
      throw this.#away(`${issuer} does not support the PKCE method S256`);
    return url;
  }

  async #askForTokens(params: Readonly<Record<string, string>>): Promise<TokenAnswer> {
    const url = await this.#endpoint('token_endpoint');
    const headers = { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' };
    const body = new URLSearchParams(params).toString();
    const response = await this.#options.fetch(url, { method: 'POST', headers, body }).catch((error: unknown) => {
      throw this.#away(`the token endpoint does not answer: ${errorMessage(error)}`);
    });
    const { status } = response;
    const text = await response.text();
    if (status >= 200 && status < 300) {
      this.#options.onFault(undefined);
      return { status, body: text };
    }
    const value = parseJson(text);
    const error = isRecord(value) && typeof value.error === 'string' ? value.error : undefined;
    const { code = '', code_verifier: verifier = '', refresh_token: token = '' } = params;
    // The whole text, because a part of a secret is not found any more once the text is cut.
    const redact = createRedactor([{ env: { token, code_token: code, verifier_token: verifier }, args: [] }]);
    const words = describeHttpRefusal(status, '', redact(text));
    if (error === undefined || status >= 500) throw this.#away(`the token endpoint answers ${words}`);
    if (params.grant_type === 'refresh_token' && OF_CONFIGURATION.includes(error)) return OUTDATED;
    if (!OF_GATEWAY.includes(error)) return { status, body: text };
    // A client that is told to be invalid registers again, which would not help.
    throw this.#away(`the provider refuses this gateway: ${words}`);
  }

  #away(fault: string): ProviderAway {
    this.#options.onFault(fault);
    return new ProviderAway(`The identity provider gives no tokens: ${fault}`);
  }
}
