import { describe, expect, it } from 'vitest';
import { Clients } from '../../../src/extras/front/clients.js';
import { Redirects } from '../../../src/extras/front/redirects.js';
import { SealedTexts } from '../../../src/extras/sealed-texts.js';
import { FakeClock } from '../../support/fake-clock.js';
import { Browser, CLIENT_ID, FrontPlace, paramsOf, REDIRECT } from './front-place.js';

const DOCUMENT = 'https://client.example/oauth/client.json';

/** A place whose front finds these documents of clients. */
async function withDocuments(documents: Readonly<Record<string, object>>, headers = {}) {
  const read: string[] = [];
  const fetchDocument = async (url: string) => {
    read.push(url);
    const found = documents[url];
    return found === undefined ? new Response('', { status: 404 }) : Response.json(found, { headers });
  };
  return { place: await FrontPlace.open({ fetchDocument }), read };
}

/** What a browser shows that opens the login of a client. */
async function shown(place: FrontPlace, more: Readonly<Record<string, string>>) {
  return await new Browser('alice').open((await place.begin(more)).url);
}

describe('a registration', () => {
  it('answers with an id that has the redirect URIs, and with no secret', async () => {
    const place = await FrontPlace.open();
    const sent = {
      client_name: 'Test Client',
      redirect_uris: [REDIRECT],
      token_endpoint_auth_method: 'client_secret_post',
    };
    const { status, body, headers } = await place.ask('/register', JSON.stringify(sent));
    expect([status, headers.get('cache-control')]).toEqual([201, 'no-store']);
    expect(body).toEqual({
      ...{ client_id: expect.any(String), client_id_issued_at: expect.any(Number), client_name: 'Test Client' },
      ...{ redirect_uris: [REDIRECT], grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'] },
      token_endpoint_auth_method: 'none',
    });
    // The id is sealed, so it shows nothing.
    expect(Buffer.from(body.client_id, 'base64url').toString('latin1')).not.toContain('127.0.0.1');
  });

  it.each([
    'http://localhost:3118/callback',
    'http://[::1]:1/',
    'https://claude.ai/api/mcp/auth_callback',
    'https://claude.com/api/mcp/auth_callback',
    'cursor://anysphere.cursor-mcp/oauth/callback',
  ])('with %s is accepted', async (uri) => {
    const place = await FrontPlace.open();
    const client_id = await place.register([uri]);
    expect((await shown(place, { client_id, redirect_uri: uri })).text).toContain('/authorize/consent');
  });

  it.each([
    'https://evil.example/callback',
    'http://evil.example/callback',
    'http://127.0.0.1.evil.example/callback',
    'http://localhost.evil.example/callback',
    'http://user:password@localhost/callback',
    'http://localhost/callback#fragment',
    'https://claude.ai/api/mcp/auth_callback/',
    'https://claude.ai/api/mcp/auth_callback?to=https://evil.example',
    'https://claude.ai:8443/api/mcp/auth_callback',
    'https://claude.ai/api/mcp/auth_callback/../../../evil',
    'https://claude.ai.evil.example/api/mcp/auth_callback',
    'HTTPS://claude.ai/api/mcp/auth_callback',
    'https://localhost/callback',
    'javascript:alert(1)',
    'data:text/html,x',
    'file:///etc/passwd',
    'myapp://callback',
    'cursor:',
    'cursor://anysphere.cursor-deeplink/mcp/install?name=x&config=e30',
    'cursor://anysphere.cursor-mcp/oauth/callback?next=install',
    'cursor://anysphere.cursor-mcp/oauth/../install',
    'vscode://vscode.git/clone?url=https://evil.example',
    'vscode-insiders://publisher.extension/callback',
  ])('with %s is refused with its name', async (uri) => {
    const place = await FrontPlace.open();
    const { status, body } = await place.ask('/register', JSON.stringify({ redirect_uris: [uri] }));
    expect([status, body.error]).toEqual([400, 'invalid_redirect_uri']);
    expect(body.error_description).toContain(`The redirect URI ${uri.slice(0, 200)}`);
  });

  it.each([
    'vscode',
    '/callback',
    'Call +1 555 0100, your account is blocked',
    '<b>x</b>',
    `http://localhost/${'x'.repeat(1_024)}`,
  ])('with %.40s is refused without the text, which a page would show', async (uri) => {
    const place = await FrontPlace.open();
    const { body } = await place.ask('/register', JSON.stringify({ redirect_uris: [uri] }));
    expect(body.error_description).toBe('The redirect URI is no address.');
  });

  it('leaves out the redirect URIs that are not allowed, if another one is', async () => {
    const place = await FrontPlace.open();
    const uris = ['https://insiders.vscode.dev/redirect', 'http://127.0.0.1/', 'http://127.0.0.1:33418/'];
    const { body } = await place.ask('/register', JSON.stringify({ redirect_uris: uris }));
    expect(body.redirect_uris).toEqual(uris.slice(1));
    const page = await shown(place, { client_id: body.client_id, redirect_uri: uris[0] ?? '' });
    expect(page.text).toContain(`The redirect URI ${uris[0]} is not among those that this gateway allows.`);
  });

  it('follows the list of the configuration instead', async () => {
    const place = await FrontPlace.open({ front: { redirects: ['https://app.example/callback', 'myapp://x'] } });
    const uris = [
      REDIRECT,
      'https://app.example/callback',
      'myapp://x',
      'cursor://anysphere.cursor-mcp/oauth/callback',
    ];
    const { body } = await place.ask('/register', JSON.stringify({ redirect_uris: uris }));
    expect(body.redirect_uris).toEqual(uris.slice(1, 3));
  });

  it.each([
    ['no JSON', 'x'],
    ['no list', '{"redirect_uris":"http://localhost/"}'],
    ['an empty list', '{"redirect_uris":[]}'],
    ['a list of numbers', '{"redirect_uris":[1]}'],
    ['a long list', JSON.stringify({ redirect_uris: Array.from({ length: 17 }, () => REDIRECT) })],
    ['long URIs', JSON.stringify({ redirect_uris: Array.from({ length: 3 }, () => `${REDIRECT}/${'x'.repeat(700)}`) })],
  ])('with %s is refused', async (_, body) => {
    const place = await FrontPlace.open();
    const answer = await place.ask('/register', body);
    expect([answer.status, answer.body.error]).toEqual([400, 'invalid_redirect_uri']);
  });

  it('gives clients of a host the id of the configuration for it, at logins and at renewals', async () => {
    const place = await FrontPlace.open({
      front: { clientIds: { 'claude.ai': 'for-claude', 'cursor:': 'for-cursor' } },
    });
    const idFor = async (redirect_uri: string, ...others: string[]) => {
      const client_id = await place.register([redirect_uri, ...others]);
      const browser = new Browser('alice');
      browser.opens = (url) => url.startsWith(place.publicUrl);
      const { url } = await browser.submit(await browser.open((await place.begin({ client_id, redirect_uri })).url));
      await place.renew(client_id, 'a-refresh-token');
      return [paramsOf(url).get('client_id'), place.provider.to('/token').at(-1)?.params.get('client_id')];
    };
    expect(await idFor('https://claude.ai/api/mcp/auth_callback')).toEqual(['for-claude', 'for-claude']);
    expect(await idFor('cursor://anysphere.cursor-mcp/oauth/callback')).toEqual(['for-cursor', 'for-cursor']);
    expect(await idFor(REDIRECT)).toEqual([CLIENT_ID, CLIENT_ID]);
    expect(await idFor(REDIRECT, 'https://claude.ai/api/mcp/auth_callback')).toEqual([CLIENT_ID, CLIENT_ID]);
  });
});

describe('a client whose id is the URL of a document', () => {
  const document = { client_id: DOCUMENT, client_name: 'Published', redirect_uris: ['http://127.0.0.1/callback'] };

  it('logs in with the redirect URIs of the document, which is read once', async () => {
    const { place, read } = await withDocuments({ [DOCUMENT]: document });
    const begun = await place.begin({ client_id: DOCUMENT });
    const browser = new Browser('alice');
    expect((await browser.open(begun.url)).text).toContain(
      'Its name is published at https://client.example/oauth/client.json.',
    );
    const code = paramsOf(await browser.logIn(begun.url)).get('code') ?? '';
    const { status, body } = await place.redeem({ ...begun, code });
    expect(status).toBe(200);
    expect((await place.renew(DOCUMENT, body.refresh_token)).status).toBe(200);
    expect(read).toEqual([DOCUMENT]);
  });

  it('is read about again if its document may not be kept', async () => {
    const { place, read } = await withDocuments({ [DOCUMENT]: document }, { 'cache-control': 'no-store' });
    for (const _ of [1, 2]) await shown(place, { client_id: DOCUMENT });
    expect(read).toHaveLength(2);
  });

  it.each([
    ['that does not exist', {}],
    ['about another client', { [DOCUMENT]: { ...document, client_id: 'https://other.example/client.json' } }],
    ['without redirect URIs', { [DOCUMENT]: { client_id: DOCUMENT, client_name: 'Published' } }],
    ['with other redirect URIs', { [DOCUMENT]: { ...document, redirect_uris: ['http://127.0.0.1/other'] } }],
    [
      'with redirect URIs that are not allowed',
      { [DOCUMENT]: { ...document, redirect_uris: ['https://evil.example/'] } },
    ],
  ])('is refused with a document %s', async (_, documents) => {
    const { place } = await withDocuments(documents);
    expect((await shown(place, { client_id: DOCUMENT })).status).toBe(400);
  });

  it.each([
    'https://client.example',
    'https://client.example/',
    'https://client.example/a/../client.json',
    'https://client.example/client.json#x',
    'https://user@client.example/client.json',
    'https://CLIENT.example/client.json',
    'http://client.example/client.json',
    'file:///etc/passwd',
    `https://client.example/${'x'.repeat(512)}`,
  ])('is unknown as %s, which is not read', async (url) => {
    const { place, read } = await withDocuments({ [url]: { ...document, client_id: url } });
    expect((await shown(place, { client_id: url })).status).toBe(400);
    expect((await place.renew(url, 'a-refresh-token')).body.error).toBe('invalid_client');
    expect(read).toEqual([]);
  });

  it('is not read about if too many others are', async () => {
    const documents = Object.fromEntries(
      Array.from({ length: 40 }, (_, at) => [
        `https://client.example/${at}`,
        { ...document, client_id: `https://client.example/${at}` },
      ]),
    );
    const { place, read } = await withDocuments(documents);
    const pages = await Promise.all(Object.keys(documents).map((client_id) => shown(place, { client_id })));
    expect(pages.some(({ text }) => text.includes('reading about too many programs'))).toBe(true);
    expect(read.length).toBeLessThan(40);
    // Those of another host still are.
    await shown(place, { client_id: 'https://other.example/client.json' });
    expect(read.at(-1)).toBe('https://other.example/client.json');
  });
});

describe('what is known of documents of clients', () => {
  const HOUR_MS = 60 * 60_000;
  const urlOf = (at: number, host = 'client.example') => `https://${host}/${at}`;

  /** Clients whose documents exist, until `state` says otherwise. */
  function clientsWith() {
    const clock = new FakeClock();
    const state = { mayFetch: true, answer: (url: string) => Response.json({ ...DOCUMENT_MEMBERS, client_id: url }) };
    const read: string[] = [];
    const faults: string[] = [];
    const config = { clientId: 'x' };
    const clients = new Clients({
      ...{ config, clock, redirects: new Redirects(), sealed: new SealedTexts([Buffer.alloc(32, 7)], () => 0) },
      mayFetch: () => state.mayFetch,
      fetchDocument: async (url) => {
        read.push(url);
        return state.answer(url);
      },
      onFault: (_, fault) => faults.push(fault),
    });
    return { clients, clock, state, read, faults };
  }
  const DOCUMENT_MEMBERS = { client_name: 'x', redirect_uris: [REDIRECT] };

  it('stays in use for a day while strangers use up the rate', async () => {
    const { clients, clock, state } = clientsWith();
    await clients.find(urlOf(1));
    state.mayFetch = false;
    clock.advance(23 * HOUR_MS);
    expect((await clients.find(urlOf(1))).name).toBe('x');
    clock.advance(HOUR_MS);
    await expect(clients.find(urlOf(1))).rejects.toThrow('too many programs');
    await expect(clients.find(urlOf(2))).rejects.toThrow('too many programs');
  });

  it('stays in use for a day while the host of the document is away', async () => {
    const { clients, clock, state } = clientsWith();
    await clients.find(urlOf(1));
    state.answer = () => new Response('', { status: 502 });
    for (const passed of [HOUR_MS, 1_000, 22 * HOUR_MS]) {
      clock.advance(passed);
      expect((await clients.find(urlOf(1))).name).toBe('x');
    }
    clock.advance(HOUR_MS);
    await expect(clients.find(urlOf(1))).rejects.toThrow('cannot be used');
  });

  it('is not asked for again for half a minute if it cannot be used, and only the log says why', async () => {
    const { clients, clock, state, read, faults } = clientsWith();
    state.answer = () => {
      throw new Error('connect ECONNREFUSED 10.0.0.7:443');
    };
    for (const _ of [1, 2])
      await expect(clients.find(urlOf(1))).rejects.toThrow(/^[^0-9]*client.example\/1 about[^0-9]*$/);
    expect([read.length, faults]).toEqual([1, ['connect ECONNREFUSED 10.0.0.7:443']]);
    clock.advance(30_000);
    await expect(clients.find(urlOf(1))).rejects.toThrow();
    expect(read).toHaveLength(2);
  });

  it('is forgotten for the client that has been away longest', async () => {
    const { clients, read } = clientsWith();
    for (let at = 0; at < 256; at += 1) await clients.find(urlOf(at));
    await clients.find(urlOf(0));
    await clients.find(urlOf(256));
    read.length = 0;
    for (const at of [0, 2, 1]) await clients.find(urlOf(at));
    expect(read).toEqual([urlOf(1)]);
  });
});
