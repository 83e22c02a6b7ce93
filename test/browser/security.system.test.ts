// Other sites in the browser of a user whose page is open. What other programs can send is tested in `test/web/server`.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { BrowserContext, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { PagePlace, textOf } from '../support/page-place.js';
import { until } from '../support/processes.js';

const text = (request: string) => `${request}.then((answer) => answer.text(), () => '')`;
const json = `headers: { 'Content-Type': 'application/json' }, body: '{"server":"lab"}'`;

/** Attempts of another site. The value of each script is what it gained. `WEB` is the origin of the page. */
const ATTEMPTS = {
  'reads data with the cookie': text("fetch(WEB + '/findings', { credentials: 'include' })"),
  'reads data with a key of its own': text(
    "fetch(WEB + '/findings', { credentials: 'include', headers: { 'X-Trunkline-Key': 'k' } })",
  ),
  'reads an answer without CORS': text("fetch(WEB + '/findings', { credentials: 'include', mode: 'no-cors' })"),
  'reads the stream': text("fetch(WEB + '/stream', { credentials: 'include' })"),
  'reads the stream as an EventSource': `new Promise((resolve) => {
    const source = new EventSource(WEB + '/stream', { withCredentials: true });
    source.onmessage = ({ data }) => resolve(data);
    source.onerror = () => resolve('');
  })`,
  'opens a WebSocket': `new Promise((resolve) => {
    const socket = new WebSocket(WEB.replace('http', 'ws') + '/stream');
    socket.onopen = () => resolve('open');
    socket.onerror = () => resolve('');
  })`,
  'restarts a server': text(`fetch(WEB + '/restart', { method: 'POST', credentials: 'include', ${json} })`),
  'restarts a server with JSON that it calls text': text(
    `fetch(WEB + '/restart', { method: 'POST', credentials: 'include', mode: 'no-cors', body: '{"server":"lab"}' })`,
  ),
  'asks for a session': text(
    "fetch(WEB + '/session', { method: 'POST', credentials: 'include', mode: 'no-cors', body: '{}' })",
  ),
  'ends the session': text("fetch(WEB + '/session', { method: 'DELETE', credentials: 'include' })"),
  'loads the document as a script': `new Promise((resolve) => {
    const script = document.createElement('script');
    script.onload = () => resolve('loaded');
    script.onerror = () => resolve('');
    script.src = WEB + '/';
    document.head.append(script);
  })`,
};

let place: PagePlace;
let context: BrowserContext;
/** The page that another site attacks. */
let victim: Page;
let web: string;
let site: Server;
let port: number;
/** Answers of `trunkline web` to pages of other sites. */
let answers: number[];
/** Cookies that the browser sent to other sites. */
let cookies: string;

beforeAll(async () => {
  // The name stands for one whose owner points it at 127.0.0.1 after a browser has loaded a page from it.
  const browser = ['--host-resolver-rules=MAP rebound.example 127.0.0.1'];
  place = await PagePlace.open({ servers: { lab: { sharing: 'profile' } }, browser });
  web = await place.web.origin;
  context = await place.context();
  victim = await context.newPage();
  await victim.goto(await place.web.url());
  await victim.locator('main h1').waitFor();
  site = createServer(({ headers }, response) => {
    cookies += headers.cookie ?? '';
    response.writeHead(200, { 'Content-Type': 'text/html' }).end('<title>Other site</title><p>Other site</p>');
  });
  await new Promise<void>((resolve) => site.listen(0, resolve));
  ({ port } = site.address() as AddressInfo);
  context.on('response', (answer) => {
    const request = answer.request();
    // The frame of a new window is not known yet.
    const isOthers = request.isNavigationRequest() || request.frame().page() !== victim;
    if (answer.url().startsWith(web) && isOthers) answers.push(answer.status());
  });
});

beforeEach(() => {
  answers = [];
  cookies = '';
});

afterEach(async () => {
  for (const page of context.pages()) if (page !== victim) await page.close();
  // The browser reports refusals as errors of the pages of other sites.
  expect(
    place.faults(/^http:\/\/[^/]+\/attack: /, /^chrome-error:/, /^http:\/\/rebound\.example/, /status of 403/),
  ).toEqual([]);
});

afterAll(async () => {
  site.close();
  await place.dispose();
});

async function attack(host: string): Promise<Page> {
  const page = await context.newPage();
  await page.goto(`http://${host}:${port}/attack`);
  return page;
}

// Cookies and the word "site" do not know ports. To the browser, the first is the same site as the page.
describe.each(['127.0.0.1', 'localhost', 'rebound.example'])('a page of another port at %s', (host) => {
  it.each(Object.entries(ATTEMPTS))('gains nothing when it %s', async (_, script) => {
    const page = await attack(host);
    const servers = place.hub.serverPids('lab.mjs');
    const urls = place.web.urls.length;
    expect(await page.evaluate(`{ const WEB = ${JSON.stringify(web)}; ${script} }`)).toBe('');
    // A refusal before the request leaves no answer.
    expect(answers.filter((status) => status !== 403)).toEqual([]);
    expect(place.hub.serverPids('lab.mjs')).toEqual(servers);
    expect(place.web.urls).toHaveLength(urls);
    expect(await textOf(victim, 'main h1')).toBe('Needs you');
  });

  it('cannot show the page in a frame', async () => {
    const page = await attack(host);
    await page.evaluate(`new Promise((resolve) => {
      const frame = document.createElement('iframe');
      frame.onload = resolve;
      frame.src = ${JSON.stringify(`${web}/`)};
      document.body.append(frame);
    })`);
    const [, frame] = page.frames();
    expect(await frame?.evaluate('document.documentElement.innerText')).not.toContain('Trunkline');
    expect(answers).toEqual([403]);
  });

  it('cannot open the page in a window that it keeps', async () => {
    const page = await attack(host);
    const opened = context.waitForEvent('page');
    await page.evaluate(`self.opened = open(${JSON.stringify(`${web}/`)})`);
    const window = await opened;
    await window.waitForLoadState();
    expect(await textOf(window, 'body')).toContain('Paste the address into the browser');
    expect(answers[0]).toBe(403);
  });

  it('cannot submit a form to it', async () => {
    const page = await attack(host);
    const servers = place.hub.serverPids('lab.mjs');
    await page.evaluate(`{
      const form = document.createElement('form');
      form.method = 'POST';
      form.enctype = 'text/plain';
      form.action = ${JSON.stringify(`${web}/restart`)};
      const input = document.createElement('input');
      input.name = '{"server":"lab","x":"';
      input.value = '"}';
      form.append(input);
      document.body.append(form);
      form.submit();
    }`);
    await page.waitForURL(`${web}/restart`);
    expect(answers).toEqual([403]);
    expect(place.hub.serverPids('lab.mjs')).toEqual(servers);
  });
});

it('another port of the same host gets the cookie of the browser, which opens nothing without the key', async () => {
  const page = await attack('127.0.0.1');
  expect(cookies).toMatch(/^trunkline_\d+=/);
  expect(await page.evaluate('document.cookie')).toBe('');
  const headers = { Origin: web, Cookie: cookies };
  expect((await fetch(`${web}/findings`, { headers })).status).toBe(401);
});

it('a name that points at this machine does not open the page', async () => {
  const page = await context.newPage();
  const answer = await page.goto(`http://rebound.example:${new URL(web).port}/`);
  expect(answer?.status()).toBe(403);
  expect(await textOf(page, 'body')).toContain('The header Host must be');
});

it('the code stays in no address, history or request', async () => {
  const page = await (await place.context()).newPage();
  const sent: string[] = [];
  page.on('request', (request) => sent.push(request.url(), JSON.stringify(request.headers())));
  await page.goto('about:blank');
  const url = await place.web.url();
  const code = new URL(url).hash.replace(/^#(code=)?/, '');
  expect(code).toMatch(/^[\w-]{32,}$/);
  await page.goto(url);
  await page.locator('main h1').waitFor();
  expect(page.url()).toBe(`${web}/#/needs`);
  expect(sent.length).toBeGreaterThan(2);
  // Playwright shows the fragment of a navigation, which is not sent.
  expect(sent.filter((text) => text !== url && text.includes(code))).toEqual([]);
  await page.goBack();
  expect(page.url()).not.toContain(code);
  await page.context().close();
});

it('a code that is used twice ends the session that it opened, and the page says so', async () => {
  const url = await place.web.url();
  const first = await (await place.context()).newPage();
  await first.goto(url);
  await first.locator('main h1').waitFor();
  const second = await (await place.context()).newPage();
  await second.goto(url);
  await second.getByText('needs a new link').waitFor();
  await second.getByText('shows a new link in its terminal').waitFor();
  await first.getByText('The session has ended').waitFor();
  await until('the command says so', () => place.web.stderr.includes('A URL was used twice'));
  // Later reports would be counted for the next test.
  await Promise.all([first, second].map((page) => page.context().close()));
  // The browser reports the refusals, and the end of the stream.
  expect(place.faults(/status of 40[13]/, /\/stream$/)).toEqual([]);
});
