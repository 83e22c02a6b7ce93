import type { IssuerDocument, IssuerMetadata } from '../../downstream/users/issuer-document.js';
import { isProtected } from '../../host/http/addresses.js';
import { RequestError } from '../../host/http/send-request.js';
import type { ExchangeParty, ExchangeSettings, RemoteSpec } from '../../spec/server-spec.js';
import { OAuthRefusal, requestToken } from '../../upstream/auth/oauth.js';
import { LoginError, type StoredTokens } from '../../upstream/auth/vault.js';

/*
 * The requests with which a token becomes another one: the exchange of RFC 8693, the assertion of RFC 7523, also in the form of Entra
 * (on behalf of), and both in turn (ID-JAG, the extension enterprise-managed-authorization of MCP).
 */

const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const ASSERTION = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
const TYPE = 'urn:ietf:params:oauth:token-type:';

export interface GrantOptions {
  readonly spec: RemoteSpec & { readonly exchange: ExchangeSettings };
  readonly subject: string;
  readonly metadataOf: (issuer: string) => IssuerDocument<IssuerMetadata>;
  readonly fetchFor: (server: string) => (url: string | URL, init?: RequestInit) => Promise<Response>;
}

/** Thrown if a provider refuses. The message is a clause without tokens, and says what to do. */
export class ExchangeRefused extends Error {
  override readonly name = 'ExchangeRefused';
}

type Form = Readonly<Record<string, string>>;

/** Gets a token for a server. Rejects with `ExchangeRefused`, or with a `RequestError` if a provider is away. */
export async function exchanged(options: GrantOptions): Promise<StoredTokens> {
  const { spec, subject } = options;
  const { grant, audience, resource, scopes = [], subjectTokenType, authorizationServer } = spec.exchange;
  const scope: Form = scopes.length > 0 ? { scope: scopes.join(' ') } : {};
  const asserted = (assertion: string): Form => ({ grant_type: ASSERTION, assertion, ...scope });
  const exchangedFor = (type: string, target: string | undefined): Form => ({
    grant_type: EXCHANGE,
    subject_token: subject,
    subject_token_type: TYPE + subjectTokenType,
    requested_token_type: TYPE + type,
    ...(target !== undefined && { audience: target }),
    ...scope,
  });
  switch (grant) {
    case 'token-exchange':
      return await asked(spec.exchange, exchangedFor('access_token', audience), resource, options);
    case 'on-behalf-of':
      return await asked(
        spec.exchange,
        { ...asserted(subject), requested_token_use: 'on_behalf_of' },
        resource,
        options,
      );
    case 'jwt-bearer':
      return await asked(spec.exchange, asserted(subject), resource ?? spec.url, options);
    case 'id-jag': {
      const form = exchangedFor('id-jag', audience ?? authorizationServer?.issuer);
      const { access_token: grantToken, token_type: type } = await asked(
        spec.exchange,
        form,
        resource ?? spec.url,
        options,
      );
      // Another kind of token would be valid elsewhere, and the authorization server of the server must not get it.
      if (type.toLowerCase() !== 'n_a')
        throw new ExchangeRefused(`${nameOf(spec.exchange)} gives a ${type} token instead of an ID-JAG`);
      return await asked(authorizationServer ?? {}, asserted(grantToken), undefined, options);
    }
  }
}

async function asked(
  party: ExchangeParty,
  form: Form,
  resource: string | undefined,
  { spec, subject, metadataOf, fetchFor }: GrantOptions,
): Promise<StoredTokens> {
  const { clientId, clientSecret } = party;
  const metadata = await metadataFor(party, metadataOf);
  const endpoint = String(metadata.token_endpoint);
  const name = nameOf(party);
  if (
    new URL(endpoint).origin === new URL(spec.url).origin &&
    Object.values(form).includes(subject) &&
    spec.user !== undefined
  )
    throw new ExchangeRefused(
      `the token endpoint of ${name} is at the server itself, which must not get the token of a user`,
    );
  const fetch = fetchFor(party.issuer ?? endpoint);
  const client = {
    client_id: clientId ?? '',
    ...(clientSecret && { client_secret: clientSecret }),
    isRegistered: false,
  };
  try {
    const tokens = await requestToken(
      {
        issuer: party.issuer ?? endpoint,
        metadata,
        resource,
        client,
        dpop: undefined,
        settings: {
          server: spec.key,
          configFile: '',
          grant: 'client_credentials',
          tokenParams: party.parameters ?? {},
        },
        // A redirect could lead the token of the user elsewhere.
        fetch: (url, init) => fetch(url, { ...init, redirect: 'manual' }),
      },
      form,
    );
    if (tokens.access_token === subject)
      throw new ExchangeRefused(
        `${name} gives the token of the user back, which the server must not get; set \`audience\``,
      );
    return tokens;
  } catch (error) {
    if (error instanceof OAuthRefusal) throw refusalOf(error, name, form.grant_type ?? '');
    if (error instanceof LoginError) throw new ExchangeRefused(`${name}: ${error.message}`);
    throw error;
  }
}

type KnownMetadata = NonNullable<Parameters<typeof requestToken>[0]['metadata']>;

/** The metadata of a provider with its token endpoint, which the configuration may name. */
async function metadataFor(
  { issuer, tokenEndpoint }: ExchangeParty,
  metadataOf: GrantOptions['metadataOf'],
): Promise<KnownMetadata> {
  if (tokenEndpoint !== undefined) return { token_endpoint: tokenEndpoint } as KnownMetadata;
  const document = metadataOf(issuer ?? '');
  const known = await document.current();
  if (known === undefined) throw new RequestError(`the metadata of ${issuer} cannot be read: ${document.fault}`, false);
  const { token_endpoint: endpoint } = known;
  if (typeof endpoint !== 'string' || !URL.canParse(endpoint) || !isProtected(new URL(endpoint)))
    throw new ExchangeRefused(`the metadata of ${issuer} name no \`token_endpoint\` with https; set \`tokenEndpoint\``);
  return known as unknown as KnownMetadata;
}

function nameOf({ issuer, tokenEndpoint = '' }: ExchangeParty): string {
  return issuer ?? new URL(tokenEndpoint).origin;
}

/** The next step after an error code of OAuth. */
const ADVICE: Readonly<Record<string, string>> = {
  invalid_client: 'correct `clientId` and `clientSecret`',
  invalid_target: 'correct `audience` or `resource`',
  invalid_scope: 'correct `scopes`',
  invalid_grant: 'the user has to log in again, or the token of the user is not for `clientId`',
  access_denied: 'an administrator has to allow this user the server',
  interaction_required: 'the user has to log in again, or an administrator has to consent',
  consent_required: 'an administrator has to consent for all users',
};

function refusalOf({ status, code, message }: OAuthRefusal, name: string, grant: string): Error {
  if (status >= 500 || status === 429) return new RequestError(`${name} answers ${message}`, false);
  const known = ADVICE[code];
  const isUnknownGrant = code === 'unauthorized_client' || code === 'unsupported_grant_type';
  const advice = isUnknownGrant ? `allow the client the grant ${grant} there` : (known ?? 'correct `auth.exchange`');
  return new ExchangeRefused(`${name} refuses to give a token for it (${message}); ${advice}`);
}
