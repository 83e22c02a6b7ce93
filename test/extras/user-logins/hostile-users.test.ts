import { describe, expect, it, vi } from 'vitest';
import { sha256 } from '../../support/sha256.js';
import { Browser, LoginPlace, type Page, type UserClient } from './login-place.js';

/*
 * Mallory is a user of the gateway, and wants that his principal uses the account of ann at the server, or her login. Ann has opened
 * what he sent her. After each attempt, he has no login, and hers is as before.
 */

interface World {
  readonly place: LoginPlace;
  readonly ann: UserClient;
  readonly mallory: UserClient;
  /** The browsers of both. With a front, both have signed in. */
  readonly hers: Browser;
  readonly his: Browser;
}

async function open(hasFront: boolean): Promise<World> {
  const place = await LoginPlace.open({ hasFront });
  const [ann, mallory] = [await place.connect('ann'), await place.connect('mallory')];
  const world = { place, ann, mallory, hers: new Browser('ann'), his: new Browser('mallory') };
  if (hasFront) for (const browser of [world.hers, world.his]) await place.logIn(`${place.publicUrl}/logins`, browser);
  return world;
}

/** The address of a page for a user, and the page itself in a browser of this user. */
async function pageOf({ place }: World, client: UserClient, browser: Browser): Promise<Page> {
  browser.opens = (url) => url.startsWith(place.publicUrl);
  return await browser.open((await client.offered()).url);
}

const post = (browser: Browser, { publicUrl }: LoginPlace, path: string, form: URLSearchParams, headers = {}) =>
  browser.open(`${publicUrl}${path}`, form, headers);
const formOf = (browser: Browser, page: Page) => browser.formOf(page);
const anywhere = () => true;

/** Attempts that must fail with a front: the page knows who sits before the browser. */
const WITH_FRONT: readonly (readonly [what: string, attempt: (world: World) => Promise<Page>])[] = [
  ['his address in her browser', async ({ mallory, hers }) => hers.open((await mallory.offered()).url)],
  ['her address in his browser', async ({ ann, his }) => his.open((await ann.offered()).url)],
  [
    'his address in her browser, before she signs in',
    async ({ place, mallory }) => place.logIn((await mallory.offered()).url, new Browser('ann')),
  ],
  [
    'his form in her browser',
    async (world) => {
      const page = await pageOf(world, world.mallory, world.his);
      return post(world.hers, world.place, '/login/files', formOf(world.his, page));
    },
  ],
  [
    'his form in her browser, with the cookie of his page',
    async (world) => {
      const page = await pageOf(world, world.mallory, world.his);
      world.hers.cookies.set('trunkline-logins', world.his.cookies.get('trunkline-logins') ?? '');
      return post(world.hers, world.place, '/login/files', formOf(world.his, page));
    },
  ],
  [
    'his form after she has signed in in his browser',
    async (world) => {
      const page = await pageOf(world, world.mallory, world.his);
      world.his.cookies.set('trunkline-person', world.hers.cookies.get('trunkline-person') ?? '');
      return post(world.his, world.place, '/login/files', formOf(world.his, page));
    },
  ],
  [
    'the end of his login in a browser in which she has signed in since',
    async (world) => {
      const { place, his, hers } = world;
      const answer = await place.answerOf(await place.toServer((await world.mallory.offered()).url, his), his);
      his.cookies.set('trunkline-person', hers.cookies.get('trunkline-person') ?? '');
      his.opens = anywhere;
      return his.open(answer);
    },
  ],
  [
    'the end of his sign-in in her browser, which would make her him',
    async ({ place, mallory, hers }) => {
      const his = new Browser('mallory');
      his.opens = (url) => !url.startsWith(`${place.publicUrl}/authorize/callback`);
      let page = await his.open(`${place.publicUrl}/logins`);
      for (let step = 0; step < 10 && page.text.includes('<form'); step += 1) page = await his.submit(page);
      hers.opens = anywhere;
      expect((await hers.open(page.url)).status).toBe(400);
      return hers.open((await mallory.offered()).url);
    },
  ],
];

/** Attempts that must fail with a front and without one. */
const ALWAYS: readonly (readonly [what: string, attempt: (world: World) => Promise<Page>])[] = [
  [
    'the login page of the server that belongs to his login, in her browser',
    async (world) => {
      const page = await world.place.toServer((await world.mallory.offered()).url, world.his);
      const answer = await world.place.answerOf(page, world.hers);
      world.hers.opens = anywhere;
      return world.hers.open(answer);
    },
  ],
  [
    'her code in the answer to his login',
    async (world) => {
      const { place, his, hers } = world;
      const hersAt = await place.answerOf(await place.toServer((await world.ann.offered()).url, hers), hers);
      const hisAt = new URL((await place.toServer((await world.mallory.offered()).url, his)).url);
      const stolen = new URL(hersAt);
      stolen.searchParams.set('state', hisAt.searchParams.get('state') ?? '');
      his.opens = anywhere;
      return his.open(stolen.href);
    },
  ],
  [
    'his login under the cookie of another one',
    async (world) => {
      const { place, his } = world;
      const answer = new URL(await place.answerOf(await place.toServer((await world.mallory.offered()).url, his), his));
      const id = answer.searchParams.get('state') ?? '';
      const other = 'A'.repeat(22);
      his.cookies.set(`trunkline-visit-${other}`, his.cookies.get(`trunkline-visit-${id}`) ?? '');
      answer.searchParams.set('state', other);
      his.opens = anywhere;
      return his.open(answer.href);
    },
  ],
  [
    'an answer without a login',
    async ({ place, his }) => his.open(`${place.publicUrl}/logins/callback/files?code=x&state=${'A'.repeat(22)}`),
  ],
  [
    'an answer with a state that leads into another cookie',
    async ({ place, his }) => his.open(`${place.publicUrl}/logins/callback/files?code=x&state=..%2Flogins`),
  ],
  [
    'an answer that denies the login',
    async (world) => {
      const { place, his } = world;
      const page = new URL((await place.toServer((await world.mallory.offered()).url, his)).url);
      const query = new URLSearchParams({
        ...{ error: 'access_denied', state: page.searchParams.get('state') ?? '', iss: place.server.issuer },
      });
      return his.open(`${place.publicUrl}/logins/callback/files?${query}`);
    },
  ],
  [
    'an answer of another authorization server',
    async (world) => {
      const { place, his } = world;
      const answer = new URL(await place.answerOf(await place.toServer((await world.mallory.offered()).url, his), his));
      answer.searchParams.set('iss', 'https://evil.example');
      his.opens = anywhere;
      return his.open(answer.href);
    },
  ],
  ['an address without a ticket', async ({ place, his }) => his.open(`${place.publicUrl}/login/files`)],
  [
    'an address with two tickets',
    async ({ ann, mallory, his }) => {
      const [one, other] = [await mallory.offered(), await ann.offered()];
      return his.open(`${one.url}&ticket=${new URL(other.url).searchParams.get('ticket')}`);
    },
  ],
  [
    'a ticket at another server',
    async ({ mallory, his }) => his.open((await mallory.offered()).url.replace('/login/files', '/login/other')),
  ],
  [
    'a ticket at a server that leads to another path',
    async ({ mallory, his }) => his.open((await mallory.offered()).url.replace('/login/files', '/login/..%2Flogins')),
  ],
  ['a ticket that was changed', async ({ mallory, his }) => his.open(changed((await mallory.offered()).url))],
  ['a ticket that was cut', async ({ mallory, his }) => his.open((await mallory.offered()).url.slice(0, -4))],
  ['a ticket in another spelling', async ({ mallory, his }) => his.open(`${(await mallory.offered()).url}%3D`)],
  [
    'the text of a form as a ticket',
    async (world) => {
      const page = await pageOf(world, world.mallory, world.his);
      const text = formOf(world.his, page).get('request') ?? '';
      return world.his.open(`${world.place.publicUrl}/login/files?ticket=${text}`);
    },
  ],
  [
    'a ticket as the text of a form',
    async (world) => {
      await pageOf(world, world.mallory, world.his);
      const ticket = new URL((await world.mallory.offered()).url).searchParams.get('ticket') ?? '';
      return post(world.his, world.place, '/login/files', new URLSearchParams({ request: ticket, decision: 'allow' }));
    },
  ],
  [
    'a ticket that is ten minutes old',
    async ({ mallory, his }) => {
      const { url } = await mallory.offered();
      return await later(() => his.open(url));
    },
  ],
  [
    'a form of another site',
    async (world) => {
      const page = await pageOf(world, world.mallory, world.his);
      const form = formOf(world.his, page);
      return post(world.his, world.place, '/login/files', form, { origin: 'https://evil.example' });
    },
  ],
  [
    'a form of a page without an origin',
    async (world) => {
      const form = formOf(world.his, await pageOf(world, world.mallory, world.his));
      return post(world.his, world.place, '/login/files', form, { origin: 'null' });
    },
  ],
  [
    'a form without the cookie of its page',
    async (world) => {
      const page = await pageOf(world, world.mallory, world.his);
      world.his.cookies.delete('trunkline-logins');
      return post(world.his, world.place, '/login/files', formOf(world.his, page));
    },
  ],
  [
    'a form for another server',
    async (world) => {
      const page = await pageOf(world, world.mallory, world.his);
      return post(world.his, world.place, '/login/other', formOf(world.his, page));
    },
  ],
  [
    'an end of a login of nobody',
    async ({ place, his }) => post(his, place, '/logins', new URLSearchParams({ request: 'x' })),
  ],
];

function changed(url: string): string {
  const at = url.length - 30;
  return `${url.slice(0, at)}${url[at] === 'A' ? 'B' : 'A'}${url.slice(at + 1)}`;
}

/** Does something ten minutes later. */
async function later<T>(work: () => Promise<T>): Promise<T> {
  const now = Date.now() + 10 * 60_000;
  const clock = vi.spyOn(Date, 'now').mockReturnValue(now);
  try {
    return await work();
  } finally {
    clock.mockRestore();
  }
}

async function isRefused(world: World, { status, text, url }: Page): Promise<void> {
  expect([status, url]).toEqual([expect.toSatisfy((code) => code >= 400 && code < 600), expect.any(String)]);
  expect(text).not.toContain('<form');
  expect(text).not.toContain('You are logged in');
  expect(await world.place.loginOf('mallory')).toBeUndefined();
  expect(await world.place.loginOf('ann')).toBeUndefined();
}

describe('with a front, a hostile user gets no login of another user by', () => {
  it.each([...WITH_FRONT, ...ALWAYS])('%s', async (_, attempt) => {
    const world = await open(true);
    await isRefused(world, await attempt(world));
  });
});

describe('without a front, a hostile user gets no login of another user by', () => {
  it.each(ALWAYS)('%s', async (_, attempt) => {
    const world = await open(false);
    await isRefused(world, await attempt(world));
  });
});

describe('the login of a user', () => {
  it('is made by its address once, and its answer counts once', async () => {
    const { place, ann, hers } = await open(false);
    const { url } = await ann.offered();
    const answer = await place.answerOf(await place.toServer(url, hers), hers);
    const cookies = [...hers.cookies];
    hers.opens = anywhere;
    expect((await hers.open(answer)).text).toContain('You are logged in at files');
    const before = await place.loginOf('ann');
    for (const [name, value] of cookies) hers.cookies.set(name, value);
    expect((await hers.open(answer)).status).toBe(400);
    expect((await place.toServer(url, hers)).status).toBe(400);
    expect(await place.loginOf('ann')).toEqual(before);
  });

  it.each<[what: string, takeOnce: () => Promise<boolean>, status: number]>([
    ['another gateway has begun it', async () => false, 400],
    ['the gateways cannot agree', async () => Promise.reject(new Error('away')), 503],
  ])('is not begun if %s', async (_, takeOnce, status) => {
    const place = await LoginPlace.open({ takeOnce });
    const ann = await place.connect('ann');
    const page = await place.toServer((await ann.offered()).url, new Browser('ann'));
    expect(page.status).toBe(status);
    expect(place.server.to('/auth')).toEqual([]);
  });

  it('is not made by an address, a form or an answer from before its user was forgotten', async () => {
    const { place, ann, hers } = await open(false);
    const { url } = await ann.offered();
    const form = hers.formOf(await pageOf({ place, ann, mallory: ann, hers, his: hers }, ann, hers));
    const answer = await place.answerOf(await place.toServer((await ann.offered()).url, hers), hers);
    const late = await place.answerOf(await place.toServer((await ann.offered()).url, hers), hers);
    const forget = () => place.composition.forget(sha256(`${place.provider.issuer}\0ann`));
    hers.opens = anywhere;
    const vault = await place.composition.openVault();
    const locked = vault.locked.bind(vault);
    const asked = vi.spyOn(vault, 'locked').mockImplementationOnce((...login) => {
      forget();
      return locked(...login);
    });
    // Its user is forgotten while the authorization server answers.
    expect((await hers.open(late)).status).toBe(400);
    expect(asked).toHaveBeenCalled();
    const pages = [await hers.open(answer), await post(hers, place, '/login/files', form), await hers.open(url)];
    expect(pages.map(({ status }) => status)).toEqual([400, 400, 400]);
    expect(await place.loginOf('ann')).toBeUndefined();
    await place.logIn((await ann.offered()).url, hers);
    expect(await place.loginOf('ann')).toBeDefined();
  });

  it('is not used for another user, and its beginning ends no call of another user', async () => {
    const { place, ann, mallory, hers } = await open(false);
    const { pool } = place.composition.gateway;
    await mallory.offered();
    const generations = () => pool.of('files').map(({ id, dispatcher }) => [id, dispatcher.availability.state]);
    const before = generations();
    await place.logIn((await ann.offered()).url, hers);
    await expect.poll(() => ann.call('files__read')).toBe('read done');
    expect((await mallory.offered()).text).toContain('needs a login');
    expect(generations().filter(([, state]) => state === 'blocked')).toHaveLength(1);
    expect(before).toHaveLength(2);
  });

  it('is awaited by the call of its user, which nobody else can go on with', async () => {
    const { place } = await open(false);
    const [ann, mallory] = [await place.tokenOf('ann'), await place.tokenOf('mallory')];
    let asked = await place.send(mallory);
    // The connection is being opened at first.
    while (asked.resultType !== 'input_required') asked = await place.send(mallory);
    const { requestState, inputRequests } = asked;
    const answers = Object.keys(inputRequests ?? {}).map((key) => [key, { action: 'accept' }]);
    const input = { requestState, inputResponses: Object.fromEntries(answers) };
    expect(await place.send(ann, input)).toMatchObject({ code: -32602 });
    expect(await place.send(ann, { ...input, requestState: `${requestState}x` })).toMatchObject({ code: -32602 });
  });

  it('is shown and ended by its user only', async () => {
    const { place, ann, hers, his } = await open(true);
    const logins = `${place.publicUrl}/logins`;
    await place.logIn((await ann.offered()).url, hers);
    const page = await hers.open(logins);
    expect(page.text).toContain('files');
    expect((await his.open(logins)).text).toContain('You are logged in at no server');
    const form = hers.formOf(page);
    const attempts = [
      await post(his, place, '/logins', form),
      await post(hers, place, '/logins', form, { origin: 'https://evil.example' }),
      await post(hers, place, '/logins', form, { origin: 'null' }),
      await later(() => post(hers, place, '/logins', form)),
      await post(new Browser('nobody'), place, '/logins', form),
    ];
    expect(attempts.map(({ status }) => status)).toEqual([403, 403, 403, 403, 403]);
    expect(await place.loginOf('ann')).toBeDefined();
    hers.opens = anywhere;
    expect((await post(hers, place, '/logins', form)).text).toContain('You are logged in at no server');
    expect(await place.loginOf('ann')).toBeUndefined();
    expect((await ann.offered()).text).toContain('needs a login');
  });

  it('is told to its user alone, in pages that no other page can contain, and never with a token', async () => {
    const world = await open(true);
    const page = await pageOf(world, world.ann, world.hers);
    await world.place.logIn((await world.ann.offered()).url, world.hers);
    expect(page.headers.get('x-frame-options')).toBe('DENY');
    expect(page.headers.get('cache-control')).toBe('no-store');
    const secrets = [...world.place.server.secrets].filter((secret) => secret.length > 20);
    expect(secrets.length).toBeGreaterThan(0);
    const told = [...world.place.log, page.text, ...world.hers.visited].join('\n');
    expect(secrets.filter((secret) => told.includes(`${secret}`) && !isCode(told, secret))).toEqual([]);
  });
});

/** Whether a secret is the code of an answer, which the address of the answer has. */
function isCode(told: string, secret: unknown): boolean {
  return told.includes(`code=${secret}`);
}
