import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Browser, LoginPlace, type Page, type UserClient } from './login-place.js';

/*
 * The server `evil` wants the code of ann at the provider of the server `honest`, which it can redeem if it gets the verifier with it. Its
 * operator has seen the client id that the gateway has at that provider. Ann logs in at `evil`, because she uses it, too.
 */

const MISSING = { status: 404, headers: {}, body: '' };

/** A server and its provider on one origin. The provider sends no `iss`, and knows ann already, so that it asks for nothing. */
class Site {
  clientId = '';
  /** The redirect URIs of the client that was registered here. */
  readonly redirectUris: string[] = [];
  /** The registrations that this provider was asked for. */
  readonly registrations: Record<string, unknown>[] = [];
  /** The requests for tokens. */
  readonly redeemed: string[] = [];
  /** Members of the metadata in place of the own ones. */
  metadata: Readonly<Record<string, string>> = {};
  /** The document of the server. */
  document: object | undefined;
  /** Sends the browser elsewhere than back. */
  leads: ((query: URLSearchParams) => string) | undefined;
  readonly origin: string;

  static async open(clientId: string): Promise<Site> {
    const server = createServer(async (request, response) => {
      const { status, headers, body } = site.#answer(new URL(request.url ?? '', site.origin), await text(request));
      response.writeHead(status, headers).end(body);
    });
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    const site = new Site(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    site.clientId = clientId;
    return site;
  }

  private constructor(origin: string) {
    this.origin = origin;
  }

  get entry() {
    return { url: `${this.origin}/mcp`, login: 'user' };
  }

  #answer({ pathname, searchParams }: URL, body: string) {
    const { origin, clientId: client_id } = this;
    const json = (value: object) => ({ status: 200, headers: {}, body: JSON.stringify(value) });
    const to = (location: string) => ({ status: 302, headers: { location }, body: '' });
    switch (pathname) {
      case '/mcp':
        return { status: 401, headers: { 'www-authenticate': 'Bearer' }, body: '' };
      case '/.well-known/oauth-protected-resource':
        return this.document === undefined ? MISSING : json(this.document);
      case '/.well-known/oauth-authorization-server':
        return json({
          ...{ issuer: origin, authorization_endpoint: `${origin}/authorize`, token_endpoint: `${origin}/token` },
          ...{ registration_endpoint: `${origin}/register`, code_challenge_methods_supported: ['S256'] },
          ...this.metadata,
        });
      case '/register':
        this.registrations.push(JSON.parse(body));
        this.redirectUris.push(...JSON.parse(body).redirect_uris);
        return json({ client_id });
      case '/token':
        this.redeemed.push(body);
        return json({ access_token: `of-${client_id}` });
      case '/authorize': {
        if (this.leads !== undefined) return to(this.leads(searchParams));
        const uri = searchParams.get('redirect_uri') ?? '';
        if (searchParams.get('client_id') !== client_id || !this.redirectUris.includes(uri))
          return { status: 400, headers: {}, body: 'This redirect URI is not registered.' };
        return to(`${uri}?${new URLSearchParams({ code: 'code', state: searchParams.get('state') ?? '' })}`);
      }
      default:
        return MISSING;
    }
  }
}

interface World {
  readonly place: LoginPlace;
  readonly honest: Site;
  readonly evil: Site;
  readonly ann: UserClient;
  readonly hers: Browser;
}

/** Mallory has logged in at `honest`, so the gateway has a client there. */
async function open(): Promise<World> {
  const [honest, evil] = [await Site.open('client-at-honest'), await Site.open('client-at-honest')];
  const place = await LoginPlace.open({ servers: { honest: honest.entry, evil: evil.entry } });
  const [ann, mallory] = [await place.connect('ann'), await place.connect('mallory')];
  const last = await place.logIn((await mallory.offered('honest__read')).url, new Browser('mallory'));
  expect(last.text).toContain('You are logged in at honest');
  expect(honest.registrations).toMatchObject([{ client_name: 'Trunkline (honest)' }]);
  return { place, honest, evil, ann, hers: new Browser('ann') };
}

/** Logs ann in at `evil`. */
const logIn = async ({ place, ann, hers }: World) => place.logIn((await ann.offered('evil__read')).url, hers);

const ATTEMPTS: readonly (readonly [what: string, attempt: (world: World) => Promise<Page>])[] = [
  [
    'metadata with the login page of the other',
    async (world) => {
      world.evil.metadata = { authorization_endpoint: `${world.honest.origin}/authorize` };
      return logIn(world);
    },
  ],
  [
    'a login page that leads to the other, with its redirect URI',
    async (world) => {
      const { place, honest, evil } = world;
      evil.leads = (query) => {
        query.set('redirect_uri', `${place.publicUrl}/logins/callback/honest`);
        return `${honest.origin}/authorize?${query}`;
      };
      return logIn(world);
    },
  ],
  [
    'another login page than the host that the page of the gateway has named',
    async (world) => {
      const { honest, evil, ann, hers } = world;
      const page = await hers.open((await ann.offered('evil__read')).url);
      expect(page.text).toContain(`<strong>${new URL(evil.origin).host}</strong>`);
      evil.metadata = { authorization_endpoint: `${honest.origin}/authorize` };
      const last = await hers.submit(page);
      expect(hers.visited.filter((url) => url.startsWith(honest.origin))).toEqual([]);
      return last;
    },
  ],
  [
    'another login page while the login goes on',
    async (world) => {
      const { place, honest, evil, ann, hers } = world;
      evil.metadata = { authorization_endpoint: `${honest.origin}/authorize` };
      honest.redirectUris.push(`${place.publicUrl}/logins/callback/evil`);
      hers.opens = (url) => !url.startsWith(`${place.publicUrl}/logins/callback`);
      const { url } = await hers.submit(await hers.open((await ann.offered('evil__read')).url));
      expect(url).toContain('/logins/callback/evil?code=');
      evil.metadata = {};
      hers.opens = () => true;
      return hers.open(url);
    },
  ],
];

describe('a hostile server gets no code of another server by', () => {
  it.each(ATTEMPTS)('%s', async (_, attempt) => {
    const world = await open();
    const { status, text: told } = await attempt(world);
    expect(status).toBeGreaterThanOrEqual(400);
    expect(told).not.toContain('You are logged in');
    expect(world.evil.redeemed).toEqual([]);
  });
});

describe('the browser of a user is not shown', () => {
  const KEY = 'key-of-the-operator-4711';

  it('a secret in the URL of a server, by the address of its provider or by a fault', async () => {
    const site = await Site.open('client');
    const entry = { ...site.entry, url: `${site.entry.url}?key=${KEY}` };
    const place = await LoginPlace.open({ servers: { keyed: entry } });
    const [ann, hers] = [await place.connect('ann'), new Browser('ann')];
    const last = await place.logIn((await ann.offered('keyed__read')).url, hers);
    expect(last.text).toContain('You are logged in at keyed');
    const [page = ''] = hers.visited.filter((url) => url.startsWith(`${site.origin}/authorize`));
    expect(new URL(page).searchParams.get('resource')).toBe(site.entry.url);
    expect(hers.visited.join()).not.toContain(KEY);
    site.document = { resource: 'https://other.example/mcp' };
    const bob = await place.connect('bob');
    const fault = await place.logIn((await bob.offered('keyed__read')).url, new Browser('bob'));
    expect(fault.status).toBe(502);
    expect(fault.text).toContain('names another server as its resource');
    expect(fault.text).not.toContain(KEY);
  });

  it('the folder of the logins if they cannot be stored', async () => {
    const site = await Site.open('client');
    const place = await LoginPlace.open({ servers: { one: site.entry } });
    const ann = await place.connect('ann');
    const { url } = await ann.offered('one__read');
    const folder = join(place.folder, 'trunkline', 'auth');
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    writeFileSync(join(folder, 'key'), 'damaged', { mode: 0o600 });
    const { status, text: told } = await place.logIn(url, new Browser('ann'));
    expect([status, told]).toEqual([502, expect.stringContaining('The login at one cannot be stored.')]);
    expect(told).not.toContain(place.folder);
    expect(place.log.join()).toContain(join(folder, 'key'));
  });
});

describe('the registration of all users at a server', () => {
  it('has the scopes of all, and is not replaced when a login ends', async () => {
    const site = await Site.open('client');
    const wanting = (scope: string) => {
      site.document = { resource: site.entry.url, scopes_supported: [scope] };
    };
    const place = await LoginPlace.open({ servers: { one: site.entry } });
    const isLoggedIn = async (name: string) => {
      const user = await place.connect(name);
      return (await place.logIn((await user.offered('one__read')).url, new Browser(name))).text;
    };
    const [ann, hers] = [await place.connect('ann'), new Browser('ann')];
    wanting('a');
    hers.opens = (url) => !url.startsWith(`${place.publicUrl}/logins/callback`);
    const { url } = await hers.submit(await hers.open((await ann.offered('one__read')).url));
    wanting('b');
    hers.opens = () => true;
    expect((await hers.open(url)).text).toContain('You are logged in at one');
    expect(site.registrations).toMatchObject([{ scope: 'a' }]);
    expect(await isLoggedIn('bob')).toContain('You are logged in at one');
    wanting('a');
    expect(await isLoggedIn('carl')).toContain('You are logged in at one');
    expect(site.registrations).toMatchObject([{ scope: 'a' }, { scope: 'a b' }]);
  });
});
