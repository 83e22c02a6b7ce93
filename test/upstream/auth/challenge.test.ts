import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { oauthChallenge, scopesIn } from '../../../src/upstream/auth/challenge.js';

describe('the challenge of a 401', () => {
  it.each([
    [
      'one scheme',
      ['Bearer resource_metadata="https://a/x", scope="a b"'],
      { resource_metadata: 'https://a/x', scope: 'a b' },
    ],
    ['a scheme alone', ['Bearer'], {}],
    ['names of any case', ['bEARER Scope=a'], { scope: 'a' }],
    ['parameters without commas', ['Bearer realm="x" error="invalid_token"'], { realm: 'x', error: 'invalid_token' }],
    [
      'commas and quotes in a quoted text',
      ['Bearer realm="a, Basic b=\\"c\\"", scope=s'],
      { realm: 'a, Basic b="c"', scope: 's' },
    ],
    ['spaces around the equals sign', ['Bearer scope = "s"'], { scope: 's' }],
    ['other schemes in front', ['Basic realm="r", Digest nonce=n, Bearer scope=s'], { scope: 's' }],
    ['other schemes behind', ['Bearer scope=s, Basic realm="r"'], { scope: 's' }],
    ['credentials of another scheme in front', ['Negotiate YII/a+b==, Bearer scope=s'], { scope: 's' }],
    ['text that is no challenge', ['@ "x" ,,; Bearer scope=s'], { scope: 's' }],
    ['an open quote', ['Bearer scope=s, realm="'], { scope: 's' }],
    ['several headers', ['Basic realm="r"', 'Bearer scope=s'], { scope: 's' }],
    ['the first of two values', ['Bearer scope=a, scope=b'], { scope: 'a' }],
    [
      'names of members of all objects',
      ['Bearer __proto__=x, constructor=y'],
      { ['__proto__']: 'x', constructor: 'y' },
    ],
  ])('is found with %s', (_, headers, params) => {
    expect({ ...oauthChallenge(headers)?.params }).toEqual(params);
  });

  it('is that of the first scheme of OAuth, and absent without one', () => {
    expect(oauthChallenge(['DPoP algs="ES256", Bearer scope=s'])?.scheme).toBe('dpop');
    expect(oauthChallenge(['Basic realm="Bearer scope=s"', 'Negotiate'])).toBeUndefined();
    expect(oauthChallenge([])).toBeUndefined();
  });

  it('is read whatever stands around it', () => {
    const token = fc.stringMatching(/^[a-z][a-z0-9._-]{0,8}$/).filter((name) => !/^(bearer|dpop)$/.test(name));
    const param = fc.tuple(
      token,
      fc.string({ maxLength: 12 }).map((text) => text.replace(/[^\x20-\x7e]/g, '_')),
    );
    const challenge = fc.record({
      scheme: token,
      params: fc.uniqueArray(param, { selector: ([name]) => name, minLength: 1 }),
    });
    const written = (scheme: string, params: [string, string][]) =>
      `${scheme} ${params.map(([name, value]) => `${name}="${value.replace(/["\\]/g, '\\$&')}"`).join(', ')}`;
    fc.assert(
      fc.property(
        fc.array(challenge),
        challenge,
        fc.array(challenge),
        fc.boolean(),
        (before, own, after, isOneHeader) => {
          const all = [...before, { ...own, scheme: 'Bearer' }, ...after].map(({ scheme, params }) =>
            written(scheme, params),
          );
          const found = oauthChallenge(isOneHeader ? [all.join(', ')] : all);
          expect({ ...found?.params }).toEqual(Object.fromEntries(own.params));
        },
      ),
    );
  });

  it('is read from any text without an end, and in a time that grows with its length', () => {
    fc.assert(fc.property(fc.array(fc.string()), (headers) => void oauthChallenge(headers)));
    for (const part of ['a', ' ', '"', 'a=', 'a ', ',', '\\"', 'a="\\']) oauthChallenge([part.repeat(200_000)]);
  });
});

describe('scopes', () => {
  it('are the words of a text, each once', () => {
    expect(scopesIn(' a  b a ')).toEqual(['a', 'b']);
    expect(scopesIn(undefined)).toEqual([]);
  });
});
