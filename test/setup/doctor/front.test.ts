import { describe, expect, it } from 'vitest';
import { HTTP_SETTINGS, settingsOf } from '../../../src/config/schema/settings.js';
import { checkFront } from '../../../src/setup/doctor/front.js';

const ISSUER = 'https://idp.example.com';
const FOUND = { issuer: ISSUER, authorization_endpoint: `${ISSUER}/a`, token_endpoint: `${ISSUER}/t` };

function check(metadata: object | Error, front: object = { clientId: 'abc', clientIds: { 'claude.ai': 'def' } }) {
  const auth = { jwt: { issuer: ISSUER, audience: ['x'] }, front: front as never };
  const http = { ...settingsOf(HTTP_SETTINGS), publicUrl: 'https://mcp.example.com', auth };
  return checkFront(http, async () => {
    if (metadata instanceof Error) throw metadata;
    return metadata as Readonly<Record<string, unknown>>;
  });
}

describe('logins through Trunkline, as the doctor sees them', () => {
  it('are fine if the provider can be asked, and need its redirect URI there', async () => {
    expect(await check(FOUND)).toEqual([
      expect.objectContaining({
        ...{ code: 'TL-FRONT-OK', sentence: `users log in at ${ISSUER} through https://mcp.example.com` },
        evidence: [
          'The public client abc, def needs the redirect URI https://mcp.example.com/authorize/callback there.',
        ],
      }),
    ]);
  });

  it.each([
    ['whose metadata cannot be read', new Error('no answer'), 'cannot be read'],
    ['without a login page', { ...FOUND, authorization_endpoint: undefined }, 'name no authorization_endpoint'],
    [
      'with plain PKCE alone',
      { ...FOUND, code_challenge_methods_supported: ['plain'] },
      'does not support the PKCE method S256',
    ],
  ])('do not work with a provider %s', async (_, metadata, sentence) => {
    const [found] = await check(metadata);
    expect(found).toMatchObject({ code: 'TL-FRONT-PROVIDER', sentence: expect.stringContaining(sentence) });
  });

  it('are no subject without `front`', async () => {
    const http = { ...settingsOf(HTTP_SETTINGS), auth: { jwt: { issuer: ISSUER, audience: ['x'] } } };
    expect(await checkFront(http, () => Promise.reject(new Error('asked')))).toEqual([]);
  });
});
