// Logins: what authorization servers leave out, add, or get wrong.

import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { freePort } from '../../support/free-port.js';
import type { FieldClient } from '../legs.js';
import { type LoginPlay, METADATA, RESOURCE, type SendAnswer, type SiteAnswer, sendJson } from '../login.js';
import { type Row, SOUND } from '../row.js';

const FORM = { 'content-type': 'application/x-www-form-urlencoded' };
const PAGE = { 'content-type': 'text/html' };

function page(response: ServerResponse): void {
  response.writeHead(200, PAGE).end('<!doctype html><title>An app of one page</title>');
}

const notFound: SiteAnswer = (_, response) => response.writeHead(404).end();

/** Sends the client elsewhere on the same origin. */
function movedTo(path: string): SiteAnswer {
  return (_, response) => response.writeHead(307, { location: path }).end();
}

const WHOLE = {
  ...{ issuer: 'ORIGIN', authorization_endpoint: 'ORIGIN/authorize', token_endpoint: 'ORIGIN/token' },
  ...{ registration_endpoint: 'ORIGIN/register', response_types_supported: ['code'] },
  code_challenge_methods_supported: ['S256'],
};

/** A row that the official SDK reads, too, or not. */
function read([name, login]: readonly [string, LoginPlay]): Row {
  const quirk = name.startsWith('`') ? `In answers with tokens, ${name}` : name;
  if (!REFUSED_BY_SDK.has(name)) return { quirk, login, right: 'It is read as the official SDK reads it.' };
  return { quirk, login, right: 'The login has all that it needs.', direct: DIRECTLY_FAILS, through: SOUND };
}

const DIRECTLY_FAILS = /^fails/;
const REFUSED_BY_SDK: ReadonlySet<string> = new Set([
  'The metadata at the first address is a page',
  'The metadata is that of OpenID only',
  'The metadata at the first address is a page, and that of OpenID is sound',
  'Members of the metadata are null',
  'The metadata names no types of answers',
  'A registration gives only an id',
  'A registration gives null members',
  'A registration gives empty texts',
  'A registration gives the end of the secret as null',
  '`token_type` is missing',
  '`scope` is null',
  '`scope` is a list',
  '`refresh_token` is null',
  '`id_token` is null',
  'Tokens come as a form',
]);

const DOCUMENTS: readonly Row[] = (
  [
    ['The metadata has a slash at the end of the issuer', { metadata: { issuer: 'ORIGIN/' } }],
    [
      'The server names its issuer with a slash at the end',
      { site: { [RESOURCE]: { resource: 'ORIGIN/mcp', authorization_servers: ['ORIGIN/'] } } },
    ],
    ['The document of the server is a page', { site: { [`${RESOURCE}/mcp`]: (_, response) => page(response) } }],
    ['Both documents of the server are missing', { site: { [RESOURCE]: notFound } }],
    ['The metadata at the first address is a page', { site: { [METADATA]: (_, response) => page(response) } }],
    [
      'The metadata is that of OpenID only',
      { site: { [METADATA]: notFound, '/.well-known/openid-configuration': WHOLE } },
    ],
    [
      'The metadata at the first address is a page, and that of OpenID is sound',
      { site: { [METADATA]: (_, response) => page(response), '/.well-known/openid-configuration': WHOLE } },
    ],
    ['There is no metadata', { site: { [METADATA]: notFound } }],
    ['The address of the metadata redirects', { site: { [METADATA]: movedTo('/elsewhere'), '/elsewhere': WHOLE } }],
    [
      'The address of the tokens redirects',
      { site: { '/token': movedTo('/tokens'), '/tokens': ({ grant }, response) => sendJson(response, grant()) } },
    ],
    [
      'Members of the metadata are null',
      { metadata: { scopes_supported: null, revocation_endpoint: null, jwks_uri: null } },
    ],
    ['The metadata names no methods of PKCE', { metadata: { code_challenge_methods_supported: undefined } }],
    ['The metadata names no types of answers', { metadata: { response_types_supported: undefined } }],
    ['The challenge is only `Bearer`', { challenge: 'Bearer' }],
    ['The challenge has a realm and a scope', { challenge: 'Bearer realm="mcp", scope="read write"' }],
    [
      'The challenge is in small letters',
      { challenge: 'bearer resource_metadata="ORIGIN/.well-known/oauth-protected-resource"' },
    ],
    [
      'The challenge has no quotes',
      { challenge: 'Bearer resource_metadata=ORIGIN/.well-known/oauth-protected-resource' },
    ],
    [
      'The challenge names Basic first',
      { challenge: 'Basic realm="x", Bearer resource_metadata="ORIGIN/.well-known/oauth-protected-resource"' },
    ],
    ['The challenge is `OAuth`', { challenge: 'OAuth realm="x"' }],
    [
      'The document of the server names the origin instead of the URL',
      { site: { [RESOURCE]: { resource: 'ORIGIN', authorization_servers: ['ORIGIN'] } } },
    ],
    [
      'The document of the server names the origin with a slash',
      { site: { [RESOURCE]: { resource: 'ORIGIN/', authorization_servers: ['ORIGIN'] } } },
    ],
    ['The document of the server names no authorization server', { site: { [RESOURCE]: { resource: 'ORIGIN/mcp' } } }],
    [
      'The document of the server names an empty list of authorization servers',
      { site: { [RESOURCE]: { resource: 'ORIGIN/mcp', authorization_servers: [] } } },
    ],
    [
      'The document has null members',
      { site: { [RESOURCE]: { resource: 'ORIGIN/mcp', authorization_servers: ['ORIGIN'], scopes_supported: null } } },
    ],
    [
      'Documents begin with a byte order mark',
      {
        site: {
          [METADATA]: ({ origin }, response) =>
            response.end(`\uFEFF${JSON.stringify(WHOLE).replaceAll('ORIGIN', origin)}`),
        },
      },
    ],
    [
      'Documents come compressed',
      {
        site: {
          [METADATA]: ({ origin }, response) =>
            response
              .writeHead(200, { 'content-encoding': 'gzip' })
              .end(gzipSync(JSON.stringify(WHOLE).replaceAll('ORIGIN', origin))),
        },
      },
    ],
  ] as readonly (readonly [string, LoginPlay])[]
).map(read);

const REGISTRATIONS: readonly Row[] = (
  [
    [
      'A registration is answered with 200',
      { '/register': ({ message }, response) => sendJson(response, { ...message, client_id: 'c' }) },
    ],
    ['A registration gives only an id', { '/register': (_, response) => sendJson(response, { client_id: 'c' }, 201) }],
    [
      'A registration gives null members',
      {
        '/register': ({ message }, response) =>
          sendJson(
            response,
            { ...message, client_id: 'c', client_secret: null, client_uri: null, logo_uri: null, contacts: null },
            201,
          ),
      },
    ],
    [
      'A registration gives empty texts',
      {
        '/register': ({ message }, response) =>
          sendJson(response, { ...message, client_id: 'c', client_secret: '', client_uri: '', logo_uri: '' }, 201),
      },
    ],
    [
      'A registration gives a secret that never ends',
      {
        '/register': ({ message }, response) =>
          sendJson(response, { ...message, client_id: 'c', client_secret: 's', client_secret_expires_at: 0 }, 201),
      },
    ],
    [
      'A registration gives the end of the secret as null',
      {
        '/register': ({ message }, response) =>
          sendJson(response, { ...message, client_id: 'c', client_secret: 's', client_secret_expires_at: null }, 201),
      },
    ],
    [
      'A registration gives another redirect URI',
      {
        '/register': ({ message }, response) =>
          sendJson(response, { ...message, client_id: 'c', redirect_uris: ['http://localhost/callback'] }, 201),
      },
    ],
  ] as readonly (readonly [string, LoginPlay['site'] & object])[]
).map(([quirk, site]) => read([quirk, { site }]));

/** Tokens in another form. */
function granting(send: (tokens: Record<string, unknown>, response: ServerResponse) => unknown): LoginPlay {
  return { site: { '/token': ({ grant }, response) => send(grant(), response) } };
}

const TOKENS: readonly Row[] = (
  [
    ['`token_type` is missing', { tokens: { token_type: undefined } }],
    ['`token_type` is in small letters', { tokens: { token_type: 'bearer' } }],
    ['`expires_in` is a text', { tokens: { expires_in: '3600' } }],
    ['`expires_in` is 0', { tokens: { expires_in: 0 } }],
    ['`expires_in` is negative', { tokens: { expires_in: -1 } }],
    ['`expires_in` is null', { tokens: { expires_in: null } }],
    ['`expires_in` is missing', { tokens: { expires_in: undefined } }],
    ['`scope` is empty', { tokens: { scope: '' } }],
    ['`scope` is null', { tokens: { scope: null } }],
    ['`scope` is a list', { tokens: { scope: ['read'] } }],
    ['`refresh_token` is null', { tokens: { refresh_token: null } }],
    ['`refresh_token` is missing', { tokens: { refresh_token: undefined } }],
    ['`id_token` is null', { tokens: { id_token: null } }],
    ['Tokens come with 201', granting((tokens, response) => sendJson(response, tokens, 201))],
    [
      'Tokens come as text',
      granting((tokens, response) =>
        response.writeHead(200, { 'content-type': 'text/plain' }).end(JSON.stringify(tokens)),
      ),
    ],
    [
      'Tokens come as a form',
      granting((tokens, response) =>
        response.writeHead(200, FORM).end(new URLSearchParams(tokens as never).toString()),
      ),
    ],
    [
      'Tokens come compressed although nobody asked',
      granting((tokens, response) =>
        response
          .writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' })
          .end(gzipSync(JSON.stringify(tokens))),
      ),
    ],
  ] as readonly (readonly [string, LoginPlay])[]
).map(read);

/** Calls until the access token has ended several times. */
async function callAgain(client: FieldClient): Promise<string> {
  const outcomes = new Set<string>();
  for (let count = 0; count < 8; count += 1) outcomes.add(await client.call());
  return [...outcomes].join('; ');
}

/** Answers to the first exchange soundly, and to those that renew as the function says. */
function renewing(renew: SendAnswer): LoginPlay {
  return {
    uses: 8,
    site: {
      '/token': (request, response) => {
        if (request.body.includes('grant_type=refresh_token')) renew(request, response);
        else sendJson(response, request.grant());
      },
    },
  };
}

const RENEWALS: readonly Row[] = (
  [
    ['An access token ends after a few requests', renewing(({ grant }, response) => sendJson(response, grant()))],
    [
      'A renewal gives no new refresh token',
      renewing(({ grant }, response) => sendJson(response, { ...grant(), refresh_token: undefined })),
    ],
    [
      'A renewal gives an empty refresh token',
      renewing(({ grant }, response) => sendJson(response, { ...grant(), refresh_token: '' })),
    ],
    [
      'A renewal without `scope` is refused',
      {
        ...renewing(({ grant, body }, response) =>
          body.includes('scope=') ? sendJson(response, grant()) : sendJson(response, { error: 'invalid_scope' }, 400),
        ),
        challenge: 'Bearer scope="read"',
      },
    ],
  ] as readonly (readonly [string, LoginPlay])[]
).map(([quirk, login]) => ({
  ...{ quirk, right: 'The login goes on.', login, ask: callAgain, through: 'echo: hello' },
  direct: quirk.startsWith('A renewal without') ? DIRECTLY_FAILS : 'echo: hello',
}));

const ENDED: readonly Row[] = (
  [
    ['400 `invalid_grant`', 400, { error: 'invalid_grant', error_description: 'The session was revoked' }],
    ['401', 401, { error: 'unauthorized', error_description: 'The session was revoked' }],
    ['403 and a text', 403, 'The session was revoked'],
    ['200 and an error', 200, { error: 'invalid_grant', error_description: 'The session was revoked' }],
    ['400 and a code of its own', 400, { error: 'refresh_token_reused', message: 'The session was revoked' }],
  ] as const
).map(([name, status, body]) => ({
  quirk: `A renewal is refused with ${name}`,
  right: 'The call says that a login is needed, and why, and names the command.',
  login: renewing((_, response) => sendJson(response, body, status)),
  ask: async (client) => {
    const text = await callAgain(client);
    return /trunkline login/.test(text) && /session was revoked/i.test(text) ? 'named' : text;
  },
  direct: DIRECTLY_FAILS,
  through: 'named',
}));

const KEYS: readonly Row[] = (
  [
    [
      'Only `localhost` is registered',
      {
        site: {
          '/authorize': ({ path }, response) => {
            const back = new URL(new URL(path, 'http://x').searchParams.get('redirect_uri') ?? 'http://x');
            if (back.hostname !== 'localhost') return response.writeHead(400).end('redirect_uri is not registered');
            back.search = new URLSearchParams({
              code: 'c',
              state: new URL(path, 'http://x').searchParams.get('state') ?? '',
            }).toString();
            return response.writeHead(302, { location: back.href }).end();
          },
        },
      },
      { redirectUri: `http://localhost:${await freePort()}/callback` },
    ],
    [
      'The page refuses `resource`',
      {
        site: {
          '/token': ({ body, grant }, response) =>
            body.includes('resource=')
              ? sendJson(response, { error: 'invalid_target' }, 400)
              : sendJson(response, grant()),
        },
      },
      { resource: false },
    ],
    [
      'Tokens need a parameter of their own',
      {
        site: {
          '/token': ({ body, grant }, response) =>
            body.includes('audience=api')
              ? sendJson(response, grant())
              : sendJson(response, { error: 'invalid_request' }, 400),
        },
      },
      { tokenParams: { audience: 'api' } },
    ],
  ] as readonly (readonly [string, LoginPlay, object])[]
).map(([quirk, login, oauth]) => ({
  quirk,
  right: 'A key of the entry says so.',
  login,
  entry: { oauth },
  direct: DIRECTLY_FAILS,
  through: SOUND,
}));

export const LOGINS: readonly Row[] = [
  {
    quirk: 'The metadata promises `iss`, and the answer has none',
    right: 'The answer is refused, because it may be that of another authorization server (RFC 9207).',
    login: { metadata: { authorization_response_iss_parameter_supported: true } },
    through: /its `iss` is wrong or missing/,
    protects: 'The code, which another authorization server could have asked for.',
  },
  { quirk: 'A sound server with a login', right: 'The person logs in, and its tools answer.', login: {} },
  { quirk: 'A sound server with a login', right: 'The person logs in, and its tools answer.', login: {}, sdk: 2 },
  ...DOCUMENTS,
  ...REGISTRATIONS,
  ...TOKENS,
  ...RENEWALS,
  ...ENDED,
  ...KEYS,
];
