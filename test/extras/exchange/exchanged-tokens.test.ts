import { afterEach, describe, expect, it } from 'vitest';
import { ExchangedTokens } from '../../../src/extras/exchange/exchanged-tokens.js';
import { systemClock } from '../../../src/host/observe/system-clock.js';
import type { RemoteSpec } from '../../../src/spec/server-spec.js';
import type { Clock } from '../../../src/wire/timing/clock.js';
import { sampleSpec } from '../../servers/supervision/sample-spec.js';
import { FakeClock } from '../../support/fake-clock.js';
import { endAll } from '../../upstream/http/remote-server.js';
import { TokenProvider } from './token-provider.js';

afterEach(endAll);

/** The tokens of a user at a provider whose tokens live for 100 s, on a clock that the test sets. */
async function tokensOf(user = 'ann', clock: Clock = systemClock) {
  const provider = await TokenProvider.open();
  const time = { ahead: 0 };
  const now = () => Date.now() + time.ahead;
  const retried: string[] = [];
  const shown = new Set<string>();
  const tokens = new ExchangedTokens({
    ...{ clock, now, logger: { warn: () => {} } },
    keepSecret: (token) => {
      shown.add(token);
      return () => shown.delete(token);
    },
    onRetry: (server, of) => retried.push(`${server} of ${of}`),
  });
  provider.answer = (_, at) => ({ body: { access_token: `token-${at}`, token_type: 'bearer', expires_in: 100 } });
  const { timeouts, restart } = sampleSpec();
  const spec: RemoteSpec = {
    ...{
      key: 'far',
      timeouts,
      restart,
      kind: 'remote',
      url: 'https://far.test/mcp',
      transport: 'auto',
      headers: { a: 'b' },
    },
    exchange: { grant: 'token-exchange', subjectTokenType: 'access_token', issuer: provider.issuer },
    user,
  };
  const access = tokens.accessTo(spec);
  const come = async (more: object = {}) => tokens.subjects.note(user, await provider.tokenOf(user, more));
  await come();
  return { provider, time, tokens, spec, access, come, retried, shown };
}

describe('an exchanged token', () => {
  it('is used until a fifth of its time is left, and then replaced', async () => {
    const { provider, time, access, shown } = await tokensOf();
    expect(await access.headers()).toEqual({ a: 'b', authorization: 'Bearer token-1' });
    time.ahead = 79_000;
    expect(await access.headers()).toMatchObject({ authorization: 'Bearer token-1' });
    time.ahead = 81_000;
    expect(await access.headers()).toMatchObject({ authorization: 'Bearer token-2' });
    expect(provider.asked).toHaveLength(2);
    expect([...shown]).toEqual(['token-2']);
  });

  it('is used to its end while the provider is away, which is asked less and less often', async () => {
    const { provider, time, access } = await tokensOf();
    await access.headers();
    provider.answer = () => ({ status: 503, body: '' });
    for (const ahead of [81_000, 81_500, 82_000, 85_000, 85_500, 99_000]) {
      time.ahead = ahead;
      expect(await access.headers()).toMatchObject({ authorization: 'Bearer token-1' });
    }
    expect(provider.asked).toHaveLength(4);
    time.ahead = 101_000;
    await expect(access.headers()).rejects.toThrow('the identity provider gives no token for it');
  });

  it('is used to its end when the token of the user has ended, and then waits for another one', async () => {
    const { time, access, come, retried } = await tokensOf();
    await access.headers();
    // Both are at their end: the token of the user lives for 600 s.
    time.ahead = 601_000;
    expect(await access.headers()).toMatchObject({
      blocked: 'login_required',
      because: expect.stringContaining('has ended'),
    });
    expect(retried).toEqual([]);
    await come({ exp: Math.floor(Date.now() / 1_000) + 10_000 });
    expect(retried).toEqual(['far of ann']);
    expect(await access.headers()).toMatchObject({ authorization: 'Bearer token-2' });
  });

  it('is forgotten when the provider refuses to replace it', async () => {
    const { provider, time, access, shown } = await tokensOf();
    await access.headers();
    provider.answer = () => ({ status: 400, body: { error: 'access_denied' } });
    time.ahead = 81_000;
    expect(await access.headers()).toMatchObject({ blocked: 'login_required' });
    expect(shown.size).toBe(0);
  });

  it('that was refused twice is asked for less and less often, whatever tokens the user takes turns with', async () => {
    const clock = new FakeClock();
    const { provider, time, tokens, access, retried } = await tokensOf('ann', clock);
    const pass = (ms: number) => {
      time.ahead += ms;
      clock.advance(ms);
    };
    const turns = [await provider.tokenOf('ann'), await provider.tokenOf('ann')];
    const takeTurns = async () => {
      for (const token of [...turns, ...turns, ...turns]) {
        tokens.subjects.note('ann', token);
        expect(await access.headers()).toMatchObject({ blocked: 'login_required' });
      }
    };
    const given = provider.answer;
    provider.answer = () => ({ status: 400, body: { error: 'access_denied' } });
    await access.headers();
    await takeTurns();
    expect([provider.asked.length, retried.length]).toEqual([2, 1]);
    pass(3_000);
    expect(retried).toHaveLength(2);
    await takeTurns();
    pass(3_000);
    await takeTurns();
    expect([provider.asked.length, retried.length]).toEqual([3, 2]);
    provider.answer = given;
    pass(3_000);
    expect(retried).toHaveLength(3);
    expect(await access.headers()).toMatchObject({ authorization: 'Bearer token-4' });
  });

  it('is replaced once when the server refuses it, however many requests had it', async () => {
    const { provider, time, access } = await tokensOf();
    const used = (await access.headers()) as Record<string, string>;
    time.ahead = 61_000;
    const challenge = { status: 401, authenticate: ['Bearer error="invalid_token"'] } as const;
    const verdicts = await Promise.all([1, 2, 3].map(() => access.rejected(challenge, used)));
    expect(verdicts).toEqual(['again', 'again', 'again']);
    expect(provider.asked).toHaveLength(2);
    const again = (await access.headers()) as Record<string, string>;
    expect(await access.rejected(challenge, again)).toMatchObject({ blocked: 'login_required' });
    expect(provider.asked).toHaveLength(2);
  });

  it('that lacks a scope fails one request, and names the scope', async () => {
    const { access } = await tokensOf();
    const used = (await access.headers()) as Record<string, string>;
    const authenticate = ['Bearer error="insufficient_scope", scope="write"'];
    expect(await access.rejected({ status: 403, authenticate }, used)).toEqual({
      blocked: 'refused',
      because: 'the token of the user lacks the scope write; add it to `scopes`',
    });
    expect(await access.rejected({ status: 403, authenticate: ['Bearer'] }, used)).toMatchObject({
      blocked: 'refused',
    });
  });

  it('is forgotten with all that is known of its user, also if the provider gives it afterwards', async () => {
    const { provider, tokens, spec, access, come, shown } = await tokensOf();
    tokens.subjects.note('bob', await provider.tokenOf('bob'));
    const bob = tokens.accessTo({ ...spec, user: 'bob' });
    await Promise.all([access.headers(), bob.headers()]);
    tokens.forget('ann');
    expect(shown.size).toBe(1);
    expect(await access.headers()).toMatchObject({ because: expect.stringContaining('has ended') });
    await come();
    const given = provider.answer;
    const asked = new Promise<void>((resolve) => {
      provider.answer = async (...request) => {
        resolve();
        await forgotten;
        return given(...request);
      };
    });
    let forget = () => {};
    const forgotten = new Promise<void>((resolve) => {
      forget = () => {
        tokens.forget('ann');
        resolve();
      };
    });
    const late = access.headers();
    await asked;
    forget();
    expect(await late).toMatchObject({ because: expect.stringContaining('was removed') });
    expect(shown.size).toBe(1);
    expect(await bob.headers()).toMatchObject({ authorization: expect.stringMatching(/^Bearer token-[12]$/) });
    expect(provider.asked).toHaveLength(3);
  });

  it('waits for no retry after its user is forgotten', async () => {
    const clock = new FakeClock();
    const { provider, time, tokens, access, come, retried } = await tokensOf('ann', clock);
    provider.answer = () => ({ status: 400, body: { error: 'access_denied' } });
    for (let at = 0; at < 2; at += 1) {
      await access.headers();
      await come();
    }
    tokens.forget('ann');
    time.ahead += 60_000;
    clock.advance(60_000);
    expect(retried).toHaveLength(1);
  });

  it('is another one for another user, server or setting, and all are gone at the end', async () => {
    const { provider, tokens, spec, shown } = await tokensOf();
    const { exchange } = spec;
    if (exchange === undefined) throw new Error('no exchange');
    const others: RemoteSpec[] = [
      { ...spec, url: 'https://other.test/mcp' },
      { ...spec, exchange: { ...exchange, audience: 'other' } },
      { ...spec, exchange: { ...exchange, scopes: ['other'] } },
    ];
    const all = await Promise.all([spec, spec, ...others].map(async (each) => await tokens.accessTo(each).headers()));
    expect(new Set(all.map((each) => JSON.stringify(each))).size).toBe(4);
    expect(provider.asked).toHaveLength(4);
    // Another user has come with no token.
    expect(await tokens.accessTo({ ...spec, user: 'bob' }).headers()).toMatchObject({ blocked: 'login_required' });
    expect(await tokens.accessTo(withoutUser(spec)).headers()).toMatchObject({
      because: expect.stringContaining('this client has no user'),
    });
    expect(provider.asked).toHaveLength(4);
    tokens.close();
    expect(shown.size).toBe(0);
  });
});

function withoutUser({ user: _, ...spec }: RemoteSpec): RemoteSpec {
  return spec;
}
