import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { describe, expect, it } from 'vitest';
import { IssuerDocument } from '../../../src/downstream/users/issuer-document.js';
import { takeOnce } from '../../../src/extras/cluster/store.js';
import { createRoutes } from '../../../src/extras/front/routes.js';
import { systemClock } from '../../../src/host/observe/system-clock.js';
import { DEFAULT_LIMITS } from '../../downstream/http/serving.js';
import { MemoryServer, MemoryStore } from '../cluster/memory-store.js';
import {
  type BegunLogin,
  Browser,
  backOf,
  challengeOf,
  FrontPlace,
  type Page,
  paramsOf,
  REDIRECT,
} from './front-place.js';

const MINUTE_MS = 60_000;
const EVIL = 'https://evil.example/callback';

/** What the token endpoint says: its status and its error. */
type Told = { readonly status: number; readonly body: { readonly error?: string; readonly access_token?: string } };
const said = ({ status, body }: Told) => [status, body.error, body.access_token];
const GRANT = [400, 'invalid_grant', undefined];
/** Replaces one character by another, whichever is there. */
const changedAt = (at: number, text: string) =>
  `${text.slice(0, at)}${text[at] === 'A' ? 'B' : 'A'}${text.slice(at + 1)}`;

/** Opens a login in a browser up to the page of the provider. Returns the state that belongs to it. */
async function atProvider(place: FrontPlace, browser: Browser, begun: BegunLogin) {
  browser.opens = (url) => url.startsWith(place.publicUrl);
  const { url } = await browser.submit(await browser.open(begun.url));
  browser.opens = new Browser('').opens;
  return { url, state: paramsOf(url).get('state') ?? '' };
}

/** Logs in at the provider, and stops before the answer reaches the gateway. Returns the address of the answer. */
async function answerOfProvider(place: FrontPlace, browser: Browser, begun: BegunLogin): Promise<string> {
  const { url } = await atProvider(place, browser, begun);
  browser.opens = (next) => next.startsWith(place.provider.issuer);
  const answer = await browser.logIn(url);
  browser.opens = new Browser('').opens;
  return answer;
}

const isDead = ({ status, url, text }: Page) => {
  expect([400, 403]).toContain(status);
  expect(url).not.toContain(REDIRECT);
  expect(text).not.toContain('href=');
};

describe('a code of the front', () => {
  type Login = BegunLogin & { readonly code: string };
  it.each<[what: string, attempt: (place: FrontPlace, login: Login) => Promise<Told>]>([
    ['of another client', async (place, login) => place.redeem({ ...login, clientId: await place.register() })],
    ['with another verifier', (place, login) => place.redeem({ ...login, verifier: 'x'.repeat(43) })],
    [
      'with its challenge as the verifier',
      (place, login) => place.redeem({ ...login, verifier: challengeOf(login.verifier) }),
    ],
    ['without a verifier', (place, login) => place.redeem({ ...login, verifier: '' })],
    ['with another redirect URI', (place, login) => place.redeem(login, { redirect_uri: `${REDIRECT}/other` })],
    [
      'with another port in its redirect URI',
      (place, login) => place.redeem({ ...login, redirectUri: REDIRECT.replace('59999', '6000') }),
    ],
    ['without a redirect URI', (place, login) => place.redeem({ ...login, redirectUri: '' })],
    ['that was changed', (place, login) => place.redeem({ ...login, code: changedAt(40, login.code) })],
    ['that was cut', (place, login) => place.redeem({ ...login, code: login.code.slice(0, -4) })],
    ['in another spelling', (place, login) => place.redeem({ ...login, code: `${login.code}=` })],
    ['that is the id of a client', (place, login) => place.redeem({ ...login, code: login.clientId })],
    [
      'that is a code of the provider',
      (place, login) => place.redeem({ ...login, code: [...place.provider.secrets].join('') }),
    ],
    [
      'that is a minute old',
      (place, login) => {
        place.time.ahead = MINUTE_MS;
        return place.redeem(login);
      },
    ],
    [
      'that was used',
      async (place, login) => {
        expect((await place.redeem(login)).status).toBe(200);
        return place.redeem(login);
      },
    ],
  ])('%s is worth nothing', async (_, attempt) => {
    const place = await FrontPlace.open();
    const login = await place.logIn();
    expect(said(await attempt(place, login))).toEqual(GRANT);
  });

  it('gets tokens once if many redeem it at the same time', async () => {
    const place = await FrontPlace.open();
    const login = await place.logIn();
    const all = await Promise.all(Array.from({ length: 8 }, () => place.redeem(login)));
    expect(all.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(place.provider.to('/token')).toHaveLength(1);
  });

  it('counts as used for ten minutes, in which the clock of another gateway may be behind', async () => {
    const taken: number[] = [];
    const place = await FrontPlace.open({ takeOnce: async (_, ms) => taken.push(ms) > 0 });
    await place.redeem(await place.logIn());
    expect(taken).toEqual([10 * MINUTE_MS]);
  });

  it('gets tokens once from all gateways of a cluster, and none while they cannot agree', async () => {
    const server = new MemoryServer();
    const store = new MemoryStore(server);
    await store.connect();
    const place = await FrontPlace.open({ takeOnce: (name, ms) => takeOnce(store, name, ms) });
    const other = await place.another();
    const login = await place.logIn();
    expect((await place.redeem(login, {}, other)).status).toBe(200);
    expect(said(await place.redeem(login))).toEqual(GRANT);
    const later = await place.logIn();
    server.stop();
    expect((await place.redeem(later)).body.error).toBe('temporarily_unavailable');
    expect(place.provider.to('/token')).toHaveLength(1);
  });
});

describe('a request for tokens', () => {
  it.each<[what: string, params: Readonly<Record<string, string>>, told: readonly unknown[]]>([
    ['of an unknown client', { client_id: 'x' }, [401, 'invalid_client', undefined]],
    ['without a client', { client_id: '' }, [401, 'invalid_client', undefined]],
    ['for another server', { resource: 'https://evil.example/mcp' }, [400, 'invalid_target', undefined]],
    [
      'for a host that begins with this one',
      { resource: 'http://127.0.0.1.evil.example/mcp' },
      [400, 'invalid_target', undefined],
    ],
    ['for another service of the host', { resource: 'ORIGIN/admin' }, [400, 'invalid_target', undefined]],
    ['for a path that begins with the one of MCP', { resource: 'ORIGIN/mcpx' }, [400, 'invalid_target', undefined]],
    ['of another kind', { grant_type: 'client_credentials' }, [400, 'unsupported_grant_type', undefined]],
    [
      'with the password of a person',
      { grant_type: 'password', username: 'alice' },
      [400, 'unsupported_grant_type', undefined],
    ],
  ])('%s is refused', async (_, params, told) => {
    const place = await FrontPlace.open();
    const { resource } = params;
    const asked = { ...params, ...(resource && { resource: resource.replace('ORIGIN', place.publicUrl) }) };
    expect(said(await place.redeem(await place.logIn(), asked))).toEqual(told);
    expect(place.provider.to('/token')).toEqual([]);
  });

  it('with a parameter twice is refused', async () => {
    const place = await FrontPlace.open();
    const { code, clientId, verifier } = await place.logIn();
    const body = `grant_type=authorization_code&code=${code}&code_verifier=${verifier}&client_id=x&client_id=${clientId}`;
    const answer = await place.ask('/token', new URLSearchParams(body) as never);
    expect(said(answer)).toEqual([400, 'invalid_request', undefined]);
  });

  it.each(['', '/', '/mcp', '/mcp/', '/mcp/files', '/mcp/v/dev'])(
    'for this gateway at "%s" is served',
    async (path) => {
      const place = await FrontPlace.open();
      const login = await place.logIn();
      expect((await place.redeem(login, { resource: `${place.publicUrl}${path}` })).status).toBe(200);
    },
  );

  it('with a code of a login is served while strangers use up the rate of their common address', async () => {
    const place = await FrontPlace.open({ limits: { requestBurst: 10, requestsPerSecond: 1 } });
    const login = await place.logIn();
    // The code of one's own login makes no room for renewals.
    const junk = { grant_type: 'refresh_token', refresh_token: 'x', client_id: 'x', code: login.code };
    for (const body of ['grant_type=authorization_code&code=x', junk]) {
      const others = await Promise.all(Array.from({ length: 30 }, () => place.ask('/token', body)));
      expect(others.some(({ status }) => status === 429)).toBe(true);
    }
    expect((await place.redeem(login)).status).toBe(200);
  });

  it('with wrong refresh tokens reaches the provider a few times only, and keeps no other client out', async () => {
    const place = await FrontPlace.open();
    const [attacker, login] = [await place.register(), await place.logIn()];
    const { body } = await place.redeem(login);
    const before = place.provider.to('/token').length;
    const answers: Told[] = [];
    for (let at = 0; at < 60; at += 1) answers.push(await place.renew(attacker, `junk-${at}`));
    expect(answers.some(({ status }) => status === 429)).toBe(true);
    expect(place.provider.to('/token').length - before).toBeLessThan(60);
    expect((await place.renew(login.clientId, body.refresh_token)).status).toBe(200);
  });

  it('of a client without a document does not reach the provider', async () => {
    const place = await FrontPlace.open();
    const answer = await place.renew('https://evil.example/client.json', 'junk');
    expect([answer.status, place.provider.to('/token')]).toEqual([503, []]);
  });

  it('that is too large, or one of too many, is refused', async () => {
    const place = await FrontPlace.open({ limits: { requestBurst: 4, requestsPerSecond: 1 } });
    const large = await fetch(`${place.publicUrl}/token`, { method: 'POST', body: 'x'.repeat(33 * 1024) });
    expect(large.status).toBe(413);
    const answers = await Promise.all(Array.from({ length: 20 }, () => place.ask('/token', 'grant_type=x')));
    const over = answers.find(({ status }) => status === 429);
    expect(over?.headers.get('retry-after')).toMatch(/^\d+$/);
  });
});

describe('a secret that the provider repeats in its refusal', () => {
  const TOKEN = `0.AX/+"~${'k'.repeat(80)}`;
  it.each<[how: string, said: string]>([
    ['as it is', TOKEN],
    ['in an address', `the token ${encodeURIComponent(TOKEN)} is bad`],
    ['where its words are cut', `${'w '.repeat(140)}${TOKEN}`],
    ['in an address where its words are cut', `${'w '.repeat(140)}${encodeURIComponent(TOKEN)}`],
  ])('is neither in the log nor in the answer: %s', async (_, words) => {
    const place = await FrontPlace.open();
    const clientId = await place.register();
    for (const body of [JSON.stringify({ error: 'invalid_client', error_description: words }), `<p>${words}</p>`]) {
      place.provider.before = ({ path }, response) => {
        if (path !== '/token') return false;
        response.writeHead(401).end(body);
        return true;
      };
      const { text } = await place.renew(clientId, TOKEN);
      expect(text + JSON.stringify(place.log)).not.toMatch(/AX(?:\/|%2F)|kkk/);
    }
    expect(place.log).toHaveLength(2);
  });
});

describe('the answer of the provider', () => {
  it('ends no login in another browser', async () => {
    const place = await FrontPlace.open();
    const [attacker, victim] = [new Browser('mallory'), new Browser('alice')];
    // The attacker logs in, and has the victim finish the login, so that the victim would act as the attacker.
    const answer = await answerOfProvider(place, attacker, await place.begin());
    isDead(await victim.open(answer));
    // Cookies of a login of the victim do not help.
    await atProvider(place, victim, await place.begin());
    isDead(await victim.open(answer));
  });

  it('does not bring the code of a victim into a login of the attacker', async () => {
    const place = await FrontPlace.open();
    const [attacker, victim] = [new Browser('mallory'), new Browser('alice')];
    const stolen = paramsOf(await answerOfProvider(place, victim, await place.begin()));
    const begun = await place.begin();
    const { state } = await atProvider(place, attacker, begun);
    const query = new URLSearchParams({ code: stolen.get('code') ?? '', state, iss: place.provider.issuer });
    const { url } = await attacker.open(`${place.publicUrl}/authorize/callback?${query}`);
    const code = paramsOf(url).get('code') ?? '';
    // The verifier of the login of the attacker does not belong to the code.
    expect(said(await place.redeem({ ...begun, code }))).toEqual(GRANT);
  });

  it('is taken once, and for ten minutes', async () => {
    const place = await FrontPlace.open();
    const browser = new Browser('alice');
    const answer = await answerOfProvider(place, browser, await place.begin());
    expect((await browser.open(answer)).url).toContain(`${REDIRECT}?code=`);
    isDead(await browser.open(answer));
    const late = await answerOfProvider(place, browser, await place.begin());
    place.time.ahead = 10 * MINUTE_MS;
    isDead(await browser.open(late));
  });

  it.each([
    ['of another provider', 'https://evil.example'],
    ['that names no provider', undefined],
    ['that names the front', 'itself'],
  ])('%s is no answer (mix-up)', async (_, iss) => {
    const place = await FrontPlace.open();
    const browser = new Browser('alice');
    const answer = new URL(await answerOfProvider(place, browser, await place.begin()));
    answer.searchParams.delete('iss');
    if (iss !== undefined) answer.searchParams.set('iss', iss === 'itself' ? place.publicUrl : iss);
    answer.searchParams.set('error_description', 'words of another');
    const { text } = await browser.open(answer.href);
    expect(text).toContain('error=server_error');
    expect(text).not.toMatch(/words of another|[?&;]code=/);
  });

  it.each(['', 'x', '../callback', 'a'.repeat(22), '__proto__-------------'])(
    'with the state "%s" is no answer',
    async (state) => {
      const place = await FrontPlace.open();
      const browser = new Browser('alice');
      await atProvider(place, browser, await place.begin());
      isDead(await browser.open(`${place.publicUrl}/authorize/callback?${new URLSearchParams({ code: 'x', state })}`));
    },
  );
});

describe('the consent of a person', () => {
  it('counts for the browser in which the person gave it', async () => {
    const place = await FrontPlace.open();
    const [attacker, victim] = [new Browser('mallory'), new Browser('alice')];
    // The attacker gets a form for his own client, and has the browser of the victim send it.
    const page = await attacker.open((await place.begin()).url);
    await victim.open((await place.begin()).url);
    isDead(await victim.open(`${place.publicUrl}/authorize/consent`, attacker.formOf(page)));
    isDead(await new Browser('bob').open(`${place.publicUrl}/authorize/consent`, attacker.formOf(page)));
  });

  it.each(['https://evil.example', 'null', 'http://127.0.0.1'])('is not given by a form from %s', async (origin) => {
    const place = await FrontPlace.open();
    const browser = new Browser('alice');
    isDead(await browser.submit(await browser.open((await place.begin()).url), 'allow', { origin }));
  });

  it('is not given by a form without a decision, or after ten minutes', async () => {
    const place = await FrontPlace.open();
    const browser = new Browser('alice');
    const page = await browser.open((await place.begin()).url);
    const form = browser.formOf(page);
    form.delete('decision');
    const answer = await browser.open(`${place.publicUrl}/authorize/consent`, form);
    expect(paramsOf(backOf(answer)).get('error')).toBe('access_denied');
    place.time.ahead = 10 * MINUTE_MS;
    isDead(await browser.submit(page));
  });

  it('is asked for again for a client of an attacker with the same name and redirect URI', async () => {
    const place = await FrontPlace.open();
    const victim = new Browser('alice');
    await victim.logIn((await place.begin()).url);
    expect((await victim.open((await place.begin()).url)).text).toContain('/authorize/consent');
  });

  it.each(['browser', 'login'])(
    'is not in a cookie that was changed, or that is for something else: %s',
    async (which) => {
      const place = await FrontPlace.open();
      const victim = new Browser('alice');
      const clientId = await place.register();
      const begun = await place.begin({ client_id: clientId });
      await atProvider(place, victim, begun);
      const value = [...victim.cookies].find(([name]) => name.includes(which))?.[1] ?? '';
      victim.cookies.set('trunkline-browser', which === 'login' ? value : changedAt(30, value));
      expect((await victim.open(begun.url)).text).toContain('/authorize/consent');
    },
  );

  it.each([
    ['on this machine, where any program may use its name', REDIRECT, true],
    ['that comes back to a site of its maker', 'https://claude.ai/api/mcp/auth_callback', false],
  ])('is asked for again for a published client %s', async (_, redirect_uri, isAsked) => {
    const client_id = 'https://client.example/client.json';
    const fetchDocument = async () => Response.json({ client_id, client_name: 'x', redirect_uris: [redirect_uri] });
    const place = await FrontPlace.open({ fetchDocument });
    const victim = new Browser('alice');
    victim.opens = (url) => /^http:.*:(?!59999)/.test(url);
    const { url } = await place.begin({ client_id, redirect_uri });
    await victim.logIn(url);
    const { text } = await victim.open(url.replace('59999', '60000'));
    expect(text.includes('/authorize/consent')).toBe(isAsked);
    expect(text.includes('Any program on this computer can use this name.')).toBe(isAsked);
  });

  it('is asked for again if the client would get more, or another id at the provider', async () => {
    const place = await FrontPlace.open();
    const client_id = await place.register();
    const begun = await place.begin({ client_id });
    for (const front of [{ scopes: ['more'] }, { clientId: 'another' }]) {
      const victim = new Browser('alice');
      await victim.logIn(begun.url);
      const other = await place.another(front);
      const { text } = await victim.open(begun.url.replace(place.publicUrl, other));
      expect(text).toContain('/authorize/consent');
    }
  });

  it.each([
    'A program. It is confirmed by example.com. Its maker',
    '\u2066confirmed\u2069',
    '</bdi></q><dt>Source</dt><dd>Anthropic',
  ])('is not asked for with a name that forges its source: %s', async (name) => {
    const place = await FrontPlace.open();
    const client_id = await place.register([REDIRECT], name);
    const { text } = await new Browser('alice').open((await place.begin({ client_id })).url);
    const rows = [...text.matchAll(/<dt>(.*?)<\/dt><dd>(.*?)<\/dd>/g)].map(([, term, words]) => [term, words]);
    expect(rows[0]).toEqual(['Source', 'Nobody has confirmed who made this program. It chose its name itself.']);
    expect(rows[1]).toEqual(['Name', expect.stringMatching(/^<q><bdi>[^<>]+<\/bdi><\/q>$/)]);
    expect(rows).toHaveLength(5);
  });

  it('is remembered for thirty days', async () => {
    const place = await FrontPlace.open();
    const victim = new Browser('alice');
    const begun = await place.begin({ client_id: await place.register() });
    await victim.logIn(begun.url);
    place.time.ahead = 30 * 24 * 60 * MINUTE_MS;
    expect((await victim.open(begun.url)).text).toContain('/authorize/consent');
  });
});

describe('the address of a login', () => {
  it.each([
    ['without PKCE', { code_challenge: undefined, code_challenge_method: undefined }, 'invalid_request'],
    ['with plain PKCE', { code_challenge_method: 'plain' }, 'invalid_request'],
    ['with PKCE of an unnamed method', { code_challenge_method: undefined }, 'invalid_request'],
    ['with a short challenge', { code_challenge: 'x' }, 'invalid_request'],
    ['for a token instead of a code', { response_type: 'token' }, 'unsupported_response_type'],
    ['for the tokens of another server', { resource: 'https://evil.example/mcp' }, 'invalid_target'],
  ])('%s ends at a page with the way back to the client', async (_, more, error) => {
    const place = await FrontPlace.open();
    const page = await new Browser('alice').open((await place.begin(more)).url);
    // A link of a stranger would open the client otherwise, without a consent.
    expect([page.headers.get('location'), page.text.includes('http-equiv')]).toEqual([null, false]);
    expect(backOf(page).startsWith(`${REDIRECT}?`)).toBe(true);
    expect(Object.fromEntries(paramsOf(backOf(page)))).toMatchObject({
      error,
      state: 'state-of-the-client',
      iss: place.publicUrl,
    });
    expect(place.provider.to('/auth')).toEqual([]);
  });

  it.each([
    ['to another site', { redirect_uri: EVIL }],
    ['to another path', { redirect_uri: 'http://127.0.0.1:59999/other' }],
    ['to another host of this machine', { redirect_uri: 'http://localhost:59999/callback' }],
    ['to a name that begins like this machine', { redirect_uri: 'http://127.0.0.1.evil.example:59999/callback' }],
    ['to a host behind a password', { redirect_uri: 'http://127.0.0.1:59999@evil.example/callback' }],
    ['to a host behind a backslash', { redirect_uri: 'http://evil.example\\@127.0.0.1:59999/callback' }],
    ['with a fragment', { redirect_uri: `${REDIRECT}#evil` }],
    ['with more in the query', { redirect_uri: `${REDIRECT}?next=https://evil.example` }],
    ['with a line break', { redirect_uri: `${REDIRECT}\r\nSet-Cookie: a=b` }],
    ['to a script', { redirect_uri: 'javascript:alert(1)' }],
    ['to nothing', { redirect_uri: undefined }],
    ['of an unknown client', { client_id: 'x' }],
    ['with a long state', { state: 'x'.repeat(1_025) }],
  ])('%s leads nowhere', async (_, more) => {
    const place = await FrontPlace.open();
    const page = await new Browser('alice').open((await place.begin(more)).url);
    isDead(page);
    expect(page.headers.get('location')).toBeNull();
  });

  it('with a parameter twice leads nowhere', async () => {
    const place = await FrontPlace.open();
    const { url } = await place.begin();
    isDead(await new Browser('alice').open(`${url}&redirect_uri=${encodeURIComponent(EVIL)}`));
  });

  it('adds no line to the header with which it is answered', async () => {
    const place = await FrontPlace.open();
    const url = await new Browser('alice').logIn((await place.begin({ state: 'a\r\nb: c' })).url);
    expect(url).toContain('state=a%0D%0Ab%3A+c');
  });

  it('is served under the names of the gateway alone', async () => {
    const place = await FrontPlace.open();
    const { url } = await place.begin();
    const asked = get(url, { headers: { host: 'evil.example' } });
    const [{ statusCode }] = (await once(asked, 'response')) as [IncomingMessage];
    asked.destroy();
    expect(statusCode).toBe(403);
  });
});

describe('the cookies of a login', () => {
  it('are those of the four latest logins, so that a stranger cannot make requests too large', async () => {
    const place = await FrontPlace.open();
    const victim = new Browser('alice');
    const states: string[] = [];
    for (let at = 0; at < 7; at += 1) states.push((await atProvider(place, victim, await place.begin())).state);
    const logins = [...victim.cookies.keys()].filter((name) => name.includes('login-'));
    expect(logins).toEqual(states.slice(-4).map((state) => `trunkline-login-${state}`));
    expect([...victim.cookies.keys()]).toContain('trunkline-browser');
  });

  /** The cookies that the pages of a front at this URL set, up to the provider. */
  async function cookiesAt(publicUrl: string): Promise<readonly string[]> {
    const issuer = 'https://idp.example.com';
    const known = { issuer, authorization_endpoint: `${issuer}/auth`, token_endpoint: `${issuer}/token` };
    const auth = { jwt: { issuer, audience: ['x'] }, front: { clientId: 'x' } };
    const provider = new IssuerDocument({ clock: systemClock, read: async () => known, onFault: () => {} });
    const { routes } = createRoutes({
      http: { ...DEFAULT_LIMITS, publicUrl, auth },
      users: { provider, userOf: async () => undefined, originOf: () => ({ environment: {}, folder: '/' }) },
      ...{ keys: [Buffer.alloc(32, 7)], clock: systemClock, now: Date.now, logger: { warn: () => {} } },
      ...{ takeOnce: async () => true, fetchDocument: async () => new Response(''), groups: () => [] },
    });
    const ask = async (method: string, path: string, asked: { query?: string; body?: string; cookie?: string }) => {
      const { query = '', body = '', cookie } = asked;
      const route = routes.find((each) => each.method === method && each.path === path);
      const headers = cookie === undefined ? {} : { cookie };
      const about = { params: {}, headers, address: '192.0.2.1' };
      const answer = await route?.serve({ ...about, query: new URLSearchParams(query), body });
      return { body: answer?.body ?? '', cookies: [answer?.headers['set-cookie'] ?? []].flat() };
    };
    const registered = await ask('POST', '/register', { body: JSON.stringify({ redirect_uris: [REDIRECT] }) });
    const query = new URLSearchParams({
      ...{ client_id: JSON.parse(registered.body).client_id, redirect_uri: REDIRECT, response_type: 'code' },
      ...{ code_challenge: challengeOf('x'), code_challenge_method: 'S256' },
    });
    const page = await ask('GET', '/authorize', { query: `${query}` });
    const [, request = ''] = /name="request" value="([^"]+)"/.exec(page.body) ?? [];
    const cookie = page.cookies[0]?.split(';')[0] ?? '';
    const form = new URLSearchParams({ request, decision: 'allow' });
    const sent = await ask('POST', '/authorize/consent', { body: `${form}`, cookie });
    return [...page.cookies, ...sent.cookies];
  }

  it('belong to the one host behind TLS, and no script reads them', async () => {
    const cookies = await cookiesAt('https://mcp.example.com');
    expect(cookies).toHaveLength(3);
    for (const cookie of cookies)
      expect(cookie).toMatch(/^__Host-trunkline-[\w-]+=[\w-]+; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Lax; Secure$/);
  });

  it('are plain where the gateway is tried without TLS', async () => {
    for (const cookie of await cookiesAt('http://127.0.0.1:7411'))
      expect(cookie).toMatch(/^trunkline-[\w-]+=[\w-]+; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Lax$/);
  });
});
